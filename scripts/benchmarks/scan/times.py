"""Best times of functions that are timed alternately, so that other load on the machine affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Row
from benchmarks.compare.times import gcups
from readmap.backend import Backend
from readmap.database.database import Database
from readmap.database.device_pool import Partition
from readmap.database.parameters import ScanScoring


class Best(NamedTuple):
    """The best time of a function. cpu_seconds: processor time of all threads of the process."""

    seconds: float
    cpu_seconds: float

    def row(self, cells: int, backend: Backend, of: str = "") -> Row:
        """Return times and speed by name, with the prefix `of`; without processor time on a GPU."""
        row = {f"{of}seconds": round(self.seconds, 6)}
        if backend.name == "cpu":
            row[f"{of}cpu_seconds"] = round(self.cpu_seconds, 6)
        return row | {f"{of}gcups": gcups(cells, self.seconds)}


def best_in_turn(
    works: Mapping[str, Callable[[], Any]], runs: int, backend: Backend, before: Callable[[], None] = lambda: None
) -> dict[str, Best]:
    """Return the best time of each function. before: called before each run, not timed."""
    taken: dict[str, list[Best]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            before()
            backend.synchronize()
            started, cpu_started = time.perf_counter(), time.process_time()
            work()
            backend.synchronize()
            taken[name].append(Best(time.perf_counter() - started, time.process_time() - cpu_started))
    return {name: Best(*map(min, zip(*each, strict=True))) for name, each in taken.items()}


def partition_of_all(database: Database, backend: Backend) -> Partition:
    """Return the whole database as a partition for one device, uploaded at the first scan."""
    partition = Partition(database, backend)
    partition.assign(0, len(database))
    return partition


def scores_of(partition: Partition, queries: Sequence[NDArray[np.uint8]], costs: ScanScoring) -> NDArray[np.int32]:
    """Return scores as int32 [queries, subjects] on the host, the longest subject first. queries: codes."""
    return partition.scores(queries, costs, lambda cells: None)
