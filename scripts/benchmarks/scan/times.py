"""The best times of works that take turns, so that what else the machine does slows all of them, and none for good."""

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
from readmap.database.parameters import ScanScoring
from readmap.database.partition import Partition


class Best(NamedTuple):
    """The best time of a work; cpu_seconds: of the process, all its threads."""

    seconds: float
    cpu_seconds: float

    def row(self, cells: int, backend: Backend, of: str = "") -> Row:
        """Times and speed by name, with `of` before the names. A GPU's processor time says nothing."""
        row = {f"{of}seconds": round(self.seconds, 6)}
        if backend.name == "cpu":
            row[f"{of}cpu_seconds"] = round(self.cpu_seconds, 6)
        return row | {f"{of}gcups": gcups(cells, self.seconds)}


def best_in_turn(
    works: Mapping[str, Callable[[], Any]], runs: int, backend: Backend, before: Callable[[], None] = lambda: None
) -> dict[str, Best]:
    """The best times of each work; before: what is done before each, and not timed."""
    taken: dict[str, list[Best]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            before()
            backend.synchronize()
            began, cpu_began = time.perf_counter(), time.process_time()
            work()
            backend.synchronize()
            taken[name].append(Best(time.perf_counter() - began, time.process_time() - cpu_began))
    return {name: Best(*map(min, zip(*each, strict=True))) for name, each in taken.items()}


def partition_of_all(database: Database, backend: Backend) -> Partition:
    """The whole database for one device; what fits goes there with the first scan."""
    partition = Partition(database, backend)
    partition.assign(0, len(database))
    return partition


def scores_of(partition: Partition, queries: Sequence[NDArray[np.uint8]], costs: ScanScoring) -> NDArray[np.int32]:
    """int32 [queries, subjects], on the host, the longest subject first; queries: codes."""
    return partition.scores(queries, costs, lambda cells: None)
