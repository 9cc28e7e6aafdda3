"""Scan a database on several devices, each with a part of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.team import Team
from readmap.database.database import Database
from readmap.database.parameters import ScanScoring
from readmap.database.device_pool import Partition

#: Minimum change of a device's share of the database for which the database is divided and sent again.
TOLERANCE = 0.03


class _Stopped(Exception):
    """Another device has failed, or the user has interrupted."""


class _Worker:
    """A device with its partition of the database and its speed so far."""

    def __init__(self, backend: Backend, database: Database) -> None:
        self.backend, self.partition = backend, Partition(database, backend)
        self.cells, self.seconds = 0, 0.0

    def scores(
        self, queries: Sequence[NDArray[np.uint8]], scoring: ScanScoring, report: Callable[[int], None]
    ) -> NDArray[np.int32]:
        started = time.perf_counter()

        def count(cells: int) -> None:
            self.cells += cells
            report(cells)

        found = self.partition.scores(queries, scoring, count)
        self.seconds += time.perf_counter() - started
        return found

    @property
    def speed(self) -> float:
        """Cells per second so far, 0 if unknown."""
        return self.cells / self.seconds if self.seconds else 0.0


class DevicePool:
    """The devices of a scan; shares of the database follow the measured speeds, which do not change the result."""

    def __init__(self, database: Database, team: Team) -> None:
        self.team, self._database = team, database
        self._workers = [_Worker(backend, database) for backend in team.backends]
        self._parts = [1 / len(team)] * len(team)
        self._divide()

    def scores(
        self, queries: Sequence[NDArray[np.uint8]], scoring: ScanScoring, report: Callable[[int], None]
    ) -> NDArray[np.int32]:
        """Return int32 [queries, subjects in sorted order]; queries: codes; report: gets numbers of computed cells."""
        lock, stopped = Lock(), False

        def count(cells: int) -> None:
            with lock:
                if stopped:
                    raise _Stopped
                report(cells)

        try:
            found = self.team.map(lambda worker: worker.scores(queries, scoring, count), self._workers)
        except BaseException:
            stopped = True  # else the other devices would finish their work first
            raise
        self._adapt()
        return np.concatenate(found, axis=1)

    def _adapt(self) -> None:
        """Divide the database again if the measured speeds differ enough from its division."""
        speeds = [worker.speed for worker in self._workers]
        if len(speeds) == 1 or not all(speeds):
            return
        parts = [speed / sum(speeds) for speed in speeds]
        if max(abs(new - old) for new, old in zip(parts, self._parts, strict=True)) > TOLERANCE:
            self._parts = parts
            self._divide()

    def _divide(self) -> None:
        """Give each device consecutive subjects with its share of all letters."""
        starts, letters = self._database.starts, self._database.letters
        cuts = [int(np.searchsorted(starts, part * letters)) for part in np.cumsum(self._parts[:-1])]
        bounds = [0, *cuts, len(self._database)]
        for worker, first, end in zip(self._workers, bounds, bounds[1:], strict=False):
            worker.partition.assign(first, end)
