"""An array on a device -> the host's memory, some of its bytes at a time, by whichever threads want them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Array, Backend
from readmap.backend.buffers import BufferPool

#: Buffers: so many threads have some of the bytes at once.
BUFFERS = 12


class DistantArray:
    """An array of which the host is to see all, but need not hold it.

    dtype, shape: the array's.
    """

    def __init__(self, array: Array, most: int, backend: Backend) -> None:
        """array: contiguous; what is launched by others must have ended. most: bytes that are wanted together."""
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        self.shape: tuple[int, ...] = array.shape
        self._bytes, self._backend = array.reshape(-1).view(np.uint8), backend
        self._pool = BufferPool(backend.host_buffer, most, BUFFERS)

    @contextlib.contextmanager
    def bytes(self, begin: int, end: int) -> Iterator[NDArray[np.uint8]]:
        """Meanwhile these bytes are in the host's memory, uint8 [end - begin]."""
        with contextlib.ExitStack() as held:
            with self._backend.own_stream():
                buffer, arrived = self._backend.download(self._bytes[begin:end], self._pool)
                held.callback(buffer.release)
                arrived()
            yield buffer.data[: end - begin]
