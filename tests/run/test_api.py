"""readmap.search and readmap.estimate: the records of the command, and a summary."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pysam
import pytest
from examples import draw_pairs, fasta, fastq, small_genome

import readmap
from readmap.cli import main
from readmap.run import sample
from readmap.run.config import SearchConfig
from readmap.run.conflicts import check_conflicts

DRAW = random.Random(52)
CONTIGS = small_genome(DRAW)
PAIRS = draw_pairs(DRAW, CONTIGS, 120)
FILES = ["r1.fq", "r2.fq"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ref.fa").write_bytes(fasta(CONTIGS))
    assert main(["index", "ref.fa", "-q", "--device", "cpu"]) == 0
    for path, mates in zip(FILES, zip(*PAIRS, strict=True), strict=True):
        Path(path).write_bytes(fastq(mates))


def records(path: str) -> list[str]:
    with pysam.AlignmentFile(path, check_sq=False) as file:
        return [record.to_string() for record in file]


def test_search_writes_the_records_of_the_command() -> None:
    options: dict[str, Any] = {"sort": True, "mark_duplicates": True, "report": "s.html", "metrics": "m.txt"}
    summary = readmap.search(FILES, "ref.fa", output=Path("out.bam"), threads=1, device="cpu", **options)
    words = ["--sort", "--markdup", "--report", "c.html", "--metrics", "c.txt", "--json", "c.json"]
    assert main(["search", *FILES, "-x", "ref.fa", "-o", "c.bam", "--device", "cpu", "-q", *words]) == 0
    assert records("out.bam") == records("c.bam")
    assert Path("out.bam.bai").exists()
    known = json.loads(Path("c.json").read_text())
    told = json.loads(json.dumps(summary.as_json()))
    same = ("counts", "mapq_histogram", "insert_sizes", "duplicates", "bases_per_difference", "reads")
    assert {name: told[name] for name in same} == {name: known[name] for name in same}
    assert told["quality"][0]["reads"] == 240
    assert isinstance(summary, readmap.SearchSummary)
    assert summary.counts["reads"] == 240
    assert int(summary.mapq_histogram.sum()) == summary.counts["mapped"]
    assert [*summary.insert_sizes] == [""]
    assert summary.duplicates is not None
    assert summary.outputs == {"output": "out.bam", "metrics": "m.txt"}


def test_exact_search() -> None:
    summary = readmap.search("r1.fq", "ref.fa", output="out.tsv", exact=True, device="cpu")
    assert isinstance(summary, readmap.ExactSearchSummary)
    assert summary.counts["reads"] == 120
    assert Path("out.tsv").read_text().startswith("query\tcount")


def test_estimate_for_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "READS", 60)
    monkeypatch.setattr(sample, "PAIRS", 60)
    model = readmap.estimate(FILES, "ref.fa", device="cpu")
    assert main(["split", *FILES, "-o", "reads.split", "-q"]) == 0
    options: dict[str, Any] = {"sample_model": model, "split": "reads.split", "device": "cpu"}
    for number in (1, 2):
        readmap.search(FILES, "ref.fa", output=f"{number}.sam", shard=f"{number}/2", **options)
    readmap.search(FILES, "ref.fa", output="all.sam", device="cpu")
    assert records("1.sam") + records("2.sam") == records("all.sam")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mark_duplicates": True}, "mark_duplicates: only with sort"),
        ({"shard": "1/2"}, "shard: only with split"),
        ({"shard": "3/2"}, "shard 3/2: expected I/N"),
        ({"sort_memory": "2X"}, "sort_memory 2X: expected a size such as 8G or 500M"),
        ({"codec": "zip"}, "codec: expected auto, libdeflate or nvcomp, found 'zip'"),
        ({"level": 13}, "level is 13, expected 1 to 12"),
        ({"reads": FILES, "lanes": [("r1.fq",)]}, "reads: not with lanes or sheet"),
        ({"pairing": readmap.Pairing(rescue=False), "reads": "r1.fq"}, "pairing: only for pairs"),
        ({"output": "r1.fq", "format": "sam"}, "output r1.fq is a file of the reads"),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    given = {"reads": FILES, "output": "out.bam", "device": "cpu"} | options
    with pytest.raises(readmap.UsageError) as raised:
        readmap.search(given.pop("reads"), "ref.fa", **given)
    assert str(raised.value).startswith(message)
    assert not Path("out.bam").exists()


def test_unknown_arguments() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'sorted'"):
        readmap.search(FILES, "ref.fa", output="out.bam", sorted=True)


def test_options_that_are_given_with_their_default_conflict_too() -> None:
    config = SearchConfig(reads=("r1.fq",), output="out.sam")
    with pytest.raises(readmap.UsageError, match="strand: only with exact"):
        check_conflicts(config, {"strand"})
