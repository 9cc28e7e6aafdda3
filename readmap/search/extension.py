"""Windows -> Extensions: banded alignment scores where gaps may pay, and the CIGARs of the planned records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.record_plan import RecordPlan


class Band(NamedTuple):
    """A kind of band: as kernels are named for it, and the diagonals that it has."""

    name: str
    width: int


WIDE, WIDEST = (constant("search/windows.cuh", name) for name in ("WIDE_BAND", "WIDEST_BAND"))
BANDS = {
    constant("search/windows.cuh", "NARROW_BAND"): Band("narrow", 32),
    constant("search/windows.cuh", "MIDDLE_BAND"): Band("middle", 64),
    WIDE: Band("wide", 160),
    WIDEST: Band("widest", 256),
}
#: Longer reads have the widest band, and no others have.
LONG_READ = constant("search/windows.cuh", "LONG_READ")

#: Alignments that are traced together at most.
TRACED_TOGETHER = 65_536

_COUNT, _LIST = Kernel("search/windows", "count_tasks"), Kernel("search/windows", "list_tasks")
_LAY = Kernel("search/extension", "lay_alignments")


@dataclass(frozen=True)
class Extensions:
    """The alignment of every planned record's window.

    Attributes:
        ends, rooms: int64 [entries], an entry's room in `operations` is [ends - rooms, ends).
        operations: uint32, length << 4 | operation as in BAM (0 M, 1 I, 2 D, 4 S), in reference order.
        counts: int32 [entries], operations of each, 0 for none.
        reference_starts: int64 [entries], where in the reference the alignment begins.
    """

    ends: Array
    rooms: Array
    operations: Array
    counts: Array
    reference_starts: Array


def score_windows(slots: Array, batch: Batch, context: Context, long_gaps: bool = True) -> None:
    """Raise the scores of the slots' new windows to those of their banded alignments.

    long_gaps: windows that hope for one are aligned too; a read that has one is searched again without that.
    """
    for kind in BANDS:
        if (kind == WIDEST and batch.queries.longest <= LONG_READ) or (kind == WIDE and not long_gaps):
            continue
        tasks, task_slots = _tasks(slots, kind, batch, context)
        _score(tasks, task_slots, kind, batch.windows.rows, batch, context)


def score_rows(rows: Array, slots: Array, bands: Array, batch: Batch, context: Context) -> None:
    """The same for windows of any number a slot; slots: int32 [rows]; bands: uint8 [rows], the kinds that they want."""
    backend = context.backend
    host_bands, host_slots = backend.to_host(bands), backend.to_host(slots)
    for kind in BANDS:
        tasks = np.flatnonzero(host_bands == kind)
        _score(backend.to_device(tasks), backend.to_device(host_slots[tasks]), kind, rows, batch, context)


def _score(tasks: Array, slots: Array, kind: int, rows: Array, batch: Batch, context: Context) -> None:
    """Score the windows in the rows `tasks`, int64, of the reads in `slots`, int32, which want one kind of band."""
    backend = context.backend
    narrow = context.scoring.fits_16_bits(batch.queries.longest)
    batch.launch(
        Kernel("search/extension", f"score_{16 if narrow else 32}_bits_{BANDS[kind].name}"),
        -(-len(tasks) // (backend.narrow_lanes if narrow else 1)),
        context,
        tasks=tasks,
        task_slots=slots,
        windows=rows,
        task_count=len(tasks),
    )


def _tasks(slots: Array, kind: int, batch: Batch, context: Context) -> tuple[Array, Array]:
    """The rows of the windows that want a band of one kind, int64, and their slots, int32, in order."""
    backend = context.backend
    counts = backend.empty(len(slots), np.int64)
    batch.launch(_COUNT, len(slots), context, selected=slots, task_counts=counts, kind=kind)
    ends, total = backend.ends(counts)
    tasks, task_slots = backend.empty(total, np.int64), backend.empty(total, np.int32)
    listed = {"task_ends": ends, "tasks": tasks, "task_slots": task_slots}
    batch.launch(_LIST, len(slots), context, selected=slots, kind=kind, **listed)
    return tasks, task_slots


def trace_alignments(plan: RecordPlan, batch: Batch, context: Context) -> Extensions:
    """The CIGAR of every planned record's window."""
    backend = context.backend
    ends, total = backend.ends(plan.rooms)
    extensions = Extensions(
        ends,
        plan.rooms,
        backend.empty(total, np.uint32),
        backend.empty(plan.count, np.int32),
        backend.empty(plan.count, np.int64),
    )
    shared = {"plan": plan, "extensions": extensions, "windows": plan.window_rows}
    batch.launch(_LAY, plan.count, context, **shared)
    bands, slots = backend.to_host(plan.bands), backend.to_host(plan.slots)
    for kind in BANDS:
        traced = np.flatnonzero(bands == kind)
        # By the lengths of their reads, as slots are.
        traced = traced[np.argsort(slots[traced], kind="stable")]
        _trace(BANDS[kind], traced, batch.queries.host_lengths[slots[traced]], shared, batch, context)
    return extensions


def _trace(band: Band, traced: Any, lengths: Any, shared: dict[str, Any], batch: Batch, context: Context) -> None:
    """Trace the entries `traced`, whose windows have one kind of band, in the order of their reads' lengths."""
    backend, begin = context.backend, 0
    on_device = backend.to_device(traced)
    while begin < len(lengths):
        # The longest read of a part decides its scratch; parts shrink where reads are long.
        part = min(len(lengths) - begin, TRACED_TOGETHER)
        while part > 1 and part * int(lengths[begin + part - 1]) * band.width > backend.scratch_bytes:
            part = max(1, part // 2)
        block_words = int(lengths[begin + part - 1]) * band.width // 8 * backend.lanes
        batch.launch(
            Kernel("search/extension", f"trace_{band.name}"),
            part,
            context,
            traced=on_device,
            steps=backend.empty(-(-part // backend.lanes) * block_words, np.uint64),
            first=begin,
            block_words=block_words,
            **shared,
        )
        begin += part
