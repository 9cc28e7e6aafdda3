"""Plan the records of each read: its primary record, other parts if it is split, other placements (-> RecordPlan)."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import row_dtype
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch, Context
from readmap.mapping.diagonals import order_by_position

_COUNT, _LIST, _SKIP_SINGLE = (
    Kernel("mapping/record_plan", name) for name in ("count_entries", "list_entries", "skip_single_entries")
)
_KEY, _MOVE, _ADD = (
    Kernel("mapping/record_plan", name) for name in ("key_secondaries", "move_entries", "add_secondaries")
)

PLACEMENT_WORDS = row_dtype("mapping/record_plan.cuh", "SecondaryPlacement").itemsize // 8


class RecordPlan(Table, struct="mapping/record_plan.cuh:RecordPlan"):
    """An entry for each record or XA hit of the reads, in input order; a read's first entry is its primary record."""

    entries: int
    window_rows: Array  # int64 [rows, WINDOW_WORDS], the windows that `windows` indexes


def plan_records(batch: Batch, context: Context) -> RecordPlan:
    """Return the plan of the records of all reads, without secondary records; this reads the device counters back."""
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
    """Skip the traceback of reads with a single entry."""
    batch.launch(_SKIP_SINGLE, batch.reads.count, context, plan=plan)


class ReportedPlacements(Table, struct="mapping/record_plan.cu:ReportedPlacements"):
    """Secondary placements to report, sorted by read, orientation and diagonal; owners are entries of a plan."""

    @classmethod
    def of(cls, placements: Array, indices: Array, batch: Batch, context: Context) -> ReportedPlacements:
        """Return the placements[indices], sorted. placements: int64 [n, PLACEMENT_WORDS]. indices: int32."""
        count, shift = len(indices), batch.queries.max_length
        strands, diagonals = (context.backend.empty(count, np.uint64) for _ in range(2))
        keys = {"strands": strands, "diagonals": diagonals, "shift": shift}
        batch.launch(_KEY, count, context, placements=placements, reported=indices, **keys)
        order = order_by_position(strands, diagonals, batch, context)
        return cls(placements=placements, indices=indices, order=order, count=count)


def with_secondaries(
    plan: RecordPlan, reported: ReportedPlacements, rows: Array, batch: Batch, context: Context
) -> RecordPlan:
    """Return a plan with the `reported` placements, whose owners are entries of `plan`, after the entries of each read.

    rows: windows of the batch, followed by the windows of the placements.
    """
    backend, reads = context.backend, batch.reads.count
    offsets, own = backend.empty(reads + 1, np.int64), {"reported": reported, "own_offsets": plan.offsets}
    batch.launch(_MOVE, reads + 1, context, **own, offsets=offsets)
    entries = plan.entries + reported.count
    more = RecordPlan.allocate(backend, offsets=offsets, entries=entries, window_rows=rows)
    batch.launch(_LIST, reads, context, plan=more)
    batch.launch(_ADD, reported.count, context, **own, windows=rows, plan=more)
    return more
