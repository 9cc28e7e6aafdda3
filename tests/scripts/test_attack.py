"""scripts/attack: that nothing is found where nothing is wrong, and that it finds what is planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import Read, fastq

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/attack"

# The script as a module of a process of its own, since it forks: what is planted comes first.
PLANTED = """
import importlib.util, os, signal, sys, time
from importlib.machinery import SourceFileLoader
sys.path[:0] = [{scripts!r}, {root!r}]
sys.base_prefix = "elsewhere"
sys.dont_write_bytecode = True
{plant}
loader = SourceFileLoader("attack", {script!r})
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("attack", loader))
loader.exec_module(module)
sys.exit(module.main({words!r}))
"""

Rows = dict[str, dict[str, Any]]


def run(folder: Path, *words: str | Path, plant: str = "") -> tuple[subprocess.CompletedProcess[str], Rows]:
    """The end of the script, and its rows by their names; plant: Python that is run before."""
    given = [*map(str, words), "-j", "1", "--work", str(folder / "work"), "--json", str(folder / "counts.json")]
    names = {"scripts": str(SCRIPT.parent), "root": str(ROOT), "script": str(SCRIPT), "words": given, "plant": plant}
    command = [sys.executable, "-c", PLANTED.format(**names)] if plant else [sys.executable, str(SCRIPT), *given]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"})
    rows = json.loads((folder / "counts.json").read_text())["total"]
    return done, {row["attack"]: row for row in rows}


def total(rows: Rows, verdict: str) -> int:
    return sum(row[verdict] for row in rows.values())


def expect_clean(done: subprocess.CompletedProcess[str], rows: Rows, cases: int) -> None:
    assert done.returncode == 0, done.stderr
    assert total(rows, "cases") == total(rows, "accepted") + total(rows, "refused") == cases


@pytest.mark.parametrize(
    ("attack", "cases"), [("parsers", 1200), ("commands", 39), ("folders", 36), ("kills", 4), ("memory", 6)]
)
def test_nothing_is_found(tmp_path: Path, attack: str, cases: int) -> None:
    done, rows = run(tmp_path, attack, "--seed", "5", "--cases", str(cases))
    expect_clean(done, rows, cases)
    if attack in ("parsers", "commands"):
        assert len(rows) >= 12
        assert total(rows, "accepted") > 0.1 * cases < total(rows, "refused")


def test_nothing_is_found_on_bad_disks(tmp_path: Path) -> None:
    done, rows = run(tmp_path, "disks", "--seed", "8", "--cases", "5")
    expect_clean(done, rows, 5)


@pytest.mark.parametrize(
    ("words", "plant", "row", "verdict"),
    [
        (
            ["parsers", "--cases", "240"],
            "from attacks import targets; find = targets.find_reads\n"
            "targets.find_reads = lambda *given: (r := find(*given)).part(0, max(r.count - 1, 0))",
            "parsers, FASTQ",
            "lost",
        ),
        (
            ["parsers", "--cases", "24"],
            "from attacks import targets; targets.read_matrix = lambda path: os.kill(os.getpid(), signal.SIGSEGV)",
            "parsers, matrix",
            "crashed",
        ),
        (
            ["parsers", "--cases", "24"],
            "from attacks import parsers, targets; parsers.Parsers.limit = 2\n"
            "targets.read_matrix = lambda path: time.sleep(60)",
            "parsers, matrix",
            "hung",
        ),
        (
            ["commands", "--cases", "26", "--seed", "3"],
            "from readmap.search.mapping import Mapping; Mapping.rest = lambda self: iter(())",
            "commands, search FASTQ",
            "lost",
        ),
        (
            ["commands", "--cases", "39"],
            "from readmap.formats.output import Output; Output.abort = lambda self: None",
            "commands, search CRAM",
            "half-written",
        ),
    ],
    ids=["a read is dropped", "a fault of memory", "no end", "records are dropped", "no output is removed"],
)
def test_what_is_planted_is_found(tmp_path: Path, words: list[str], plant: str, row: str, verdict: str) -> None:
    done, rows = run(tmp_path, *words, plant=plant)
    assert done.returncode == 1, done.stderr
    assert rows[row][verdict] > 0
    assert total(rows, "cases") == int(words[2])
    found = [line for line in done.stderr.splitlines() if line.startswith(f"{row}: {verdict}: ")]
    assert len(found) == rows[row][verdict]
    number = found[0].split("--first ")[1].split()[0]
    seed = words[4] if len(words) > 3 else "1"
    assert any((tmp_path / "work" / f"{words[0]}-{seed}-{number}").iterdir())


# Drops its options, and runs the command; of races it has something to say.
SANITIZER = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    [ "$1" = --tool ] && tool=$2
    [ "$1" = --log-file ] && log=$2
    shift 2
done
"$@"
code=$?
echo "========= COMPUTE-SANITIZER" > "$log"
if [ "$tool" = racecheck ]; then
    echo "========= Error: Race reported between Write access" >> "$log"
    echo "=========     at choose_windows+0x10 in placement.cu:94" >> "$log"
    exit 86
fi
echo "========= ERROR SUMMARY: 0 errors" >> "$log"
exit $code
"""


