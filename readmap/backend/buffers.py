"""A pool of reusable buffers, shared by the reader and the consumers of what it read."""

import contextlib
import queue
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

FIRST_BYTES, GROWTH = 8 << 20, 4  # size of the first buffers, and the factor by which `grow` enlarges later buffers
SLACK = 8  # a buffer that exceeds the pool's size is allocated with 1/SLACK to spare


class ClosedError(Exception):
    """A buffer was requested from a closed pool."""


class BufferPool:
    """At most `count` buffers, allocated on first use, so that the memory of an endless input stays bounded.

    Parameters
    ----------
    allocate : returns uint8 [nbytes], C-contiguous, in pinned memory if a GPU reads it. Called by the taking thread.
    nbytes : buffer size after enough calls of `grow`. Buffers start small, because pinned memory is slow to allocate.
    count : number of buffers in circulation.
    first_bytes : size of the first buffers; default FIRST_BYTES.
    """

    def __init__(
        self, allocate: Callable[[int], Bytes], nbytes: int, count: int, first_bytes: int | None = None
    ) -> None:
        self._allocate = allocate
        self._nbytes, self._max_bytes = min(nbytes, FIRST_BYTES if first_bytes is None else first_bytes), nbytes
        self._free: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        self._is_closed = False
        for _ in range(count):
            self._free.put(Buffer(self))

    def take(self, nbytes: int = 0) -> "Buffer":
        """Wait for a buffer of at least `nbytes` undefined bytes; return it with one reference. Raises ClosedError."""
        buffer = self._free.get()
        if buffer is None:
            self._free.put(None)  # wake the next waiting thread
            raise ClosedError
        if len(buffer.data) < max(nbytes, self._nbytes):
            buffer.data = np.empty(0, np.uint8)  # free the smaller array before the larger one is allocated
            try:
                # With slack, a slightly larger request fits next time.
                buffer.data = self._allocate(max(nbytes + nbytes // SLACK, self._nbytes))
            except BaseException:
                self.give_back(buffer)  # other threads may be waiting for it
                raise
        buffer.retain()
        return buffer

    def grow(self) -> None:
        """Enlarge the buffers of later calls of `take`."""
        self._nbytes = min(GROWTH * self._nbytes, self._max_bytes)

    def give_back(self, buffer: "Buffer") -> None:
        if not self._is_closed:
            self._free.put(buffer)

    def close(self) -> None:
        """Free all idle buffers, and make `take` raise ClosedError; buffers in use are freed on release."""
        self._is_closed = True
        while not self._free.empty():
            with contextlib.suppress(queue.Empty):
                self._free.get_nowait()
        self._free.put(None)


class Buffer:
    """Reference-counted bytes, `data` uint8 [nbytes]; the last release returns the buffer to its pool."""

    def __init__(self, pool: BufferPool) -> None:
        self.data: Bytes = np.empty(0, np.uint8)
        self._pool = pool
        self._references = 0
        self._is_detached = False
        self._lock = threading.Lock()

    def retain(self) -> None:
        with self._lock:
            self._references += 1

    def detach(self) -> None:
        """Add a long-lived reference: the pool gets a new buffer instead of this one."""
        with self._lock:
            self._references += 1
            if self._is_detached:
                return
            self._is_detached = True
        self._pool.give_back(Buffer(self._pool))

    def release(self) -> None:
        """Drop a reference. Raises ValueError if all were dropped: another thread may have the buffer by then."""
        with self._lock:
            if not self._references:
                raise ValueError("a buffer was released more often than held")
            self._references -= 1
            is_free = not self._references
        if is_free and not self._is_detached:
            self._pool.give_back(self)
