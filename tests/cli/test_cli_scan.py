"""readmap scan in this process: outputs, reports and errors."""

import gzip
import importlib.util
import io
import json
import os
import random
import re
import sys
from pathlib import Path

import pysam
import pytest
from commands import failures, standard_input

from readmap.cli import main
from readmap.database import search

RANDOM = random.Random(411)
PROTEIN = "ACDEFGHIKLMNPQRSTVWY"


def protein(length: int) -> str:
    return "".join(RANDOM.choices(PROTEIN, k=length))


QUERIES = {"q1": protein(120), "q2": protein(60), "lonely": "WWWWW"}
SUBJECTS = {
    "short": protein(30),
    "like_q1": protein(20) + QUERIES["q1"][10:70] + "GG" + QUERIES["q1"][75:110] + protein(300),
    "like_q2": QUERIES["q2"][:40] + protein(10),
    "empty": "",
    "other": protein(200),
}
GENE = "".join(RANDOM.choices("ACGT", k=80))
COMPLEMENT = str.maketrans("ACGT", "TGCA")
CONTIGS = {"plus": "ACCA" * 20 + GENE + "GTTG" * 10, "minus": "CCAT" * 15 + GENE[5:75].translate(COMPLEMENT)[::-1]}


@pytest.fixture(autouse=True)
def files(elsewhere: None) -> None:
    """Write files of sequences."""
    for path, sequences in (("q.fa", QUERIES), ("db.fa", SUBJECTS), ("gene.fa", {"g": GENE}), ("dna.fa", CONTIGS)):
        Path(path).write_text("".join(f">{name} of {path}\n{letters}\n" for name, letters in sequences.items()))


def run(*arguments: str) -> int:
    return main(["scan", *arguments, "--device", "cpu"])


def output(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(*arguments, "-q") == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    return captured.out


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


failure = failures(run)


def test_hits_and_report(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("q.fa", "db.fa", "--format", "tab", "--json", "report.json", "--evalue", "1e-3") == 0
    captured = capfd.readouterr()
    assert [row[:2] for row in rows(captured.out)] == [["q1", "like_q1"], ["q2", "like_q2"]]
    assert rows(captured.out)[1][2:10] == ["100.000", "40", "0", "0", "1", "40", "1", "40"]
    cells = sum(map(len, QUERIES.values())) * sum(map(len, SUBJECTS.values()))
    assert re.search(
        rf"3 queries and 5 sequences, 2 hits: {cells:,} cells in [\d.]+ s, [\d.]+ GCUPS on cpu", captured.err
    )
    report = json.loads(Path("report.json").read_text())
    assert report["counts"] == {"hits": 2, "cells": cells}
    facts = {"matrix": "BLOSUM62", "gap_open": 11, "gap_extend": 1, "evalue": 1e-3, "devices": ["cpu"], "strand": None}
    assert {name: report[name] for name in facts} == facts
    assert report["database"] == {"source": "db.fa", "sequences": 5, "letters": sum(map(len, SUBJECTS.values()))}


def test_formats(capfd: pytest.CaptureFixture[str]) -> None:
    table = output(capfd, "q.fa", "db.fa", "--format", "tab")
    assert output(capfd, "q.fa", "db.fa", "--outfmt", "6") == table
    columns = ["qseqid", "sseqid", "score", "cigar"]
    chosen = output(capfd, "q.fa", "db.fa", "--format", "tab", "--columns", ",".join(columns))
    assert output(capfd, "q.fa", "db.fa", "--outfmt", f"6 {' '.join(columns)}") == chosen
    assert [row[:2] for row in rows(chosen)] == [row[:2] for row in rows(table)]
    assert {len(row) for row in rows(chosen)} == {4}
    text = output(capfd, "q.fa", "db.fa")
    assert output(capfd, "q.fa", "db.fa", "--outfmt", "0") == text
    assert "like_q2" in text
    assert "Identities = 40/40 (100%)" in text
    found = json.loads(output(capfd, "q.fa", "db.fa", "--format", "json"))
    assert [each["query"] for each in found] == list(QUERIES)
    assert [hit["subject"] for each in found for hit in each["hits"]] == [row[1] for row in rows(table)]
    for name, whole in (("o.tsv", table), ("o.m8", table), ("o.txt", text)):
        assert output(capfd, "q.fa", "db.fa", "-o", name) == ""
        assert Path(name).read_text() == whole
    output(capfd, "q.fa", "db.fa", "-o", "o.tsv.gz")
    assert gzip.decompress(Path("o.tsv.gz").read_bytes()).decode() == table


def test_sources_of_sequences(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = output(capfd, "q.fa", "db.fa", "--format", "tab")
    assert main(["index", "--database", "db.fa", "-q"]) == 0
    assert output(capfd, "q.fa", "db.fa.readmapdb", "--format", "tab") == table
    Path("db.fa.gz").write_bytes(gzip.compress(Path("db.fa").read_bytes()))
    assert output(capfd, "q.fa", "db.fa.gz", "--format", "tab", "-t", "3") == table
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("q.fa").read_bytes())))
    with standard_input("q.fa"):
        assert output(capfd, "-", "db.fa", "--format", "tab") == table


