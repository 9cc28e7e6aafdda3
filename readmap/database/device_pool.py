"""Several devices that scan a database together, each a part of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Lock
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.database.database import Database
from readmap.database.parameters import Costs
from readmap.database.partition import Partition

#: By how much of the database a device's partition has to be wrong for all to be changed: what moves is sent again.
TOLERANCE = 0.03

Found = TypeVar("Found")


class _Stopped(Exception):
    """Another device has failed, or the user has interrupted."""


class _Worker:
    """A device, in a thread of its own unless it works alone."""

    def __init__(self, opened: Callable[[], Backend], database: Database, is_alone: bool) -> None:
        self._pool = None if is_alone else ThreadPoolExecutor(1, "device")
        self.backend = self.do(opened).result()
        self.partition = Partition(database, self.backend)
        self.cells, self.seconds = 0, 0.0

    def do(self, work: Callable[[], Found]) -> Future[Found]:
        """Have its thread do something."""
        if self._pool:
            return self._pool.submit(work)
        done: Future[Found] = Future()
        done.set_result(work())
        return done

    def scores(
        self, queries: Sequence[NDArray[np.uint8]], costs: Costs, report: Callable[[int], None]
    ) -> NDArray[np.int32]:
        """int32 [queries, subjects of its partition]; queries: codes; report: hears of cells that are done."""
        began = time.perf_counter()

        def count(cells: int) -> None:
            self.cells += cells
            report(cells)

        found = self.partition.scores(queries, costs, count)
        self.seconds += time.perf_counter() - began
        return found

    @property
    def speed(self) -> float:
        """Cells a second so far, 0 where that is unknown."""
        return self.cells / self.seconds if self.seconds else 0.0

    def close(self) -> None:
        """End its thread."""
        if self._pool:
            self._pool.shutdown()


class DevicePool:
    """The devices of a scan; what they find does not depend on who finds it. A context manager, which ends the threads.

    The database is divided in proportion to the speeds measured so far, at first in equal parts.
    """

    def __init__(self, database: Database, opened: Sequence[Callable[[], Backend]]) -> None:
        """opened: what opens each device; it is called in the thread that will use it."""
        self._database = database
        self._workers = [_Worker(each, database, len(opened) == 1) for each in opened]
        self._parts = [1 / len(opened)] * len(opened)
        self._divide()

    @property
    def backend(self) -> Backend:
        """The first device; others may use it between scans."""
        return self._workers[0].backend

    @property
    def names(self) -> list[str]:
        """Names of the devices."""
        return [worker.backend.name for worker in self._workers]

    def do(self, work: Callable[[], Found]) -> Found:
        """Have the first device's thread do something."""
        return self._workers[0].do(work).result()

    def scores(
        self, queries: Sequence[NDArray[np.uint8]], costs: Costs, report: Callable[[int], None]
    ) -> NDArray[np.int32]:
        """int32 [queries, subjects], the longest subject first; queries: codes; report: hears of cells done."""
        lock, stopped = Lock(), False

        def count(cells: int) -> None:
            with lock:
                if stopped:
                    raise _Stopped
                report(cells)

        try:
            running = [worker.do(partial(worker.scores, queries, costs, count)) for worker in self._workers]
            # Whichever fails first, not the first of them: the others would go on to their ends.
            wait(running, return_when=FIRST_EXCEPTION)
            failed = [future for future in running if future.done() and future.exception()]
            found = [future.result() for future in failed or running]
        except BaseException:
            stopped = True
            raise
        self._adapt()
        return np.concatenate(found, axis=1)

    def _adapt(self) -> None:
        speeds = [worker.speed for worker in self._workers]
        if len(speeds) == 1 or not all(speeds):
            return
        parts = [speed / sum(speeds) for speed in speeds]
        if max(abs(new - old) for new, old in zip(parts, self._parts, strict=True)) > TOLERANCE:
            self._parts = parts
            self._divide()

    def _divide(self) -> None:
        """Give each device neighbouring subjects with its part of all letters."""
        starts, letters = self._database.starts, self._database.letters
        cuts = [int(np.searchsorted(starts, part * letters)) for part in np.cumsum(self._parts[:-1])]
        bounds = [0, *cuts, len(self._database)]
        for worker, first, end in zip(self._workers, bounds, bounds[1:], strict=False):
            worker.partition.take(first, end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()
