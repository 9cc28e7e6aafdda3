"""Shared by the benchmarks: run and measure commands, time stages, print tables, and describe a run."""

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
Row = dict[str, Any]  # a row of a table, an object in the JSON


def run(command: Sequence[str | Path], work: Path, target: str | Path = os.devnull, **environment: str) -> Row:
    """Run a command and return its time and memory, including its children's; its messages go to the file `log`."""
    words = [str(word) for word in command]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", **environment}
    print(shlex.join(words), file=sys.stderr)
    with open(work / "log", "wb") as errors, open(target, "wb") as out:
        started = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"benchmark: exit code {process.returncode}: {(work / 'log').read_text(errors='replace').strip()}")
    cpu = round(usage.ru_utime + usage.ru_stime, 4)
    return {"wall_seconds": round(wall, 4), "cpu_seconds": cpu, "peak_memory_bytes": usage.ru_maxrss * 1024}


def readmap(options: Options, *words: str | Path, **environment: str) -> tuple[Row, Row]:
    """Run a command of readmap; return its time and memory, and its own report (--json).

    If an option is given twice, the last value is used.
    """
    report, common = options.work / "report.json", ("-t", str(options.threads))
    command = [sys.executable, "-m", "readmap", words[0], *common, *words[1:], "--json", report]
    return run(command, options.work, **environment), json.loads(report.read_text())


@contextmanager
def timed(seconds: dict[str, float], stage: str, backend: Backend) -> Iterator[None]:
    """Add the duration of the body, including its kernels, to seconds[stage]."""
    backend.synchronize()
    started = time.perf_counter()
    yield
    backend.synchronize()
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - started


def backends_to_check(options: Options, backend: Backend) -> dict[str, Backend]:
    """Return the backend that is timed, and the CPU with one thread and with several."""
    several = max(options.threads, 2)
    cpus = {"1 thread": open_backend("cpu", 1), f"{several} threads": open_backend("cpu", several)}
    return cpus if backend.name == "cpu" else {backend.name: backend, **cpus}


def figure(name: str, value: float, unit: str, wanted: str = "", bar: float | None = None) -> Row:
    """Return a row of a figure and its target. wanted: ">=" or "<="; bar: the target, or None."""
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


def search_output(pattern: str, command: str) -> str | None:
    """Return the first match of a pattern in a command's output, or None, also if it is not installed."""
    return next(iter(re.findall(pattern, subprocess.getoutput(command))), None)


# Pattern and command of each peer's version; mummer does not print its version.
VERSIONS = {
    "bwa": (r"Version: (\S+)", "bwa"),
    "bwa-mem2": (r"^(\d\S+)$", "bwa-mem2 version"),
    "bowtie": (r"version (\S+)", "bowtie --version"),
    "minibwa": (r"^(\d\S+)$", "minibwa version"),
    "mummer": (r"^mummer\s+(\S+)", "dpkg-query -W mummer"),
    "samtools": (r"^(\d\S+)$", "samtools --version-only"),
    "parasail": (r"^([\d.]+)$", f"{shlex.quote(sys.executable)} -c 'import parasail; print(parasail.__version__)'"),
}


def report_of_backend(backend: Backend) -> Row:
    """Return the keys of readmap's report that describe a run, for calls that write no report."""
    return {"versions": versions(), "device": backend.name, "threads": backend.threads}


def git_commit() -> str | None:
    """Return the checkout's commit, with -dirty if files have changed since."""
    git = f"git -C {shlex.quote(str(ROOT))} describe --always --dirty --exclude='*'"
    return search_output("^([0-9a-f]+(?:-dirty)?)$", git)


def machine() -> Row:
    gpu = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"
    found = {"cpu": search_output(r"model name\s*: (.*)", "cat /proc/cpuinfo"), "cores": len(os.sched_getaffinity(0))}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return found | {
        "memory_bytes": memory,
        "gpu": search_output(r"(.+), [\d.]+", gpu),
        "driver": search_output(r", ([\d.]+)", gpu),
    }


def describe_run(options: Options, report: Row) -> Row:
    """Return what distinguishes two runs: command, commit, versions, machine. report: readmap's report."""
    peers = {name: search_output(*VERSIONS[name]) for name in options.peers}
    called = {"schema": 1, "label": options.label, "command": shlex.join(sys.argv), "commit": git_commit()}
    called |= {"versions": report["versions"] | peers, "machine": machine()}
    return called | {key: report[key] for key in ("device", "threads", "reference", "counts") if key in report}
