"""Verdicts of cases, their counts, and the file in which the counts of several runs are added."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.common import git_commit, machine, search_output
from rich.console import Console
from rich.table import Table

from readmap.cli.common.report import versions

Options = argparse.Namespace
Row = dict[str, Any]


class Verdict(StrEnum):
    """How a case ended; REFUSED and ACCEPTED are good ends."""

    REFUSED = "refused"  # with a message of one line
    ACCEPTED = "accepted"  # with all its contents
    LOST = "lost"  # accepted with other contents; or valid and refused
    HALF = "half-written"  # an output is neither absent nor complete, or temporary files remain
    CRASHED = "crashed"  # a signal, a traceback, or any other undocumented exit
    HUNG = "hung"

    @property
    def is_finding(self) -> bool:
        """True if the case is reported and stored."""
        return self not in (Verdict.REFUSED, Verdict.ACCEPTED)


@dataclass(frozen=True)
class Outcome:
    """The verdict on a case. attack: the table row that counts it. reason: one line, for findings."""

    attack: str
    verdict: Verdict
    reason: str = ""


class Tally:
    """Counts of cases by attack and verdict."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._counts: dict[str, Counter[Verdict]] = {}
        for row in rows:
            self.add_row(row)

    def add(self, outcome: Outcome) -> None:
        """Count a case."""
        self._of(outcome.attack)[outcome.verdict] += 1

    def add_row(self, row: Row) -> None:
        """Add the counts of a row, as returned by `rows`."""
        for verdict in Verdict:
            self._of(row["attack"])[verdict] += row[verdict]

    def rows(self) -> list[Row]:
        """Return a row for each attack."""
        return [
            {"attack": attack, "cases": counts.total()} | {verdict: counts[verdict] for verdict in Verdict}
            for attack, counts in self._counts.items()
        ]

    @property
    def findings(self) -> int:
        """The number of cases with a bad verdict."""
        return sum(counts[verdict] for counts in self._counts.values() for verdict in Verdict if verdict.is_finding)

    def _of(self, attack: str) -> Counter[Verdict]:
        return self._counts.setdefault(attack, Counter())


def show(title: str, rows: list[Row]) -> None:
    """Print a table, with findings in red."""
    table = Table("attack", *("cases", *Verdict), title=title)
    for row in rows:
        numbers = [f"{row['cases']:,}"]
        numbers += [f"[red]{row[v]:,}[/]" if v.is_finding and row[v] else f"{row[v]:,}" for v in Verdict]
        table.add_row(row["attack"], *numbers)
    (Console() if sys.stdout.isatty() else Console(width=150)).print(table)


def record_of(options: Options, tally: Tally, started: datetime, findings: list[str]) -> Row:
    """Return the report of a run that ends now."""
    run = {"command": shlex.join(["scripts/attack", *options.words]), "seed": options.seed, "first": options.first}
    run |= {"commit": git_commit(), "versions": versions(), "compiler": search_output("^(.+)", "${CXX:-g++} --version")}
    run |= {"machine": machine(), "began": started.isoformat(timespec="microseconds")}
    run |= {"seconds": round((datetime.now(UTC) - started).total_seconds(), 1)}
    return run | {"counts": tally.rows(), "findings": findings}


def add_to(file: Path, runs: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Add runs to a file, except runs that it already contains; return the rows of all runs by kind and by attack.

    A kind is the first word of the names of its attacks; its row also has the seeds and commits.
    """
    held = runs_in(file) if file.exists() else []
    for run in runs:
        if run not in held:
            held.append(run)
    kinds, total = _kinds(held), Tally(row for run in held for row in run["counts"]).rows()
    file.write_text(json.dumps({"schema": 1, "kinds": kinds, "total": total, "runs": held}, indent=1) + "\n")
    return kinds, total


def runs_in(file: Path) -> list[Row]:
    """Return the runs that a file contains."""
    runs: list[Row] = json.loads(file.read_text())["runs"]
    return runs


def _kinds(runs: list[Row]) -> list[Row]:
    rows = [row | {"attack": row["attack"].split(",")[0], "run": run} for run in runs for row in run["counts"]]
    kinds = Tally(rows).rows()
    for kind in kinds:
        own = [row["run"] for row in rows if row["attack"] == kind["attack"]]
        kind |= {
            "seeds": sorted({run["seed"] for run in own}),
            "commits": sorted({run["commit"] for run in own if run["commit"]}),
        }
    return kinds
