"""readmap merge: records, duplicates, metrics and report are identical after a merge and in one run."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest
from commands import failures
from examples import Read, draw_pairs, fasta, fastq, small_genome

from readmap.cli import main
from readmap.run import sample

GENERATOR = random.Random(32)
CONTIGS = small_genome(GENERATOR)
BARCODES = ("ACGT", "TTTT", "ACGA")
SHARDS = 3

failure = failures(lambda *arguments: main([*map(str, arguments)]))


def draw() -> list[tuple[Read, Read]]:
    """Draw pairs with duplicates, also in other shards, with names of one tile and barcodes."""
    pairs = draw_pairs(GENERATOR, CONTIGS, 90)
    drawn = []
    for number in range(240):
        mates = pairs[GENERATOR.randrange(90)]
        x, y = (GENERATOR.randrange(1000, 1150) for _ in range(2))
        name = f"m:{number}:f:1:1101:{x}:{y}:{GENERATOR.choice(BARCODES)}"
        drawn.append((replace(mates[0], name=name), replace(mates[1], name=name)))
    return drawn


PAIRS = draw()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an index, all reads, and the reads of each shard."""
    folder = tmp_path_factory.mktemp("merge")
    (folder / "ref.fa").write_bytes(fasta(CONTIGS))
    assert main(["index", str(folder / "ref.fa"), "-q", "--device", "cpu"]) == 0
    size = len(PAIRS) // SHARDS
    for name, pairs in {"all": PAIRS, **{str(i): PAIRS[i * size : (i + 1) * size] for i in range(SHARDS)}}.items():
        for mate in range(2):
            (folder / f"{name}_{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in pairs]))
    return folder


@pytest.fixture(autouse=True)
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sample, "READS", 60)
    monkeypatch.setattr(sample, "PAIRS", 60)
    assert main(["estimate", "all_1.fq", "all_2.fq", "-x", "ref.fa", "-o", "sample.json", "--device", "cpu", "-q"]) == 0


def search(name: str, *options: str) -> None:
    fixed = ["-x", "ref.fa", "--device", "cpu", "-q", "--sort", "--sample-model", "sample.json", *options]
    assert main(["search", f"{name}_1.fq", f"{name}_2.fq", *fixed, "-o", f"{name}.bam"]) == 0


def shards(*options: str) -> list[str]:
    for number in range(SHARDS):
        search(str(number), "--for-merge", *options)
    return [f"{number}.bam" for number in range(SHARDS)]


def records(path: str) -> list[str]:
    with pysam.AlignmentFile(path, check_sq=False) as file:
        return [record.to_string() for record in file]


@pytest.mark.parametrize(
    ("searched", "merged"),
    [
        ([], []),
        ([], ["--duplicate-type", "--optical-distance", "2500"]),
        ([], ["--remove-duplicates"]),
        (["--barcode-name", "--barcode-tag", "RX"], ["--barcode-tag", "RX"]),
        (["-R", r"@RG\tID:a\tSM:s\tLB:l"], ["--sort-memory", "100K"]),
    ],
)
def test_shards_are_together_one_run(searched: list[str], merged: list[str]) -> None:
    sorting = merged[merged.index("--sort-memory") :] if "--sort-memory" in merged else []
    marking = [option for option in merged if option not in sorting]
    twice = [option for option in searched if option not in marking]
    search("all", "--markdup", *twice, *marking, "--metrics", "all.txt", "--report", "all.html", "--json", "all.json")
    whole = json.loads(Path("all.json").read_text())
    given = [*shards(*searched), *merged, "--metrics", "merged.txt", "--report", "merged.html", "--json", "merged.json"]
    assert main(["merge", *given, "-o", "merged.bam", "--device", "cpu", "-q"]) == 0
    assert records("merged.bam") == records("all.bam")
    assert any(int(record.split("\t")[1]) & 1024 for record in records("all.bam")) or "--remove-duplicates" in merged
    pysam.AlignmentFile("merged.bam").fetch(next(iter(CONTIGS)))  # has an index
    lines = [Path(name).read_text().splitlines() for name in ("merged.txt", "all.txt")]
    counted = [[line for line in one if not line.startswith("#")] for one in lines]
    assert counted[0] == counted[1]
    told = json.loads(Path("merged.json").read_text())
    assert told["duplicates"] == whole["duplicates"]
    assert [one | {"sample": ""} for one in told["quality"]] == [one | {"sample": ""} for one in whole["quality"]]


def test_records_of_shards_keep_fragment_ids() -> None:
    (first, *_) = shards()
    numbers = [int(record.rsplit("ZF:i:", 1)[1]) for record in records(first)]
    assert sorted(set(numbers)) == list(range(len(PAIRS) // SHARDS))
    assert not any("ZF:i:" in record for record in records_merged([first]))


def records_merged(paths: list[str]) -> list[str]:
    assert main(["merge", *paths, "-o", "merged.bam", "--device", "cpu", "-q"]) == 0
    return records("merged.bam")


def test_order_of_shards_only_decides_ties() -> None:
    paths = shards()
    assert sorted(records_merged(paths[::-1]), key=lambda one: one.split("\t")[0])
    assert len(records_merged(paths[::-1])) == len(records_merged(paths))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["0.bam", "0.bam"], 2, "0.bam is given twice"),
        (["0.bam", "--barcode-tag", "RX"], 2, "--barcode-tag RX: 0.bam was searched with none"),
        (["all_1.fq"], 1, "all_1.fq: expected BAM or CRAM, found neither"),
        (["0.bam", "alone.bam"], 1, "alone.bam.fragments: No such file or directory"),
        (["0.bam", "-o", "0.bam"], 2, "-o 0.bam is a file of the shards"),
        (["0.bam", "-o", "out.sam"], 2, "-o out.sam: expected a name that ends with .bam"),
    ],
)
def test_wrong_arguments(capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str) -> None:
    search("0", "--for-merge")
    shutil.copy("0.bam", "alone.bam")
    given = arguments if "-o" in arguments else [*arguments, "-o", "out.bam"]
    assert failure(capfd, "merge", *given, "--device", "cpu", code=code) == message


