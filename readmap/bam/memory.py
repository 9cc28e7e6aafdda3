"""Memory for sorting records: its default size, and a buffer that grows in place."""

import contextlib
import mmap

import numpy as np

from readmap.backend.buffers import Bytes
from readmap.backend.machine import available_memory

#: Share of the available memory to sort in by default, and bytes if the available memory is unknown.
SORT_SHARE, SORT_MEMORY = 4, 2 << 30
#: Initial size of a buffer, which doubles when it is full.
INITIAL_BYTES = 64 << 20


def sort_memory_bytes(limit: int | None) -> int:
    """Return the bytes of memory to sort records in: `limit`, or by default a quarter of the available memory."""
    available = available_memory()
    return limit or (SORT_MEMORY if available is None else available // SORT_SHARE)


class GrowableBuffer:
    """A buffer that grows in place. Its bytes, uint8, take no memory until they have been written."""

    def __init__(self) -> None:
        self._map: mmap.mmap | None = None
        self.bytes: Bytes = np.empty(0, np.uint8)

    def grow(self, size: int, max_size: int) -> bool:
        """Grow to at least `size` bytes, or up to `max_size` if that is more; return False if memory is exhausted."""
        if size <= len(self.bytes):
            return True
        wanted = max(size, min(max(2 * len(self.bytes), INITIAL_BYTES), max_size))
        self.bytes = np.empty(0, np.uint8)  # mmap cannot resize a map that is referenced
        with contextlib.suppress(OSError):
            if self._map is None:
                self._map = mmap.mmap(-1, wanted, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self._map.madvise(mmap.MADV_HUGEPAGE)
            else:
                self._map.resize(wanted)
        if self._map is not None:
            self.bytes = np.frombuffer(self._map, np.uint8)
        return size <= len(self.bytes)

    def close(self) -> None:
        """Release the memory when the last reference to it is gone."""
        self.bytes = np.empty(0, np.uint8)
        self._map = None  # not closed: the traceback of a failed merge may still refer to the bytes
