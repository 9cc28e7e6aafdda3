"""What the benchmarks share: commands that are run and measured, times, tables, and what tells two runs apart."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from readmap.backend import Backend, open_backend
from readmap.cli.common.report import versions

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("READMAP_SHARED") or ROOT.parent / "shared").absolute()
Options = argparse.Namespace
Row = dict[str, Any]  # a line of a table, an object in the JSON


def run(command: Sequence[str | Path], work: Path, target: str | Path = os.devnull, **environment: str) -> Row:
    """What a command took, with the processes that it waited for; what it says of itself is in the file `log`."""
    words = [str(word) for word in command]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", **environment}
    print(shlex.join(words), file=sys.stderr)
    with open(work / "log", "wb") as errors, open(target, "wb") as out:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"benchmark: exit code {process.returncode}: {(work / 'log').read_text(errors='replace').strip()}")
    cpu = round(usage.ru_utime + usage.ru_stime, 4)
    return {"wall_seconds": round(wall, 4), "cpu_seconds": cpu, "peak_memory_bytes": usage.ru_maxrss * 1024}


def readmap(options: Options, *words: str | Path, **environment: str) -> tuple[Row, Row]:
    """What a command of readmap took, and what its own report tells. Of an option given twice the last one holds."""
    report, common = options.work / "report.json", ("-t", str(options.threads))
    command = [sys.executable, "-m", "readmap", words[0], *common, *words[1:], "--json", report]
    return run(command, options.work, **environment), json.loads(report.read_text())


@contextmanager
def timed(seconds: dict[str, float], stage: str, backend: Backend) -> Iterator[None]:
    """Adds to a stage's seconds, from the end of all launches before to the end of its own."""
    backend.synchronize()
    began = time.perf_counter()
    yield
    backend.synchronize()
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - began


def backends_to_check(options: Options, backend: Backend) -> dict[str, Backend]:
    """The backend that is timed, and the CPU with one thread and with several."""
    several = max(options.threads, 2)
    cpus = {"1 thread": open_backend("cpu", 1), f"{several} threads": open_backend("cpu", several)}
    return cpus if backend.name == "cpu" else {backend.name: backend, **cpus}


def figure(name: str, value: float, unit: str, wanted: str = "", bar: float | None = None) -> Row:
    """A row that tells whether a bar is reached, where there is one; wanted: >= or <=."""
    verdict = None
    if bar is not None:
        verdict = "PASS" if (value <= bar if wanted == "<=" else value >= bar) else "MISS"
    row = {"figure": name, "value": float(f"{value:.4g}"), "unit": unit}
    return row | {"wanted": wanted if verdict else "", "bar": bar, "verdict": verdict}


def show(title: str, rows: Sequence[Row]) -> None:
    def text(key: str, value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{name} {text('', one)}" for name, one in value.items())
        if isinstance(value, list):
            return " ".join(text(key, one) for one in value)
        if isinstance(value, str | None):
            return value or ""
        value, unit = (value / 1e6, " MB") if key.endswith("bytes") else (value, "")
        return f"{value:,.0f}{unit}" if value >= 1000 else f"{value:.3g}{unit}"

    keys = dict.fromkeys(key for row in rows for key in row)
    table = Table(*(key.replace("_bytes", "").replace("_seconds", " s").replace("_", " ") for key in keys), title=title)
    for row in rows:
        table.add_row(*(text(key, row.get(key)) for key in keys))
    (Console() if sys.stdout.isatty() else Console(width=150)).print(table)


def asked(pattern: str, command: str) -> str | None:
    """What of a command's output matches; nothing does where it is not installed."""
    return next(iter(re.findall(pattern, subprocess.getoutput(command))), None)


# How to ask for a peer's version; mummer does not tell its own.
VERSIONS = {
    "bwa": (r"Version: (\S+)", "bwa"),
    "bwa-mem2": (r"^(\d\S+)$", "bwa-mem2 version"),
    "bowtie": (r"version (\S+)", "bowtie --version"),
    "minibwa": (r"^(\d\S+)$", "minibwa version"),
    "mummer": (r"^mummer\s+(\S+)", "dpkg-query -W mummer"),
    "samtools": (r"^(\d\S+)$", "samtools --version-only"),
    "parasail": (r"^([\d.]+)$", f"{shlex.quote(sys.executable)} -c 'import parasail; print(parasail.__version__)'"),
}


def told_of(backend: Backend) -> Row:
    """What a report of readmap's would tell, of calls that write none."""
    return {"versions": versions(), "device": backend.name, "threads": backend.threads}


def git_commit() -> str | None:
    """The checkout's, with -dirty behind it where files have changed since."""
    git = f"git -C {shlex.quote(str(ROOT))} describe --always --dirty --exclude='*'"
    return asked("^([0-9a-f]+(?:-dirty)?)$", git)


def machine() -> Row:
    gpu = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"
    found = {"cpu": asked(r"model name\s*: (.*)", "cat /proc/cpuinfo"), "cores": len(os.sched_getaffinity(0))}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return found | {"memory_bytes": memory, "gpu": asked(r"(.+), [\d.]+", gpu), "driver": asked(r", ([\d.]+)", gpu)}


def circumstances(options: Options, told: Row) -> Row:
    """What tells the figures of two runs apart; `told` is a report of readmap's, or told_of."""
    peers = {name: asked(*VERSIONS[name]) for name in options.peers}
    called = {"schema": 1, "label": options.label, "command": shlex.join(sys.argv), "commit": git_commit()}
    called |= {"versions": told["versions"] | peers, "machine": machine()}
    return called | {key: told[key] for key in ("device", "threads", "reference", "counts") if key in told}
