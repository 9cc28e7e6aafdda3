"""Asynchronous calls of the CUDA driver API through ctypes, without releasing the GIL.

A thread that releases the GIL has to wait for it again. With four threads that launched some hundred kernels for each
chunk of reads on two GPUs, that waiting took half of their time.
"""

import ctypes
from collections import defaultdict, deque
from collections.abc import Callable
from ctypes import c_size_t, c_ubyte, c_uint, c_void_p
from typing import Any

from readmap.driver import LIBRARY

NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: the calling thread has no context yet
NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING

#: The driver queues host-to-device copies up to this size without blocking; larger copies block.
MAX_QUEUED_BYTES = 64 << 10


class CudaDriver:
    """Driver functions on the calling thread's current device and stream. Errors raise CuPy's CUDADriverError."""

    def __init__(self, cupy: Any) -> None:
        self._cuda = cupy.cuda
        queued, blocking = ctypes.PyDLL(LIBRARY), ctypes.CDLL(LIBRARY)  # PyDLL keeps the GIL
        self._launch, self._fill, self._copy = queued.cuLaunchKernel, queued.cuMemsetD8Async, queued.cuMemcpyAsync
        self._send, self._fetch = blocking.cuMemcpyHtoDAsync_v2, blocking.cuMemcpyDtoHAsync_v2
        self._send_small = queued.cuMemcpyHtoDAsync_v2
        self._wait = blocking.cuStreamSynchronize
        self._create_event, self._record_event = queued.cuEventCreate, queued.cuEventRecord
        self._wait_event = blocking.cuEventSynchronize
        self._launch.argtypes = [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p]
        self._fill.argtypes = [c_void_p, c_ubyte, c_size_t, c_void_p]
        self._wait.argtypes = self._wait_event.argtypes = [c_void_p]
        self._create_event.argtypes, self._record_event.argtypes = [c_void_p, c_uint], [c_void_p, c_void_p]
        for function in (self._send, self._send_small, self._fetch, self._copy):
            function.argtypes = [c_void_p, c_void_p, c_size_t, c_void_p]
        # Idle events by device: creating an event takes longer than downloading a piece of records.
        self._events: defaultdict[int, deque[c_void_p]] = defaultdict(deque)

    def launch(self, function: int, blocks: int, threads: int, arguments: Any) -> None:
        """Launch a kernel on a one-dimensional grid; arguments: a ctypes array with the address of each argument."""
        stream = self._cuda.get_current_stream().ptr
        self._call_driver(self._launch, function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, None)

    def fill(self, target: int, value: int, nbytes: int) -> None:
        """Set `nbytes` bytes at a device address to one value."""
        self._call_driver(self._fill, target, value, nbytes, self._cuda.get_current_stream().ptr)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within device memory, or between device memory and pinned host memory."""
        if nbytes:
            self._call_driver(self._copy, target, source, nbytes, self._cuda.get_current_stream().ptr)

    def synchronize(self) -> None:
        self._call_driver(self._wait, self._cuda.get_current_stream().ptr)

    def record_event(self) -> Callable[[], None]:
        """Record an event on the stream; return a function, to be called once, that waits for it."""
        free = self._events[self._cuda.runtime.getDevice()]
        try:
            event = free.popleft()
        except IndexError:
            self._call_driver(self._create_event, ctypes.byref(event := c_void_p()), NO_TIMING)
        self._call_driver(self._record_event, event, self._cuda.get_current_stream().ptr)

        def wait() -> None:
            self._call_driver(self._wait_event, event)
            free.append(event)

        return wait

    def copy_from_host(self, target: int, source: int, nbytes: int) -> None:
        """Copy from a host to a device address; pageable source memory may be changed after the return.

        On the default stream this waits for the copy, because the threads' non-blocking streams do not wait for it.
        """
        stream = self._cuda.get_current_stream().ptr
        if nbytes:
            self._call_driver(
                self._send_small if nbytes <= MAX_QUEUED_BYTES else self._send, target, source, nbytes, stream
            )
        if not stream:
            self.synchronize()

    def copy_to_host(self, target: int, source: int, nbytes: int) -> None:
        """Copy to the host; in pageable memory the bytes are complete on return."""
        if nbytes:
            self._call_driver(self._fetch, target, source, nbytes, self._cuda.get_current_stream().ptr)

    def _call_driver(self, function: Any, *arguments: Any) -> None:
        """Call a driver function, with the device's primary context current. Raises CUDADriverError."""
        status = function(*arguments)
        if status == NO_CONTEXT:
            self._cuda.runtime.free(0)  # makes the device's primary context current in this thread
            status = function(*arguments)
        if status:
            raise self._cuda.driver.CUDADriverError(status)
