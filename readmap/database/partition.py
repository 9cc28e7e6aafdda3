"""Some of a database's subjects on a device: their scores with queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.database.database import Database
from readmap.database.interleaving import InterleavedSubjects, interleave
from readmap.database.parameters import ScanScoring
from readmap.database.scores import DeviceQuery, score

#: Letters that are interleaved together where the device shares the host's memory.
BATCH_LETTERS = 1 << 26

#: Bytes a letter that a batch takes of a device's own memory: the codes, interleaved too, and what goes with subjects,
#: which of short ones is as much again.
LETTER_BYTES = 4

#: Letters of a batch however little memory there is: fewer would leave the device idle, and take no less.
MIN_BATCH_LETTERS = 1 << 22

#: Letters of a subject that is not cut; where there are fewer pieces for each thread of the host, shorter ones are too.
#: Pieces fill the lanes of a group that would otherwise wait for one of them.
UNCUT, PIECES = 1 << 16, 64


@dataclass(frozen=True)
class SubjectBatch:
    """Subjects that are on the device together.

    Attributes:
        first, end: their ranks in the database, the longest subject's is 0.
        columns: of them, or of pieces of them.
        owners: int64 [pieces], of each the subject, from `first` on; None where nothing is cut.
        span: letters of an alignment that pieces leave whole.
    """

    first: int
    end: int
    columns: InterleavedSubjects
    owners: NDArray[np.int64] | None
    span: int

    def scores(self, query: DeviceQuery, backend: Backend) -> NDArray[np.int32]:
        """int32 [subjects]."""
        found = score(query, self.columns, backend)
        if self.owners is None:
            return found
        scores = np.zeros(self.end - self.first, np.int32)
        np.maximum.at(scores, self.owners, found)
        return scores


class Partition:
    """Neighbouring subjects of a database; what fits in the device's memory stays there from query to query."""

    def __init__(self, database: Database, backend: Backend) -> None:
        self._database = database
        self._backend = backend
        self._first = self._end = 0
        self._resident: SubjectBatch | None = None

    def assign(self, first: int, end: int) -> None:
        """Have the subjects of these ranks from now on."""
        if (first, end) != (self._first, self._end):
            self._first, self._end, self._resident = first, end, None

    def scores(
        self, queries: Sequence[NDArray[np.uint8]], scoring: ScanScoring, report: Callable[[int], None]
    ) -> NDArray[np.int32]:
        """int32 [queries, subjects]; queries: codes; report: hears of cells that are done, and may raise to stop it."""
        placed = [DeviceQuery.of(codes, scoring, self._backend) for codes in queries]
        found = np.zeros((len(queries), self._end - self._first), np.int32)
        for batch in self._batches(max((query.span for query in placed), default=0)):
            letters = int(self._database.lengths[batch.first : batch.end].sum())
            for query, row in zip(placed, found, strict=True):
                row[batch.first - self._first : batch.end - self._first] = batch.scores(query, self._backend)
                report(letters * query.rows)
            del batch  # before the next one is placed
        return found

    def _batches(self, span: int) -> Iterator[SubjectBatch]:
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
            # One behind the limit is the last; where all begin before it, they may all be taken.
            end = self._end if self._fits(first, limit) else max(end, first + 1)
            batch = self._place(first, end, span)
            if (first, end) == (self._first, self._end):
                self._resident = batch
            yield batch
            del batch  # before the next one is placed
            first = end

    def _fits(self, first: int, limit: int) -> bool:
        """Whether all subjects from that rank on do."""
        last = self._end - 1
        starts, lengths = self._database.starts, self._database.lengths
        return int(starts[last] + lengths[last] - starts[first]) <= limit

    def _place(self, first: int, end: int, span: int) -> SubjectBatch:
        database = self._database
        starts, lengths = database.starts[first:end], database.lengths[first:end]
        begin, stop = int(starts[0]), int(starts[-1] + lengths[-1])
        own = max(min(UNCUT, (stop - begin) // (PIECES * self._backend.threads)), 4 * span)
        pieces, sizes, owners = _cut(starts - begin, lengths, own, span)
        columns = interleave(database.codes[begin:stop], pieces, sizes, self._backend)
        return SubjectBatch(first, end, columns, owners, span)


def _cut(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], own: int, span: int
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64] | None]:
    """Starts and lengths of subjects, or of pieces, the longest first, with their subjects.

    own: letters of a piece, beside the `span` by which it overlaps the one before.
    """
    if len(lengths) == 0 or lengths[0] <= own + span:
        return starts, lengths, None
    counts = np.where(lengths > own + span, -(-lengths // own), 1)
    owners = np.repeat(np.arange(len(lengths)), counts)
    numbers = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = np.maximum(numbers * own - span, 0)
    ends = np.where(counts[owners] > 1, np.minimum((numbers + 1) * own, lengths[owners]), lengths[owners])
    sizes = ends - begins
    order = np.argsort(-sizes, kind="stable")
    return (starts[owners] + begins)[order], sizes[order], owners[order]
