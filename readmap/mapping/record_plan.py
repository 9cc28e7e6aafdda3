"""Placements -> RecordPlan: what is reported of each read: its place, its other parts if it is split, other places."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import row_dtype
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.diagonals import order_by_position

_COUNT, _LIST = Kernel("mapping/record_plan", "count_entries"), Kernel("mapping/record_plan", "list_entries")
_TRACE_SEVERAL, _KEY = Kernel("mapping/record_plan", "skip_single_entries"), Kernel("mapping/record_plan", "key_secondaries")
_MOVE, _ADD = Kernel("mapping/record_plan", "move_entries"), Kernel("mapping/record_plan", "add_secondaries")

SECONDARY_PLACEMENT = row_dtype("mapping/record_plan.cuh", "SecondaryPlacement")
PLACEMENT_WORDS = SECONDARY_PLACEMENT.itemsize // 8


class RecordPlan(Table, struct="mapping/record_plan.cuh:RecordPlan"):
    """An entry for each record or XA hit of the reads, in the order of the input; a read's first one is its primary.

    Attributes:
        entries: how many there are.
        window_rows: int64 [rows, WINDOW_WORDS], the rows that `windows` counts.
    """

    entries: int
    window_rows: Array


def plan_records(batch: Batch, context: Context) -> RecordPlan:
    """The entries of all reads, but for secondary ones."""
    backend, reads = context.backend, batch.reads.count
    counts = backend.empty(reads, np.int64)
    batch.launch(_COUNT, reads, context, counts=counts)
    ends = backend.inclusive_sum(counts)
    (total,) = batch.read_back((ends, 1))
    offsets = backend.full(reads + 1, 0, np.int64)
    backend.copy_into(offsets[1:], ends)
    plan = RecordPlan.allocate(backend, offsets=offsets, entries=total, window_rows=batch.windows.rows)
    batch.launch(_LIST, reads, context, plan=plan)
    return plan


def skip_single_entries(plan: RecordPlan, batch: Batch, context: Context) -> None:
    """Have the entries of reads with but one not traced."""
    batch.launch(_TRACE_SEVERAL, batch.reads.count, context, plan=plan)


class ReportedPlacements(Table, struct="mapping/record_plan.cu:ReportedPlacements"):
    """Other places of reads' parts, those of a read by orientation and diagonal; owners are entries of a plan."""

    @classmethod
    def of(cls, places: Array, numbers: Array, batch: Batch, context: Context) -> ReportedPlacements:
        """The places of some numbers, int32."""
        count, shift = len(numbers), batch.queries.max_length
        strands, diagonals = (context.backend.empty(count, np.uint64) for _ in range(2))
        keys = {"strands": strands, "diagonals": diagonals, "shift": shift}
        batch.launch(_KEY, count, context, places=places, reported=numbers, **keys)
        order = order_by_position(strands, diagonals, batch, context)
        return cls(places=places, numbers=numbers, order=order, count=count)


def with_secondaries(plan: RecordPlan, reported: ReportedPlacements, rows: Array, batch: Batch, context: Context) -> RecordPlan:
    """A new plan: the reads' own entries and, behind each read's, its places; their owners are entries of `plan`.

    rows: of windows: those of the batch, and behind them those of the places.
    """
    backend, reads = context.backend, batch.reads.count
    offsets, own = backend.empty(reads + 1, np.int64), {"reported": reported, "own_offsets": plan.offsets}
    batch.launch(_MOVE, reads + 1, context, **own, offsets=offsets)
    entries = plan.entries + reported.count
    more = RecordPlan.allocate(backend, offsets=offsets, entries=entries, window_rows=rows)
    batch.launch(_LIST, reads, context, plan=more)
    batch.launch(_ADD, reported.count, context, **own, windows=rows, plan=more)
    return more
