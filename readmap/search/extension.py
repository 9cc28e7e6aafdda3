"""Windows -> Extensions: banded alignment scores where gaps may pay, and the CIGARs of the chosen windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.search.parameters import WINDOWS, Scoring
from readmap.search.queries import Queries
from readmap.search.windows import Windows

#: The kinds of bands of kernels/windows.cuh, by number, and the diagonals of each.
BANDS = {1: "narrow", 2: "middle", 3: "wide"}
LONG_READ, WIDEST_SHORT, WIDEST = 512, 64, 256

_COUNT, _LIST = Kernel("windows", "count_tasks"), Kernel("windows", "list_tasks")
_TRACE, _LAY = Kernel("extension", "trace_alignments"), Kernel("extension", "lay_alignments")


@dataclass(frozen=True)
class Extensions:
    """The alignment of every slot's chosen window.

    Attributes:
        offsets: int64 [reads + 1], where a slot's room in `operations` begins.
        operations: uint32, length << 4 | operation as in BAM (0 M, 1 I, 2 D, 4 S), in reference order.
        counts: int32 [reads], operations of each slot.
        reference_starts: int64 [reads], where in the reference the alignment begins.
    """

    offsets: Array
    operations: Array
    counts: Array
    reference_starts: Array


def score_windows(
    windows: Windows, queries: Queries, selected: Array, index: DeviceIndex, scoring: Scoring, backend: Backend
) -> None:
    """Raise the scores of the selected slots' windows to those of their banded alignments."""
    narrow = scoring.fits_16_bits(queries.longest)
    lanes = backend.narrow_lanes if narrow else 1
    for kind, name in BANDS.items():
        if name == "wide" and queries.longest <= LONG_READ:
            continue
        tasks = _tasks(windows, selected, kind, backend)
        backend.launch(
            Kernel("extension", f"score_{16 if narrow else 32}_bits_{name}"),
            -(-len(tasks) // lanes),
            *queries.arguments,
            *index.reference,
            tasks,
            windows.rows,
            len(tasks),
            WINDOWS,
            *scoring.arguments(),
        )


def _tasks(windows: Windows, selected: Array, kind: int, backend: Backend) -> Array:
    """The numbers of the windows that want a band of one kind, int64, in the order of their slots."""
    counts = backend.empty(len(selected), np.int64)
    backend.launch(_COUNT, len(selected), selected, windows.rows, windows.counts, counts, WINDOWS, kind)
    ends, total = backend.ends(counts)
    tasks = backend.empty(total, np.int64)
    backend.launch(_LIST, len(selected), selected, windows.rows, windows.counts, ends, tasks, WINDOWS, kind)
    return tasks


def _rooms(lengths: Array, traced: Array, scoring: Scoring) -> Array:
    """The most CIGAR operations of each read, int64: clips and a match, or as many gaps as matches can pay for."""
    rooms = np.full(len(lengths), 3, np.int64)
    most = lengths[traced].astype(np.int64) * scoring.match + 2 * scoring.clip_penalty
    rooms[traced] = 2 * (most // (scoring.gap_open + scoring.gap_extend) + 1) + 4
    return rooms


def align_chosen(
    windows: Windows,
    chosen: Array,
    traced: Array,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> Extensions:
    """The CIGAR of every slot's chosen window (int32 [reads], -1 for none); `traced`, uint8 [reads], marks those whose
    alignment has gaps."""
    marks = backend.to_host(traced) > 0
    count = len(queries.host_lengths)
    offsets = np.concatenate(([0], np.cumsum(_rooms(queries.host_lengths, marks, scoring))))
    extensions = Extensions(
        backend.to_device(offsets),
        backend.empty(int(offsets[-1]), np.uint32),
        backend.full(count, 0, np.int32),
        backend.full(count, 0, np.int64),
    )
    results = (extensions.operations, extensions.counts, extensions.reference_starts)
    backend.launch(_LAY, count, queries.lengths, windows.rows, chosen, extensions.offsets, *results, WINDOWS)
    slots = np.flatnonzero(marks).astype(np.int64)
    device_slots = backend.to_device(slots)
    begin = 0
    while begin < len(slots):
        # The longest read of a part decides its scratch; parts shrink where reads are long.
        part = min(len(slots) - begin, 65_536)
        while True:
            length = int(queries.host_lengths[slots[begin + part - 1]])
            band = WIDEST_SHORT if length <= LONG_READ else WIDEST
            if part == 1 or part * length * band <= backend.scratch_bytes:
                break
            part = max(1, part // 2)
        backend.launch(
            _TRACE,
            part,
            *queries.arguments,
            *index.reference,
            device_slots,
            windows.rows,
            chosen,
            extensions.offsets,
            backend.empty(part * length * band, np.uint8),
            backend.empty(part * 2 * (band + 1), np.int32),
            *results,
            begin,
            length * band,
            2 * (band + 1),
            WINDOWS,
            *scoring.arguments(),
        )
        begin += part
    return extensions
