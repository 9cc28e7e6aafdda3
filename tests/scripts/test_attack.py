"""scripts/attack finds no fault in this checkout, and finds faults that are planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from examples import Read, fastq

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/attack"

# A process that has loaded the script as a module. It forks a child for each run, which a line of JSON describes:
# arguments, environment, and Python code that plants a fault in the child.
SERVER = """
import importlib.util, json, os, signal, sys, time, traceback
from importlib.machinery import SourceFileLoader
sys.path[:0] = [{scripts!r}, {root!r}]
sys.base_prefix = "elsewhere"
sys.dont_write_bytecode = True
loader = SourceFileLoader("attack", {script!r})
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("attack", loader))
loader.exec_module(module)
from attacks.command_runs import warm_up
warm_up()
for line in sys.stdin:
    run = json.loads(line)
    child = os.fork()
    if not child:
        for descriptor, name in ((0, os.devnull), (1, run["output"]), (2, run["errors"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), descriptor)
        os.environ |= run["environment"]
        code = 70
        try:
            exec(run["plant"])
            code = module.main(run["words"])
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

Rows = dict[str, dict[str, Any]]


class Done(NamedTuple):
    """The result of a run."""

    returncode: int
    stdout: str
    stderr: str


#: Run the script in a folder with arguments; plant: Python code that is executed before.
Script = Callable[..., Done]


@pytest.fixture(scope="module")
def attack() -> Iterator[Script]:
    names = {"scripts": str(SCRIPT.parent), "root": str(ROOT), "script": str(SCRIPT)}
    command = [sys.executable, "-c", SERVER.format(**names)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        requests, codes = server.stdin, server.stdout

        def run(folder: Path, *words: str | Path, plant: str = "") -> Done:
            texts = [folder / "output", folder / "errors"]
            for text in texts:
                text.unlink(missing_ok=True)
            environment = {**os.environ, "COLUMNS": "200"}
            given = {"words": [*map(str, words)], "plant": plant, "environment": environment}
            requests.write(json.dumps(given | {"output": str(texts[0]), "errors": str(texts[1])}) + "\n")
            requests.flush()
            return Done(int(codes.readline()), *(text.read_text() for text in texts))

        yield run
        requests.close()


def run(attack: Script, folder: Path, *words: str | Path, plant: str = "") -> tuple[Done, Rows]:
    """Run the script and return its result and its rows by name."""
    given = ["-j", "1", "--work", folder / "work", "--json", folder / "counts.json"]
    done = attack(folder, *words, *given, plant=plant)
    rows = json.loads((folder / "counts.json").read_text())["total"]
    return done, {row["attack"]: row for row in rows}


def total(rows: Rows, verdict: str) -> int:
    return sum(row[verdict] for row in rows.values())


def expect_clean(done: Done, rows: Rows, cases: int) -> None:
    assert done.returncode == 0, done.stderr
    assert total(rows, "cases") == total(rows, "accepted") + total(rows, "refused") == cases


@pytest.mark.parametrize(("name", "cases"), [("parsers", 120), ("commands", 13), ("folders", 12)])
def test_nothing_is_found(attack: Script, tmp_path: Path, name: str, cases: int) -> None:
    done, rows = run(attack, tmp_path, name, "--seed", "5", "--cases", str(cases))
    expect_clean(done, rows, cases)
    if name != "folders":
        assert len(rows) >= 12
        assert total(rows, "accepted") > 0 < total(rows, "refused")


@pytest.mark.parametrize(("name", "jobs"), [("kills", range(1)), ("disks", range(4, 5)), ("memory", range(8, 9))])
def test_nothing_is_found_of_jobs(attack: Script, tmp_path: Path, name: str, jobs: range) -> None:
    plant = f"from attacks import jobs; jobs.JOBS = jobs.JOBS[{jobs.start}:{jobs.stop}]"
    words = ["--seed", "5", "--first", str(jobs.start), "--cases", str(len(jobs))]
    done, rows = run(attack, tmp_path, name, *words, plant=plant)
    expect_clean(done, rows, len(jobs))


@pytest.mark.parametrize(
    ("name", "cases", "plant", "row", "verdict"),
    [
        (
            "parsers",
            48,
            "from attacks import targets; find = targets.parse_reads\n"
            "targets.parse_reads = lambda *given: (r := find(*given)).part(0, max(r.count - 1, 0))",
            "parsers, FASTQ",
            "lost",
        ),
        (
            "parsers",
            24,
            "from attacks import targets; targets.read_matrix = lambda path: os.kill(os.getpid(), signal.SIGSEGV)",
            "parsers, matrix",
            "crashed",
        ),
        (
            "parsers",
            12,
            "from attacks import parsers, targets; parsers.Parsers.limit = 2\n"
            "targets.read_matrix = lambda path: time.sleep(60)",
            "parsers, matrix",
            "hung",
        ),
    ],
    ids=["lost read", "segmentation fault", "endless loop"],
)
def test_planted_faults_are_found(
    attack: Script, tmp_path: Path, name: str, cases: int, plant: str, row: str, verdict: str
) -> None:
    done, rows = run(attack, tmp_path, name, "--cases", str(cases), plant=plant)
    assert done.returncode == 1, done.stderr
    assert rows[row][verdict] > 0
    assert total(rows, "cases") == cases
    found = [line for line in done.stderr.splitlines() if line.startswith(f"{row}: {verdict}: ")]
    assert len(found) == rows[row][verdict]
    index = found[0].split("--first ")[1].split()[0]
    assert any((tmp_path / "work" / f"{name}-1-{index}").iterdir())


def test_device_without_a_tool_or_a_gpu(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    for words, message in (((), "CuPy"), (("--device", "cpu"), "compute-sanitizer is not on the PATH")):
        command = [sys.executable, SCRIPT, "device", *words, "--work", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith(f"attack: {message}")
        assert done.stderr.count("\n") == 1


def test_counts_of_repeated_runs_are_added(attack: Script, tmp_path: Path) -> None:
    _, first = run(attack, tmp_path, "parsers", "--seed", "2", "--cases", "36")
    _, both = run(attack, tmp_path, "parsers", "--seed", "2", "--cases", "36")
    assert both == {
        name: {key: 2 * n if key != "attack" else n for key, n in row.items()} for name, row in first.items()
    }
    runs = json.loads((tmp_path / "counts.json").read_text())["runs"]
    assert [one["seed"] for one in runs] == [2, 2]
    assert runs[0]["counts"] == runs[1]["counts"]
    assert {"command", "commit", "machine", "seconds", "versions"} <= runs[0].keys()
    kept = tmp_path / "kept.json"
    assert attack(tmp_path, "sum", tmp_path / "counts.json", "--json", kept).returncode == 0
    record = json.loads(kept.read_text())
    assert [(row["attack"], row["cases"], row["seeds"]) for row in record["kinds"]] == [("parsers", 72, [2])]


def test_conformance(attack: Script, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    reads = [Read("a", "ACGTAC", "IIIIII"), Read("b/1", "", ""), Read("c", "NNA", "#AB")]
    (files / "good.fq").write_bytes(fastq(reads))
    (files / "bad.fastq").write_bytes(fastq(reads)[:-3])
    (files / "same_names.bam").write_bytes((ROOT / "tests/inputs/same_names.bam").read_bytes())
    done, rows = run(attack, tmp_path, "conformance", files)
    assert done.returncode == 0, done.stderr
    assert total(rows, "accepted") == 2
    assert f"{files / 'good.fq'}: accepted with every read, 3" in done.stdout
    assert f"{files / 'bad.fastq'}: invalid, and refused: " in done.stdout
    assert f"{files / 'same_names.bam'}: accepted with every read, 10" in done.stdout


@pytest.mark.parametrize("words", [["parsers", "--cases", "1", "--seconds", "1"], ["conformance"]])
def test_usage(attack: Script, tmp_path: Path, words: list[str]) -> None:
    assert attack(tmp_path, *words).returncode == 2
