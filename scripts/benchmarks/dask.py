"""scripts/benchmark dask: searches on a cluster of one worker, beside the same searches without one."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from benchmarks.common import Options, Row, figure, readmap
from benchmarks.gpus import records_of
from benchmarks.reads import inputs
from benchmarks.scale import first

#: Outputs, and what is asked for of each.
OUTPUTS = {
    "BAM": ("out.bam",),
    "SAM": ("out.sam",),
    "sorted, duplicates marked": ("sorted.bam", "--sort", "--markdup"),
}

#: Tasks of a search, and how much longer it may take than one without a cluster.
TASKS = {2: 1.1, 20: 1.05}


def benchmark_dask(options: Options) -> tuple[Row, Row]:
    """Whole commands in turn, once the worker has the index: first what they write is the same."""
    from distributed import LocalCluster

    reference, reads = inputs(options)
    readmap(options, "index", reference, "-o", options.work / "index.readmap", "--force", "--device", options.device)
    cluster = LocalCluster(
        host="127.0.0.1", n_workers=1, threads_per_worker=options.threads, memory_limit=0, dashboard_address=None
    )
    with cluster:
        rows = [_rows(options, reads, name, cluster.scheduler_address) for name in OUTPUTS]
    bars = [
        figure(f"{row['output']}, {tasks} tasks / without", row[f"times_{tasks}_tasks"], "times", "<=", bar)
        for row, _ in rows
        for tasks, bar in TASKS.items()
    ]
    return {"commands": [row for row, _ in rows], "bars": bars}, rows[-1][1]


def _rows(options: Options, reads: list[Path], name: str, address: str) -> tuple[Row, Row]:
    """The medians of an output, and what its last search tells."""
    target, *more = OUTPUTS[name]
    path, few = options.work / target, [first(options.work, one) for one in reads]

    def run(files: list[Path], tasks: int) -> tuple[Row, Row]:
        on_cluster = ["--dask", address, "--tasks", str(tasks)] if tasks else []
        words = (*files, "-x", options.work / "index.readmap", "-o", path, "--device", options.device)
        return readmap(options, "search", *words, *more, *on_cluster)

    records = set()
    for tasks in (0, *TASKS):
        run(few, tasks)
        records.add(records_of(path))
    if len(records) > 1:
        sys.exit(f"benchmark: {name} of a cluster has other records")
    seconds = dict[int, list[float]]()
    for _ in range(options.runs):
        for tasks in (0, *TASKS):
            taken, told = run(reads, tasks)
            seconds.setdefault(tasks, []).append(taken["wall_seconds"])
    without = median(seconds[0])
    row: Row = {"output": name, "reads": told["counts"]["reads"], "seconds": round(without, 3)}
    for tasks in TASKS:
        row[f"seconds_{tasks}_tasks"] = round(median(seconds[tasks]), 3)
        row[f"times_{tasks}_tasks"] = round(median(seconds[tasks]) / without, 3)
    return row, told
