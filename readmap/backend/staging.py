"""Large arrays to a GPU and back: threads with page-locked buffers and a stream of their own carry a part each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Bytes of a buffer, and how many a thread has: it fills or empties one while another is under way.
BUFFER_BYTES, BUFFERS = 2 << 20, 2

#: What is smaller goes the direct way.
LEAST_BYTES = 8 << 20

#: Threads: one alone copies to or from its buffers slower than the link.
CARRIERS = 12


class _Carrier:
    """A thread's stream and buffers, each with the event that says that its copy has ended."""

    def __init__(self, cuda: Any) -> None:
        self.stream = cuda.Stream(non_blocking=True)
        # The driver sees where an address is: what CuPy holds may be memory of the host.
        self._copy, self._kind = cuda.runtime.memcpyAsync, cuda.runtime.memcpyDefault
        self._buffers = []
        for _ in range(BUFFERS):
            memory = cuda.alloc_pinned_memory(BUFFER_BYTES)
            self._buffers.append((np.frombuffer(memory, np.uint8, BUFFER_BYTES), cuda.Event(disable_timing=True)))

    def send(self, source: Bytes, target: int) -> None:
        """Copy bytes to an address on the device."""
        for begin, (buffer, copied) in zip(range(0, len(source), BUFFER_BYTES), cycle(self._buffers), strict=False):
            copied.synchronize()
            part = source[begin : begin + BUFFER_BYTES]
            buffer[: len(part)] = part
            self._copy(target + begin, buffer.ctypes.data, len(part), self._kind, self.stream.ptr)
            copied.record(self.stream)

    def receive(self, target: Bytes, source: int) -> None:
        """Copy bytes from an address on the device, and wait for them."""
        coming: deque[tuple[Bytes, Bytes, Any]] = deque()
        for begin, (buffer, copied) in zip(range(0, len(target), BUFFER_BYTES), cycle(self._buffers), strict=False):
            if len(coming) == BUFFERS:
                _empty(*coming.popleft())
            part = target[begin : begin + BUFFER_BYTES]
            self._copy(buffer.ctypes.data, source + begin, len(part), self._kind, self.stream.ptr)
            copied.record(self.stream)
            coming.append((part, buffer, copied))
        for one in coming:
            _empty(*one)


def _empty(part: Bytes, buffer: Bytes, copied: Any) -> None:
    copied.synchronize()
    part[:] = buffer[: len(part)]


class Staging:
    """The way of large arrays to and from one device; threads and buffers are made at the first use."""

    def __init__(self, cupy: Any, device: Any, threads: int) -> None:
        self._cuda, self._device, self._threads = cupy.cuda, device, min(threads, CARRIERS)
        self._carriers: list[_Carrier] = []
        self._lock = threading.Lock()

    def send(self, array: np.ndarray[Any, Any], target: Any) -> None:
        """Copy to an array on the device; later launches wait for it, and the caller may change its own at once."""
        self._carry(_Carrier.send, array, target)

    def receive(self, array: np.ndarray[Any, Any], source: Any) -> None:
        """Copy from an array on the device, as the launches before leave it; all is there at the end."""
        self._carry(_Carrier.receive, array, source)

    def _carry(self, way: Callable[[_Carrier, Bytes, int], None], array: np.ndarray[Any, Any], on_device: Any) -> None:
        """Both are contiguous, and of the same bytes; one thread at a time has the carriers."""
        with self._lock:
            self._carry_alone(way, array, on_device)

    def _carry_alone(
        self, way: Callable[[_Carrier, Bytes, int], None], array: np.ndarray[Any, Any], on_device: Any
    ) -> None:
        if not self._carriers:
            self._carriers = [_Carrier(self._cuda) for _ in range(self._threads)]
            self._pool = ThreadPoolExecutor(self._threads, "staging", self._device.use)
        data, current = array.reshape(-1).view(np.uint8), self._cuda.get_current_stream()
        before = current.record()  # what was launched may still read or write the device's bytes
        size = max(-(-len(data) // len(self._carriers) // BUFFER_BYTES), 1) * BUFFER_BYTES
        carrying = []
        for carrier, begin in zip(self._carriers, range(0, len(data), size), strict=False):
            carrier.stream.wait_event(before)
            part, address = data[begin : begin + size], on_device.data.ptr + begin
            carrying.append((carrier, self._pool.submit(way, carrier, part, address)))
        for carrier, carried in carrying:
            carried.result()
            current.wait_event(carrier.stream.record())
