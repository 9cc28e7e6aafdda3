"""A batch of reads on its way through the stages: what they fill in, and parts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.sizes import Count
from readmap.mapping.context import Context
from readmap.mapping.counters import Counters, Work
from readmap.mapping.ledger import Ledger
from readmap.mapping.parameters import UNSEARCHED
from readmap.reads.parsing import Reads, absent_mask
from readmap.reads.queries import Queries, pack_queries

WINDOWS = constant("mapping/windows.cuh", "WINDOWS")
WINDOW = row_dtype("mapping/windows.cuh", "Window")
WINDOW_WORDS = WINDOW.itemsize // 8

_COPY = Kernel("mapping/windows", "copy_windows")


@dataclass
class WindowTable:
    """WINDOWS rows a slot, of which the first `counts` are windows.

    Attributes:
        rows: int64 [reads * WINDOWS, WINDOW_WORDS]; on the host `rows.view(WINDOW)` names the fields. Rows that are
            no windows are undefined.
        counts: int32 [reads].
        unexamined: int32 [reads], the most bases that a place shares at a seed and was not looked at, 0 where all were.
        crowded: int32 [reads], the best score of a diagonal that had no room, or more, 0 where all had.
    """

    rows: Array
    counts: Array
    unexamined: Array
    crowded: Array

    @classmethod
    def empty(cls, reads: int, backend: Backend) -> WindowTable:
        """Room for the windows of all slots, none found yet."""
        return cls(
            backend.empty((reads * WINDOWS, WINDOW_WORDS), np.int64),
            *(backend.full(reads, 0, np.int32) for _ in range(3)),
        )


@dataclass(frozen=True)
class PieceTable:
    """The look-ups of all reads' pieces, in the order of kernels/search/pieces.cuh.

    Attributes:
        places: suffix type [look-ups], where a piece occurs if once; if more often, the first rank where it does.
        counts: uint8 [look-ups], how often.
        least_bases: of a piece.
    """

    places: Array
    counts: Array
    least_bases: int


@dataclass
class PlacementTable:
    """The choice of every slot.

    Attributes:
        chosen: int32 [reads], the rank of the chosen window, -1 for none.
        seconds: int32 [reads], the score of the best place beside it, 0 for none.
        mapqs: uint8 [reads], phred of the probability that the read belongs elsewhere, 0 to 60.
        deficits: int16 [reads * WINDOWS], by window: phred by which the chosen one explains the read better; undefined
            in a part of a batch, whose mates are chosen.
        variants: uint8 [reads], phred of a difference of the sample from the reference, as the read shows it.
        unsettled: uint8 [reads], why a search may find more (enum Unsettled of kernels/mapping/placement.cuh), 0
            where none would.
        left: uint8 [reads], the same before any search by seeds: 0 where look-ups settle the read.
        joint: uint8 [reads], 1 where the place and that of the mate make a fragment.
        part_begins, part_ends: int32 [reads], the part that the place leaves over, in orientation 0, or all.
    """

    chosen: Array
    seconds: Array
    mapqs: Array
    deficits: Array
    variants: Array
    unsettled: Array
    left: Array
    joint: Array
    part_begins: Array
    part_ends: Array

    @classmethod
    def empty(cls, reads: int, backend: Backend) -> PlacementTable:
        """Every slot without a place, and unsettled."""
        return cls(
            backend.full(reads, -1, np.int32),
            backend.full(reads, 0, np.int32),
            backend.full(reads, 0, np.uint8),
            backend.empty(reads * WINDOWS, np.int16),
            backend.full(reads, 0, np.uint8),
            backend.full(reads, UNSEARCHED, np.uint8),
            backend.full(reads, UNSEARCHED, np.uint8),
            backend.full(reads, 0, np.uint8),
            backend.empty(reads, np.int32),
            backend.empty(reads, np.int32),
        )


@dataclass
class Batch:
    """Reads with the windows and placements that stages fill in place.

    pieces: the look-ups, until the device has told what it counted: by then nothing asks for them any more.
    ledger: what is counted on the device, which `settle` adds to the work and to the counters.
    It belongs to one try: where memory ends on the way, it is dropped, and the reads start again.
    """

    reads: Reads
    queries: Queries
    windows: WindowTable
    placements: PlacementTable
    counters: Counters
    work: Work
    ledger: Ledger
    pieces: PieceTable | None = None

    def launch(self, kernel: Kernel, items: Count, context: Context, **arguments: Any) -> None:
        """Run a kernel over `items` items; what it takes of the batch and of the context goes by the parameters' names.

        arguments: the others.
        """
        shared = {
            "texts": self.reads,
            "queries": self.queries,
            "windows": self.windows,
            "placements": self.placements,
            "index": context.index,
            "reference": context.index.reference,
            "scoring": context.scoring,
            "reporting": context.reporting,
            "bases_per_variant": context.sample.bases_per_variant,
        }
        taken = {name: shared[name] for name in kernel.signature.names if name in shared}
        context.backend.launch(kernel, items, **{**taken, **arguments})

    @classmethod
    def of(cls, reads: Reads, context: Context) -> Batch:
        """At least one read, not searched yet."""
        backend, count = context.backend, reads.count
        queries = pack_queries(reads, backend)
        tables = WindowTable.empty(count, backend), PlacementTable.empty(count, backend)
        ledger = Ledger(count, backend, context.rates)
        backend.put(ledger.total("replaced"), queries.replaced)
        return cls(reads, queries, *tables, _counters(reads, queries, context), Work(), ledger)

    def settle(self, *sums: tuple[Array, int]) -> list[int]:
        """Add up what was counted, and let go of the look-ups: the last of some prefix sums, as Backend.lasts has them.

        Raises Overflow where a stage had no room for all that it found.
        """
        counted, tallies, totals = self.ledger.settle(*sums)
        self.pieces = None
        if any(tallies):
            self.counters.take(tallies)
        self.counters.replaced += counted["replaced"]
        self.work.settled -= counted["left"]
        self.work.take(counted)
        return totals

    def part(self, first: int, last: int, context: Context) -> Batch:
        """The same of the records [first, last) alone."""
        backend, part = context.backend, Batch.of(self.reads.part(first, last), context)
        slots = backend.to_host(self.queries.slot_of)[first + backend.to_host(part.queries.order)]
        for table, own in ((self.windows, part.windows), (self.placements, part.placements)):
            for name, array in vars(table).items():
                if len(array) == self.reads.count:  # the others are by window
                    setattr(own, name, backend.to_device(backend.to_host(array)[slots]))
        self.copy_windows(backend.to_device(slots), part.windows.rows, context)
        return part

    def copy_windows(self, slots: Array, rows: Array, context: Context) -> None:
        """Copy the windows of slots, int32, to rows as a WindowTable of them has, and leave those that are none."""
        self.launch(_COPY, len(slots), context, selected=slots, copies=rows)


def _counters(reads: Reads, queries: Queries, context: Context) -> Counters:
    least = -(-context.scoring.min_score // context.scoring.match)
    too_short = queries.steps.first_of(least)
    absent = int(np.count_nonzero(absent_mask(reads, context.backend)))
    return Counters(
        reads=reads.count - absent,
        singles=absent if reads.paired else reads.count,
        too_short=too_short - absent,
    )