def test_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sanitizer of our own, and on the CPU, since there need be no GPU: the last valid run, and a search."""
    sanitizer = tmp_path / "bin/compute-sanitizer"
    sanitizer.parent.mkdir()
    sanitizer.write_text(SANITIZER)
    sanitizer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sanitizer.parent}:{os.environ['PATH']}")
    done, rows = run(tmp_path, "device", "--device", "cpu", "--first", "120", "--cases", "8")
    assert done.returncode == 1, done.stderr
    assert {name: row["crashed"] for name, row in rows.items()} == {
        f"device, {tool}, {contents}": int(tool == "racecheck")
        for tool in ("memcheck", "racecheck", "initcheck", "synccheck")
        for contents in ("valid", "random contents")
    }
    assert total(rows, "accepted") + total(rows, "refused") == 6
    told = "exit code 86: Error: Race reported between Write access at choose_windows+0x10 in placement.cu:94"
    assert told in done.stderr
    launched, _, missing = done.stderr.partition("not launched: ")
    assert "kernels launched on cpu" in launched
    assert "pairwise/bus fill_bus" in missing
    assert "choose_windows" not in missing
    kept = [set(os.listdir(folder)) for folder in (tmp_path / "work").glob("device-*")]
    assert [names >= {"words", "log", "ref.readmap"} for names in kept] == [True, True]


def test_device_without_a_tool_or_a_gpu(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    for words, message in (((), "CuPy"), (("--device", "cpu"), "compute-sanitizer is not on the PATH")):
        command = [sys.executable, SCRIPT, "device", *words, "--work", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith(f"attack: {message}")
        assert done.stderr.count("\n") == 1


def test_runs_add_up_and_can_be_repeated(tmp_path: Path) -> None:
    _, first = run(tmp_path, "parsers", "--seed", "2", "--cases", "36")
    _, both = run(tmp_path, "parsers", "--seed", "2", "--cases", "36")
    assert both == {
        name: {key: 2 * n if key != "attack" else n for key, n in row.items()} for name, row in first.items()
    }
    runs = json.loads((tmp_path / "counts.json").read_text())["runs"]
    assert [one["seed"] for one in runs] == [2, 2]
    assert runs[0]["counts"] == runs[1]["counts"]
    assert {"command", "commit", "machine", "seconds", "versions"} <= runs[0].keys()


def test_runs_of_several_files_add_up_once(tmp_path: Path) -> None:
    for name, words in (("one", ["parsers", "--seed", "2"]), ("other", ["folders", "--seed", "3"])):
        (tmp_path / name).mkdir()
        run(tmp_path / name, *words, "--cases", "12")
    files, kept = [tmp_path / name / "counts.json" for name in ("one", "other")], tmp_path / "kept.json"
    command = [sys.executable, SCRIPT, "sum", *files, "--json", kept]
    for _ in range(2):
        assert subprocess.run(command, capture_output=True).returncode == 0
        record = json.loads(kept.read_text())
        assert [(row["attack"], row["cases"], row["seeds"]) for row in record["kinds"]] == [
            ("parsers", 12, [2]),
            ("folders", 12, [3]),
        ]
        assert record["runs"] == [json.loads(file.read_text())["runs"][0] for file in files]
        assert [row["commits"] for row in record["kinds"]] == [[one["commit"]] for one in record["runs"]]
        assert sum(row["cases"] for row in record["total"]) == 24


def test_what_was_found_stays_in_the_sum(tmp_path: Path) -> None:
    plant = "from attacks import targets; targets.read_matrix = lambda path: os.kill(os.getpid(), signal.SIGSEGV)"
    run(tmp_path, "parsers", "--cases", "12", plant=plant)
    command = [sys.executable, SCRIPT, "sum", tmp_path / "counts.json", "--json", tmp_path / "kept.json"]
    assert subprocess.run(command, capture_output=True).returncode == 1
    assert json.loads((tmp_path / "kept.json").read_text())["kinds"][0]["crashed"] == 1


def test_conformance(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    reads = [Read("a", "ACGTAC", "IIIIII"), Read("b/1", "", ""), Read("c", "NNA", "#AB")]
    (files / "good.fq").write_bytes(fastq(reads))
    (files / "bad.fastq").write_bytes(fastq(reads)[:-3])
    (files / "same_names.bam").write_bytes((ROOT / "tests/inputs/same_names.bam").read_bytes())
    done, rows = run(tmp_path, "conformance", files)
    assert done.returncode == 0, done.stderr
    assert total(rows, "accepted") == 2
    assert f"{files / 'good.fq'}: accepted with every read, 3" in done.stdout
    assert f"{files / 'bad.fastq'}: invalid, and refused: " in done.stdout
    assert f"{files / 'same_names.bam'}: accepted with every read, 10" in done.stdout


def test_conformance_tells_what_differs(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/good.fq").write_bytes(fastq([Read("a", "ACGTAC", "IIIIII")]))
    plant = "from readmap.search.mapping import Mapping; Mapping.rest = lambda self: iter(())"
    done, rows = run(tmp_path, "conformance", tmp_path / "files", plant=plant)
    assert done.returncode == 1
    assert total(rows, "lost") == 1
    assert "good.fq: differs: expected 1 reads, found 0" in done.stderr


@pytest.mark.parametrize(
    "words", [[], ["parsers", "--cases", "1", "--seconds", "1"], ["conformance"], ["sum", "x"], ["peace"]]
)
def test_usage(words: list[str]) -> None:
    assert subprocess.run([sys.executable, SCRIPT, *words], capture_output=True).returncode == 2
