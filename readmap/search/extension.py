"""Windows -> Extensions: banded alignment scores where gaps may pay, and the CIGARs of the lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search.parameters import WINDOWS, Scoring
from readmap.search.record_plan import Lines
from readmap.search.windows import Windows


class Band(NamedTuple):
    """A kind of band: as kernels are named for it, and the diagonals that it has."""

    name: str
    width: int


#: By the number of kernels/search/windows.cuh.
BANDS = {1: Band("narrow", 32), 2: Band("middle", 64), 3: Band("wide", 160), 4: Band("widest", 256)}
WIDE, WIDEST = 3, 4
#: Longer reads have the widest band, and no others have.
LONG_READ = 512

_COUNT, _LIST = Kernel("search/windows", "count_tasks"), Kernel("search/windows", "list_tasks")
_LAY = Kernel("search/extension", "lay_alignments")


@dataclass(frozen=True)
class Extensions:
    """The alignment of every line's window.

    Attributes:
        ends, rooms: int64 [lines], a line's room in `operations` is [ends - rooms, ends).
        operations: uint32, length << 4 | operation as in BAM (0 M, 1 I, 2 D, 4 S), in reference order.
        counts: int32 [lines], operations of each, 0 for none.
        reference_starts: int64 [lines], where in the reference the alignment begins.
    """

    ends: Array
    rooms: Array
    operations: Array
    counts: Array
    reference_starts: Array


def score_windows(
    windows: Windows,
    queries: Queries,
    selected: Array,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
    long_gaps: bool = True,
) -> None:
    """Raise the scores of the selected slots' new windows to those of their banded alignments.

    long_gaps: windows that hope for one are aligned too; a read that has one is searched again without that.
    """
    for kind in BANDS:
        if (kind == WIDEST and queries.longest <= LONG_READ) or (kind == WIDE and not long_gaps):
            continue
        _score(*_tasks(windows, selected, kind, backend), kind, windows.rows, queries, index, scoring, backend)


def score_rows(
    rows: Array, slots: Array, bands: Array, queries: Queries, index: DeviceIndex, scoring: Scoring, backend: Backend
) -> None:
    """The same for windows of any number a slot; slots: int32 [rows]; bands: uint8 [rows], the kinds that they want."""
    host_bands, host_slots = backend.to_host(bands), backend.to_host(slots)
    for kind in BANDS:
        tasks = np.flatnonzero(host_bands == kind)
        where = backend.to_device(tasks), backend.to_device(host_slots[tasks])
        _score(*where, kind, rows, queries, index, scoring, backend)


def _score(
    tasks: Array,
    slots: Array,
    kind: int,
    rows: Array,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Score the windows in the rows `tasks`, int64, of the reads in `slots`, int32, which want one kind of band."""
    narrow = scoring.fits_16_bits(queries.longest)
    backend.launch(
        Kernel("search/extension", f"score_{16 if narrow else 32}_bits_{BANDS[kind].name}"),
        -(-len(tasks) // (backend.narrow_lanes if narrow else 1)),
        *queries.arguments,
        *index.reference,
        tasks,
        slots,
        rows,
        len(tasks),
        *scoring.arguments(),
    )


def _tasks(windows: Windows, selected: Array, kind: int, backend: Backend) -> tuple[Array, Array]:
    """The rows of the windows that want a band of one kind, int64, and their slots, int32, in order."""
    counts = backend.empty(len(selected), np.int64)
    backend.launch(_COUNT, len(selected), selected, windows.rows, windows.counts, counts, WINDOWS, kind)
    ends, total = backend.ends(counts)
    tasks, slots = backend.empty(total, np.int64), backend.empty(total, np.int32)
    backend.launch(_LIST, len(selected), selected, windows.rows, windows.counts, ends, tasks, slots, WINDOWS, kind)
    return tasks, slots


def align_lines(
    lines: Lines, windows: Windows, queries: Queries, index: DeviceIndex, scoring: Scoring, backend: Backend
) -> Extensions:
    """The CIGAR of every line's window."""
    ends, total = backend.ends(lines.rooms)
    extensions = Extensions(
        ends,
        lines.rooms,
        backend.empty(total, np.uint32),
        backend.empty(lines.count, np.int32),
        backend.empty(lines.count, np.int64),
    )
    places, segments = (ends, lines.rooms), (lines.slots, lines.windows, lines.bands)
    results = (extensions.operations, extensions.counts, extensions.reference_starts)
    backend.launch(_LAY, lines.count, queries.lengths, windows.rows, *segments, *places, *results)
    where = (lines.slots, lines.windows, lines.least_scores, *places)
    bands, slots = backend.to_host(lines.bands), backend.to_host(lines.slots)
    for kind in BANDS:
        traced = np.flatnonzero(bands == kind)
        # By the lengths of their reads, as slots are.
        traced = traced[np.argsort(slots[traced], kind="stable")]
        lengths = queries.host_lengths[slots[traced]]
        _trace(traced, lengths, kind, where, results, windows, queries, index, scoring, backend)
    return extensions


def _trace(
    traced: Any,
    lengths: Any,
    kind: int,
    where: tuple[Array, ...],
    results: tuple[Array, ...],
    windows: Windows,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """The CIGARs of the lines `traced`, int64, whose windows have one kind of band, in the order of their lengths."""
    device_lines, band = backend.to_device(traced), BANDS[kind]
    begin = 0
    while begin < len(traced):
        # The longest read of a part decides its scratch; parts shrink where reads are long.
        part = min(len(traced) - begin, 65_536)
        while part > 1 and part * int(lengths[begin + part - 1]) * band.width > backend.scratch_bytes:
            part = max(1, part // 2)
        block_words = int(lengths[begin + part - 1]) * band.width // 8 * backend.lanes
        backend.launch(
            Kernel("search/extension", f"trace_{band.name}"),
            part,
            *queries.arguments,
            *index.reference,
            device_lines,
            windows.rows,
            *where,
            backend.empty(-(-part // backend.lanes) * block_words, np.uint64),
            *results,
            begin,
            block_words,
            *scoring.arguments(),
        )
        begin += part
