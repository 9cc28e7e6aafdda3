"""The CPU: kernels compiled by the host's compiler, a slice of the items a call, the slices on threads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation import cache
from readmap.backend.compilation import host_compiler as compiler
from readmap.backend.compilation.signatures import Types, in_memory, variant
from readmap.backend.machine import available_processors
from readmap.errors import BackendError

#: Items of a first call, but one of a grouped kernel, which may take long, and the seconds that calls are to last:
#: short enough for an interrupt to be heard, long enough for the calls themselves not to count.
SLICE, CALL_SECONDS = 256, 0.005


#: Bytes of a chunk at least, and for each thread: what a chunk costs beside its reads, threads do not share.
CHUNK_BYTES, THREAD_BYTES = 8 << 20, 4 << 20

#: Bytes that a thread copies of a file between two moments at which an interrupt is heard.
PART_BYTES = 16 << 20

#: Linux's MADV_POPULATE_READ, which the module mmap does not name.
_POPULATE_READ = 22


class CpuBackend(Backend):
    """Threads of this process. ctypes drops the interpreter's lock during a call, so slices run in parallel."""

    name = "cpu"
    xp = np
    lanes = 1
    narrow_lanes = 16
    wide_lanes = 8
    traced_lanes = 16
    most_table_bases = 12  # as on disk: 13 make mapping a tenth faster, and take as long as that of a million reads
    scratch_bytes = 64 << 20
    host_bytes = 0
    memory_error = MemoryError

    def __init__(self, threads: int | None = None) -> None:
        self.threads = self.groups = self.resident_groups = threads or available_processors()
        self.chunk_bytes = max(CHUNK_BYTES, THREAD_BYTES * self.threads)
        self.chunks_at_once = max(min(self.threads // 2, 2), 1)  # so that no thread waits while one prepares a launch
        self._pool = ThreadPoolExecutor(self.threads, "readmap") if self.threads > 1 else None

    def own_stream(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def keep_own_stream(self) -> None:
        pass

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        return np.empty(shape, dtype)

    def host_buffer(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return np.empty(size, np.uint8)

    def host_array(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        return np.empty(shape, dtype)

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        return array

    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def hold(self, array: np.ndarray[Any, Any]) -> Array:
        # NumPy asks for large pages, which a mapped file does not have.
        held = np.empty(array.shape, array.dtype)
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            self._copy(array, array.base, held)
        else:
            held[...] = array
        return held

    def _copy(self, mapped: np.memmap[Any, Any], pages: mmap.mmap, held: np.ndarray[Any, Any]) -> None:
        """Copy a mapped file by threads, and let go of its pages, which would be in this process's memory too.

        It stays the file that was mapped, whatever has its name meanwhile.
        """
        source, target = (array.reshape(-1).view(np.uint8) for array in (mapped, held))
        first = mapped.offset % mmap.ALLOCATIONGRANULARITY

        def copy(begin: int) -> None:
            end = min(begin + PART_BYTES, len(source))
            start = (first + begin) // mmap.PAGESIZE * mmap.PAGESIZE
            region = start, first + end - start
            with contextlib.suppress(OSError):  # an older kernel faults page by page
                pages.madvise(_POPULATE_READ, *region)
            target[begin:end] = source[begin:end]
            pages.madvise(mmap.MADV_DONTNEED, *region)

        parts = range(0, len(source), PART_BYTES)
        for _ in self._pool.map(copy, parts) if self._pool else map(copy, parts):
            pass

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(array)

    def download(self, array: Array, pool: BufferPool) -> Buffer:
        buffer = pool.take(array.nbytes)
        buffer.data[: array.nbytes] = array
        return buffer

    def release_memory(self) -> None:
        pass

    def is_compiled(self, module: str, types: Types) -> bool:
        return cache.holds(compiler.library_name(module, types, compiler.level()))

    def load_ahead(self, types: Types, rooms: Sequence[str]) -> None:
        pass

    def compile(self, module: str, types: Types) -> None:
        compiler.library(module, types)

    def synchronize(self) -> None:
        pass

    def run(self, kernel: Kernel, types: Types, count: int, arguments: list[Any]) -> None:
        function = _function(kernel, types)
        values = [in_memory(argument) for argument in arguments]
        slices = _Slices(
            count, self.threads, 1 if kernel.grouped or kernel.by_block else SLICE, 1 if kernel.in_order else count
        )
        if self._pool is None or count == 1:
            slices.run(function, values)
            return
        running = []
        try:
            for _ in range(self.threads):
                running.append(self._pool.submit(slices.run, function, values))
            for done in running:
                done.result()
        except BaseException:
            # Whoever is interrupted drops the arrays, and the calls that are under way still write to them.
            slices.stop()
            wait(running)
            raise


class _Slices:
    """The items of a launch, taken by threads in slices that grow until a call takes its time."""

    def __init__(self, count: int, threads: int, first: int, most: int) -> None:
        """first: items of a thread's first call. most: of any."""
        self._next, self._count, self._threads, self._first, self._most = 0, count, threads, first, most
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Leave the rest: an interrupt does not wait for it."""
        with self._lock:
            self._next = self._count

    def run(self, function: Any, values: list[Any]) -> None:
        """Call the function on slices until none are left."""
        size = least = max(min(self._first, self._count // (8 * self._threads), self._most), 1)
        while True:
            with self._lock:
                begin = self._next
                # What is left is divided so that the threads end together.
                end = min(begin + max(min(size, (self._count - begin) // (2 * self._threads)), least), self._count)
                self._next = end
            if begin == end:
                return
            began = time.perf_counter()
            function(begin, end, *values)
            taken = time.perf_counter() - began
            size = max(min(int((end - begin) * CALL_SECONDS / max(taken, 1e-9)), 2 * size, self._most), least)


@functools.cache
def host_backend(module: str, threads: int) -> CpuBackend | None:
    """The host, where it has the module's kernels or a compiler."""
    backend = CpuBackend(threads)
    try:
        backend.compile(module, ())
    except BackendError:
        return None
    return backend


@functools.cache
def _library(module: str, types: Types) -> ctypes.CDLL:
    return ctypes.CDLL(str(compiler.library(module, types)))


@functools.cache
def _function(kernel: Kernel, types: Types) -> Any:
    function = getattr(_library(kernel.module, variant(kernel.module, types)), kernel.name)
    function.restype = None
    parameters = (parameter.ctype for parameter in kernel.signature.parameters)
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, *parameters]
    return function
