"""Each benchmark of scripts/benchmark runs on a tiny input, checks what it times and writes its report.

readmap's commands run in this process; a process each would take most of the time. No time is asserted.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from examples import Read, fasta, fastq, random_bases, random_quality
from oracles.alignment import reverse_complement

from readmap.cli import main

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "data/demo.fa.gz"
MEASURED = {"wall_seconds": 1.0, "cpu_seconds": 1.0, "peak_memory_bytes": 1 << 20}
HAS_MATPLOTLIB = find_spec("matplotlib") is not None


@pytest.fixture
def benchmark(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a benchmark by its arguments and return its report."""
    from benchmarks import common, index

    run_process = common.run

    def run(command: Sequence[str | Path], *more: Any, **environment: str) -> dict[str, Any]:
        words = [str(word) for word in command]
        if words[:3] != [sys.executable, "-m", "readmap"]:
            return dict(run_process(command, *more, **environment))
        assert main([*words[3:], "-q"]) == 0, words
        return dict(MEASURED)

    monkeypatch.setattr(common, "run", run)
    monkeypatch.setattr(index.time, "sleep", lambda seconds: None)

    def report(*words: str | Path) -> dict[str, Any]:
        paths = ["--json", tmp_path / "figures.json"]
        assert script.main([*map(str, [*words, "--runs", "1", *paths])]) in (0, 1)
        found: dict[str, Any] = json.loads((tmp_path / "figures.json").read_text())
        assert found["command"]
        assert found["machine"]["cores"] >= 1
        return found

    return report


@pytest.fixture
def pairs(tmp_path: Path) -> list[Path]:
    """A reference and two files of its read pairs; some of the fragments are shorter than a read."""
    generator, mates = random.Random(17), list[list[Read]]([[], []])
    genome = random_bases(generator, 30_000)
    for index in range(300):
        start, size = generator.randrange(29_000), generator.randrange(90, 400)
        fragment = genome[start : start + size]
        for read, bases in zip(mates, (fragment, reverse_complement(fragment)), strict=True):
            read.append(Read(f"pair{index}", bases[:100], random_quality(generator, min(size, 100))))
    paths = [tmp_path / name for name in ("made.fa", "r1.fq", "r2.fq")]
    for path, text in zip(paths, (fasta({"chr": genome}), *map(fastq, mates)), strict=True):
        path.write_bytes(text)
    return paths


def test_pairs(benchmark: Any, pairs: list[Path], tmp_path: Path) -> None:
    reference, *reads = pairs
    words = ("--reference", reference, "--reads", *reads, "--peer", "none", "-t", "1", "--work", tmp_path)
    report = benchmark("pairs", *words)
    assert report["checked_reads"] == report["counts"]["reads"] == 600
    assert report["same_sam"][-1] == "-o out.bam"
    assert list(report["runs"]) == ["cold", "warm", "warm to BAM"]
    stages = {row["stage"]: row for row in report["stages_bam"]}
    assert {"read", "parse", "seed", "windows", "extend", "format", "write"} <= stages.keys()
    assert "pair_mates" in stages["pair"]["parts"]


