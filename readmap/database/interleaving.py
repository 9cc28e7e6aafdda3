"""A part of a database -> InterleavedSubjects: its subjects side by side, as the lanes of a scan take them."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

_INTERLEAVE = Kernel("database/scan", "interleave")

#: Columns that groups have a multiple of on the CPU.
BLOCK_COLUMNS = constant("database/scan_lanes.cuh", "BLOCK_COLUMNS")


@dataclass(frozen=True)
class InterleavedSubjects:
    """Subjects on a device, the longest ones first, in groups of neighbours that share the lanes of a thread.

    Attributes:
        letters: uint8 [columns * lanes], the codes of a group's subjects interleaved (kernels/database/scan_lanes.cuh).
        subjects: of all groups; the last group may have fewer than it has lanes.
        offsets: int64 [groups + 1] on the host, where each group's columns begin.
        starts, sizes, groups: int64, int32 and int32 [groups] on the device: of each group where its columns begin, how
            many it has, and its number.
    """

    letters: Array
    subjects: int
    offsets: NDArray[np.int64]
    starts: Array
    sizes: Array
    groups: Array

    @property
    def count(self) -> int:
        """Groups."""
        return len(self.offsets) - 1

    def longer_than(self, columns: int) -> int:
        """How many groups, from the first on, have more columns."""
        return bisect.bisect_left(
            range(self.count), True, key=lambda i: self.offsets[i + 1] - self.offsets[i] <= columns
        )


def interleave(
    codes: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[Any], backend: Backend
) -> InterleavedSubjects:
    """Subjects, the longest ones first, on the device; starts: where in `codes` each begins; lengths: of each."""
    lanes = backend.lanes_16bit
    sizes = lengths[::lanes].astype(np.int64)
    if backend.warp_width == 1:
        sizes = -(-sizes // BLOCK_COLUMNS) * BLOCK_COLUMNS
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    letters = backend.empty(int(offsets[-1]) * lanes, np.uint8)
    begins = backend.to_device(offsets)
    backend.launch(
        _INTERLEAVE,
        len(sizes),
        codes=backend.to_device(codes),
        starts=backend.to_device(starts),
        lengths=backend.to_device(lengths.astype(np.int32)),
        columns=begins,
        letters=letters,
        subjects=len(lengths),
    )
    numbers = backend.to_device(np.arange(len(sizes), dtype=np.int32))
    return InterleavedSubjects(
        letters, len(lengths), offsets, begins[:-1], backend.to_device(sizes.astype(np.int32)), numbers
    )
