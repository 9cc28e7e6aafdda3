"""Copy large arrays between pageable host memory and a GPU: several threads, each with pinned buffers and a stream."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Bytes of a buffer, and buffers of a thread: it fills or empties one while another is being copied.
BUFFER_BYTES, BUFFERS = 2 << 20, 2
MIN_STAGED_BYTES = 8 << 20  # smaller arrays are copied directly
MAX_THREADS = 12  # maximum number of threads: one thread fills its buffers more slowly than the link copies them


class _Worker:
    """The stream and pinned buffers of one thread, each buffer with the event that ends its last copy."""

    def __init__(self, cuda: Any) -> None:
        self.stream = cuda.Stream(non_blocking=True)
        # The kind is inferred from the addresses: a CuPy array may lie in host memory.
        self._copy, self._kind = cuda.runtime.memcpyAsync, cuda.runtime.memcpyDefault
        self._buffers = []
        for _ in range(BUFFERS):
            memory = cuda.alloc_pinned_memory(BUFFER_BYTES)
            self._buffers.append((np.frombuffer(memory, np.uint8, BUFFER_BYTES), cuda.Event(disable_timing=True)))

    def send(self, source: Bytes, target: int) -> None:
        """Copy bytes to a device address through the pinned buffers, asynchronously; `source` may then be changed."""
        for start, (buffer, copied) in zip(range(0, len(source), BUFFER_BYTES), cycle(self._buffers), strict=False):
            copied.synchronize()
            part = source[start : start + BUFFER_BYTES]
            buffer[: len(part)] = part
            self._copy(target + start, buffer.ctypes.data, len(part), self._kind, self.stream.ptr)
            copied.record(self.stream)

    def receive(self, target: Bytes, source: int) -> None:
        """Copy bytes from a device address to `target` through the pinned buffers, and wait for them."""
        pending: deque[tuple[Bytes, Bytes, Any]] = deque()
        for start, (buffer, copied) in zip(range(0, len(target), BUFFER_BYTES), cycle(self._buffers), strict=False):
            if len(pending) == BUFFERS:
                _empty(*pending.popleft())
            part = target[start : start + BUFFER_BYTES]
            self._copy(buffer.ctypes.data, source + start, len(part), self._kind, self.stream.ptr)
            copied.record(self.stream)
            pending.append((part, buffer, copied))
        for copy in pending:
            _empty(*copy)


def _empty(part: Bytes, buffer: Bytes, copied: Any) -> None:
    copied.synchronize()
    part[:] = buffer[: len(part)]


class Staging:
    """Staged copies to and from one device; threads and buffers are created on first use."""

    def __init__(self, cupy: Any, device: Any, threads: int) -> None:
        self._cuda, self._device, self._threads = cupy.cuda, device, min(threads, MAX_THREADS)
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()

    def send(self, array: np.ndarray[Any, Any], target: Any) -> None:
        """Copy to a device array; later launches wait for the copy, and `array` may be changed after the return."""
        self._copy(_Worker.send, array, target)

    def receive(self, array: np.ndarray[Any, Any], source: Any) -> None:
        """Copy a device array, as earlier launches leave it, into a host array, which is complete on return."""
        self._copy(_Worker.receive, array, source)

    def _copy(self, copy: Callable[[_Worker, Bytes, int], None], array: np.ndarray[Any, Any], on_device: Any) -> None:
        """Copy between a host and a device array of equal size, a part per worker; copy: _Worker.send or receive."""
        with self._lock:
            if not self._workers:
                self._workers = [_Worker(self._cuda) for _ in range(self._threads)]
                self._pool = ThreadPoolExecutor(self._threads, "staging", self._device.use)
            data, current = array.reshape(-1).view(np.uint8), self._cuda.get_current_stream()
            before = current.record()  # earlier launches may still read or write the device array
            size = max(-(-len(data) // len(self._workers) // BUFFER_BYTES), 1) * BUFFER_BYTES
            copies = []
            for worker, start in zip(self._workers, range(0, len(data), size), strict=False):
                worker.stream.wait_event(before)
                part = data[start : start + size]
                copies.append((worker, self._pool.submit(copy, worker, part, on_device.data.ptr + start)))
            for worker, done in copies:
                done.result()
                current.wait_event(worker.stream.record())
