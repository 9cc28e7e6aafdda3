"""Memory for the records of runs, which grows as they come."""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

from readmap.backend.buffers import Bytes

#: Bytes that it begins with; it doubles as they come.
FIRST_BYTES = 64 << 20


class Memory:
    """Bytes that grow where they are.

    bytes: uint8, of which those that have never been written take no memory.
    """

    def __init__(self) -> None:
        self._map: mmap.mmap | None = None
        self.bytes: Bytes = np.empty(0, np.uint8)

    def grow(self, size: int, most: int) -> bool:
        """Whether there are so many bytes, after growing to no more than `most`, or to `size` where that is more."""
        if size <= len(self.bytes):
            return True
        wanted = max(size, min(max(2 * len(self.bytes), FIRST_BYTES), most))
        self.bytes = np.empty(0, np.uint8)  # a map whose bytes are in use cannot be moved
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
        """Let go of them, as soon as nobody looks at them any more."""
        self.bytes = np.empty(0, np.uint8)
        self._map = None  # not closed: an error that broke a merge off still refers to the bytes
