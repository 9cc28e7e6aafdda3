"""The CPU backend: kernels compiled by the host's compiler, run on slices of their items by our own threads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation import cache
from readmap.backend.compilation import host_compiler as compiler
from readmap.backend.compilation.signatures import Bound, GenericTypes, pack_arguments, variant
from readmap.backend.device_counts import BoundedCount, Count
from readmap.backend.machine import available_processors
from readmap.errors import BackendError

#: Number of Items in a thread's first call; of WarpItems and BlockItems a first call takes one, which may take long.
SLICE = 256
INTERRUPT_MS = 50  # milliseconds after which a waiting launch returns to Python, so that interrupts are handled

#: Minimum bytes of a chunk, and bytes per thread: the fixed cost of a chunk is not divided among threads.
CHUNK_BYTES, THREAD_BYTES = 8 << 20, 4 << 20
PART_BYTES = 16 << 20  # bytes of a file that a thread copies between two checks for interrupts
_POPULATE_READ = 22  # Linux's MADV_POPULATE_READ, which the module mmap does not define


class CpuBackend(Backend):
    """Threads of this process, which run kernels without the GIL."""

    name = "cpu"
    xp = np
    host_threshold = 4096
    host_sees_counts = True
    warp_width = 1
    lanes_16bit = 16
    lanes_32bit = 8
    traceback_lanes = 16
    max_table_bases = 12  # as on disk: 13 speed mapping up by a tenth, and take as long to build as mapping 1 M reads
    scratch_bytes = 64 << 20
    driver_host_bytes = 0
    device_errors: tuple[type[Exception], ...] = ()
    memory_error = MemoryError

    def __init__(self, threads: int | None = None) -> None:
        """threads: default, all processors that this process may use."""
        self.threads = self.concurrent_warps = self.resident_warps = threads or available_processors()
        self.seconds_per_module = 1.5 / self.threads
        self.chunk_bytes = max(CHUNK_BYTES, THREAD_BYTES * self.threads)
        self.concurrent_chunks = max(min(self.threads // 2, 2), 1)  # one prepares a launch while another one runs

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        return array

    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def to_device_random_access(self, array: np.ndarray[Any, Any]) -> Array:
        # NumPy asks for huge pages, which a memory-mapped file does not have.
        copy = np.empty(array.shape, array.dtype)
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            self._copy_mapped(array, array.base, copy)
        else:
            copy[...] = array
        return copy

    def _copy_mapped(self, mapped: np.memmap[Any, Any], pages: mmap.mmap, copy: np.ndarray[Any, Any]) -> None:
        """Copy a mapped file to `copy`, even if replaced since; drop its pages: they count as this process's memory."""
        source, target = (array.reshape(-1).view(np.uint8) for array in (mapped, copy))
        offset = mapped.offset % mmap.ALLOCATIONGRANULARITY

        def copy_part(start: int) -> None:
            end = min(start + PART_BYTES, len(source))
            first_page = (offset + start) // mmap.PAGESIZE * mmap.PAGESIZE
            region = first_page, offset + end - first_page
            with contextlib.suppress(OSError):  # older kernels fault page by page
                pages.madvise(_POPULATE_READ, *region)
            target[start:end] = source[start:end]
            pages.madvise(mmap.MADV_DONTNEED, *region)

        with ThreadPoolExecutor(self.threads, "readmap-copy") as pool:
            for _ in pool.map(copy_part, range(0, len(source), PART_BYTES)):
                pass

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(array)

    def copy_to_host(self, target: np.ndarray[Any, Any], array: Array) -> None:
        target[...] = array

    def download(self, array: Array, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        buffer = pool.take(array.nbytes)
        buffer.data[: array.nbytes] = array
        return buffer, lambda: None

    def is_compiled(self, module: str, types: GenericTypes) -> bool:
        return cache.contains(compiler.library_name(module, types, compiler.native_level()))

    def compile(self, module: str, types: GenericTypes) -> None:
        compiler.library(module, types)

    def run(self, kernel: Kernel, types: GenericTypes, count: Count, arguments: list[Bound]) -> None:
        if isinstance(count, BoundedCount):
            count = int(count.device_count[0])
            if not count:
                return
        function, threads, item_type = _function(kernel, types), self._threads, kernel.signature.item_type
        addresses, launch = pack_arguments(arguments), _Launch()
        first, last = SLICE if item_type == "Items" else 1, 1 if item_type == "OrderedWarpItems" else count
        try:
            threads.begin(launch, function, addresses, count, first, last)
            while not threads.join(launch, INTERRUPT_MS):
                pass  # Python handles interrupts here
        finally:
            # After an interrupt the caller frees the arrays, to which running calls still write.
            threads.end(launch)

    @functools.cached_property
    def _threads(self) -> _Threads:
        with _opening:
            return _Threads(self.threads - self.concurrent_chunks)


_Launch = ctypes.c_int64 * 8  # memory of the struct Launch of kernels/common/host_threads.cu
_opening = threading.Lock()


class _Threads:
    """The threads of kernels/common/host_threads.cu. Only the calls that wait release the GIL."""

    def __init__(self, count: int) -> None:
        """count: threads in addition to those that launch."""
        path = str(compiler.library("common/host_threads", ()))
        releasing_gil, keeping_gil = ctypes.CDLL(path), ctypes.PyDLL(path)
        releasing_gil.open_threads.restype = ctypes.c_void_p
        handle = releasing_gil.open_threads(ctypes.c_int64(count))
        if not handle:
            raise MemoryError
        begin, close = keeping_gil.begin_launch, releasing_gil.close_threads
        join, end = releasing_gil.join_launch, releasing_gil.end_launch
        integer, address = ctypes.c_int64, ctypes.c_void_p
        begin.argtypes = [address, address, address, address, integer, integer, integer]
        join.argtypes, join.restype = [address, address, integer], ctypes.c_bool
        end.argtypes, close.argtypes = [address, address], [address]
        self.begin, self.join, self.end = (functools.partial(call, handle) for call in (begin, join, end))
        weakref.finalize(self, close, handle).atexit = False


@functools.cache
def host_backend(module: str, threads: int) -> CpuBackend | None:
    """Return the CPU backend with `threads` threads; None if the module is not compiled and cannot be."""
    backend = CpuBackend(threads)
    try:
        backend.compile(module, ())
    except BackendError:
        return None
    return backend


@functools.cache
def _library(module: str, types: GenericTypes) -> ctypes.CDLL:
    return ctypes.CDLL(str(compiler.library(module, types)))


@functools.cache
def _function(kernel: Kernel, types: GenericTypes) -> int | None:
    """Return the address of the kernel's entry point, which takes the addresses of the arguments."""
    function = getattr(_library(kernel.module, variant(kernel.module, types)), f"launch_{kernel.name}")
    return ctypes.cast(function, ctypes.c_void_p).value
