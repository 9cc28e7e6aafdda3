"""Large arrays to a GPU: several threads, each with page-locked buffers and a stream of its own, send a part each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np

#: Bytes of a buffer, and how many a thread has: it fills one while another is sent.
BUFFER_BYTES, BUFFERS = 2 << 20, 2

#: What is smaller goes the direct way.
LEAST_BYTES = 1 << 20

#: Threads: one alone copies to its buffers slower than they can be sent.
SENDERS = 12


class _Sender:
    """A thread's stream and buffers, each with the event that says that it has been sent."""

    def __init__(self, cuda: Any) -> None:
        self.stream = cuda.Stream(non_blocking=True)
        self._copy, self._to_device = cuda.runtime.memcpyAsync, cuda.runtime.memcpyHostToDevice
        self._buffers = []
        for _ in range(BUFFERS):
            memory = cuda.alloc_pinned_memory(BUFFER_BYTES)
            self._buffers.append((np.frombuffer(memory, np.uint8, BUFFER_BYTES), cuda.Event(disable_timing=True)))

    def send(self, source: np.ndarray[Any, np.dtype[np.uint8]], target: int) -> None:
        """Copy bytes to an address on the device."""
        for begin, (buffer, sent) in zip(range(0, len(source), BUFFER_BYTES), cycle(self._buffers), strict=False):
            sent.synchronize()
            part = source[begin : begin + BUFFER_BYTES]
            buffer[: len(part)] = part
            self._copy(target + begin, buffer.ctypes.data, len(part), self._to_device, self.stream.ptr)
            sent.record(self.stream)


class Staging:
    """The way of large arrays to one device; threads and buffers are made at the first use."""

    def __init__(self, cupy: Any, device: Any, threads: int) -> None:
        self._cuda, self._device, self._threads = cupy.cuda, device, min(threads, SENDERS)
        self._senders: list[_Sender] = []

    def send(self, array: np.ndarray[Any, Any], target: Any) -> None:
        """Copy to an array on the device; later launches wait for it, and the caller may change its own at once."""
        if not self._senders:
            self._senders = [_Sender(self._cuda) for _ in range(self._threads)]
            self._pool = ThreadPoolExecutor(self._threads, "staging", self._device.use)
        source, current = array.reshape(-1).view(np.uint8), self._cuda.get_current_stream()
        free = current.record()  # what held the target's memory before may still be in use
        size = -(-len(source) // len(self._senders) // BUFFER_BYTES) * BUFFER_BYTES
        sending = []
        for sender, begin in zip(self._senders, range(0, len(source), size), strict=False):
            sender.stream.wait_event(free)
            part = source[begin : begin + size]
            sending.append((sender, self._pool.submit(sender.send, part, target.data.ptr + begin)))
        for sender, sent in sending:
            sent.result()
            current.wait_event(sender.stream.record())
