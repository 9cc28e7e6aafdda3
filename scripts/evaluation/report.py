"""Print tables of the figures, and describe the run."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evaluation.figures import Result, Row


def show(results: dict[str, Result], mapper: str, console: Console) -> None:
    peers = [key for key in ("bwa", "minibwa") if any(key in row for one in results.values() for row in one["figures"])]
    table = Table("set", "measure", *peers, mapper, "bar", "verdict")
    for name, result in results.items():
        for i, one in enumerate(result["figures"]):
            of, counts = one["of"], (one.get(key) for key in (*peers, "mapper"))
            cells = ["" if x is None else f"{x:,}" + (f" ({x / of:.3%})" if of else "") for x in counts]
            table.add_row("" if i else name, one["measure"], *cells, one["bar"], one["verdict"])
        table.add_section()
    console.print(table)


def show_calibration(rows: list[Row], mapper: str, console: Console) -> None:
    """Print wrong reads and all reads of each bin and class."""
    classes = list(dict.fromkeys(row["class"] for row in rows))
    table = Table("MAPQ", *classes, title=f"Wrong/reads of {mapper}, ! more than expected")
    for mapq in dict.fromkeys(row["mapq"] for row in rows):
        of = (row for row in rows if row["mapq"] == mapq)
        table.add_row(mapq, *(f"{row['wrong']:,}/{row['reads']:,}{' !' * row['short']}" for row in of))
    console.print(table)


def describe_run(options: argparse.Namespace) -> dict[str, Any]:
    bwa = subprocess.run(["bwa"], capture_output=True, text=True).stderr.split("Version: ")[1].split()[0]
    peers = {"bwa": bwa}
    if options.minibwa:
        minibwa = subprocess.run([options.minibwa, "version"], capture_output=True, text=True)
        peers["minibwa"] = minibwa.stdout.strip()
    readmap = subprocess.run([sys.executable, "-m", "readmap", "--version"], capture_output=True, text=True)
    cpu = [line.split(": ")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return {
        "schema": 2,
        "command": shlex.join(sys.argv),
        "versions": {**peers, options.mapper: options.mapper_command or readmap.stdout.strip()},
        "machine": {"cpu": cpu[0] if cpu else "unknown", "cores": os.cpu_count()},
        **{name: getattr(options, name) for name in ("device", "threads", "seeds")},
    }
