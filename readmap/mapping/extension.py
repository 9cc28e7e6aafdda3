"""Score windows by banded alignments, and compute the CIGARs of planned records (Windows -> Extensions)."""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compaction import select_flagged
from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import Count, DeviceList
from readmap.backend.tables import Table
from readmap.mapping.batch import MAX_WINDOWS, Batch, Context
from readmap.mapping.record_plan import RecordPlan


class Band(NamedTuple):
    """A kind of band: its name in the names of kernels, and its number of diagonals."""

    name: str
    width: int


_HEADER = "mapping/windows.cuh"
WIDE = constant(_HEADER, "WIDE_BAND")
BANDS = {
    constant(_HEADER, f"{name}_BAND"): Band(name.lower(), constant(_HEADER, f"{name}_WIDTH"))
    for name in ("NARROW", "MIDDLE", "WIDE", "WIDEST")
}
#: Maximum number of alignments per launch of a traceback kernel.
MAX_TRACED = 65_536

_COUNT, _LIST = Kernel("mapping/windows", "count_tasks"), Kernel("mapping/windows", "list_tasks")
_CLAMP, _TAKE = Kernel("mapping/windows", "clamp_task_counts"), Kernel("mapping/windows", "take_tasks")
_LONG_READ, _NO_TASK = constant(_HEADER, "LONG_READ"), constant(_HEADER, "NO_TASK")
_COUNT_TRACED, _LIST_TRACED = Kernel("mapping/extension", "count_traced"), Kernel("mapping/extension", "list_traced")
_PLACE = Kernel("mapping/extension", "place_ungapped_alignments")


class Extensions(Table, struct="mapping/alignments.cuh:Extensions"):
    """The CIGARs of the entries of a record plan."""


class _TaskCapacities(NamedTuple):
    """Capacity of the task list of each kind of band: struct TaskCapacities of kernels/mapping/windows.cu."""

    narrow: int
    middle: int
    wide: int
    widest: int


def score_windows(slots: DeviceList, batch: Batch, context: Context, long_gaps: bool = True) -> None:
    """Score the new windows of the reads in `slots` by banded alignments, in place; long_gaps: use wide bands too."""
    backend, capacity, lanes = context.backend, len(slots.indices), _lanes(batch, context)
    if not capacity:
        return
    counts, given = backend.full(len(BANDS) * capacity, 0, np.int64), {"selected": slots.indices, "count": capacity}
    excluded_kind = 0 if long_gaps else WIDE
    batch.launch(_COUNT, slots.count, context, **given, counts=counts, excluded_kind=excluded_kind)
    ends, items, capacities = _count_tasks(counts, slots, lanes, batch, context)
    if not sum(capacities):
        return
    tasks, task_slots = backend.full(sum(capacities), _NO_TASK, np.int64), backend.empty(sum(capacities), np.int32)
    listed = {"ends": ends, "capacities": capacities, "tasks": tasks, "task_slots": task_slots}
    batch.launch(_LIST, slots.count, context, **given, **listed, excluded_kind=excluded_kind)
    by_kind = dict(zip(BANDS, items, strict=True))
    for kind, part in _by_kind([*accumulate(capacities)]):
        _score(tasks[part], task_slots[part], by_kind[kind], kind, batch.windows.rows, batch, context)


