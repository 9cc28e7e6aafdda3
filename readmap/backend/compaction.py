"""Count and select flagged elements on the device (stream compaction, as cub::DeviceSelect::Flagged)."""

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant

ANY_FLAG = 255  # the mask of all bits
_ADD_COUNT = Kernel("common/compaction", "add_flagged_count")
_COUNT, _SELECT = Kernel("common/compaction", "count_flagged"), Kernel("common/compaction", "select_flagged")
_BLOCK = constant("common/compaction.cu", "BLOCK")


def count_flagged(flags: Array, mask: int, backend: Backend) -> int:
    """Return the number of uint8 flags that have a bit of the mask."""
    if len(flags) <= backend.host_threshold:
        return int(np.count_nonzero(flags & mask))
    total = backend.full(1, 0, np.uint64)
    add_flagged_count(flags, mask, total, backend)
    return int(backend.to_host(total)[0])


def add_flagged_count(flags: Array, mask: int, total: Array, backend: Backend) -> None:
    """Add the number of uint8 flags with a bit of the mask to `total`, uint64 [1] on the device, asynchronously."""
    if len(flags) <= backend.host_threshold:
        total += np.uint64(np.count_nonzero(flags & mask))
        return
    backend.launch(_ADD_COUNT, -(-len(flags) // _BLOCK), flags=flags, total=total, size=len(flags), mask=mask)


def select_flagged(flags: Array, mask: int, backend: Backend, first_index: int = 0) -> Array:
    """Return first_index plus the index, int32 ascending, of each of the uint8 flags that has a bit of the mask."""
    if len(flags) <= backend.host_threshold:
        return (np.flatnonzero(flags & mask) + first_index).astype(np.int32)
    ends = scan_flagged(flags, mask, backend)
    selected = backend.empty(backend.total(ends), np.int32)
    select_flagged_into(selected, flags, mask, ends, backend, first_index)
    return selected


def scan_flagged(flags: Array, mask: int, backend: Backend) -> Array:
    """Count the flags with a bit of the mask in each block; return the inclusive prefix sum, int64 [blocks]."""
    size = len(flags)
    counts = backend.empty(-(-size // _BLOCK), np.int64)
    backend.launch(_COUNT, len(counts), flags=flags, counts=counts, size=size, mask=mask)
    return backend.inclusive_sum(counts)


def select_flagged_into(
    selected: Array, flags: Array, mask: int, ends: Array, backend: Backend, first_index: int = 0
) -> None:
    """Write first_index + each flagged index that fits to `selected`, int32, asynchronously; ends: of scan_flagged."""
    arrays = {"flags": flags, "ends": ends, "selected": selected}
    shape = {"size": len(flags), "capacity": len(selected)}
    backend.launch(_SELECT, len(ends), **arrays, **shape, mask=mask, first_index=first_index)
