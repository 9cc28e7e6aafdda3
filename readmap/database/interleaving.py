"""Interleave the subjects of a database for the lanes of a scan."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

_INTERLEAVE = Kernel("database/scan", "interleave")

#: On the CPU, groups have a multiple of this number of columns.
BLOCK_COLUMNS = constant("database/scan_lanes.cuh", "BLOCK_COLUMNS")


@dataclass(frozen=True)
class InterleavedSubjects:
    """Subjects on a device, sorted by decreasing length, in groups of neighbours that share the lanes of a thread.

    letters: uint8 [columns * lanes], interleaved codes of each group (kernels/database/scan_lanes.cuh). subjects:
    number of subjects; the last group may have fewer subjects than lanes. offsets: int64 [groups + 1] on the host,
    first column of each group. starts, sizes, groups: int64, int32 and int32 [groups] on the device: first column,
    number of columns and index of each group.
    """

    letters: Array
    subjects: int
    offsets: NDArray[np.int64]
    starts: Array
    sizes: Array
    groups: Array

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def longer_than(self, columns: int) -> int:
        """Return the number of groups with more columns; they are the first groups."""
        offsets = self.offsets
        return bisect.bisect_left(range(self.count), True, key=lambda i: offsets[i + 1] - offsets[i] <= columns)


def interleave(
    codes: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[Any], backend: Backend
) -> InterleavedSubjects:
    """Interleave subjects on the device. starts: offset of each subject in `codes`. lengths: decreasing."""
    lanes = backend.lanes_16bit
    sizes = lengths[::lanes].astype(np.int64)
    if backend.warp_width == 1:
        sizes = -(-sizes // BLOCK_COLUMNS) * BLOCK_COLUMNS
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    letters = backend.empty(int(offsets[-1]) * lanes, np.uint8)
    arrays: dict[str, NDArray[Any]] = {"codes": codes, "starts": starts, "columns": offsets}
    arrays["lengths"] = lengths.astype(np.int32)
    inputs = {name: backend.to_device(array) for name, array in arrays.items()}
    backend.launch(_INTERLEAVE, len(sizes), **inputs, letters=letters, subjects=len(lengths))
    groups = (backend.to_device(each.astype(np.int32)) for each in (sizes, np.arange(len(sizes))))
    return InterleavedSubjects(letters, len(lengths), offsets, inputs["columns"][:-1], *groups)
