"""readmap estimate, and searches of shards with its sample model: together they write the records of one search."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from commands import failures
from examples import Read, draw_pairs, fasta, fastq, small_genome, substitute

from readmap.cli import main
from readmap.run import sample

GENERATOR = random.Random(31)
CONTIGS = small_genome(GENERATOR)
PAIRS = draw_pairs(GENERATOR, CONTIGS, 240)
SHARD = 50  # pairs

failure = failures(lambda *arguments: main([*map(str, arguments)]))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("READMAP_INDEX", "ref.fa.readmap")
    monkeypatch.setattr(sample, "READS", 60)
    monkeypatch.setattr(sample, "PAIRS", 60)
    Path("ref.fa").write_bytes(fasta(CONTIGS))
    assert main(["index", "ref.fa", "-q", "--device", "cpu"]) == 0
    write("all", PAIRS)


def parts(reads: list[Any]) -> list[list[Any]]:
    """Divide reads into shards of SHARD pairs."""
    return [reads[begin : begin + SHARD] for begin in range(0, len(reads), SHARD)]


def write(name: str, pairs: list[tuple[Read, Read]]) -> list[str]:
    names = [f"{name}_{mate}.fq" for mate in (1, 2)]
    for path, mates in zip(names, zip(*pairs, strict=True), strict=True):
        Path(path).write_bytes(fastq(mates))
    return names


def search(*arguments: str) -> list[bytes]:
    """Return the records of a search."""
    assert main(["search", *arguments, "--device", "cpu", "-q", "-o", "out.sam"]) == 0
    return [line for line in Path("out.sam").read_bytes().splitlines() if not line.startswith(b"@")]


def estimate(*arguments: str) -> None:
    assert main(["estimate", *arguments, "--device", "cpu", "-q", "-o", "sample.json"]) == 0


@pytest.mark.parametrize("options", [[], ["-A", "2"], ["-R", r"@RG\tID:x\tLB:lib\tSM:s"], ["-a"]])
def test_shards_are_together_one_run(options: list[str]) -> None:
    scores = options if options == ["-A", "2"] else []
    estimate("all_1.fq", "all_2.fq", *scores)
    shards = [write(f"shard{number}", pairs) for number, pairs in enumerate(parts(PAIRS))]
    found = [record for shard in shards for record in search(*shard, "--sample-model", "sample.json", *options)]
    assert found == search("all_1.fq", "all_2.fq", *options)
    assert found != [record for shard in shards for record in search(*shard, *options)]


def test_single_reads() -> None:
    reads = [Read(read.name, substitute(GENERATOR, read.bases, 2), read.quality) for pair in PAIRS for read in pair]
    Path("reads.fq").write_bytes(fastq(reads))
    estimate("reads.fq")
    assert json.loads(Path("sample.json").read_text())["libraries"] == {"": None}
    found = []
    for part in parts(reads):
        Path("part.fq").write_bytes(fastq(part))
        found += search("part.fq", "--sample-model", "sample.json")
    assert found == search("reads.fq")


def test_lanes_of_two_libraries() -> None:
    """The second lane of a library is not read."""
    lanes = []
    for number, (library, pairs) in enumerate(zip("abb", (PAIRS[:90], PAIRS[90:190], PAIRS[190:]), strict=True)):
        names = write(f"lane{number}", pairs)
        lanes += ["--lane", ",".join([*names, rf"@RG\tID:{number}\tLB:{library}\tSM:s"])]
    estimate(*lanes)
    assert json.loads(Path("sample.json").read_text())["libraries"].keys() == {"a", "b"}
    found = [record for at in (0, 2, 4) for record in search(*lanes[at : at + 2], "--sample-model", "sample.json")]
    assert found == search(*lanes)


def test_given_insert_size() -> None:
    estimate("all_1.fq", "all_2.fq", "-I", "300,40")
    (size,) = json.loads(Path("sample.json").read_text())["libraries"][""]
    assert (size["direction"], size["mean"], size["deviation"]) == ("FR", 300, 40)
    assert search("all_1.fq", "all_2.fq", "--sample-model", "sample.json") == search(
        "all_1.fq", "all_2.fq", "-I", "300,40"
    )


def test_no_reads() -> None:
    Path("none.fq").write_bytes(b"")
    estimate("none.fq")
    assert json.loads(Path("sample.json").read_text())["bases_per_difference"] is None
    assert search("none.fq", "--sample-model", "sample.json") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample-model", "all_1.fq"], "all_1.fq: expected a file that readmap estimate has written"),
        (["--sample-model", "other.json"], "other.json: expected format 2 of readmap estimate, found 1"),
        (["--sample-model", "none.json"], "none.json: No such file or directory"),
    ],
)
def test_invalid_files(capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    estimate("all_1.fq", "all_2.fq")
    record = json.loads(Path("sample.json").read_text())
    Path("other.json").write_text(json.dumps(record | {"format": 1}))
    (size,) = record["libraries"][""]
    for number, changed in enumerate(
        [
            {"bases_per_difference": 0},
            {"bases_per_difference": 1e9},
            {"bases_per_difference": "many"},
            {"libraries": {"": [size | {"high": 1 << 40}]}},
            {"libraries": {"": [size | {"low": -5}]}},
            {"libraries": {"": [size | {"mean": float("nan")}]}},
            {"libraries": {"": [size | {"direction": "up"}]}},
            {"libraries": {"": [{}]}},
            {"libraries": []},
        ]
    ):
        Path(f"wrong{number}.json").write_text(json.dumps(record | changed))
        found = failure(capfd, "search", "all_1.fq", "all_2.fq", "--sample-model", f"wrong{number}.json", code=1)
        assert found == f"wrong{number}.json: expected a file that readmap estimate has written"
    assert failure(capfd, "search", "all_1.fq", "all_2.fq", *arguments, code=1) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-A", "3"], "--sample-model sample.json: it was estimated with other scores"),
        (["-I", "300"], "-I: not with --sample-model, which contains it"),
        (["--exact"], "--sample-model: not with --exact, which estimates nothing"),
        (["-x", "small.fa"], "--sample-model sample.json: it was estimated with another reference"),
    ],
)
def test_searches_with_other_settings(capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    estimate("all_1.fq", "all_2.fq")
    Path("small.fa").write_bytes(fasta({"one": CONTIGS[next(iter(CONTIGS))]}))
    assert main(["index", "small.fa", "-q", "--device", "cpu"]) == 0
    reads = ["all_1.fq"] if "--exact" in arguments else ["all_1.fq", "all_2.fq"]
    found = failure(capfd, "search", *reads, "--sample-model", "sample.json", *arguments, code=2)
    assert found.startswith(message)


def test_an_unknown_library(capfd: pytest.CaptureFixture[str]) -> None:
    estimate("--lane", r"all_1.fq,all_2.fq,@RG\tID:1\tLB:a\tSM:s")
    found = failure(
        *(capfd, "search", "--lane", r"all_1.fq,all_2.fq,@RG\tID:1\tLB:b\tSM:s", "--sample-model", "sample.json"),
        code=2,
    )
    assert found == "--sample-model sample.json: it has the library a, and reads are of the library b"


def test_output_is_not_a_file_of_reads(capfd: pytest.CaptureFixture[str]) -> None:
    assert failure(capfd, "estimate", "all_1.fq", "all_2.fq", "-o", "all_1.fq", code=2).startswith("-o all_1.fq")