def test_no_pairs_are_timed_if_records_differ(
    benchmark: Any, pairs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = [b"one", b"another", b"one", b"one"]
    monkeypatch.setattr("benchmarks.map.digest", lambda path: digests.pop())
    words = ("--reference", pairs[0], "--reads", *pairs[1:], "--peer", "none", "--work", tmp_path)
    with pytest.raises(SystemExit, match="so nothing is timed"):
        benchmark("pairs", *words)


def test_bam(benchmark: Any, pairs: list[Path], tmp_path: Path) -> None:
    report = benchmark("bam", "--reference", pairs[0], "--pairs", "200", "-t", "2", "--work", tmp_path)
    rows = {row["output"]: row for row in report["commands"]}
    assert {row["reads"] for row in rows.values()} == {400}
    assert rows["sorted, libdeflate"]["codec"] == "libdeflate"
    assert "sorted CRAM" in rows


def test_versus(benchmark: Any, pairs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "minibwa").write_text("#!/bin/sh\necho 1.0\n")
    (tmp_path / "minibwa").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    report = benchmark("versus", "--reference", pairs[0], "--reads", *pairs[1:], "-t", "1", "--work", tmp_path)
    assert [row["program"] for row in report["commands"]] == ["readmap", "minibwa map"]
    assert report["versions"]["minibwa"] == "1.0"


def test_scale(benchmark: Any, pairs: list[Path], tmp_path: Path) -> None:
    words = ("--reference", pairs[0], "--reads", *pairs[1:], "--repeat", "1", "-t", "1", "--work", tmp_path)
    report = benchmark("scale", *words)
    kinds = [(row["set"], row.get("layout"), row["output"]) for row in report["commands"]]
    assert kinds[:3] == [("given", "pairs", "sam"), ("given", "pairs", "bam --sort"), ("given", "single", "sam")]


def test_index(benchmark: Any, pairs: list[Path], tmp_path: Path) -> None:
    report = benchmark("index", "--reference", pairs[0], "-t", "2", "--peer", "none", "--work", tmp_path)
    assert len(report["checked"]["same_index"]) == 2
    assert {"read", "sort_suffixes", "prefix_table", "write"} <= report["medians"][0].keys()


def test_memory(benchmark: Any, pairs: list[Path], tmp_path: Path) -> None:
    report = benchmark("memory", "--reference", pairs[0], "--reads", pairs[1], "-t", "1", "--work", tmp_path)
    assert [row["verdict"] for row in report["memory"]] == ["PASS", "PASS"]


def test_gpus(benchmark: Any, script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU stands in for the GPUs."""
    from benchmarks import common, gpus

    def on_cpu(options: Any, *words: Any) -> Any:
        at = words.index("--gpus")
        return common.readmap(options, *("cpu" if word == "cuda" else word for word in words[:at] + words[at + 2 :]))

    monkeypatch.setattr(gpus, "readmap", on_cpu)
    words = ("--only", "compare", "scan", "--long", "3000", "--proteins", "20", "-t", "1", "--work", tmp_path)
    report = benchmark("gpus", *words)
    assert [(row["what"], row["gpus"]) for row in report["commands"]] == [
        (what, count) for what in ("compare", "scan") for count in (1, 2)
    ]


def test_dask(benchmark: Any, pairs: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    words = ("--reference", pairs[0], "--reads", *pairs[1:], "-t", "1", "--only", "BAM", "--work", tmp_path)
    report = benchmark("dask", *words)
    assert [row["output"] for row in report["commands"]] == ["BAM"]


def test_exact(benchmark: Any, tmp_path: Path) -> None:
    sizes = ("--reference-bases", "200000", "--queries", "1024", "--peer-queries", "0")
    figures = ("--figures", tmp_path) if HAS_MATPLOTLIB else ()
    report = benchmark("exact", "--reference", REFERENCE, "-t", "2", *sizes, *figures, "--work", tmp_path)
    assert len(report["same"]) == 4
    assert report["same_as_python"]["occurrences"] > 0
    assert len({row["occurrences"] for row in report["commands"]}) == 1
    assert (tmp_path / "exact-figure-3.png").exists() == HAS_MATPLOTLIB


@pytest.fixture
def small_checks(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "compare.inputs.PAIRS": Path("none"),
        "compare.checks.MIDDLE": 2000,
        "compare.checks.FEW_OF_PEER": 20,
        "scan.inputs.PROTEIN": Path("none"),
        "scan.inputs.LONGEST": 3000,
        "scan.checks.PROTEINS": 40,
        "scan.checks.LENGTHS": (24, 63),
        "scan.checks.BASES": 3000,
        "scan.checks.LONGEST": 2000,
        "scan.checks.DNA_LENGTHS": (30, 200),
        "scan.benchmark.DNA_QUERY": 50,
    }.items():
        monkeypatch.setattr(f"benchmarks.{name}", value)


@pytest.mark.usefixtures("small_checks")
@pytest.mark.parametrize(
    ("words", "rows", "figure"),
    [
        (["compare", "--bases", "300", "--similar", "2000", "-t", "1"], {"long_pairs": 1, "similar": 3}, "compare"),
        (["compare-pairs", "--pairs", "50"], {"batches": 6}, None),
        (["scan", "--proteins", "20", "--lengths", "30", "--bases", "2000", "-t", "1"], {"checks": 3}, "scan"),
    ],
    ids=["compare", "compare-pairs", "scan"],
)
def test_alignments(benchmark: Any, tmp_path: Path, words: list[str], rows: dict[str, int], figure: str | None) -> None:
    more = ["--figures", tmp_path] if figure and HAS_MATPLOTLIB else []
    report = benchmark(*words, *more, *(["--work", tmp_path] if words[0] == "scan" else []))
    assert report["checked"] is True
    assert bool(report["same_as_parasail"]) == (find_spec("parasail") is not None)
    assert {name: len(report[name]) for name in rows} == rows
    assert not more or (tmp_path / f"{figure}-gcups.png").exists()


def test_stored_figures_are_drawn(script: Any, tmp_path: Path) -> None:
    """The reports in data/benchmarks can still be read."""
    pytest.importorskip("matplotlib")
    stored = [ROOT / f"data/benchmarks/0.1.0-{name}.json" for name in ("exact", "h200-compare", "h200-scan")]
    assert script.main(["figures", *map(str, stored), "--figures", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"exact-figure-3.png", "compare-gcups.png", "scan-gcups.png"}


@pytest.mark.parametrize("words", [["map"], ["index"], ["exact"]])
def test_without_the_simulator_nothing_runs(
    script: Any, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("reads.SIMULATOR", "human.SIMULATOR", "exact.benchmark.SHARED"):
        monkeypatch.setattr(f"benchmarks.{name}", tmp_path / "none")
    with pytest.raises(SystemExit) as end:
        script.main([*words, "--work", str(tmp_path)])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("skipped: ")
