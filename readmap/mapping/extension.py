"""Windows -> Extensions: banded alignment scores where gaps may pay, and the CIGARs of the planned records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compaction import select_flagged
from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import Count, DeviceList
from readmap.backend.tables import Table
from readmap.mapping.batch import MAX_WINDOWS, Batch
from readmap.mapping.context import Context
from readmap.mapping.record_plan import RecordPlan


class Band(NamedTuple):
    """A kind of band: as kernels are named for it, and the diagonals that it has."""

    name: str
    width: int


WIDE = constant("mapping/windows.cuh", "WIDE_BAND")
BANDS = {
    constant("mapping/windows.cuh", "NARROW_BAND"): Band("narrow", 32),
    constant("mapping/windows.cuh", "MIDDLE_BAND"): Band("middle", 64),
    WIDE: Band("wide", 160),
    constant("mapping/windows.cuh", "WIDEST_BAND"): Band("widest", 256),
}

#: Alignments that are traced together at most.
MAX_TRACED = 65_536

_COUNT, _LIST = Kernel("mapping/windows", "count_tasks"), Kernel("mapping/windows", "list_tasks")
_CLAMP, _TAKE = Kernel("mapping/windows", "clamp_task_counts"), Kernel("mapping/windows", "take_tasks")
_LONG_READ = constant("mapping/windows.cuh", "LONG_READ")
_NO_TASK = constant("mapping/windows.cuh", "NO_TASK")
_COUNT_TRACED, _LIST_TRACED = Kernel("mapping/extension", "count_traced"), Kernel("mapping/extension", "list_traced")
_LAY = Kernel("mapping/extension", "place_ungapped_alignments")


class Extensions(Table, struct="mapping/alignments.cuh:Extensions"):
    """The alignment of every planned record's window."""


class _TaskCapacities(NamedTuple):
    """For how many tasks of each kind there is room: struct TaskCapacities of kernels/search/windows.cu."""

    narrow: int
    middle: int
    wide: int
    widest: int


def score_windows(slots: DeviceList, batch: Batch, context: Context, long_gaps: bool = True) -> None:
    """Raise the scores of the slots' new windows to those of their banded alignments.

    long_gaps: windows that hope for one are aligned too; a read that has one is searched again without that.
    """
    backend, most, lanes = context.backend, len(slots.numbers), _lanes(batch, context)
    if not most:
        return
    counts, given = backend.full(len(BANDS) * most, 0, np.int64), {"selected": slots.numbers, "count": most}
    without = 0 if long_gaps else WIDE
    batch.launch(_COUNT, slots.count, context, **given, counts=counts, without=without)
    ends, items, capacities = _count_tasks(counts, slots, lanes, batch, context)
    if not sum(capacities):
        return
    tasks, task_slots = backend.full(sum(capacities), _NO_TASK, np.int64), backend.empty(sum(capacities), np.int32)
    listed = {"ends": ends, "capacities": capacities, "tasks": tasks, "task_slots": task_slots}
    batch.launch(_LIST, slots.count, context, **given, **listed, without=without)
    by_kind = dict(zip(BANDS, items, strict=True))
    for kind, part in _by_kind([*accumulate(capacities)]):
        _score(tasks[part], task_slots[part], by_kind[kind], kind, batch.windows.rows, batch, context)


