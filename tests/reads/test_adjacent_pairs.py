"""Test --smart-pairing: adjacent reads of one name are mates, with the same records as from BAM whose flags say so."""

import random
from itertools import groupby
from pathlib import Path

import pysam
import pytest
from alignment_files import records_of
from examples import Read, draw_pairs, fasta, fastq, random_quality, small_genome

from readmap.cli import main
from readmap.reads.bad_records import read_name
from readmap.reads.record_scan import cut_between_pairs

DRAW = random.Random(91)
GENOME = small_genome(DRAW)


def drawn(pairs: int) -> list[Read]:
    """Return pairs, single reads, and runs of one name."""
    found = []
    for number, (first, second) in enumerate(draw_pairs(DRAW, GENOME, pairs)):
        name = f"r{number if DRAW.random() < 0.9 else max(number - 1, 0)}"
        for end, one in enumerate((first, second)):
            if DRAW.random() < 0.85:
                named = f"{name}/{end + 1}" if number % 3 == 0 else f"{name} of {end}"
                found.append(Read(named, one.bases, random_quality(DRAW, len(one.bases))))
    return found


def name_of(read: Read) -> str:
    return read.name.split("/")[0].split(" ")[0]


def write_unaligned(reads: list[Read], path: Path) -> None:
    """Write the reads as unaligned BAM whose flags tell mates from single reads."""
    with pysam.AlignmentFile(str(path), "wb", header={"HD": {"VN": "1.6"}}) as file:
        for name, row in groupby(reads, name_of):
            of_name = list(row)
            for place, read in enumerate(of_name):
                one = pysam.AlignedSegment(file.header)
                has_mate = place - place % 2 + 1 < len(of_name)
                one.query_name, one.flag = name, 4 | (1 | 8 | (64 if place % 2 == 0 else 128) if has_mate else 0)
                one.query_sequence = read.bases
                one.query_qualities = pysam.qualitystring_to_array(read.quality or "")
                file.write(one)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adjacent")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    reads = drawn(500)
    (folder / "reads.fq").write_bytes(fastq(reads))
    write_unaligned(reads, folder / "reads.bam")
    return folder


@pytest.mark.parametrize("options", [[], ["--batch-reads", "1"], ["--batch-reads", "7"], ["--sort"]], ids=" ".join)
def test_same_records_as_from_flags(folder: Path, tmp_path: Path, options: list[str], backends: str) -> None:
    outputs = []
    for reads, pairing in (("reads.fq", ["--smart-pairing"]), ("reads.bam", [])):
        out = tmp_path / f"{reads}.out.bam"
        call = ["search", str(folder / reads), "-x", str(folder / "ref.fa"), "-o", str(out), *options, *pairing]
        assert main([*call, "--device", backends, "-q"]) == 0
        outputs.append(records_of(out))
    assert outputs[0] == outputs[1]
    flags = [int(line.split("\t")[1]) for line in outputs[0]]
    assert sum(flag & 1 for flag in flags) > 600
    assert sum(not flag & 1 for flag in flags) > 50


@pytest.mark.parametrize("names", ["A", "AA", "AB", "AAB", "ABB", "AAA", "AAABBC", "ABBBBBC"])
def test_cuts_do_not_separate_mates(names: str) -> None:
    """However many of the names are known."""
    mates = set()
    for _, group in groupby(range(len(names)), names.__getitem__):
        row = list(group)
        mates |= {(row[at], row[at + 1]) for at in range(0, len(row) - 1, 2)}
    for known in range(1, len(names) + 1):
        for wanted in range(1, known + 1):
            cut = cut_between_pairs(lambda record: names[record].encode(), wanted, known)
            assert wanted - 1 <= cut <= wanted
            assert (cut - 1, cut) not in mates


def test_name_shared_by_mates() -> None:
    """Same rule as kernels/reads/read_headers.cuh."""
    names = {b"@a/1 x": b"a", b"@a/2\tx": b"a", b"@/1": b"/1", b"@/1/1": b"/1", b"@a/3": b"a/3", b"@": b""}
    assert {header: read_name(header) for header in names} == names


def test_smart_pairing_takes_one_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reads = str(folder / "reads.fq")
    assert main(["search", reads, reads, "-x", str(folder / "ref.fa"), "--smart-pairing"]) == 2
    assert "--smart-pairing takes one" in capfd.readouterr().err
    assert main(["search", reads, "-p", "--smart-pairing", "-x", str(folder / "ref.fa")]) == 2
    assert "not with --smart-pairing" in capfd.readouterr().err
