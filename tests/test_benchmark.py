"""scripts/benchmark on the demo data: what it checks, what it reports, and when it gives up. No time is asserted."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from examples import fasta, random_bases

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts/benchmark"
REFERENCE, READS = ROOT / "data/demo.fa.gz", ROOT / "data/demo.fq.gz"
STAGES = ["read", "copy", "parse", "seed", "windows", "extend", "place", "format", "between kernels", "write"]


def run(work: Path, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *words, "--work", work, "--json", work / "figures.json"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, which must not look for another interpreter."""
    monkeypatch.setattr(sys, "base_prefix", "elsewhere")
    monkeypatch.setattr(sys, "path", [*sys.path])
    loader = SourceFileLoader("benchmark", str(SCRIPT))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_loader("benchmark", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_map_reports_a_checked_output_runs_and_stages(backends: str, tmp_path: Path) -> None:
    words = ("--device", backends, "-t", "1", "--runs", "1", "--repeat", "2", "--label", "demo")
    done = run(tmp_path, "map", "--reference", REFERENCE, "--reads", READS, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["schema"] == 1
    assert report["label"] == "demo"
    assert report["checked"] is True
    assert report["checked_reads"] == report["counts"]["reads"] == 10_000
    assert len(report["same_sam"]) == (3 if backends == "cpu" else 2)
    assert report["device"].startswith(backends)
    assert report["machine"]["cores"] >= 1
    peer = ["bwa mem"] if backends == "cpu" and shutil.which("bwa") else []
    assert list(report["runs"]) == ["cold", "warm", *peer]
    for name, rows in report["runs"].items():
        assert len(rows) == 1
        assert {"wall_seconds", "cpu_seconds", "peak_memory_bytes", "reads_a_second"} <= rows[0].keys(), name
    assert [row["run"] for row in report["medians"]] == ["cold", "warm", *peer, *["bwa mem / warm"] * len(peer)]
    stages = {row["stage"]: row for row in report["stages"]}
    assert [stage for stage in stages if stage in STAGES] == STAGES
    assert "find_seeds" in stages["seed"]["parts"]
    for row in stages.values():
        assert row["ns_a_read"] == pytest.approx(sum(row["parts"].values()), abs=0.1)
    assert "find_seeds" in done.stdout
    assert not list(tmp_path.glob("tmp*")), "the cache of the cold run is left"


def test_memory_holds_both_commands_to_their_bars(tmp_path: Path) -> None:
    reference = tmp_path / "made.fa"
    reference.write_bytes(fasta({"chr": random_bases(random.Random(7), 500_000)}))
    done = run(tmp_path, "memory", "--reference", reference, "--reads", READS, "-t", "1")
    assert done.returncode == 0, done.stderr
    index, search = json.loads((tmp_path / "figures.json").read_text())["memory"]
    assert (index["run"], index["bar_bytes"], index["verdict"]) == ("index", 14 * 500_000 + 300_000_000, "PASS")
    assert (search["run"], search["bar_bytes"], search["verdict"]) == ("search", 2 << 30, "PASS")


def test_memory_over_a_bar_fails(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = {"wall_seconds": 1.0, "peak_memory_bytes": 3 << 30}
    told = {"reference": {"bases": 100_000_000}}
    monkeypatch.setattr(script, "readmap", lambda *_: (taken, told))
    monkeypatch.setattr(script, "search", lambda *_: (taken, told))
    assert script.main(["memory", "--reference", "a.fa", "--reads", "a.fq", "--work", str(tmp_path)]) == 1


def test_nothing_is_timed_where_the_sam_differs(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sams = [b"@PG\tID:readmap\tCL:a\nread\t0\n", b"@PG\tID:readmap\tCL:bb\nread\t0\n", b"@PG\tID:readmap\nread\t4\n"]
    told = {"counts": {"reads": 1}}

    def search(*_: object, **variables: str) -> tuple[dict[str, Any], dict[str, Any]]:
        assert not variables, "a timed run"
        (tmp_path / "out.sam").write_bytes(sams.pop(0))
        return {}, told

    monkeypatch.setattr(script, "readmap", lambda *_: ({}, told))
    monkeypatch.setattr(script, "search", search)
    with pytest.raises(SystemExit, match="is not the same, so nothing is timed"):
        script.main(["map", "--reference", str(REFERENCE), "--reads", str(READS), "--work", str(tmp_path)])
    assert not sams


def test_map_says_that_bwa_is_missing(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = {"wall_seconds": 1.0, "cpu_seconds": 1.0}, {"counts": {"reads": 1}}
    monkeypatch.setattr(script, "readmap", lambda *_: found)
    monkeypatch.setattr(script, "search", lambda *_, **__: found)
    monkeypatch.setattr(script, "check", lambda *_: {})
    monkeypatch.setattr(script, "time_stages", lambda *_: [])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert script.main(["map", "--reference", "a.fa", "--reads", "a.fq", "--work", str(tmp_path)]) == 0
    assert "bwa is not installed" in capsys.readouterr().out


def test_a_failing_command_is_told(tmp_path: Path) -> None:
    reads = tmp_path / "reads.fq"
    reads.write_text("no reads\n")
    done = run(tmp_path, "map", "--reference", REFERENCE, "--reads", reads)
    assert done.returncode == 1
    assert "exit code 1" in done.stderr
    assert "expected reads" in done.stderr


def test_without_the_simulator_the_usual_sets_are_skipped(tmp_path: Path) -> None:
    for words in (["map"], ["map", "--device", "cuda"], ["memory"]):
        done = run(tmp_path, *words, READMAP_SHARED=str(tmp_path / "none"))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("skipped: ")


@pytest.mark.parametrize("words", [["map", "--reads", "a.fq"], ["memory", "--device", "cuda"], ["sort"]])
def test_usage(script: Any, words: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        script.main(words)
    assert left.value.code == 2
