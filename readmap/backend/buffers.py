"""A fixed number of buffers that go round between the reader and whoever uses what it read."""

import contextlib
import queue
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

#: The size of the first buffers, and by how much the next ones are larger.
FIRST_BYTES, GROWTH = 8 << 20, 4

#: The part of its size that a buffer has more where one is wanted that is larger than the least.
SLACK = 8


class ClosedError(Exception):
    """A buffer is wanted of a pool that has been closed."""


class BufferPool:
    """At most `count` buffers, allocated when first needed: the memory of an input that never ends stays bounded.

    allocate: returns uint8 [nbytes], C-contiguous; pinned memory where a GPU reads it. It is called on the thread
    that takes a buffer. nbytes: the least size of a buffer, once `grow` has been called often enough: pinned memory
    takes time to allocate, and little input needs little. first_bytes: the least size of the first ones; default, a
    little.
    """

    def __init__(
        self, allocate: Callable[[int], Bytes], nbytes: int, count: int, first_bytes: int | None = None
    ) -> None:
        self._allocate = allocate
        self._nbytes, self._most = min(nbytes, FIRST_BYTES if first_bytes is None else first_bytes), nbytes
        self._free: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        self._is_closed = False
        for _ in range(count):
            self._free.put(Buffer(self))

    def take(self, nbytes: int = 0) -> "Buffer":
        """A buffer of at least `nbytes` bytes, held once. Waits until one is free. Its bytes are undefined.

        Raises ClosedError where the pool is closed, meanwhile or before.
        """
        buffer = self._free.get()
        if buffer is None:
            self._free.put(None)  # for others that wait
            raise ClosedError
        if len(buffer.data) < max(nbytes, self._nbytes):
            buffer.data = np.empty(0, np.uint8)  # frees the smaller one before the larger one is allocated
            try:
                # Some more, so that the next one that is a little larger fits too.
                buffer.data = self._allocate(max(nbytes + nbytes // SLACK, self._nbytes))
            except BaseException:
                self.give_back(buffer)  # others wait for it
                raise
        buffer.hold()
        return buffer

    def grow(self) -> None:
        """Lets the buffers that are taken from now on be larger."""
        self._nbytes = min(GROWTH * self._nbytes, self._most)

    def give_back(self, buffer: "Buffer") -> None:
        """Lets the next `take` have it."""
        if not self._is_closed:
            self._free.put(buffer)

    def close(self) -> None:
        """Frees the buffers, those that are held when they are released: they and the pool refer to each other."""
        self._is_closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._free.get_nowait()
        self._free.put(None)


class Buffer:
    """Bytes that several holders share; the last one's release gives it back to the pool.

    data: uint8 [nbytes].
    """

    def __init__(self, pool: BufferPool) -> None:
        self.data: Bytes = np.empty(0, np.uint8)
        self._pool = pool
        self._holders = 0
        self._is_kept = False
        self._lock = threading.Lock()

    def hold(self) -> None:
        """Asks for one more release."""
        with self._lock:
            self._holders += 1

    def keep(self) -> None:
        """Holds it for longer than others wait: meanwhile another one goes round in its place."""
        with self._lock:
            self._holders += 1
            if self._is_kept:
                return
            self._is_kept = True
        self._pool.give_back(Buffer(self._pool))

    def release(self) -> None:
        """Ends one hold. Raises ValueError where there is none: the bytes may be another's by then."""
        with self._lock:
            if not self._holders:
                raise ValueError("a buffer was released more often than held")
            self._holders -= 1
            is_free = not self._holders
        if is_free and not self._is_kept:
            self._pool.give_back(self)
