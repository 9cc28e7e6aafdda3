"""Add secondary records for all other placements of the parts of reads (Candidates -> WindowList -> RecordPlan)."""

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import ANY_FLAG, select_flagged
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import argsort_columns
from readmap.backend.tables import Table
from readmap.mapping.batch import WINDOW_WORDS, Batch, Context
from readmap.mapping.extension import score_rows
from readmap.mapping.matches import Candidates
from readmap.mapping.record_plan import PLACEMENT_WORDS, RecordPlan, ReportedPlacements, with_secondaries

_COUNT_WINDOWS, _LIST_WINDOWS, _COUNT_PLACEMENTS, _LIST_PLACEMENTS = (
    Kernel("mapping/secondaries", name)
    for name in ("count_windows", "list_windows", "count_placements", "list_placements")
)
_CHOOSE, _KEY, _MARK = (Kernel("mapping/secondaries", name) for name in ("choose_heads", "key_placements", "mark_best"))

OPEN = constant("mapping/secondaries.cu", "OPEN")


class WindowList(Table, struct="mapping/secondaries.cu:WindowList"):
    """The windows of a batch, followed by the windows found, sorted by slot, orientation and position."""


def add_secondaries(plan: RecordPlan, candidates: Candidates, batch: Batch, context: Context) -> RecordPlan:
    """Return the plan with the best other placements of each part added; plan: the valid parts of the reads."""
    windows = _find_windows(plan, candidates, batch, context)
    placements = _list_placements(plan, windows, batch, context)
    best = _best(placements, context.reporting.max_secondary, plan.entries, context.backend)
    return with_secondaries(plan, ReportedPlacements.of(placements, best, batch, context), windows.rows, batch, context)


def _find_windows(plan: RecordPlan, candidates: Candidates, batch: Batch, context: Context) -> WindowList:
    """Return the windows of the batch, and the scored windows of candidates that belong to no part of their read."""
    backend, count = context.backend, candidates.diagonal_count
    heads = _heads(candidates, batch, context)
    counts, given = backend.empty(count, np.int64), {"found": candidates, "plan": plan, "heads": heads}
    batch.launch(_COUNT_WINDOWS, count, context, **given, windows=plan.window_rows, counts=counts)
    ends, total = backend.inclusive_sum_with_total(counts)
    kept, reads = len(batch.windows.rows), np.arange(batch.reads.count, dtype=np.int32)
    rows = backend.empty((kept + total, WINDOW_WORDS), np.int64)
    batch.copy_windows(backend.to_device(reads), rows[:kept], context)
    found, slots, kinds = rows[kept:], backend.empty(total, np.int32), backend.empty(total, np.uint8)
    batch.launch(_LIST_WINDOWS, count, context, found=candidates, ends=ends, windows=found, slots=slots, kinds=kinds)
    score_rows(found, slots, kinds, batch, context)
    counts = batch.windows.counts
    return WindowList(rows=rows, kept_counts=counts, found_slots=slots, kept_rows=kept, found_count=total)


def _heads(candidates: Candidates, batch: Batch, context: Context) -> Array:
    """Return the head of the window that each diagonal belongs to, int64; the head of a window is its best diagonal."""
    backend, count = context.backend, candidates.diagonal_count
    heads, next_heads = backend.full(count, OPEN, np.int64), backend.empty(count, np.int64)
    undecided = count
    while undecided:
        still_open = backend.full(1, 0, np.uint64)
        batch.launch(_CHOOSE, count, context, found=candidates, heads=heads, next_heads=next_heads, open=still_open)
        heads, next_heads = next_heads, heads
        undecided = int(backend.to_host(still_open)[0])
    return heads


def _list_placements(plan: RecordPlan, windows: WindowList, batch: Batch, context: Context) -> Array:
    """Return all windows that are other placements of parts, int64 [placements, PLACEMENT_WORDS]."""
    backend, count = context.backend, len(windows.rows)
    shared = {"plan": plan, "windows": windows}
    counts = backend.empty(count, np.int64)
    batch.launch(_COUNT_PLACEMENTS, count, context, counts=counts, **shared)
    ends, total = backend.inclusive_sum_with_total(counts)
    placements = backend.empty((total, PLACEMENT_WORDS), np.int64)
    batch.launch(_LIST_PLACEMENTS, count, context, ends=ends, placements=placements, **shared)
    return placements


def _best(placements: Array, max_count: int, entries: int, backend: Backend) -> Array:
    """Return the indices, int32, of the best `max_count` placements of each part; entries: number of plan entries."""
    count = len(placements)
    losses, ties, strands = (backend.empty(count, np.uint64) for _ in range(3))
    backend.launch(_KEY, count, placements=placements, losses=losses, ties=ties, strands=strands)
    order = argsort_columns([(losses, 32 + entries.bit_length()), (ties, 64), (strands, 1)], backend)
    marks = backend.empty(count, np.uint8)
    backend.launch(_MARK, count, placements=placements, order=order, marks=marks, max_count=max_count)
    return select_flagged(marks, ANY_FLAG, backend)
