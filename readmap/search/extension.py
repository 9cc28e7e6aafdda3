"""Windows -> Extensions: banded alignment scores where gaps may pay, and the CIGARs of the planned records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.reads.queries import Queries
from readmap.search.batch import Batch, WindowTable
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
        tasks, task_slots = _tasks(batch.windows, slots, kind, context.backend)
        _score(tasks, task_slots, kind, batch.windows.rows, batch.queries, context)


def score_rows(rows: Array, slots: Array, bands: Array, queries: Queries, context: Context) -> None:
    """The same for windows of any number a slot; slots: int32 [rows]; bands: uint8 [rows], the kinds that they want."""
    backend = context.backend
    host_bands, host_slots = backend.to_host(bands), backend.to_host(slots)
    for kind in BANDS:
        tasks = np.flatnonzero(host_bands == kind)
        _score(backend.to_device(tasks), backend.to_device(host_slots[tasks]), kind, rows, queries, context)


def _score(tasks: Array, slots: Array, kind: int, rows: Array, queries: Queries, context: Context) -> None:
    """Score the windows in the rows `tasks`, int64, of the reads in `slots`, int32, which want one kind of band."""
    backend, scoring = context.backend, context.scoring
    narrow = scoring.fits_16_bits(queries.longest)
    backend.launch(
        Kernel("search/extension", f"score_{16 if narrow else 32}_bits_{BANDS[kind].name}"),
        -(-len(tasks) // (backend.narrow_lanes if narrow else 1)),
        queries=queries,
        reference=context.index.reference,
        scoring=scoring,
        tasks=tasks,
        task_slots=slots,
        windows=rows,
        task_count=len(tasks),
    )


def _tasks(windows: WindowTable, slots: Array, kind: int, backend: Backend) -> tuple[Array, Array]:
    """The rows of the windows that want a band of one kind, int64, and their slots, int32, in order."""
    counts = backend.empty(len(slots), np.int64)
    shared = {"windows": windows, "selected": slots, "kind": kind}
    backend.launch(_COUNT, len(slots), task_counts=counts, **shared)
    ends, total = backend.ends(counts)
    tasks, task_slots = backend.empty(total, np.int64), backend.empty(total, np.int32)
    backend.launch(_LIST, len(slots), task_ends=ends, tasks=tasks, task_slots=task_slots, **shared)
    return tasks, task_slots


def trace_alignments(plan: RecordPlan, queries: Queries, context: Context) -> Extensions:
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
    backend.launch(_LAY, plan.count, queries=queries, plan=plan, extensions=extensions, windows=plan.window_rows)
    bands, slots = backend.to_host(plan.bands), backend.to_host(plan.slots)
    for kind in BANDS:
        traced = np.flatnonzero(bands == kind)
        # By the lengths of their reads, as slots are.
        traced = traced[np.argsort(slots[traced], kind="stable")]
        shared = {"queries": queries, "plan": plan, "extensions": extensions, "windows": plan.window_rows}
        _trace(BANDS[kind], backend.to_device(traced), queries.host_lengths[slots[traced]], shared, context)
    return extensions


def _trace(band: Band, traced: Array, lengths: Any, shared: dict[str, Any], context: Context) -> None:
    """Trace the entries `traced`, int64, whose windows have one kind of band, in the order of their lengths."""
    backend, begin = context.backend, 0
    while begin < len(lengths):
        # The longest read of a part decides its scratch; parts shrink where reads are long.
        part = min(len(lengths) - begin, TRACED_TOGETHER)
        while part > 1 and part * int(lengths[begin + part - 1]) * band.width > backend.scratch_bytes:
            part = max(1, part // 2)
        block_words = int(lengths[begin + part - 1]) * band.width // 8 * backend.lanes
        backend.launch(
            Kernel("search/extension", f"trace_{band.name}"),
            part,
            reference=context.index.reference,
            scoring=context.scoring,
            traced=traced,
            steps=backend.empty(-(-part // backend.lanes) * block_words, np.uint64),
            first=begin,
            block_words=block_words,
            **shared,
        )
        begin += part
