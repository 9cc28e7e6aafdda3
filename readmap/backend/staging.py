"""Large arrays to a GPU: through page-locked buffers, which several threads fill while others are sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np

#: Bytes of a buffer, and how many there are. What is smaller than one goes the direct way.
BUFFER_BYTES, BUFFERS = 16 << 20, 3

#: Threads that fill a buffer: one alone is slower than the copy to the device.
FILLING = 12


class Staging:
    """Of the GPU that is current; its buffers are allocated at the first use."""

    def __init__(self, cupy: Any, threads: int) -> None:
        self._cupy = cupy
        self._threads = min(threads, FILLING)
        self._buffers: list[tuple[np.ndarray[Any, np.dtype[np.uint8]], Any]] = []
        self._pool: ThreadPoolExecutor | None = None

    def send(self, array: np.ndarray[Any, Any], target: Any) -> None:
        """Copy to an array on the device; later launches wait for it, the caller does not."""
        cuda, source = self._cupy.cuda, array.reshape(-1).view(np.uint8)
        device = target.reshape(-1).view(np.uint8)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "staging")
            self._stream = cuda.Stream(non_blocking=True)
            for _ in range(BUFFERS):
                memory = cuda.alloc_pinned_memory(BUFFER_BYTES)
                self._buffers.append((np.frombuffer(memory, np.uint8, BUFFER_BYTES), cuda.Event(disable_timing=True)))
        current = cuda.get_current_stream()
        self._stream.wait_event(current.record())  # what held the target's memory before may still be in use
        for begin, (buffer, sent) in zip(range(0, len(source), BUFFER_BYTES), cycle(self._buffers), strict=False):
            sent.synchronize()
            part = source[begin : begin + BUFFER_BYTES]
            self._fill(buffer[: len(part)], part)
            device[begin : begin + len(part)].set(buffer[: len(part)], stream=self._stream)
            sent.record(self._stream)
        current.wait_event(self._stream.record())

    def _fill(self, buffer: np.ndarray[Any, Any], part: np.ndarray[Any, Any]) -> None:
        assert self._pool is not None
        size = -(-len(part) // self._threads)
        slices = [slice(begin, begin + size) for begin in range(0, len(part), size)]
        list(self._pool.map(lambda taken: np.copyto(buffer[taken], part[taken]), slices))
