"""Read a device array from the host in parts, by any number of threads."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Array, Backend
from readmap.backend.buffers import BufferPool

BUFFERS = 12  # maximum number of parts on the host at once


class DeviceArrayReader:
    """A contiguous device array, on which no other thread works, that the host reads in parts of `max_bytes`."""

    def __init__(self, array: Array, max_bytes: int, backend: Backend) -> None:
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        self.shape: tuple[int, ...] = array.shape
        self._bytes, self._backend = array.reshape(-1).view(np.uint8), backend
        self._pool = BufferPool(backend.host_buffer, max_bytes, BUFFERS)

    @contextlib.contextmanager
    def read_bytes(self, start: int, end: int) -> Iterator[NDArray[np.uint8]]:
        """Copy the bytes [start, end) to a host buffer, uint8 [end - start], which is valid inside the context."""
        with contextlib.ExitStack() as stack:
            with self._backend.thread_stream():
                buffer, wait = self._backend.download(self._bytes[start:end], self._pool)
                stack.callback(buffer.release)
                wait()
            yield buffer.data[: end - start]
