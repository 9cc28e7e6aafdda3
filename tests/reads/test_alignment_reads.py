"""Test reads from BAM and CRAM: same records as from FASTQ, kept tags and header lines, corrupt files."""

import gzip
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from examples import Read, draw_reads, fasta, fastq, small_genome
from test_bam_records import chunks, start, texts

from readmap.cli import main
from readmap.formats import samtools
from readmap.formats.byte_source import ByteSource
from readmap.reads.alignment_reads import AlignmentReads, open_reads

ROOT = Path(__file__).resolve().parents[2]
DRAW = random.Random(92)
GENOME = small_genome(DRAW)
READS = [Read(r.name.removesuffix("/1 comment"), r.bases.upper(), r.quality) for r in draw_reads(DRAW, GENOME, 300)]
TAGS = ["RG:Z:a", "RX:Z:AC-GT", "BC:B:c,1,2", "NM:i:7"]
HEADER = "@HD\tVN:1.6\n@RG\tID:a\tSM:s\n@PG\tID:first\n@PG\tID:readmap\tPP:first\n@CO\tkept\n"


def unaligned(folder: Path, name: str, header: str = HEADER, flag: int = 4) -> str:
    """Write the reads with tags, as BAM or CRAM by the suffix of `name`."""
    tags = "\t".join(TAGS)
    lines = [f"{r.name}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{r.bases or '*'}\t{r.quality or '*'}\t{tags}\n" for r in READS]
    (folder / "made.sam").write_text(header + "".join(lines))
    form = "-C" if name.endswith(".cram") else "-b"
    pysam.samtools.view(form, "--no-PG", "-o", str(folder / name), str(folder / "made.sam"), catch_stdout=False)
    return str(folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and the reads in all formats."""
    folder = tmp_path_factory.mktemp("alignments")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    (folder / "reads.fq").write_bytes(fastq(READS))
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    for name in ("reads.bam", "reads.cram"):
        unaligned(folder, name)
    unaligned(folder, "bare.bam", "@HD\tVN:1.6\n")
    unaligned(folder, "pairs.bam", flag=77)
    return folder


def search(folder: Path, reads: str, output: str, *options: str) -> int:
    paths = [str(folder / name) if name != "-" else name for name in (reads, "ref.fa", output)]
    return main(["search", paths[0], "-x", paths[1], "-o", paths[2], "--device", "cpu", "-q", *options])


def records(folder: Path, name: str) -> list[str]:
    return [line for line in (folder / name).read_text().splitlines() if not line.startswith("@")]


def header(folder: Path, name: str) -> list[str]:
    return [line for line in (folder / name).read_text().splitlines() if re.match("@[A-Z]{2}\t", line)]


def read_all(source: ByteSource) -> bytes:
    """Read in pieces of an odd size."""
    data = bytearray()
    piece = bytearray(7919)
    with source:
        while count := source.readinto(memoryview(piece)):
            data += piece[:count]
    return bytes(data)


@pytest.mark.parametrize("name", ["reads.bam", "reads.cram"])
def test_reads_header_and_tags(folder: Path, name: str) -> None:
    for tags in (), ("RX", "BC"):
        source = start(folder / name, tags)
        assert source.name == str(folder / name)
        assert [line for line in source.header if line.startswith(("@RG", "@PG", "@CO"))] == HEADER.splitlines()[1:]
        kept = "\tRX:Z:AC-GT\tBC:B:c,1,2" if tags else ""
        assert [text for chunk in chunks(source) for text in texts(chunk)] == [
            (f"{read.name}{kept}\n", read.bases, read.quality) for read in READS
        ]
        assert source.reads == len(READS)


def test_other_files_are_read_unchanged(folder: Path, tmp_path: Path) -> None:
    for data in (fastq(READS), b"", b"@", b"@HD\tVN:1.6\nACGT\n+\nIIII\n", b"BAM", b"@CRAM\nACGT\n+\nIIII\n"):
        for name, content in (("plain", data), ("packed", gzip.compress(data))):
            (tmp_path / name).write_bytes(content)
            source = open_reads(str(tmp_path / name), 2)
            assert not isinstance(source, AlignmentReads)
            assert read_all(source) == data


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_bam_may_start_with_a_small_block(folder: Path, tmp_path: Path, cut: int) -> None:
    data = gzip.decompress((folder / "reads.bam").read_bytes())
    (tmp_path / "cut.bam").write_bytes(gzip.compress(data[:cut]) + gzip.compress(data[cut:]))
    read = [text for chunk in chunks(start(tmp_path / "cut.bam", ())) for text in texts(chunk)]
    assert read == [(f"{read.name}\n", read.bases, read.quality) for read in READS]


def test_aligned_reads_are_restored(folder: Path) -> None:
    """Only primary records are read, with the bases and the direction of sequencing."""
    assert search(folder, "reads.fq", "exact.bam", "--exact") == 0
    with pysam.AlignmentFile(str(folder / "exact.bam")) as file:
        found: list[Any] = list(file)
    assert any(record.is_secondary for record in found)
    assert any(record.is_reverse for record in found)
    for options in ([], ["--sort"]):
        assert search(folder, "reads.fq", "aligned.bam", *options) == 0
        assert search(folder, "aligned.bam", "again.sam", "--keep-tags", "all") == 0
        assert search(folder, "reads.fq", "once.sam") == 0
        expected = [line.replace("\tPG:Z:readmap", "\tPG:Z:readmap.1") for line in records(folder, "once.sam")]
        assert sorted(records(folder, "again.sam")) == sorted(expected)
    assert search(folder, "exact.bam", "again.sam") == 0
    assert records(folder, "again.sam") == expected


@pytest.mark.parametrize("options", [[], ["--sort"], ["--keep-tags", "all"], ["--exact"]])
def test_pg_tag_matches_the_header(folder: Path, options: list[str]) -> None:
    """The program's ID changes with each run, and the PG tag of the run before is dropped."""
    reads = "bare.bam"
    for output, name in (("once.bam", "readmap"), ("twice.bam", "readmap.1"), ("thrice.bam", "readmap.2")):
        assert search(folder, reads, output, *options) == 0
        with pysam.AlignmentFile(str(folder / output)) as file:
            header: Any = file.header.to_dict()
            assert header["PG"][-1]["ID"] == name
            assert {tuple(value for tag, value in record.get_tags() if tag == "PG") for record in file} == {(name,)}
        reads = output


@pytest.mark.parametrize("name", ["reads.bam", "reads.cram", "bare.bam"])
def test_same_records_as_from_fastq(folder: Path, name: str) -> None:
    for reads, output in (("reads.fq", "expected.sam"), (name, "out.sam")):
        assert search(folder, reads, output) == 0
    found, expected = ([line.split("\t")[:11] for line in records(folder, x)] for x in ("out.sam", "expected.sam"))
    assert found == expected


def test_header_is_continued(folder: Path) -> None:
    assert search(folder, "reads.bam", "out.sam", "-H", r"@CO\tmine") == 0
    kept = [line for line in header(folder, "out.sam") if not line.startswith(("@HD", "@SQ"))]
    assert kept[:-1] == [*HEADER.splitlines()[1:], "@CO\tmine"]
    assert kept[-1].startswith("@PG\tID:readmap.1\tPN:readmap\tPP:readmap\tVN:")


def test_read_groups(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    group = ("-R", r"@RG\tID:b\tSM:t")
    assert search(folder, "reads.bam", "none.sam", *group) == 2
    assert "reads.bam has read groups of its own, which --replace-rg drops" in capfd.readouterr().err
    assert search(folder, "reads.bam", "out.sam", *group, "--replace-rg") == 0
    assert [line for line in header(folder, "out.sam") if line.startswith("@RG")] == ["@RG\tID:b\tSM:t"]
    assert all("\tRG:Z:b" in line and "RG:Z:a" not in line for line in records(folder, "out.sam"))
    assert search(folder, "bare.bam", "out.sam", *group) == 0
    # Read groups of the header are dropped if the reads have no RG tag.
    assert search(folder, "reads.bam", "out.sam", "--exact") == 0
    assert not [line for line in header(folder, "out.sam") if line.startswith("@RG")]
    assert not (folder / "none.sam").exists()


@pytest.mark.parametrize(
    ("reads", "options", "message"),
    [
        ("reads.fq", ["--keep-tags", "RX"], "reads.fq is no BAM or CRAM; -C takes tags of FASTQ comments"),
        ("reads.bam", ["--keep-tags", "RX,"], "--keep-tags RX,: expected all, or names of tags, as RX,BC, found ''"),
        ("reads.bam", ["--keep-tags", "R_"], "expected all, or names of tags, as RX,BC, found 'R_'"),
        ("reads.bam", ["--keep-tags", "RX", "--exact"], "--keep-tags: not with --exact, which writes no tags"),
        ("reads.fq", ["-C", "--exact"], "-C: not with --exact, which writes no tags"),
    ],
)
def test_misuse(folder: Path, capfd: pytest.CaptureFixture[str], reads: str, options: list[str], message: str) -> None:
    assert search(folder, reads, "none.sam", *options) == 2
    assert message in capfd.readouterr().err
    assert not (folder / "none.sam").exists()


def broken(folder: Path, to: Path) -> list[Path]:
    """Yield truncated and altered files."""
    made = []
    for name in ("reads.bam", "reads.cram"):
        data = (folder / name).read_bytes()
        end = 28 if name == "reads.bam" else 38
        altered = bytearray(data)
        altered[len(data) // 2] ^= 0x55
        cuts = {"half": data[: len(data) // 2], "no end": data[:-end], "altered": bytes(altered), "start": data[:40]}
        for what, content in cuts.items():
            made.append(to / f"{what} {name}")
            made[-1].write_bytes(content)
    return made


def test_corrupt_files(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The error is one line that names the file, and no complete output is left."""
    for path in broken(folder, tmp_path):
        assert search(folder, str(path), "none.sam") == 1, path
        message = capfd.readouterr().err
        assert message.count("\n") == 1
        assert message.startswith(f"readmap: error: {path}: "), message
        if path.suffix == ".cram":
            assert ": the alignments cannot be read: samtools view failed" in message
        assert not (folder / "none.sam").exists()


def test_closing_early_ends_samtools(folder: Path) -> None:
    source = start(folder / "reads.cram")
    next(source.chunks(lambda size: np.empty(size, np.uint8), 1 << 10))
    source.close()
    source.close()
    for thread in threading.enumerate():
        if thread.name == "readmap-feed":
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.parametrize("name", ["reads.bam", "reads.cram"])
def test_standard_input(folder: Path, name: str) -> None:
    assert search(folder, name, "expected.sam") == 0
    command = [sys.executable, "-m", "readmap", "search", "-", "-x", str(folder / "ref.fa"), "-q", "--device=cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    piped = subprocess.run(
        command, input=(folder / name).read_bytes(), capture_output=True, env=environment, check=True
    )
    with open(folder / name, "rb") as file:
        redirected = subprocess.run(command, stdin=file, capture_output=True, env=environment, check=True)
    expected = records(folder, "expected.sam")
    for done in (piped, redirected):
        assert [line for line in done.stdout.decode().splitlines() if not line.startswith("@")] == expected


def test_no_reference_is_downloaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """samtools uses REF_PATH, and without REF_PATH only its cache."""
    monkeypatch.delenv("REF_PATH", raising=False)
    monkeypatch.delenv("REF_CACHE", raising=False)
    assert search(folder, "reads.fq", str(tmp_path / "aligned.cram")) == 0
    for letters in GENOME.values():
        digest = hashlib.md5(letters.upper().encode()).hexdigest()
        kept = tmp_path / digest[:2] / digest[2:4] / digest[4:]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(letters.upper())
    monkeypatch.setattr(samtools, "REFERENCE_CACHE", f"{tmp_path}/%2s/%2s/%s")
    assert search(folder, str(tmp_path / "aligned.cram"), "none.sam") == 0, capfd.readouterr().err


def test_cram_that_needs_a_reference(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The error names REF_PATH and REF_CACHE."""
    assert search(folder, "reads.fq", str(tmp_path / "aligned.cram")) == 0
    assert search(folder, str(tmp_path / "aligned.cram"), "none.sam") == 1
    assert "Unable to fetch reference" in capfd.readouterr().err
    shutil.rmtree(tmp_path)
