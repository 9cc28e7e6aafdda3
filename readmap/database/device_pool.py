"""Scan a database on several devices, each with a part of it that stays in its memory if it fits."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.team import Team
from readmap.database.database import Database
from readmap.database.parameters import ScanScoring
from readmap.database.scores import DeviceQuery, InterleavedSubjects, interleave, score

#: Letters of a batch on a device that shares the memory of the host.
BATCH_LETTERS = 1 << 26

#: Bytes of device memory per letter of a batch: codes, interleaved codes, and per-subject arrays, which double
#: the total if subjects are short.
LETTER_BYTES = 4

#: Minimum letters of a batch: smaller batches would leave the device idle without saving memory.
MIN_BATCH_LETTERS = 1 << 22

#: Subjects up to this length are not cut, unless there would be fewer pieces per host thread. Pieces fill the lanes of
#: a group that would otherwise wait for one long subject.
UNCUT_LETTERS, MIN_PIECES = 1 << 16, 64


@dataclass(frozen=True)
class SubjectBatch:
    """Subjects on the device.

    first, end: sorted positions [first, end) in the database. columns: the subjects, or pieces of them, interleaved.
    owners: int64 [pieces], subject of each piece, counted from `first`; None if no subject is cut. span: letters of an
    alignment that some piece contains as a whole.
    """

    first: int
    end: int
    columns: InterleavedSubjects
    owners: NDArray[np.int64] | None
    span: int

    def scores(self, query: DeviceQuery, backend: Backend) -> NDArray[np.int32]:
        """Return the scores of the subjects, int32 [subjects]."""
        found = score(query, self.columns, backend)
        if self.owners is None:
            return found
        scores = np.zeros(self.end - self.first, np.int32)
        np.maximum.at(scores, self.owners, found)
        return scores


class Partition:
    """Consecutive subjects of a database; they stay in device memory between queries if they fit."""

    def __init__(self, database: Database, backend: Backend) -> None:
        self._database = database
        self._backend = backend
        self._first = self._end = 0
        self._resident: SubjectBatch | None = None

    def assign(self, first: int, end: int) -> None:
        """Set the subjects of this partition, by sorted position."""
        if (first, end) != (self._first, self._end):
            self._first, self._end, self._resident = first, end, None

    def scores(
        self, queries: Sequence[NDArray[np.uint8]], scoring: ScanScoring, report: Callable[[int], None]
    ) -> NDArray[np.int32]:
        """Return the best scores, int32 [queries, subjects]; queries: codes; report: gets the cells of each step."""
        on_device = [DeviceQuery.of(codes, scoring, self._backend) for codes in queries]
        found = np.zeros((len(queries), self._end - self._first), np.int32)
        for batch in self._batches(max((query.span for query in on_device), default=0)):
            letters = int(self._database.lengths[batch.first : batch.end].sum())
            for query, row in zip(on_device, found, strict=True):
                row[batch.first - self._first : batch.end - self._first] = batch.scores(query, self._backend)
                report(letters * query.rows)
            del batch  # frees its memory before the next batch is loaded
        return found

    def _batches(self, span: int) -> Iterator[SubjectBatch]:
        """Yield batches of subjects that fit in device memory, kept there if one is enough. span: longest alignment."""
        if self._resident and (self._resident.owners is None or span <= self._resident.span):
            yield self._resident
            return
        self._resident = None
        memory = self._backend.memory()
        limit = BATCH_LETTERS
        if memory:
            limit = max((memory[0] - self._backend.scratch_bytes) // LETTER_BYTES, MIN_BATCH_LETTERS)
        starts, first = self._database.starts, self._first
        while first < self._end:
            end = int(np.searchsorted(starts[: self._end], starts[first] + max(limit, 1), side="right")) - 1
            # The search finds the last start within the limit; the last subject of all may still fit.
            end = self._end if self._fits(first, limit) else max(end, first + 1)
            batch = self._load(first, end, span)
            if (first, end) == (self._first, self._end):
                self._resident = batch
            yield batch
            del batch  # frees its memory before the next batch is loaded
            first = end

    def _fits(self, first: int, limit: int) -> bool:
        """Return True if all subjects from `first` on have at most `limit` letters together."""
        last = self._end - 1
        starts, lengths = self._database.starts, self._database.lengths
        return int(starts[last] + lengths[last] - starts[first]) <= limit

    def _load(self, first: int, end: int, span: int) -> SubjectBatch:
        """Load subjects [first, end), interleaved; pieces of long ones overlap by a longest alignment, `span`."""
        database = self._database
        starts, lengths = database.starts[first:end], database.lengths[first:end]
        start, stop = int(starts[0]), int(starts[-1] + lengths[-1])
        own = max(min(UNCUT_LETTERS, (stop - start) // (MIN_PIECES * self._backend.threads)), 4 * span)
        pieces, sizes, owners = _cut(starts - start, lengths, own, span)
        columns = interleave(database.codes[start:stop], pieces, sizes, self._backend)
        return SubjectBatch(first, end, columns, owners, span)


def _cut(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], own: int, span: int
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64] | None]:
    """Return starts, lengths and subjects of pieces of at most own + span letters, longest first; None if uncut."""
    if len(lengths) == 0 or lengths[0] <= own + span:
        return starts, lengths, None
    counts = np.where(lengths > own + span, -(-lengths // own), 1)
    owners = np.repeat(np.arange(len(lengths)), counts)
    indices = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = np.maximum(indices * own - span, 0)
    ends = np.where(counts[owners] > 1, np.minimum((indices + 1) * own, lengths[owners]), lengths[owners])
    sizes = ends - offsets
    order = np.argsort(-sizes, kind="stable")
    return (starts[owners] + offsets)[order], sizes[order], owners[order]


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
        """Return the best scores, int32 [queries, subjects]; add cells and seconds to totals; report: gets cells."""
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
        """Return best scores, int32 [queries, sorted subjects], then adapt shares; report: gets the cells of a step."""
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
