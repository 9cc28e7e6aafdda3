"""scripts/benchmark dask: time searches on a Dask cluster of one worker, and the same searches without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.common import Options, Row, figure, readmap
from benchmarks.gpus import records_of
from benchmarks.reads import inputs
from benchmarks.scale import first

#: Output file and options of each search.
OUTPUTS = {
    "BAM": ("out.bam",),
    "SAM": ("out.sam",),
    "sorted": ("sorted.bam", "--sort", "--markdup"),
}


class Case(NamedTuple):
    """A search on a cluster.

    Attributes:
        shown: its name in tables. bar: maximum ratio of its time to the time without a cluster.
        reads: reads per task; None for the device's default. by_table: use a table of the starts of reads.
    """

    shown: str
    bar: float
    reads: int | None = None
    by_table: bool = False


CASES = {
    "cpu": {
        "1000000": Case("1,000,000 reads a task", 1.1),
        "100000": Case("100,000 reads a task", 1.05, 100_000),
    },
    "cuda": {
        "10000000": Case("10,000,000 reads a task", 1.1),
        "by_table": Case("10,000,000 reads a task by a table", 1.1, by_table=True),
    },
}

TABLE = "reads.split"

#: Numbers of tasks of the checked searches, whose records must equal the records of one search.
CHECKED = 2, 20


def benchmark_dask(options: Options) -> tuple[Row, Row]:
    """Time whole commands for each output."""
    reference, reads = inputs(options)
    readmap(options, "index", reference, "-o", options.work / "index.readmap", "--force", "--device", options.device)
    cases, split = CASES[options.device], Row()
    if any(case.by_table for case in cases.values()):
        split, _ = readmap(options, "split", *reads, "-o", options.work / TABLE)
    rows = [_Searches(options, name, reads).timed() for name in options.only]
    bars = [
        figure(f"{row['output']}, {case.shown} / without", row[f"times_{name}"], "times", "<=", case.bar)
        for row, _ in rows
        for name, case in cases.items()
    ]
    return {"split": split, "commands": [row for row, _ in rows], "bars": bars}, rows[-1][1]


class _Searches:
    """The searches to one output: first without a cluster, while no worker uses the device, then with a cluster."""

    def __init__(self, options: Options, name: str, reads: Sequence[Path]) -> None:
        self._options, self._name, self._reads = options, name, reads
        target, *self._more = OUTPUTS[name]
        self._path = options.work / target
        self._few = [first(options.work, one) for one in reads]
        self._records, self._count, self._seconds = b"", 0, list[float]()

    def timed(self) -> tuple[Row, Row]:
        """Return the medians, and the report of the last search; exit if a cluster writes other records."""
        from distributed import LocalCluster

        self._time_without()
        fixed = {"host": "127.0.0.1", "memory_limit": 0, "dashboard_address": None}
        with LocalCluster(n_workers=1, threads_per_worker=self._options.threads, **fixed) as cluster:
            return self._time_on(cluster.scheduler_address)

    def _time_without(self) -> None:
        """Time searches without a cluster, and digest the records of a few reads."""
        self._run(self._few)
        self._records = records_of(self._path)
        for _ in range(self._options.runs):
            taken, report = self._run(self._reads)
            self._seconds.append(taken["wall_seconds"])
            self._count = report["counts"]["reads"]

    def _time_on(self, address: str) -> tuple[Row, Row]:
        """Time the cases alternating, after the worker has loaded the index and the records are checked."""
        on_cluster = "--dask", address
        for tasks in CHECKED:
            self._run(self._few, *on_cluster, "--tasks", str(tasks))
            if records_of(self._path) != self._records:
                sys.exit(f"benchmark: {self._name} of a cluster has other records")
        without, seconds = self._seconds, dict[str, list[float]]()
        for _ in range(self._options.runs):
            for name, case in CASES[self._options.device].items():
                words = ["--split", self._options.work / TABLE] if case.by_table else []
                words += ["--tasks", str(max(self._count // case.reads, 1))] if case.reads else []
                taken, report = self._run(self._reads, *on_cluster, *words)
                seconds.setdefault(name, []).append(taken["wall_seconds"])
        row: Row = {"output": self._name, "reads": self._count, "seconds": round(median(without), 3)}
        for name, taken_by in seconds.items():
            row[f"seconds_{name}"] = round(median(taken_by), 3)
            row[f"times_{name}"] = round(median(taken_by) / median(without), 3)
        row["runs"] = {"without": without} | seconds  # the first run includes the allocation of the worker's memory
        return row, report

    def _run(self, reads: Sequence[Path], *more: str | Path) -> tuple[Row, Row]:
        self._path.unlink(missing_ok=True)  # replacing a file takes the time of freeing it
        words = (*reads, "-x", self._options.work / "index.readmap", "-o", self._path, "--device", self._options.device)
        return readmap(self._options, "search", *words, *self._more, *more)