def test_shards_of_other_runs(capfd: pytest.CaptureFixture[str]) -> None:
    search("0", "--for-merge")
    search("1", "--for-merge", "-R", r"@RG\tID:a\tSM:s")
    message = "1.bam has a different header than 0.bam: expected shards of one run"
    assert failure(capfd, "merge", "0.bam", "1.bam", "-o", "out.bam", "--device", "cpu", code=2) == message
    shutil.copy("0.bam.fragments", "all.bam.fragments")
    search("all")
    expected = "expected sorted records with their fragment's number in the tag ZF, as written by --for-merge"
    found = failure(capfd, "merge", "all.bam", "-o", "out.bam", "--device", "cpu", code=1)
    assert found == f"all.bam, record 1: {expected}"


@pytest.fixture
def parts() -> None:
    """Write 1.bam to 3.bam, the parts of all reads, 2of2.bam, and 0.bam, which is not a shard."""
    assert main(["split", "all_1.fq", "all_2.fq", "-o", "table", "-q"]) == 0
    for shard, path in (("1/3", "1"), ("2/3", "2"), ("3/3", "3"), ("2/2", "2of2")):
        part = ["--split", "table", "--shard", shard, "--sample-model", "sample.json", "-o", f"{path}.bam", "-q"]
        fixed = ["-x", "ref.fa", "--device", "cpu", "--sort", "--for-merge", *part]
        assert main(["search", "all_1.fq", "all_2.fq", *fixed]) == 0
    search("0", "--for-merge")


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("shards", "wanted", "found"),
    [
        (["1", "2"], "shard 3 of 3", "none"),
        (["2", "3"], "shard 1 of 3", "2.bam, shard 2 of 3"),
        (["1", "3", "2"], "shard 2 of 3", "3.bam, shard 3 of 3"),
        (["1", "2of2"], "shard 2 of 3", "2of2.bam, shard 2 of 2"),
        (["1", "2", "3", "0"], "no more shards", "0.bam"),
        (["1", "0", "3"], "shard 2 of 3", "0.bam"),
        (["0", "1"], "no more shards", "0.bam"),
    ],
)
def test_missing_shards(capfd: pytest.CaptureFixture[str], shards: list[str], wanted: str, found: str) -> None:
    paths = [f"{name}.bam" for name in shards]
    message = f"expected all shards of one run in order: expected {wanted}, found {found}"
    assert failure(capfd, "merge", *paths, "-o", "out.bam", "--device", "cpu", code=2) == message
    assert not Path("out.bam").exists()


@pytest.mark.usefixtures("parts")
def test_all_shards() -> None:
    search("all", "--markdup")
    assert records_merged([f"{number}.bam" for number in (1, 2, 3)]) == records("all.bam")


def test_broken_fragments(capfd: pytest.CaptureFixture[str]) -> None:
    search("0", "--for-merge")
    data = Path("0.bam.fragments").read_bytes()
    message = "0.bam.fragments: expected a file written by readmap search --for-merge"
    for broken in (b"", b"nothing", data[: len(data) // 2]):
        Path("0.bam.fragments").write_bytes(broken)
        assert failure(capfd, "merge", "0.bam", "-o", "out.bam", "--device", "cpu", code=1) == message
    with np.load(io.BytesIO(data)) as held:
        arrays = {name: held[name] for name in held.files}
    for changed, expected in (
        ({"rows": arrays["rows"][:5]}, "0.bam, record 6: expected sorted records"),
        ({"rows": arrays["rows"] | (1 << 50)}, "0.bam.fragments: expected the fragments of 0.bam"),
        ({"counters": arrays["counters"][:0]}, "0.bam.fragments: expected the fragments of 0.bam"),
        ({"rows": arrays["rows"][:, :3]}, message),
        ({"barcodes": arrays["barcodes"][:-1].astype(np.int32)}, message),
    ):
        np.savez("changed.npz", **arrays | changed)
        shutil.move("changed.npz", "0.bam.fragments")
        found = failure(capfd, "merge", "0.bam", "-o", "out.bam", "--device", "cpu", code=1)
        assert re.sub(r"record \d+", "record 6", found).startswith(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sort", "--markdup", "-o", "out.bam"], "--markdup: not with --for-merge"),
        (["-o", "out.bam"], "--for-merge: only with --sort by coordinate and -o out.bam"),
        (["--sort", "-o", "out.cram"], "--for-merge: only with --sort by coordinate and -o out.bam"),
    ],
)
def test_searches_that_cannot_be_merged(capfd: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    found = failure(capfd, "search", "0_1.fq", "0_2.fq", "-x", "ref.fa", "--for-merge", *options, code=2)
    assert found.startswith(message)