def _count_tasks(
    counts: Array, slots: DeviceList, lanes: int, batch: Batch, context: Context
) -> tuple[Array, list[Count], _TaskCapacities]:
    """Return the inclusive prefix sum of `counts`, and for each kind of band its launch items and list capacity.

    counts: int64 [kinds of band * slots], tasks of a read. A task aligns a window; an item scores `lanes` tasks.
    """
    backend, capacity = context.backend, len(slots.indices)
    # Only long reads use the widest band.
    kinds = len(BANDS) if batch.queries.max_length > _LONG_READ else len(BANDS) - 1
    max_counts = [capacity * MAX_WINDOWS] * kinds + [0] * (len(BANDS) - kinds)
    reserved, ends = batch.device_counters.reserve("scored", slots, max_counts, lanes), backend.inclusive_sum(counts)
    if reserved.capacities is None:
        lasts = backend.row_ends((ends, len(BANDS)))
        found = [last - before for before, last in pairwise([0, *lasts])]
        batch.device_counters.record_use(reserved, found)
        items = [-(-count // lanes) for count in found]
        return ends, [*items], _TaskCapacities(*(count * lanes for count in items))
    capacities, arrays = _TaskCapacities(*reserved.capacities), {"counts": reserved.counts, "needed": reserved.needed}
    backend.launch(_CLAMP, len(BANDS), ends=ends, **arrays, capacities=capacities, count=capacity, lanes=lanes)
    return ends, reserved.bounded_counts(lanes), capacities


def _by_kind(lasts: list[int]) -> Iterator[tuple[int, slice]]:
    """Yield each non-empty kind of band and its slice of the sorted tasks; lasts: the end of each kind's slice."""
    for kind, first, last in zip(BANDS, [0, *lasts], lasts, strict=False):
        if first < last:
            yield kind, slice(first, last)


def score_rows(rows: Array, slots: Array, kinds: Array, batch: Batch, context: Context) -> None:
    """Score the windows in `rows` in place. slots: int32 [rows], of reads. kinds: uint8 [rows], 1 << kind of band."""
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
    """Return the number of tasks that an item of a score kernel scores."""
    return context.backend.lanes_16bit if context.scoring.fits_16_bits(batch.queries.max_length) else 1


def _score(tasks: Array, slots: Array, items: Count, kind: int, rows: Array, batch: Batch, context: Context) -> None:
    """Score the windows rows[tasks] (int64) of the reads in `slots` (int32) in place, with one kind of band."""
    bits = 16 if context.scoring.fits_16_bits(batch.queries.max_length) else 32
    kernel = Kernel("mapping/extension", f"score_{bits}_bits_{BANDS[kind].name}")
    batch.launch(kernel, items, context, tasks=tasks, task_slots=slots, windows=rows)


def trace_alignments(plan: RecordPlan, batch: Batch, context: Context) -> Extensions:
    """Return the CIGARs of all entries of the plan, and add the number of tracebacks to batch.work."""
    backend, reads = context.backend, batch.reads.count
    counts = backend.empty(len(BANDS) * reads, np.int64)
    batch.launch(_COUNT_TRACED, reads, context, plan=plan, counts=counts, reads=reads)
    ends, capacity_ends = backend.inclusive_sum(counts), backend.inclusive_sum(plan.cigar_capacities)
    total, *lasts = backend.row_ends((capacity_ends, 1), (ends, len(BANDS)))
    capacities = {"capacity_ends": capacity_ends, "cigar_capacities": plan.cigar_capacities}
    extensions = Extensions.allocate(backend, **capacities, operations=total)
    shared = {"plan": plan, "extensions": extensions, "windows": plan.window_rows}
    batch.launch(_PLACE, plan.entries, context, **shared)
    if not lasts[-1]:
        return extensions
    batch.work.traced += lasts[-1]
    traced, lengths = backend.empty(lasts[-1], np.int64), backend.empty(lasts[-1], np.int32)
    batch.launch(_LIST_TRACED, reads, context, plan=plan, ends=ends, traced=traced, lengths=lengths, reads=reads)
    for kind, part in _by_kind(lasts):
        _trace(BANDS[kind], traced[part], lengths[part], shared, batch, context)
    return extensions


def _trace(band: Band, traced: Array, lengths: Array, shared: dict[str, Any], batch: Batch, context: Context) -> None:
    """Write the CIGARs of the entries `traced` (int64) to the extensions in `shared`, the common kernel arguments.

    band: the kind of band of these entries. lengths: int32, the length of each entry's read, ascending.
    """
    backend, start, lanes = context.backend, 0, context.backend.traceback_lanes

    def bytes_of(longest: int) -> int:
        return longest * band.width * lanes

    def longest(part: int) -> int:
        return int(backend.to_host(lengths[start + part - 1 : start + part])[0])

    while start < len(traced):
        # The longest read of a launch decides its scratch memory. Its length is read back only if scratch memory for
        # the longest read of the batch would be too large. Launches of long reads have fewer items.
        part = min(len(traced) - start, MAX_TRACED)
        item_bytes = bytes_of(batch.queries.max_length)
        if -(-part // lanes) * item_bytes > backend.scratch_bytes:
            item_bytes = bytes_of(longest(part))
        while part > lanes and -(-part // lanes) * item_bytes > backend.scratch_bytes:
            part //= 2
            item_bytes = bytes_of(longest(part))
        items, fits = -(-part // lanes), int(context.scoring.fits_16_bits(batch.queries.max_length))
        steps, bounds = backend.empty(items * item_bytes, np.uint8), {"first": start, "last": start + part}
        given = shared | bounds | {"traced": traced, "steps": steps, "item_bytes": item_bytes, "fits_16_bits": fits}
        batch.launch(Kernel("mapping/extension", f"trace_{band.name}"), items, context, **given)
        start += part
