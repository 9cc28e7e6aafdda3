"""readmap compare in this process: outputs, reports and errors."""

import errno
import gzip
import importlib.util
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import failures, standard_input

from readmap.cli import main
from readmap.cli.common import alignments
from readmap.pairwise import comparison

QUERIES = {"q1": "ACGTTTGACCA", "q2": "GGGGGAACCC"}
TARGETS = {"t1": "TTACGTTTGACCATT", "t2": "GGGTTCC"}


@pytest.fixture(autouse=True)
def files(elsewhere: None) -> None:
    """Write two files of sequences."""
    for path, sequences in (("a.fa", QUERIES), ("b.fa", TARGETS)):
        Path(path).write_text("".join(f">{name} more\n{letters}\n" for name, letters in sequences.items()))


def run(*arguments: str) -> int:
    return main(["compare", *arguments, "--device", "cpu"])


def table(text: str) -> list[dict[str, str]]:
    header, *lines = text.splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


failure = failures(run)


def test_every_query_with_every_target(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("a.fa", "b.fa", "--format", "tsv", "--strand", "both", "--json", "report.json") == 0
    captured = capfd.readouterr()
    rows = table(captured.out)
    assert [(row["query"], row["target"]) for row in rows] == [("q1", "t1"), ("q1", "t2"), ("q2", "t1"), ("q2", "t2")]
    assert [row["strand"] for row in rows if row["query"][1] == row["target"][1]] == ["+", "-"]
    cells = 2 * sum(map(len, QUERIES.values())) * sum(map(len, TARGETS.values()))
    assert re.search(rf"4 pairs, 4 aligned: {cells:,} cells in [\d.]+ s, [\d.]+ GCUPS on cpu", captured.err)
    report = json.loads(Path("report.json").read_text())
    assert report["counts"] == {"pairs": 4, "aligned": 4, "cells": cells}
    facts = {"mode": "local", "strand": "both", "format": "tsv", "in_pairs": False, "score_only": False}
    assert {name: report[name] for name in facts} == facts
    assert report["scores"] == {"match": 1, "mismatch": 3, "gap_first": 5, "gap_extend": 2}
    assert report["query"] == {"source": "a.fa", "sequences": 2, "letters": 21}
    assert {"read", "compare"} <= set(report["seconds"])
    assert report["output"] == "standard output"
    assert run("a.fa", "b.fa", "-o", "out.tsv", "-q", "--json", "-") == 0
    assert json.loads(capfd.readouterr().out)["output"] == "out.tsv"


def test_pairs(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--pairs", "a.fa", "b.fa", "--format", "tsv", "-q") == 0
    captured = capfd.readouterr()
    assert [(row["query"], row["target"], row["score"]) for row in table(captured.out)] == [
        ("q1", "t1", "11"),
        ("q2", "t2", "3"),
    ]
    assert captured.err == ""
    assert run("--pairs", "a.fa", "b.fa", "--format", "tsv", "-q", "--mode", "global") == 0
    rows = table(capfd.readouterr().out)
    assert rows[0]["cigar"] == "2D11=2D"
    assert (rows[0]["query_start"], rows[0]["target_end"], rows[0]["score"]) == ("1", "15", "-3")


def test_scores(capfd: pytest.CaptureFixture[str]) -> None:
    Path("a.fa").write_text(">q\nACGTACGTTTGACC\n")
    Path("b.fa").write_text(">t\nACGTACGGTTTGACC\n")
    scores = ("--match", "5", "--mismatch", "4", "--gap-first", "10", "--gap-extend", "1")
    assert run("a.fa", "b.fa", "--format", "json", "-q", *scores) == 0
    (alignment,) = json.loads(capfd.readouterr().out)
    assert (alignment["score"], alignment["cigar"]) == (60, "6=1D8=")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("out.paf", b"q1\t11\t0\t11\t+\tt1\t"),
        ("out.sam", b"@HD\t"),
        ("out.tsv", b"query\tquery_length\t"),
        ("out.json", b"[\n{"),
        ("out.txt", b"query      q1"),
        ("out", b"query      q1"),
    ],
)
def test_formats_by_endings(name: str, first: bytes) -> None:
    assert run("a.fa", "b.fa", "-o", name, "-q") == 0
    assert Path(name).read_bytes().startswith(first)
    assert (b"|||||" in Path(name).read_bytes()) == name.endswith(".txt")
    assert run("a.fa", "b.fa", "-o", f"{name}.gz", "-q") == 0
    assert gzip.decompress(Path(f"{name}.gz").read_bytes()).startswith(first)
    assert sorted(os.listdir()) == ["a.fa", "b.fa", name, f"{name}.gz"]


