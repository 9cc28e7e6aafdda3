"""Count and select flagged elements on the device (stream compaction, as cub::DeviceSelect::Flagged)."""

from __future__ import annotations

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

#: The mask of all bits.
ANY_FLAG = 255

_ADD, _COUNT = (Kernel("common/compaction", f"{what}_marked") for what in ("add", "count"))
_LIST = Kernel("common/compaction", "select_flagged")
_BLOCK = constant("common/compaction.cu", "BLOCK")


def count_flagged(marks: Array, mask: int, backend: Backend) -> int:
    """Return how many of the uint8 flags have a bit of the mask."""
    if len(marks) <= backend.host_threshold:
        return int(np.count_nonzero(marks & mask))
    total = backend.full(1, 0, np.uint64)
    add_flagged_count(marks, mask, total, backend)
    return int(backend.to_host(total)[0])


def add_flagged_count(marks: Array, mask: int, total: Array, backend: Backend) -> None:
    """Add the number of uint8 flags with a bit of the mask to `total`, uint64 [1] on the device, asynchronously."""
    if len(marks) <= backend.host_threshold:
        total += np.uint64(np.count_nonzero(marks & mask))
        return
    backend.launch(_ADD, -(-len(marks) // _BLOCK), marks=marks, total=total, size=len(marks), mask=mask)


def select_flagged(marks: Array, mask: int, backend: Backend, number: int = 0) -> Array:
    """Return the ascending indices, int32, of the uint8 flags with a bit of the mask; `number` is added to each."""
    if len(marks) <= backend.host_threshold:
        return (np.flatnonzero(marks & mask) + number).astype(np.int32)
    ends = scan_flagged(marks, mask, backend)
    marked = backend.empty(backend.total(ends), np.int32)
    select_flagged_into(marks, mask, ends, marked, backend, number)
    return marked


def scan_flagged(marks: Array, mask: int, backend: Backend) -> Array:
    """Return the inclusive sum, over blocks, of the flags with a bit of the mask: int64 [blocks]."""
    size = len(marks)
    counts = backend.empty(-(-size // _BLOCK), np.int64)
    backend.launch(_COUNT, len(counts), marks=marks, counts=counts, size=size, mask=mask)
    return backend.inclusive_sum(counts)


def select_flagged_into(marks: Array, mask: int, ends: Array, marked: Array, backend: Backend, number: int = 0) -> None:
    """Write the selected indices to `marked`, int32, up to its capacity; ends: from scan_flagged. Asynchronous."""
    arguments = {"marks": marks, "ends": ends, "marked": marked, "size": len(marks), "most": len(marked)}
    backend.launch(_LIST, len(ends), **arguments, mask=mask, number=number)