def test_nucleotides(capfd: pytest.CaptureFixture[str]) -> None:
    found = rows(output(capfd, "gene.fa", "dna.fa", "--format", "tab", "--evalue", "1e-5"))
    assert [(row[1], *row[6:10]) for row in found] == [
        ("plus", "1", "80", "81", "160"),
        ("minus", "6", "75", "130", "61"),
    ]
    for strand, subject in (("forward", "plus"), ("reverse", "minus")):
        one = rows(output(capfd, "gene.fa", "dna.fa", "--format", "tab", "--evalue", "1e-5", "--strand", strand))
        assert [row[1] for row in one] == [subject]
    assert output(capfd, "gene.fa", "dna.fa", "-o", "out.sam", "--evalue", "1e-5") == ""
    with pysam.AlignmentFile("out.sam") as records:
        primary, secondary = records
    assert (primary.reference_name, primary.reference_start, primary.is_reverse) == ("plus", 80, False)
    assert (secondary.reference_name, secondary.reference_start, secondary.is_reverse) == ("minus", 60, True)
    assert secondary.is_secondary
    assert primary.query_sequence == GENE
    scores = [row[-1] for row in rows(output(capfd, "gene.fa", "dna.fa", "--outfmt", "6 score", "--evalue", "1e-5"))]
    assert scores == ["160", "140"]
    own = ["--match", "1", "--mismatch", "1", "--gap-open", "2", "--gap-extend", "1"]
    assert rows(output(capfd, "gene.fa", "dna.fa", "--outfmt", "6 score", *own))[0] == ["80"]


def test_matrices_of_files_and_unknown_statistics(capfd: pytest.CaptureFixture[str]) -> None:
    Path("own.mat").write_text("# mine\n   A  W\nA  4 -3\nW -3 11\n")
    Path("w.fa").write_text(">w\nAWWA\n")
    assert rows(
        output(capfd, "w.fa", "w.fa", "--matrix", "own.mat", "--molecule", "protein", "--outfmt", "6 score evalue")
    ) == [["30", "NA"]]
    message = failure(
        capfd, "q.fa", "db.fa", "--matrix", "blosum50", "--gap-open", "8", "--gap-extend", "2", "--evalue", "1", code=2
    )
    assert message.startswith("E-values are unknown for BLOSUM50 with gap costs 8/2: they are known for 13/3, ")
    costs = ["--matrix", "BLOSUM50", "--gap-open", "8", "--gap-extend", "2"]
    assert {row[0] for row in rows(output(capfd, "q.fa", "db.fa", "--outfmt", "6 evalue", *costs))} == {"NA"}


