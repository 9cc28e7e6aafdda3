"""scripts/benchmark dask: searches on a cluster of one worker, beside the same searches without one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

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

#: Reads of a task, and how much longer a search by such tasks may take than one without a cluster.
BARS = {"cpu": {1_000_000: 1.1, 100_000: 1.05}, "cuda": {10_000_000: 1.1}}

#: Tasks of a few reads, which are to have the records of one search.
CHECKED = 2, 20


def benchmark_dask(options: Options) -> tuple[Row, Row]:
    """Whole commands in turn, once the worker has the index: first what they write is the same."""
    from distributed import LocalCluster

    reference, reads = inputs(options)
    readmap(options, "index", reference, "-o", options.work / "index.readmap", "--force", "--device", options.device)
    table = list[str | Path]()
    split: Row = {}
    if options.device != "cpu":  # which maps reads as fast as a processor finds where they begin
        table = ["--split", options.work / "reads.split"]
        split, _ = readmap(options, "split", *reads, "-o", table[1])
    cluster = LocalCluster(
        host="127.0.0.1", n_workers=1, threads_per_worker=options.threads, memory_limit=0, dashboard_address=None
    )
    with cluster:
        searches = [_Searches(options, name, cluster.scheduler_address) for name in options.only]
        rows = [each.timed(reads, table) for each in searches]
    bars = [
        figure(
            f"{row['output']}, {reads_a_task:,} reads a task / without",
            row[f"times_{reads_a_task}"],
            "times",
            "<=",
            bar,
        )
        for row, _ in rows
        for reads_a_task, bar in BARS[options.device].items()
    ]
    return {"split": split, "commands": [row for row, _ in rows], "bars": bars}, rows[-1][1]


class _Searches:
    """Those to one output, with a cluster and without."""

    def __init__(self, options: Options, name: str, address: str) -> None:
        self._options, self._name, self._address = options, name, address
        target, *self._more = OUTPUTS[name]
        self._path = options.work / target

    def timed(self, reads: Sequence[Path], table: Sequence[str | Path]) -> tuple[Row, Row]:
        """The medians, and what the last search tells; exits where a cluster has other records."""
        few, records = [first(self._options.work, one) for one in reads], set[bytes]()
        for tasks in (0, *CHECKED):
            self._run(few, tasks)
            records.add(records_of(self._path))
        if len(records) > 1:
            sys.exit(f"benchmark: {self._name} of a cluster has other records")
        seconds = dict[int, list[float]]()
        for _ in range(self._options.runs):
            taken, told = self._run(reads, 0)
            seconds.setdefault(0, []).append(taken["wall_seconds"])
            for reads_a_task in BARS[self._options.device]:
                taken, told = self._run(reads, max(told["counts"]["reads"] // reads_a_task, 1), table)
                seconds.setdefault(reads_a_task, []).append(taken["wall_seconds"])
        without = median(seconds.pop(0))
        row: Row = {"output": self._name, "reads": told["counts"]["reads"], "seconds": round(without, 3)}
        for reads_a_task, taken_by in seconds.items():
            row[f"seconds_{reads_a_task}"] = round(median(taken_by), 3)
            row[f"times_{reads_a_task}"] = round(median(taken_by) / without, 3)
        return row, told

    def _run(self, reads: Sequence[Path], tasks: int, table: Sequence[str | Path] = ()) -> tuple[Row, Row]:
        """A search by tasks, 0 for one without a cluster."""
        self._path.unlink(missing_ok=True)  # to replace a file costs the time of freeing it
        on_cluster = ["--dask", self._address, "--tasks", str(tasks), *table] if tasks else []
        words = (*reads, "-x", self._options.work / "index.readmap", "-o", self._path, "--device", self._options.device)
        return readmap(self._options, "search", *words, *self._more, *on_cluster)
