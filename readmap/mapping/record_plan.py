"""Placements -> RecordPlan: what is reported of each read: its place, its other parts if it is split, other places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import row_dtype
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.diagonals import order_by_place

_COUNT, _LIST = Kernel("mapping/record_plan", "count_entries"), Kernel("mapping/record_plan", "list_entries")
_TRACE_SEVERAL, _KEY = Kernel("mapping/record_plan", "trace_several"), Kernel("mapping/record_plan", "key_reported")
_MOVE, _ADD = Kernel("mapping/record_plan", "move_entries"), Kernel("mapping/record_plan", "add_secondaries")

SECONDARY_PLACE = row_dtype("mapping/record_plan.cuh", "SecondaryPlace")
PLACE_WORDS = SECONDARY_PLACE.itemsize // 8


@dataclass(frozen=True)
class RecordPlan:
    """An entry for each record or XA hit of the reads, in the order of the input; a read's first one is its primary.

    Attributes:
        offsets: int64 [reads + 1], where each read's entries begin.
        slots: int32 [entries]; windows: int64 [entries], the row of the entry's window, -1 where the read has no place.
        roles: uint8 [entries], enum Role of kernels/search/record_plan.cuh.
        owners: int32 [entries], the entry of the part of which this is another place; of parts, themselves.
        mapqs: uint8 [entries]; seconds: int32 [entries], the score of the best place beside it, 0 for none.
        bands: uint8 [entries], the kind of band of an alignment that is traced, else 0.
        least_scores: int32 [entries], what the alignment has to score, without bonuses.
        rooms: int64 [entries], the most operations that its CIGAR may have.
        count: entries in all.
        window_rows: int64 [rows, WINDOW_WORDS], the rows that `windows` counts.
    """

    offsets: Array
    slots: Array
    windows: Array
    roles: Array
    owners: Array
    mapqs: Array
    seconds: Array
    bands: Array
    least_scores: Array
    rooms: Array
    count: int
    window_rows: Array


def plan_records(batch: Batch, context: Context) -> RecordPlan:
    """The entries of all reads, but for secondary ones."""
    backend, reads = context.backend, batch.reads.count
    counts = backend.empty(reads, np.int64)
    batch.launch(_COUNT, reads, context, counts=counts)
    ends = backend.prefix_sums(counts)
    (total,) = batch.settle((ends, 1))
    offsets = backend.full(reads + 1, 0, np.int64)
    backend.put(offsets[1:], ends)
    plan = _empty_plan(offsets, total, batch.windows.rows, backend)
    batch.launch(_LIST, reads, context, plan=plan)
    return plan


def trace_several(plan: RecordPlan, batch: Batch, context: Context) -> None:
    """Have the entries of reads with but one not traced."""
    batch.launch(_TRACE_SEVERAL, batch.reads.count, context, plan=plan)


@dataclass(frozen=True)
class Reported:
    """Other places of reads' parts, those of a read by orientation and diagonal.

    Attributes:
        places: int64 [places, PLACE_WORDS], SECONDARY_PLACE, more than are reported; owners are entries of a plan.
        numbers: int32 [count], of those that are; order: uint32 [count], in which of these they come.
        count: how many there are.
    """

    places: Array
    numbers: Array
    order: Array
    count: int

    @classmethod
    def of(cls, places: Array, numbers: Array, batch: Batch, context: Context) -> Reported:
        """The places of some numbers, int32."""
        count, shift = len(numbers), batch.queries.longest
        strands, diagonals = (context.backend.empty(count, np.uint64) for _ in range(2))
        keys = {"strands": strands, "diagonals": diagonals, "shift": shift}
        batch.launch(_KEY, count, context, places=places, reported=numbers, **keys)
        return cls(places, numbers, order_by_place(strands, diagonals, batch, context), count)


def with_secondaries(plan: RecordPlan, reported: Reported, rows: Array, batch: Batch, context: Context) -> RecordPlan:
    """A new plan: the reads' own entries and, behind each read's, its places; their owners are entries of `plan`.

    rows: of windows: those of the batch, and behind them those of the places.
    """
    backend, reads = context.backend, batch.reads.count
    offsets, own = backend.empty(reads + 1, np.int64), {"reported": reported, "own_offsets": plan.offsets}
    batch.launch(_MOVE, reads + 1, context, **own, offsets=offsets)
    more = _empty_plan(offsets, plan.count + reported.count, rows, backend)
    batch.launch(_LIST, reads, context, plan=more)
    batch.launch(_ADD, reported.count, context, **own, windows=rows, plan=more)
    return more


def _empty_plan(offsets: Array, count: int, rows: Array, backend: Backend) -> RecordPlan:
    """Room for so many entries."""
    return RecordPlan(
        offsets,
        backend.empty(count, np.int32),
        backend.empty(count, np.int64),
        backend.empty(count, np.uint8),
        backend.empty(count, np.int32),
        backend.empty(count, np.uint8),
        backend.empty(count, np.int32),
        backend.empty(count, np.uint8),
        backend.empty(count, np.int32),
        backend.empty(count, np.int64),
        count,
        rows,
    )
