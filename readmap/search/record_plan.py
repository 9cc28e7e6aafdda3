"""Placements -> RecordPlan: what is reported of each read: its place, its other parts if it is split, other places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import row_dtype
from readmap.search.batch import Batch
from readmap.search.context import Context

_COUNT, _LIST = Kernel("search/record_plan", "count_entries"), Kernel("search/record_plan", "list_entries")
_ADD = Kernel("search/record_plan", "add_secondaries")

SECONDARY_PLACE = row_dtype("search/record_plan.cuh", "SecondaryPlace")
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
    ends, total = backend.ends(counts)
    offsets = backend.full(reads + 1, 0, np.int64)
    offsets[1:] = ends
    plan = _empty_plan(offsets, total, batch.windows.rows, backend)
    batch.launch(_LIST, reads, context, plan=plan)
    return plan


def traced_where_several(plan: RecordPlan, backend: Backend) -> RecordPlan:
    """The same plan, of which the entries of reads with but one are not traced."""
    counts = np.diff(backend.to_host(plan.offsets))
    bands = np.where(np.repeat(counts > 1, counts), backend.to_host(plan.bands), np.uint8(0))
    return replace(plan, bands=backend.to_device(bands))


def with_secondaries(
    plan: RecordPlan, places: np.ndarray[Any, Any], rows: Array, batch: Batch, context: Context
) -> RecordPlan:
    """A new plan: the reads' own entries and, behind each read's, its places by orientation and diagonal.

    places: SECONDARY_PLACE on the host, of which the owners are entries of `plan`.
    rows: of windows: those of the batch, and behind them those of the places.
    """
    backend, queries, reads = context.backend, batch.queries, batch.reads.count
    own = backend.to_host(plan.offsets)
    records = backend.to_host(queries.order)[places["slot"]]
    order = np.lexsort((places["diagonal"], places["orientation"], records))
    places, records = places[order], records[order]
    before = np.zeros(reads + 1, np.int64)
    np.cumsum(np.bincount(records, minlength=reads), out=before[1:])
    more = _empty_plan(backend.to_device(own + before), plan.count + len(places), rows, backend)
    batch.launch(_LIST, reads, context, plan=more)
    places["owner"] += before[records].astype(np.int32)
    batch.launch(
        _ADD,
        len(places),
        context,
        windows=rows,
        places=backend.to_device(places.view(np.int64).reshape(-1, PLACE_WORDS)),
        place_entries=backend.to_device(own[records + 1] + np.arange(len(places))),
        plan=more,
    )
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
