"""Candidates -> WindowList -> RecordPlan: all other places of a read's parts as secondary records."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.compaction import ANY_FLAG, select_flagged
from readmap.backend.radix_sort import argsort_columns
from readmap.backend.tables import Table
from readmap.mapping.batch import WINDOW_WORDS, Batch
from readmap.mapping.context import Context
from readmap.mapping.extension import score_rows
from readmap.mapping.matches import Candidates
from readmap.mapping.record_plan import PLACEMENT_WORDS, RecordPlan, ReportedPlacements, with_secondaries

_CHOOSE = Kernel("mapping/secondaries", "choose_heads")
_COUNT_WINDOWS = Kernel("mapping/secondaries", "count_windows")
_LIST_WINDOWS = Kernel("mapping/secondaries", "list_windows")
_COUNT_PLACES, _LIST_PLACES = (
    Kernel("mapping/secondaries", "count_placements"),
    Kernel("mapping/secondaries", "list_places"),
)
_KEY, _MARK = Kernel("mapping/secondaries", "key_placements"), Kernel("mapping/secondaries", "mark_best")

OPEN = constant("mapping/secondaries.cu", "OPEN")


class WindowList(Table, struct="mapping/secondaries.cu:WindowList"):
    """The windows of a batch and, behind them, those found of all reads, ordered by slot, orientation and place."""


def add_secondaries(plan: RecordPlan, candidates: Candidates, batch: Batch, context: Context) -> RecordPlan:
    """The plan with the best other places of each part; plan: of the reads' parts, as they proved."""
    windows = _find_windows(plan, candidates, batch, context)
    places = _list_places(plan, windows, batch, context)
    best = _best(places, context.reporting.max_secondary, plan.entries, context.backend)
    return with_secondaries(plan, ReportedPlacements.of(places, best, batch, context), windows.rows, batch, context)


def _find_windows(plan: RecordPlan, candidates: Candidates, batch: Batch, context: Context) -> WindowList:
    """The batch's windows, and those that candidates make which are not beside the read's parts, with their scores."""
    backend, count = context.backend, candidates.diagonal_count
    heads = _heads(candidates, batch, context)
    counts = backend.empty(count, np.int64)
    batch.launch(
        _COUNT_WINDOWS,
        count,
        context,
        found=candidates,
        plan=plan,
        windows=plan.window_rows,
        heads=heads,
        counts=counts,
    )
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
    """The diagonal that each diagonal belongs to, its own number for a window's best one, int64."""
    backend, count = context.backend, candidates.diagonal_count
    heads, following = backend.full(count, OPEN, np.int64), backend.empty(count, np.int64)
    left = count
    while left:
        still_open = backend.full(1, 0, np.uint64)
        batch.launch(_CHOOSE, count, context, found=candidates, heads=heads, next_heads=following, open=still_open)
        heads, following = following, heads
        left = int(backend.to_host(still_open)[0])
    return heads


def _list_places(plan: RecordPlan, windows: WindowList, batch: Batch, context: Context) -> Array:
    """All windows that are other places of parts, int64 [places, PLACEMENT_WORDS], in any order."""
    backend, count = context.backend, len(windows.rows)
    shared = {"plan": plan, "windows": windows}
    counts = backend.empty(count, np.int64)
    batch.launch(_COUNT_PLACES, count, context, counts=counts, **shared)
    ends, total = backend.inclusive_sum_with_total(counts)
    places = backend.empty((total, PLACEMENT_WORDS), np.int64)
    batch.launch(_LIST_PLACES, count, context, ends=ends, places=places, **shared)
    return places


def _best(places: Array, most: int, entries: int, backend: Backend) -> Array:
    """The numbers, int32, of the best `most` places of each part; entries: of the parts."""
    count = len(places)
    losses, ties, strands = (backend.empty(count, np.uint64) for _ in range(3))
    backend.launch(_KEY, count, places=places, losses=losses, ties=ties, strands=strands)
    order = argsort_columns([(losses, 32 + entries.bit_length()), (ties, 64), (strands, 1)], backend)
    marks = backend.empty(count, np.uint8)
    backend.launch(_MARK, count, places=places, order=order, marks=marks, most=most)
    return select_flagged(marks, ANY_FLAG, backend)
