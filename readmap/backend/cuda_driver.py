"""NVIDIA's driver, called by itself: what it only takes note of is handed over without giving up Python's lock.

A thread that gives up the lock has to wait for it, and to be woken, wherever others want it too. Where four threads
launched some hundred kernels for each chunk of reads, on two GPUs, that took half of their time.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from collections.abc import Callable
from ctypes import c_size_t, c_ubyte, c_uint, c_void_p
from typing import Any

from readmap.driver import LIBRARY

#: The calling thread has no context yet (CUDA_ERROR_INVALID_CONTEXT).
NO_CONTEXT = 201

#: An event that tells no time (CU_EVENT_DISABLE_TIMING).
NO_TIME = 2

#: From the host's memory so many bytes at most are taken note of; more are waited for.
NOTED_BYTES = 64 << 10


class CudaDriver:
    """Functions of the driver on the calling thread's device; addresses and streams are CUDA's. All raise CuPy's error
    where the driver tells of one."""

    def __init__(self, cupy: Any) -> None:
        self._cuda = cupy.cuda
        noting, waiting = ctypes.PyDLL(LIBRARY), ctypes.CDLL(LIBRARY)
        self._launch, self._fill, self._copy = noting.cuLaunchKernel, noting.cuMemsetD8Async, noting.cuMemcpyAsync
        self._send, self._fetch = waiting.cuMemcpyHtoDAsync_v2, waiting.cuMemcpyDtoHAsync_v2
        self._send_little = noting.cuMemcpyHtoDAsync_v2
        self._wait = waiting.cuStreamSynchronize
        self._make_event, self._record = noting.cuEventCreate, noting.cuEventRecord
        self._wait_for = waiting.cuEventSynchronize
        self._launch.argtypes = [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p]
        self._fill.argtypes = [c_void_p, c_ubyte, c_size_t, c_void_p]
        self._wait.argtypes = self._wait_for.argtypes = [c_void_p]
        self._make_event.argtypes, self._record.argtypes = [c_void_p, c_uint], [c_void_p, c_void_p]
        copies = self._send, self._send_little, self._fetch, self._copy
        for function in copies:
            function.argtypes = [c_void_p, c_void_p, c_size_t, c_void_p]
        # Those that nobody waits for, by device: to make one takes longer than a piece of records takes to come.
        self._events: defaultdict[int, deque[c_void_p]] = defaultdict(deque)

    def launch(self, function: int, blocks: int, threads: int, arguments: Any) -> None:
        """Launch a kernel of so many blocks; arguments: the address of each, an array of ctypes."""
        stream = self._cuda.get_current_stream().ptr
        self._call(self._launch, function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, None)

    def fill(self, target: int, value: int, nbytes: int) -> None:
        """Set so many bytes to one value."""
        self._call(self._fill, target, value, nbytes, self._cuda.get_current_stream().ptr)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device's memory, or between that and page-locked memory."""
        if nbytes:
            self._call(self._copy, target, source, nbytes, self._cuda.get_current_stream().ptr)

    def wait(self) -> None:
        """Wait for all that the stream was given."""
        self._call(self._wait, self._cuda.get_current_stream().ptr)

    def mark(self) -> Callable[[], None]:
        """What waits for all that the stream has been given until now; it is to be called once."""
        free = self._events[self._cuda.runtime.getDevice()]
        try:
            event = free.popleft()
        except IndexError:
            event = c_void_p()
            self._call(self._make_event, ctypes.byref(event), NO_TIME)
        self._call(self._record, event, self._cuda.get_current_stream().ptr)

        def wait() -> None:
            self._call(self._wait_for, event)
            free.append(event)

        return wait

    def send(self, target: int, source: int, nbytes: int) -> None:
        """Copy from the host; memory that is not page-locked may change on return.

        On the stream that all threads have it waits, since their own ones do not wait for that.
        """
        stream = self._cuda.get_current_stream().ptr
        if nbytes:
            self._call(self._send_little if nbytes <= NOTED_BYTES else self._send, target, source, nbytes, stream)
        if not stream:
            self.wait()

    def fetch(self, target: int, source: int, nbytes: int) -> None:
        """Copy to the host; in memory that is not page-locked the bytes are there on return."""
        if nbytes:
            self._call(self._fetch, target, source, nbytes, self._cuda.get_current_stream().ptr)

    def _call(self, function: Any, *arguments: Any) -> None:
        status = function(*arguments)
        if status == NO_CONTEXT:
            self._cuda.runtime.free(0)  # gives the thread that of its device
            status = function(*arguments)
        if status:
            raise self._cuda.driver.CUDADriverError(status)
