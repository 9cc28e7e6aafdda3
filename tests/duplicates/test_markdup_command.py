"""readmap markdup: the records of a file, sorted, with duplicates marked, for any order of the input."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from alignment_files import bytes_of_records, header_of, names_in, records_of
from commands import failures
from oracles import duplicates as oracle
from test_duplicates import HEADER, draw_records, write

import readmap
from readmap.cli import main
from readmap.duplicates import files

RECORDS = [one for one in draw_records(11, 900) if one.cigarstring != "*" or one.is_unmapped]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with drawn records grouped by name, and the same records sorted by position."""
    folder = tmp_path_factory.mktemp("files")
    write(RECORDS, folder / "in.bam")
    pysam.samtools.sort("-o", str(folder / "sorted.bam"), str(folder / "in.bam"), catch_stdout=False)
    return folder


def mark(path: Path, out: Path, *options: str, device: str = "cpu") -> int:
    return main(["markdup", str(path), "-o", str(out), "--device", device, "-q", *options])


def expected(folder: Path, tmp_path: Path) -> list[str]:
    """Return the sorted records, marked by the oracle."""
    found, path = oracle.find(RECORDS), tmp_path / "expected.bam"
    with pysam.AlignmentFile(str(folder / "in.bam")) as given, pysam.AlignmentFile(str(path), "wb", given) as out:
        for record in given.fetch(until_eof=True):
            record.is_duplicate = record.query_name in found.duplicates
            out.write(record)
    pysam.samtools.sort("-o", str(tmp_path / "order.bam"), str(path), catch_stdout=False)
    return records_of(tmp_path / "order.bam")


