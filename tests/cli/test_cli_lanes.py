"""Lanes: the records of each lane equal the records of a separate search with its read group."""

import json
import os
import random
import threading
from pathlib import Path

import pysam
import pytest
from examples import Read, fasta, fastq, random_bases
from oracles.alignment import reverse_complement

from readmap.cli import main
from readmap.run import sample

DRAW = random.Random(71)
GENOME = {"one": random_bases(DRAW, 30_000), "two": random_bases(DRAW, 9000)}
HEAD = "patient,sex,status,sample,lane,fastq_1,fastq_2\n"


def draw_pairs(count: int, mean: int, flow_cell: str) -> tuple[bytes, bytes]:
    """Return mates of 80 bases, of fragments of about this length, with names as from Illumina."""
    files: tuple[list[Read], list[Read]] = ([], [])
    for number in range(count):
        contig = DRAW.choice([*GENOME])
        size = max(round(DRAW.gauss(mean, 15)), 90)
        start = DRAW.randrange(len(GENOME[contig]) - size)
        fragment = GENOME[contig][start : start + size]
        for mates, bases in zip(files, (fragment[:80], reverse_complement(fragment)[:80]), strict=True):
            mates.append(Read(f"A1:7:{flow_cell}:1:1101:{number}:{start}", bases, "I" * 80))
    return fastq(files[0]), fastq(files[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an index and three lanes: short.* and again.* with fragments of 200 bases, long.* of 600."""
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    for name, mean, cell in (("short", 200, "FC1"), ("long", 600, "FC2"), ("again", 200, "FC1")):
        for mate, data in enumerate(draw_pairs(300, mean, cell), 1):
            (folder / f"{name}.{mate}.fq").write_bytes(data)
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    return folder


def lane(folder: Path, name: str, group: str, single: bool = False) -> list[str]:
    second = "" if single else str(folder / f"{name}.2.fq")
    return ["--lane", f"{folder / name}.1.fq,{second},{group}"]


def group(name: str, library: str | None = None) -> str:
    return rf"@RG\tID:{name}\tSM:s" + (rf"\tLB:{library}" if library else "")


def search(folder: Path, out: Path, *words: str) -> int:
    index = ["-x", str(folder / "ref.fa"), "-o", str(out), "--device", "cpu"]
    return main(["search", *words, *index, "--json", str(out.with_suffix(".json"))])


def records(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("@")]


def without_group(lines: list[str]) -> list[str]:
    return ["\t".join(field for field in line.split("\t") if not field.startswith("RG:")) for line in lines]


def test_each_lane_maps_as_in_a_separate_search(folder: Path, tmp_path: Path) -> None:
    lanes = [*lane(folder, "short", group("L1", "lib1")), *lane(folder, "long", group("L2", "lib2"))]
    assert search(folder, tmp_path / "both.sam", *lanes, "-q") == 0
    alone = []
    for name, read_group in (("short", "L1"), ("long", "L2")):
        files = [str(folder / f"{name}.{mate}.fq") for mate in (1, 2)]
        assert search(folder, tmp_path / f"{name}.sam", *files, "-q") == 0
        lines = records(tmp_path / f"{name}.sam")
        alone += lines
        found = [line for line in records(tmp_path / "both.sam") if f"\tRG:Z:{read_group}" in line]
        assert without_group(found) == lines
    assert without_group(records(tmp_path / "both.sam")) == alone
    head = [line for line in (tmp_path / "both.sam").read_text().splitlines() if line.startswith("@RG")]
    assert head == ["@RG\tID:L1\tSM:s\tLB:lib1", "@RG\tID:L2\tSM:s\tLB:lib2"]
    report = json.loads((tmp_path / "both.json").read_text())
    assert [round(sizes[0]["mean"], -1) for sizes in report["insert_sizes"].values()] == [200, 600]
    assert [*report["insert_sizes"]] == ["lib1", "lib2"]
    assert report["reads"] == [str(folder / f"{name}.{mate}.fq") for name in ("short", "long") for mate in (1, 2)]


@pytest.mark.parametrize("words", ["-t 1 --batch-reads 40", "-t 4 --batch-reads 100", "-t 2"])
@pytest.mark.parametrize("reads", [80, 20_000])
def test_batches_and_threads_do_not_change_records(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, reads: int
) -> None:
    """The first reads of a library suffice for the estimate, or all wait until the next library starts."""
    monkeypatch.setattr(sample, "READS", reads)
    monkeypatch.setattr(sample, "PAIRS", reads)
    lanes = [
        *lane(folder, "short", group("L1", "lib1")),
        *lane(folder, "long", group("L2", "lib2")),
        *lane(folder, "again", group("L3", "lib1")),
    ]
    for name, more in (("usual", []), ("other", words.split())):
        assert search(folder, tmp_path / f"{name}.sam", *lanes, *more, "-q") == 0
    assert records(tmp_path / "other.sam") == records(tmp_path / "usual.sam")


def test_library_is_estimated_once(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lanes = [
        *lane(folder, "short", group("L1", "lib1")),
        *lane(folder, "long", group("L2", "lib2")),
        *lane(folder, "again", group("L3", "lib1")),
    ]
    assert search(folder, tmp_path / "out.sam", *lanes) == 0
    told = capsys.readouterr().err
    assert "900 pairs, 900 proper (100.00%), insert size of lib1 FR 20" in told
    assert "insert size of lib2 FR 60" in told
    assert [line.split("RG:Z:")[1][:2] for line in records(tmp_path / "out.sam")] == ["L1"] * 600 + ["L2"] * 600 + [
        "L3"
    ] * 600


def test_single_reads_among_pairs(folder: Path, tmp_path: Path) -> None:
    lanes = [
        *lane(folder, "long", group("L1"), single=True),
        *lane(folder, "short", group("L2")),
        *lane(folder, "again", group("L3"), single=True),
    ]
    assert search(folder, tmp_path / "out.bam", *lanes, "--sort", "-q") == 0
    with pysam.AlignmentFile(str(tmp_path / "out.bam")) as file:
        paired = [(str(record.get_tag("RG")), record.is_paired) for record in file.fetch(until_eof=True)]
    assert sorted(set(paired)) == [("L1", False), ("L2", True), ("L3", False)]
    assert len(paired) == 1200


def write_sheet(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_the_sheet_of_sarek(folder: Path, tmp_path: Path) -> None:
    rows = [f"p,XX,0,s,{name},{folder}/{name}.1.fq,{folder}/{name}.2.fq" for name in ("short", "long")]
    sheet = write_sheet(tmp_path / "sheet.csv", HEAD + "\n".join(rows) + "\n")
    assert search(folder, tmp_path / "out.sam", "--sheet", sheet, "-q") == 0
    head = [line for line in (tmp_path / "out.sam").read_text().splitlines() if line.startswith("@RG")]
    assert head == [
        "@RG\tID:FC1.s.short\tPU:short\tSM:p_s\tLB:s\tPL:ILLUMINA",
        "@RG\tID:FC2.s.long\tPU:long\tSM:p_s\tLB:s\tPL:ILLUMINA",
    ]
    assert len(records(tmp_path / "out.sam")) == 1200


def test_a_sheet_with_fields_of_read_groups(folder: Path, tmp_path: Path) -> None:
    rows = ["lane LB sample fastq_2 fastq_1 note", f"1 l a  {folder}/short.1.fq x", f"2  b  {folder}/long.1.fq y"]
    sheet = write_sheet(tmp_path / "sheet.tsv", "\n".join(rows).replace(" ", "\t") + "\n")
    assert search(folder, tmp_path / "out.sam", "--sheet", sheet, "--sample", "a", "-q") == 0
    head = [line for line in (tmp_path / "out.sam").read_text().splitlines() if line.startswith("@RG")]
    assert head == ["@RG\tID:a.1\tSM:a\tLB:l"]
    assert len(records(tmp_path / "out.sam")) == 300


@pytest.mark.parametrize(
    ("text", "words", "message", "code"),
    [
        ("sample,lane\na,1\n", [], "expected a header line with sample, lane and fastq_1, found no fastq_1", 1),
        ("", [], "expected a header line with sample, lane and fastq_1, found no sample", 1),
        ("sample,lane,fastq_1\na,1,x.fq\nb,1,y.fq\n", [], "has several samples: name one by --sample: a, b", 2),
        ("sample,lane,fastq_1\na,1,x.fq\n", ["--sample", "c"], "--sample c: ", 2),
        ("sample,lane,fastq_1\na,1,\n", [], "line 2: expected a value in each of sample, lane and fastq_1", 1),
        ("sample,lane,fastq_1,bam\na,1,x.fq,a.bam\n", [], "line 2: bam is a.bam: expected files of FASTQ", 1),
        ("sample,lane,fastq_1\na,1,x.fq\n\na,2,y.fq,z.fq\n", [], "line 4: expected 3 values, found 4", 1),
        ("sample,lane,fastq_1,spring_1\na,1,x.fq,a.spring\n", [], "line 2: spring_1 is a.spring", 1),
    ],
)
def test_wrong_sheets(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: list[str],
    message: str,
    code: int,
) -> None:
    sheet = write_sheet(tmp_path / "sheet.csv", text)
    assert search(folder, tmp_path / "out.sam", "--sheet", sheet, *words) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.sam").exists()


def test_a_binary_sheet(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for data in (b"sample,lane,fastq_1\na,1,\xff\xfe\n", b'sample,lane,fastq_1\na,1,"' + b"x" * 200_000 + b'"\n'):
        (tmp_path / "sheet.csv").write_bytes(data)
        assert search(folder, tmp_path / "out.sam", "--sheet", str(tmp_path / "sheet.csv")) == 1
        assert "sheet.csv: expected a table in UTF-8, CSV or TSV: " in capsys.readouterr().err


def test_a_pipe_in_the_sheet_of_sarek_loses_nothing(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sheet = write_sheet(tmp_path / "sheet.csv", f"{HEAD}p,XX,0,s,1,{tmp_path}/pipe,\n")
    data = (folder / "short.1.fq").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,), daemon=True)
    writer.start()
    assert search(folder, tmp_path / "out.sam", "--sheet", sheet, "-q") == 0
    assert len(records(tmp_path / "out.sam")) == 300


def test_mates_of_two_flow_cells(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = write_sheet(tmp_path / "sheet.csv", f"{HEAD}p,XX,0,s,1,{folder}/short.1.fq,{folder}/long.2.fq\n")
    assert search(folder, tmp_path / "out.sam", "--sheet", sheet) == 1
    assert "short.1.fq is of the flow cell FC1, and " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lane", "a.fq"], "--lane a.fq: expected R1,R2,RG, or R1,,RG for single reads"),
        (["--lane", "a.fq,,ID:x"], "--lane a.fq,,ID:x: ID:x: expected a line that begins with"),
        (["--lane", r"a.fq,,@RG\tID:x", "--lane", r"b.fq,,@RG\tID:x\tLB:l"], "the read group x has different fields"),
        (["--lane", r"a.fq,,@RG\tID:x\tSM:a", "--lane", r"b.fq,,@RG\tID:y\tSM:b"], "several samples (SM: a, b)"),
        (["--lane", r"a.fq,a.fq,@RG\tID:x\tSM:a"], "a.fq is named twice among the lanes"),
        (["a.fq", "--lane", r"b.fq,,@RG\tID:x"], "not with --lane or --sheet, which name files of reads"),
        (["--lane", r"b.fq,,@RG\tID:x", "-R", r"@RG\tID:y"], "-R: not with --lane or --sheet"),
        (["a.fq", "-R", r"@RG\tID:y", "-R", r"@RG\tID:z"], r"-R @RG\tID:z: a second read group"),
        (["--sample", "a", "a.fq"], "--sample: only with --sheet"),
        ([], "no reads: name their files, or --lane, or --sheet"),
    ],
)
def test_wrong_lanes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert search(folder, tmp_path / "out.sam", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.sam").exists()


def test_a_lane_that_is_cut_short_or_has_other_mates(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.1.fq").write_bytes((folder / "long.1.fq").read_bytes()[:-50])
    (tmp_path / "cut.2.fq").write_bytes((folder / "long.2.fq").read_bytes())
    good = lane(folder, "short", group("L1", "lib1"))
    assert search(folder, tmp_path / "out.bam", *good, *lane(tmp_path, "cut", group("L2")), "--sort") == 1
    assert "cut.1.fq, record 300" in capsys.readouterr().err
    mixed = ["--lane", f"{folder}/short.1.fq,{folder}/long.2.fq,{group('L1')}"]
    assert search(folder, tmp_path / "out.bam", *mixed, "--sort") == 1
    assert "mates must have the same name" in capsys.readouterr().err
    assert not list(tmp_path.glob("out.bam*"))


def test_a_lane_of_alignments(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(folder, tmp_path / "some.bam", str(folder / "short.1.fq"), "-q") == 0
    assert search(folder, tmp_path / "out.sam", "--lane", rf"{tmp_path}/some.bam,,@RG\tID:x") == 2
    assert "some.bam is BAM or CRAM, and a lane has FASTQ or FASTA" in capsys.readouterr().err