def _count_tasks(
    counts: Array, slots: DeviceList, lanes: int, batch: Batch, context: Context
) -> tuple[Array, list[Count], _TaskCapacities]:
    """The prefix sums of the tasks of each read, and of each kind how many items there are, of so many tasks each, and
    for how many tasks there is to be room."""
    backend, most = context.backend, len(slots.numbers)
    kinds = len(BANDS) if batch.queries.max_length > _LONG_READ else len(BANDS) - 1  # the widest are of long reads
    at_most = [most * MAX_WINDOWS] * kinds + [0] * (len(BANDS) - kinds)
    sizes, ends = batch.device_counters.reserve("scored", slots, at_most, lanes), backend.inclusive_sum(counts)
    if sizes.capacities is None:
        lasts = backend.row_ends((ends, len(BANDS)))
        found = [last - before for before, last in pairwise([0, *lasts])]
        batch.device_counters.record_use(sizes, found)
        items = [-(-count // lanes) for count in found]
        return ends, [*items], _TaskCapacities(*(count * lanes for count in items))
    capacities, arrays = _TaskCapacities(*sizes.capacities), {"counts": sizes.counts, "needed": sizes.needed}
    backend.launch(_CLAMP, len(BANDS), ends=ends, **arrays, capacities=capacities, count=most, lanes=lanes)
    return ends, sizes.bounded_counts(lanes), capacities


def _by_kind(lasts: list[int]) -> Iterator[tuple[int, slice]]:
    """The kinds of bands of which there are some, and where in their list these are; lasts: where each kind's end."""
    for kind, first, last in zip(BANDS, [0, *lasts], lasts, strict=False):
        if first < last:
            yield kind, slice(first, last)


def score_rows(rows: Array, slots: Array, kinds: Array, batch: Batch, context: Context) -> None:
    """The same for windows of any number a slot; slots: int32 [rows]; kinds: uint8 [rows], 1 << that of a band."""
    backend = context.backend
    for kind in BANDS:
        wanting = select_flagged(kinds, 1 << kind, backend)
        count, lanes = len(wanting), _lanes(batch, context)
        items = -(-count // lanes)
        tasks, task_slots = backend.full(items * lanes, _NO_TASK, np.int64), backend.empty(items * lanes, np.int32)
        listed = {"tasks": tasks[:count], "task_slots": task_slots[:count]}
        batch.launch(_TAKE, count, context, rows=wanting, slots=slots, **listed)
        _score(tasks, task_slots, items, kind, rows, batch, context)


def _lanes(batch: Batch, context: Context) -> int:
    """Tasks that an item scores."""
    return context.backend.lanes_16bit if context.scoring.fits_16_bits(batch.queries.max_length) else 1


def _score(tasks: Array, slots: Array, items: Count, kind: int, rows: Array, batch: Batch, context: Context) -> None:
    """Score the windows in the rows `tasks`, int64, of the reads in `slots`, int32, which want one kind of band."""
    narrow = context.scoring.fits_16_bits(batch.queries.max_length)
    batch.launch(
        Kernel("mapping/extension", f"score_{16 if narrow else 32}_bits_{BANDS[kind].name}"),
        items,
        context,
        tasks=tasks,
        task_slots=slots,
        windows=rows,
    )


def trace_alignments(plan: RecordPlan, batch: Batch, context: Context) -> Extensions:
    """The CIGAR of every planned record's window."""
    backend, reads = context.backend, batch.reads.count
    counts = backend.empty(len(BANDS) * reads, np.int64)
    batch.launch(_COUNT_TRACED, reads, context, plan=plan, counts=counts, reads=reads)
    ends, room_ends = backend.inclusive_sum(counts), backend.inclusive_sum(plan.cigar_capacities)
    total, *lasts = backend.row_ends((room_ends, 1), (ends, len(BANDS)))
    extensions = Extensions.allocate(backend, ends=room_ends, cigar_capacities=plan.cigar_capacities, operations=total)
    shared = {"plan": plan, "extensions": extensions, "windows": plan.window_rows}
    batch.launch(_LAY, plan.entries, context, **shared)
    if not lasts[-1]:
        return extensions
    batch.work.traced += lasts[-1]
    traced, lengths = backend.empty(lasts[-1], np.int64), backend.empty(lasts[-1], np.int32)
    batch.launch(_LIST_TRACED, reads, context, plan=plan, ends=ends, traced=traced, lengths=lengths, reads=reads)
    for kind, part in _by_kind(lasts):
        _trace(BANDS[kind], traced[part], lengths[part], shared, batch, context)
    return extensions


def _trace(band: Band, traced: Array, lengths: Array, shared: dict[str, Any], batch: Batch, context: Context) -> None:
    """Trace the entries `traced`, whose windows have one kind of band, in the order of their reads' lengths."""
    backend, begin, lanes = context.backend, 0, context.backend.traceback_lanes

    def bytes_of(longest: int) -> int:
        return longest * band.width * lanes

    def longest(part: int) -> int:
        return int(backend.to_host(lengths[begin + part - 1 : begin + part])[0])

    while begin < len(traced):
        # The longest read of a part decides its scratch, which is asked for where the batch's would take too much;
        # parts shrink where reads are long.
        part = min(len(traced) - begin, MAX_TRACED)
        item_bytes = bytes_of(batch.queries.max_length)
        if -(-part // lanes) * item_bytes > backend.scratch_bytes:
            item_bytes = bytes_of(longest(part))
        while part > lanes and -(-part // lanes) * item_bytes > backend.scratch_bytes:
            part //= 2
            item_bytes = bytes_of(longest(part))
        items = -(-part // lanes)
        batch.launch(
            Kernel("mapping/extension", f"trace_{band.name}"),
            items,
            context,
            traced=traced,
            steps=backend.empty(items * item_bytes, np.uint8),
            first=begin,
            last=begin + part,
            item_bytes=item_bytes,
            fits_16_bits=int(context.scoring.fits_16_bits(batch.queries.max_length)),
            **shared,
        )
        begin += part