@pytest.mark.parametrize("options", [[], ["--sort-memory", "100K"], ["-t", "1"]], ids=" ".join)
def test_marked_and_sorted(
    folder: Path, tmp_path: Path, options: list[str], backends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks end within fragments."""
    chunks = files.AlignmentReads.records
    monkeypatch.setattr(files.AlignmentReads, "records", lambda reads, _: chunks(reads, 5000))
    out = tmp_path / "out.bam"
    assert mark(folder / "in.bam", out, *options, device=backends) == 0
    assert records_of(out) == expected(folder, tmp_path)
    pysam.samtools.quickcheck(str(out))
    with pysam.AlignmentFile(str(out)) as file:
        assert file.has_index()
    assert header_of(out)[0] == "@HD\tVN:1.6\tSO:coordinate"
    assert sum("@RG" in line for line in header_of(out)) == 4


def test_sorted_records(folder: Path, tmp_path: Path) -> None:
    """Grouping changes the order, which breaks ties, so only the number of marks is the same."""
    assert mark(folder / "sorted.bam", tmp_path / "out.bam") == 0
    found = [int(line.split("\t")[1]) & 1024 for line in records_of(tmp_path / "out.bam")]
    assert sum(found) == sum(int(line.split("\t")[1]) & 1024 for line in expected(folder, tmp_path))
    assert len(found) == len(RECORDS)


def test_previous_marks_are_removed(folder: Path, tmp_path: Path) -> None:
    assert mark(folder / "in.bam", tmp_path / "typed.bam", "--duplicate-type") == 0
    typed = [line for line in records_of(tmp_path / "typed.bam") if "\tDT:Z:" in line]
    assert len(typed) == sum(int(line.split("\t")[1]) & 1024 > 0 for line in records_of(tmp_path / "typed.bam")) > 100
    with (
        pysam.AlignmentFile(str(folder / "in.bam")) as given,
        pysam.AlignmentFile(str(tmp_path / "all.bam"), "wb", given) as out,
    ):
        for record in given.fetch(until_eof=True):
            record.is_duplicate = True
            record.set_tag("DT", "SQ")
            out.write(record)
    assert mark(tmp_path / "all.bam", tmp_path / "again.bam") == 0
    assert records_of(tmp_path / "again.bam") == expected(folder, tmp_path)


def test_removed_and_reported(folder: Path, tmp_path: Path) -> None:
    told = ["--metrics", str(tmp_path / "m.txt"), "--json", str(tmp_path / "m.json")]
    assert mark(folder / "in.bam", tmp_path / "out.bam", "--remove-duplicates", *told) == 0
    kept = [line for line in expected(folder, tmp_path) if not int(line.split("\t")[1]) & 1024]
    assert records_of(tmp_path / "out.bam") == kept
    record = json.loads((tmp_path / "m.json").read_text())
    assert record["records"] == len(RECORDS)
    assert [one["library"] for one in record["duplicates"]] == ["Unknown Library", "x", "y"]
    assert "## METRICS CLASS\tpicard.sam.DuplicationMetrics" in (tmp_path / "m.txt").read_text()


def test_standard_input(folder: Path, tmp_path: Path) -> None:
    """Without --grouped the records are always collated, because the header is read too late to decide."""
    for options in ([], ["--grouped"]):
        command = [sys.executable, "-m", "readmap", "markdup", "-", "-o", "out.bam", "--device", "cpu", "-q", *options]
        with open(folder / "in.bam", "rb") as given:
            subprocess.run(command, cwd=tmp_path, check=True, stdin=given)
        assert sum("\t" in line for line in records_of(tmp_path / "out.bam")) == len(RECORDS)
    assert records_of(tmp_path / "out.bam") == expected(folder, tmp_path)


def test_missing_mates(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lost = sum(one.is_paired and not one.mate_is_unmapped and not one.is_unmapped for one in RECORDS)
    assert lost
    assert main(["markdup", str(folder / "in.bam"), "-o", str(tmp_path / "out.bam"), "--device", "cpu"]) == 0
    assert "with a mapped mate whose record is missing" in capfd.readouterr().err


def test_from_python(folder: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "out.bam", tmp_path / "m.txt"
    page = tmp_path / "page.html"
    libraries = readmap.mark_duplicates(folder / "in.bam", out, metrics=told, report=page, device="cpu", threads=2)
    assert f"{sum(one.has_tag('RG') and not one.flag & 0x900 for one in RECORDS):,}" in page.read_text()
    assert "<h2>Duplicates</h2>" in page.read_text()
    assert records_of(out) == expected(folder, tmp_path)
    assert [one.name for one in libraries] == ["Unknown Library", "x", "y"]
    assert sum(one.optical_duplicates for one in libraries) == len(oracle.find(RECORDS).optical)
    assert "Unknown Library\t" in told.read_text()
    before = names_in(tmp_path)
    with pytest.raises(readmap.DataError, match="expected BAM or CRAM"):
        readmap.mark_duplicates(told, tmp_path / "none.bam", device="cpu")
    with pytest.raises(readmap.UsageError, match="--barcode-tag"):
        readmap.mark_duplicates(folder / "in.bam", tmp_path / "none.bam", barcode_tag="R", device="cpu")
    assert names_in(tmp_path) == before


def test_no_records(tmp_path: Path) -> None:
    write([], tmp_path / "none.bam")
    assert mark(tmp_path / "none.bam", tmp_path / "out.bam", "--metrics", str(tmp_path / "m.txt")) == 0
    assert records_of(tmp_path / "out.bam") == []
    assert header_of(tmp_path / "out.bam")[1:4] == str(HEADER).splitlines()[1:4]


@pytest.fixture
def failure(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)
    data = (folder / "in.bam").read_bytes()
    (tmp_path / "in.bam").write_bytes(data)
    (tmp_path / "cut.bam").write_bytes(data[: len(data) // 2])
    (tmp_path / "r.fq").write_bytes(b"@a\nA\n+\nI\n")
    return failures(lambda *words: main([str(word) for word in words]))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["in.bam"], 2, "Missing option '-o'"),
        (["in.bam", "-o", "o.cram"], 2, "-o o.cram: expected a name that ends with .bam"),
        (["in.bam", "-o", "in.bam"], 2, "-o in.bam is a file of the alignments"),
        (["r.fq", "-o", "o.bam"], 1, "r.fq: expected BAM or CRAM, found neither"),
        (["cut.bam", "-o", "o.bam"], 1, "cut.bam: the alignments cannot be read"),
        (["none.bam", "-o", "o.bam"], 1, "none.bam: No such file"),
        (["in.bam", "-o", "o.bam", "--metrics", "o.bam"], 2, "--metrics o.bam is where the output goes"),
        (["in.bam", "-o", "o.bam", "--remove-duplicates", "--duplicate-type"], 2, "not with --remove-duplicates"),
        (["in.bam", "-o", "o.bam", "--barcode-tag", "R:"], 2, "expected a tag of two characters"),
    ],
)
def test_failures(
    failure: Callable[..., str], capfd: pytest.CaptureFixture[str], words: list[str], code: int, told: str
) -> None:
    assert told in failure(capfd, "markdup", *words, *([] if code == 2 else ["--device", "cpu", "-q"]), code=code)
    assert names_in(Path()) == ["cut.bam", "in.bam", "r.fq"]


def test_damaged_first_record(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed before the error."""
    with pysam.BGZFile(str(folder / "in.bam")) as file:  # type: ignore[attr-defined]
        data = bytearray(file.read())
    first = data.index(bytes_of_records(folder / "in.bam")[0])
    data[first + 36] = ord("@")  # invalid in a name
    with pysam.BGZFile(str(tmp_path / "broken.bam"), "wb") as file:  # type: ignore[attr-defined]
        file.write(bytes(data))
    assert main(["markdup", str(tmp_path / "broken.bam"), "-o", str(tmp_path / "out.bam"), "--grouped", "-q"]) == 1
    message = capfd.readouterr().err
    assert message.startswith(f"readmap: error: {tmp_path}/broken.bam, record 1")
    assert names_in(tmp_path) == ["broken.bam"]
