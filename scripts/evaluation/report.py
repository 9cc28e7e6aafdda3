"""Tables of the figures, and what tells two runs apart."""

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

from evaluation.figures import Result


def show(results: dict[str, Result], mapper: str, console: Console) -> None:
    table = Table("set", "measure", "bwa mem", mapper, "difference", "bar", "verdict")
    for name, result in results.items():
        for i, one in enumerate(result["figures"]):
            bwa, ours, of = one["bwa"], one["mapper"], one["of"]
            cells = ["" if x is None else f"{x:,}" + (f" ({x / of:.3%})" if of else "") for x in (bwa, ours)]
            difference = "" if bwa is None else f"{ours - bwa:+,}"
            table.add_row("" if i else name, one["measure"], *cells, difference, one["bar"], one["verdict"])
        table.add_section()
    console.print(table)
    binned = {name: result["bins_mapper"] for name, result in results.items() if "bins_mapper" in result}
    table = Table("MAPQ", *binned, title=f"Observed phred of {mapper} (wrong/reads), ! below its bar")
    for rows in zip(*binned.values(), strict=True):
        cells = [f"{b['phred'] if b['wrong'] else '-'} ({b['wrong']}/{b['reads']:,}){' !' * b['short']}" for b in rows]
        table.add_row(rows[0]["mapq"], *cells)
    if binned:
        console.print(table)


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    bwa = subprocess.run(["bwa"], capture_output=True, text=True).stderr.split("Version: ")[1].split()[0]
    asked = subprocess.run([sys.executable, "-m", "readmap", "--version"], capture_output=True, text=True)
    cpu = [line.split(": ")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return {
        "schema": 1,
        "command": shlex.join(sys.argv),
        "versions": {"bwa": bwa, options.mapper: options.mapper_command or asked.stdout.strip()},
        "machine": {"cpu": cpu[0] if cpu else "unknown", "cores": os.cpu_count()},
        **{name: getattr(options, name) for name in ("device", "threads", "seeds")},
    }