def test_score_only(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("a.fa", "b.fa", "--score-only", "--format", "json", "-q", "--strand", "reverse") == 0
    alignment = json.loads(capfd.readouterr().out)[3]
    assert (alignment["score"], alignment["query_start"], alignment["query_end"], alignment["target_end"]) == (
        7,
        4,
        None,
        7,
    )
    assert alignment["target_start"] is alignment["cigar"] is alignment["identity"] is None
    assert run("--pairs", "a.fa", "b.fa", "--score-only", "-q") == 0
    assert "query      q1, 11 letters, aligned to 11\n" in capfd.readouterr().out


def test_standard_input_and_compressed_files(capfd: pytest.CaptureFixture[str]) -> None:
    Path("b.fq.gz").write_bytes(gzip.compress(b"@t1\nTTACGTTTGACCATT\n+\nIIIIIIIIIIIIIII\n"))
    with standard_input("a.fa"):
        assert run("-", "b.fq.gz", "--format", "paf", "-q") == 0
    assert capfd.readouterr().out.startswith("q1\t11\t0\t11\t+\tt1\t15\t2\t13\t11\t11\t255\t")


def test_settings_reach_the_aligner(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, align_long = [], comparison.align_long_pair

    def remember(query: Any, target: Any, settings: Any, *rest: Any) -> Any:
        seen.append(settings)
        return align_long(query, target, settings, *rest)

    monkeypatch.setattr(comparison, "align_long_pair", remember)
    assert run("a.fa", "b.fa", "-q", "--no-pruning", "--memory", "3M", "--checkpoint", "work", "-o", "out") == 0
    assert {(settings.pruning, settings.memory) for settings in seen} == {(False, 3 << 20)}
    assert str(seen[0].checkpoint) == "work/1-1-forward"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "--no-pruning"], "--no-pruning: not with --pairs"),
        (["--pairs", "--memory", "1G", "--checkpoint", "d"], "--checkpoint, --memory: not with --pairs"),
        (["--mode", "global"], "--mode: only with --pairs"),
        (["--mode", "glocal", "--pairs"], "expected local, global or semiglobal, found 'glocal'"),
        (["--strand", "up"], "expected both, forward or reverse, found 'up'"),
        (["--format", "bam"], "expected summary, paf, sam, tsv, json or text, found 'bam'"),
        (["-o", "out.bam"], "-o: out.bam: SAM is written"),
        (["-o", "out.cram"], "-o: out.cram: SAM is written"),
        (["--score-only", "--format", "paf"], "--score-only: paf reports alignments: choose summary, tsv or json"),
        (["--score-only", "-o", "out.sam"], "--score-only: sam reports alignments"),
        (["--score-only", "--plot", "x.png"], "--plot: not with --score-only"),
        (["--plot", "x.jpg"], "--plot: x.jpg: expected a name that ends with .png, .svg or .pdf"),
        (["--plot", "x.png", "-o", "x.png"], "--plot x.png is where the output goes"),
        (["--json", "x", "-o", "./x"], "--json x is where the output goes"),
        (["--json", "-"], "--json - is where the output goes"),
        (["--json", "x.png", "--plot", "x.png"], "--json x.png is where the plot goes"),
        (["-o", "a.fa"], "-o a.fa is a file of the sequences"),
        (["--plot", "link.png"], "--plot link.png is a file of the sequences"),
        (["--gap-first", "1"], "the first letter of a gap costs 1, expected at least 2"),
        (["--match", "0"], "0 is not in the range 1 to 1000"),
        (["--gap-extend", "-1"], "-1 is not in the range 1 to 1000"),
        (["--gap-first", "1500"], "gap open is 1498, expected 0 to 1000"),
        (["--memory", "1X"], "--memory 1X: expected a size such as 8G or 500M"),
        (["--device", "gpu"], "--device gpu: expected auto, cpu, cuda or cuda:N"),
        (["--gpus", "2", "--device", "cpu"], "--gpus 2: not with --device cpu, which is one device"),
        (["--gpus", "two"], "--gpus two: expected a number of GPUs, all, or different GPUs"),
    ],
)
def test_usage_errors(capfd: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    os.link("b.fa", "link.png")
    assert main(["compare", "a.fa", "b.fa", *options]) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")
    assert sorted(os.listdir()) == ["a.fa", "b.fa", "link.png"]


def test_invalid_files(capfd: pytest.CaptureFixture[str]) -> None:
    Path("one.fa").write_text(">x\nACGT\n")
    Path("bad.fa").write_text(">x\nACGT\n>y\nAC*T\n")
    Path("twice.fa").write_text(">x\nACGT\n>x\nA\n")
    Path("folder").mkdir()
    outputs = ("-o", "out", "--json", "report.json")
    for arguments, code, message in (
        (["-", "-"], 2, "- and - are one file: only one of the two can be standard input"),
        (["a.fa", "no.fa"], 1, "no.fa: No such file or directory"),
        (["folder", "a.fa"], 1, "folder: Is a directory"),
        (["bad.fa", "a.fa"], 1, "bad.fa, record 2 (y), position 3: expected a nucleotide (IUPAC), found '*'"),
        (
            ["--pairs", "one.fa", "b.fa"],
            1,
            "1 queries and 2 targets, expected equal numbers: record 2 (t2) of the targets has no partner",
        ),
        (["a.fa", "twice.fa", "--format", "sam"], 1, "record 2 of the targets (x): record 1 has the same name"),
    ):
        assert failure(capfd, *arguments, *outputs, code=code).startswith(message)
    assert failure(capfd, "a.fa", "b.fa", "-o", "no/out", code=1).startswith("no/out: No such file or directory")
    assert failure(capfd, "a.fa", "b.fa", "-o", "/dev/full", code=1) == "/dev/full: No space left on device"


def test_a_wrong_alignment_is_not_written(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    align_batch = comparison.align_batch

    def wrong(*arguments: Any) -> Any:
        found = align_batch(*arguments)
        found.scores[1] += 1
        return found

    monkeypatch.setattr(comparison, "align_batch", wrong)
    message = failure(capfd, "--pairs", "a.fa", "b.fa", "-o", "out.paf", "--json", "report.json", code=1)
    assert message.startswith("this is a bug in readmap, please report it")
    assert message.endswith("InternalError: q2 against t2: the score is 4, expected 3")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "readmap: interrupted\n"),
        (MemoryError(), 137, "readmap: error: not enough memory"),
        (OSError(errno.EIO, "Input/output error", "tape"), 1, "readmap: error: tape: Input/output error\n"),
    ],
)
def test_failing_work_leaves_no_file(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(comparison, "align_long_pair", fail)
    assert run("a.fa", "b.fa", "-o", "out.paf", "--json", "report.json", "--plot", "out.png") == code
    assert capfd.readouterr().err.startswith(message)
    assert sorted(os.listdir()) == ["a.fa", "b.fa"]


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plot(ending: str, magic: bytes) -> None:
    pytest.importorskip("matplotlib")
    for name in ("x", "y"):
        assert run("a.fa", "b.fa", "-o", "out.paf", "-q", "--strand", "both", "--plot", f"{name}.{ending}") == 0
    assert Path(f"x.{ending}").read_bytes().startswith(magic)
    assert Path(f"x.{ending}").read_bytes() == Path(f"y.{ending}").read_bytes()


def test_a_plot_without_matplotlib(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))
    message = failure(capfd, "a.fa", "b.fa", "--plot", "x.png", code=1)
    assert message == "--plot x.png: matplotlib is not installed: pip install 'readmap[plot]'"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    shown: list[str] = []
    line = alignments.progress_line
    monkeypatch.setattr(alignments, "progress_line", lambda *facts: shown.append(line(*facts)) or shown[-1])
    monkeypatch.setattr(alignments, "is_terminal", lambda output: True)
    assert run("a.fa", "b.fa", "--format", "tsv") == 0
    # Output on the same terminal follows the progress and is complete.
    assert len(table(capfd.readouterr().out)) == 4
    assert re.fullmatch(r"[\d.]+% of 462 cells, [\d,.]+ GCUPS, 0:00:0\d left", shown[0])
    assert shown[-1].startswith("100.00% of 462 cells")
