"""scripts/benchmark dask: searches on a cluster of one worker, beside the same searches without one."""

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

#: Outputs, and what is asked for of each; duplicates are marked in what is sorted.
OUTPUTS = {
    "BAM": ("out.bam",),
    "SAM": ("out.sam",),
    "sorted": ("sorted.bam", "--sort", "--markdup"),
}


class Case(NamedTuple):
    """A search on a cluster.

    Attributes:
        shown: what it is. bar: how much longer than without a cluster it may take.
        reads: of a task; None for what the device is given. by_table: whether it is known where reads begin.
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

#: Tasks of a few reads, which are to have the records of one search.
CHECKED = 2, 20


def benchmark_dask(options: Options) -> tuple[Row, Row]:
    """Whole commands, output by output."""
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
    """Those to one output: without a cluster, while no worker has a part of the device, and then on one."""

    def __init__(self, options: Options, name: str, reads: Sequence[Path]) -> None:
        self._options, self._name, self._reads = options, name, reads
        target, *self._more = OUTPUTS[name]
        self._path = options.work / target
        self._few = [first(options.work, one) for one in reads]
        self._records, self._count, self._seconds = b"", 0, list[float]()

    def timed(self) -> tuple[Row, Row]:
        """The medians, and what the last search tells; exits where a cluster has other records."""
        from distributed import LocalCluster

        self._time_without()
        fixed = {"host": "127.0.0.1", "memory_limit": 0, "dashboard_address": None}
        with LocalCluster(n_workers=1, threads_per_worker=self._options.threads, **fixed) as cluster:
            return self._time_on(cluster.scheduler_address)

    def _time_without(self) -> None:
        """As many runs, and what records a few reads have."""
        self._run(self._few)
        self._records = records_of(self._path)
        for _ in range(self._options.runs):
            taken, told = self._run(self._reads)
            self._seconds.append(taken["wall_seconds"])
            self._count = told["counts"]["reads"]

    def _time_on(self, address: str) -> tuple[Row, Row]:
        """The cases in turn, once the worker has the index, and what a few reads give is the same."""
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
                taken, told = self._run(self._reads, *on_cluster, *words)
                seconds.setdefault(name, []).append(taken["wall_seconds"])
        row: Row = {"output": self._name, "reads": self._count, "seconds": round(median(without), 3)}
        for name, taken_by in seconds.items():
            row[f"seconds_{name}"] = round(median(taken_by), 3)
            row[f"times_{name}"] = round(median(taken_by) / median(without), 3)
        row["runs"] = {"without": without} | seconds  # of a worker's first one its memory is new
        return row, told

    def _run(self, reads: Sequence[Path], *more: str | Path) -> tuple[Row, Row]:
        self._path.unlink(missing_ok=True)  # to replace a file costs the time of freeing it
        words = (*reads, "-x", self._options.work / "index.readmap", "-o", self._path, "--device", self._options.device)
        return readmap(self._options, "search", *words, *self._more, *more)
