"""scripts/attack: that nothing is found where nothing is wrong, and that it finds what is planted."""

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

# A process that has the script as a module, and what it needs in memory. It forks for each run, whose words and whose
# environment a line of JSON holds; what is planted comes first, and is gone with the child.
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
    """The end of a run."""

    returncode: int
    stdout: str
    stderr: str


#: The end of a run of the script by its words, in a folder; plant: Python that is run before.
Script = Callable[..., Done]


@pytest.fixture(scope="module")
def attack() -> Iterator[Script]:
    names = {"scripts": str(SCRIPT.parent), "root": str(ROOT), "script": str(SCRIPT)}
    command = [sys.executable, "-c", SERVER.format(**names)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        told, ends = server.stdin, server.stdout

        def run(folder: Path, *words: str | Path, plant: str = "") -> Done:
            texts = [folder / "output", folder / "errors"]
            for text in texts:
                text.unlink(missing_ok=True)
            environment = {**os.environ, "COLUMNS": "200"}
            given = {"words": [*map(str, words)], "plant": plant, "environment": environment}
            told.write(json.dumps(given | {"output": str(texts[0]), "errors": str(texts[1])}) + "\n")
            told.flush()
            return Done(int(ends.readline()), *(text.read_text() for text in texts))

        yield run
        told.close()


def run(attack: Script, folder: Path, *words: str | Path, plant: str = "") -> tuple[Done, Rows]:
    """The end of the script, and its rows by their names."""
    given = ["-j", "1", "--work", folder / "work", "--json", folder / "counts.json"]
    done = attack(folder, *words, *given, plant=plant)
    rows = json.loads((folder / "counts.json").read_text())["total"]
    return done, {row["attack"]: row for row in rows}


def total(rows: Rows, verdict: str) -> int:
    return sum(row[verdict] for row in rows.values())


def expect_clean(done: Done, rows: Rows, cases: int) -> None:
    assert done.returncode == 0, done.stderr
    assert total(rows, "cases") == total(rows, "accepted") + total(rows, "refused") == cases


@pytest.mark.parametrize(("name", "cases"), [("parsers", 1200), ("commands", 39), ("folders", 36)])
def test_nothing_is_found(attack: Script, tmp_path: Path, name: str, cases: int) -> None:
    done, rows = run(attack, tmp_path, name, "--seed", "5", "--cases", str(cases))
    expect_clean(done, rows, cases)
    if name != "folders":
        assert len(rows) >= 12
        assert total(rows, "accepted") > 0.1 * cases < total(rows, "refused")


@pytest.mark.parametrize(("name", "jobs"), [("kills", range(4)), ("disks", range(4, 8)), ("memory", range(8, 13))])
def test_nothing_is_found_of_jobs(attack: Script, tmp_path: Path, name: str, jobs: range) -> None:
    """Each is a case, and no others run undisturbed before."""
    plant = f"from attacks import jobs; jobs.JOBS = jobs.JOBS[{jobs.start}:{jobs.stop}]"
    words = ["--seed", "5", "--first", str(jobs.start), "--cases", str(len(jobs))]
    done, rows = run(attack, tmp_path, name, *words, plant=plant)
    expect_clean(done, rows, len(jobs))


@pytest.mark.parametrize(
    ("words", "plant", "row", "verdict"),
    [
        (
            ["parsers", "--cases", "240"],
            "from attacks import targets; find = targets.parse_reads\n"
            "targets.parse_reads = lambda *given: (r := find(*given)).part(0, max(r.count - 1, 0))",
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
            ["commands", "--cases", "2", "--seed", "3", "--first", "53"],
            "from readmap.run.read_mapper import ReadMapper; ReadMapper.remaining_blocks = lambda self, place: iter(())",
            "commands, search FASTQ",
            "lost",
        ),
        (
            ["commands", "--cases", "6", "--seed", "1", "--first", "110"],
            "from readmap.formats.output import Output; Output.abort = lambda self: None",
            "commands, search CRAM",
            "half-written",
        ),
    ],
    ids=["a read is dropped", "a fault of memory", "no end", "records are dropped", "no output is removed"],
)
def test_what_is_planted_is_found(
    attack: Script, tmp_path: Path, words: list[str], plant: str, row: str, verdict: str
) -> None:
    done, rows = run(attack, tmp_path, *words, plant=plant)
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


def test_device(attack: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sanitizer of our own, and on the CPU, since there need be no GPU: the last valid run, and a search."""
    sanitizer = tmp_path / "bin/compute-sanitizer"
    sanitizer.parent.mkdir()
    sanitizer.write_text(SANITIZER)
    sanitizer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sanitizer.parent}:{os.environ['PATH']}")
    done, rows = run(attack, tmp_path, "device", "--device", "cpu", "--first", "144", "--cases", "8")
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


def test_runs_add_up_and_can_be_repeated(attack: Script, tmp_path: Path) -> None:
    _, first = run(attack, tmp_path, "parsers", "--seed", "2", "--cases", "36")
    _, both = run(attack, tmp_path, "parsers", "--seed", "2", "--cases", "36")
    assert both == {
        name: {key: 2 * n if key != "attack" else n for key, n in row.items()} for name, row in first.items()
    }
    runs = json.loads((tmp_path / "counts.json").read_text())["runs"]
    assert [one["seed"] for one in runs] == [2, 2]
    assert runs[0]["counts"] == runs[1]["counts"]
    assert {"command", "commit", "machine", "seconds", "versions"} <= runs[0].keys()


def test_runs_of_several_files_add_up_once(attack: Script, tmp_path: Path) -> None:
    for name, words in (("one", ["parsers", "--seed", "2"]), ("other", ["commands", "--seed", "3"])):
        (tmp_path / name).mkdir()
        run(attack, tmp_path / name, *words, "--cases", "12")
    files, kept = [tmp_path / name / "counts.json" for name in ("one", "other")], tmp_path / "kept.json"
    for _ in range(2):
        assert attack(tmp_path, "sum", *files, "--json", kept).returncode == 0
        record = json.loads(kept.read_text())
        assert [(row["attack"], row["cases"], row["seeds"]) for row in record["kinds"]] == [
            ("parsers", 12, [2]),
            ("commands", 12, [3]),
        ]
        assert record["runs"] == [json.loads(file.read_text())["runs"][0] for file in files]
        assert [row["commits"] for row in record["kinds"]] == [[one["commit"]] for one in record["runs"]]
        assert sum(row["cases"] for row in record["total"]) == 24


def test_what_was_found_stays_in_the_sum(attack: Script, tmp_path: Path) -> None:
    plant = "from attacks import targets; targets.read_matrix = lambda path: os.kill(os.getpid(), signal.SIGSEGV)"
    run(attack, tmp_path, "parsers", "--cases", "12", plant=plant)
    kept = tmp_path / "kept.json"
    assert attack(tmp_path, "sum", tmp_path / "counts.json", "--json", kept).returncode == 1
    assert json.loads(kept.read_text())["kinds"][0]["crashed"] == 1


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


def test_conformance_tells_what_differs(attack: Script, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/good.fq").write_bytes(fastq([Read("a", "ACGTAC", "IIIIII")]))
    plant = "from readmap.run.read_mapper import ReadMapper; ReadMapper.remaining_blocks = lambda self, place: iter(())"
    done, rows = run(attack, tmp_path, "conformance", tmp_path / "files", plant=plant)
    assert done.returncode == 1
    assert total(rows, "lost") == 1
    assert "good.fq: differs: expected 1 reads, found 0" in done.stderr


@pytest.mark.parametrize(
    "words", [[], ["parsers", "--cases", "1", "--seconds", "1"], ["conformance"], ["sum", "x"], ["peace"]]
)
def test_usage(attack: Script, tmp_path: Path, words: list[str]) -> None:
    assert attack(tmp_path, *words).returncode == 2