def test_limits(capfd: pytest.CaptureFixture[str]) -> None:
    everything = rows(output(capfd, "q.fa", "db.fa", "--evalue", "1e6", "--outfmt", "6 qseqid score evalue"))
    best = rows(
        output(capfd, "q.fa", "db.fa", "--evalue", "1e6", "--outfmt", "6 qseqid score evalue", "--max-hits", "1")
    )
    assert best == [
        next(row for row in everything if row[0] == name) for name in QUERIES if name in {r[0] for r in everything}
    ]
    high = rows(
        output(capfd, "q.fa", "db.fa", "--evalue", "1e6", "--outfmt", "6 qseqid score evalue", "--min-score", "60")
    )
    assert high == [row for row in everything if int(row[1]) >= 60]
    larger = rows(output(capfd, "q.fa", "db.fa", "--outfmt", "6 evalue", "--dbsize", "1000000", "--max-hits", "1"))[0]
    assert float(larger[0]) > 100 * float(best[0][2])


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_plot(capfd: pytest.CaptureFixture[str]) -> None:
    assert output(capfd, "q.fa", "db.fa", "-o", "o.tsv", "--plot", "o.png") == ""
    assert Path("o.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q.fa", "db.fa", "--columns", "score"], "--columns: only with --format tab, and text is written"),
        (["q.fa", "db.fa", "--outfmt", "6", "--format", "tab"], "--format: not with --outfmt, which sets the format"),
        (["q.fa", "db.fa", "--outfmt", "7"], "--outfmt 7: expected 0 (text), 6 (table), or 6 and names of columns"),
        (["q.fa", "db.fa", "--outfmt", "6 score", "--columns", "std"], "--columns: not with the columns of --outfmt"),
        (
            ["q.fa", "db.fa", "--matrix", "PAM30", "--match", "1"],
            "--match: not with --matrix, which scores all letters",
        ),
        (["q.fa", "db.fa", "--match", "1"], "match and mismatch score nucleotides"),
        (["gene.fa", "dna.fa", "--matrix", "PAM30"], "matrix PAM30 scores proteins"),
        (["q.fa", "db.fa", "--strand", "both"], "strand both: the database has proteins, which have no strands"),
        (["q.fa", "db.fa", "--format", "sam"], "--format sam: SAM is for nucleotides"),
        (["q.fa", "db.fa", "-o", "out.bam"], "-o: out.bam: SAM is written"),
        (["q.fa", "db.fa", "--plot", "out.gif"], "--plot: out.gif: expected a name that ends with .png, .svg or .pdf"),
        (["q.fa", "db.fa", "--gpus", "2"], "--gpus 2: not with --device cpu, which is one device"),
        (["q.fa", "db.fa", "--evalue", "-1"], "evalue is -1.0, expected at least 0"),
        (["q.fa", "db.fa", "-o", "db.fa"], "-o db.fa is a file of the sequences"),
    ],
)
def test_wrong_options(capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert failure(capfd, *arguments, code=2).startswith(message)


def test_files_that_cannot_be_scanned(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.fa").write_text(">x\nACDEF\n>y\nAC-W\n")
    Path("cut.fa.gz").write_bytes(gzip.compress(Path("db.fa").read_bytes())[:-20])
    outputs = ("-o", "out.tsv", "--json", "report.json", "--plot", "out.png")
    for arguments, message in (
        (["q.fa", "no.fa"], "no.fa: No such file or directory"),
        (
            ["bad.fa", "db.fa"],
            "bad.fa, record 2 (y), position 3: expected an amino acid (A to Z, or * for a stop), found '-'",
        ),
        (["q.fa", "bad.fa", "--molecule", "protein"], "bad.fa, record 2 (y), position 3"),
        (["q.fa", "cut.fa.gz"], "cut.fa.gz"),
        (["q.fa", "dna.fa"], "q.fa, record 1 (q1), position"),
    ):
        assert failure(capfd, *arguments, *outputs, code=1).startswith(message)


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (MemoryError(), 137), (ValueError("x"), 1)])
def test_failing_work_leaves_no_file(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(search, "align_hits", fail)
    before = sorted(os.listdir())
    assert run("q.fa", "db.fa", "-o", "out.tsv", "--json", "report.json") == code
    assert capfd.readouterr().err.startswith("readmap: ")
    assert sorted(os.listdir()) == before
