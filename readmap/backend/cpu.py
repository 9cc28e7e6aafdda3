"""The CPU: kernels compiled by the host's compiler, which threads of our own take in slices of the items."""

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
from readmap.backend.compilation.signatures import Bound, Types, by_address, variant
from readmap.backend.machine import available_processors
from readmap.backend.device_counts import BoundedCount, Count
from readmap.errors import BackendError

#: Number of Items in a thread's first call; of WarpItems and BlockItems a first call takes one, which may take long.
SLICE = 256

#: Milliseconds between two moments at which a launch hears an interrupt.
PATIENCE = 50

#: Bytes of a chunk at least, and for each thread: what a chunk costs beside its reads, threads do not share.
CHUNK_BYTES, THREAD_BYTES = 8 << 20, 4 << 20

#: Bytes that a thread copies of a file between two moments at which an interrupt is heard.
PART_BYTES = 16 << 20

#: Linux's MADV_POPULATE_READ, which the module mmap does not name.
_POPULATE_READ = 22


class CpuBackend(Backend):
    """Threads of this process, which do not wait for the interpreter's lock while they take a launch."""

    name = "cpu"
    xp = np
    few = 4096
    host_sees_counts = True
    lanes = 1
    lanes_16bit = 16
    lanes_32bit = 8
    traceback_lanes = 16
    max_table_bases = 12  # as on disk: 13 make mapping a tenth faster, and take as long as that of a million reads
    scratch_bytes = 64 << 20
    host_bytes = 0
    device_errors: tuple[type[Exception], ...] = ()
    memory_error = MemoryError

    def __init__(self, threads: int | None = None) -> None:
        self.threads = self.groups = self.resident_warps = threads or available_processors()
        self.seconds_per_module = 1.5 / self.threads
        self.chunk_bytes = max(CHUNK_BYTES, THREAD_BYTES * self.threads)
        self.concurrent_chunks = max(min(self.threads // 2, 2), 1)  # so that no thread waits while one prepares a launch

    def thread_stream(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def use_thread_stream(self) -> None:
        pass

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        return np.empty(shape, dtype)

    def host_buffer(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return np.empty(size, np.uint8)

    def cache_host_buffers(self, most: int) -> None:
        pass

    def host_array(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        return np.empty(shape, dtype)

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        return array

    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def bring(self, array: Array) -> Array:
        return array

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

        with ThreadPoolExecutor(self.threads, "readmap-copy") as pool:
            for _ in pool.map(copy, range(0, len(source), PART_BYTES)):
                pass

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return np.asarray(array)

    def receive(self, target: np.ndarray[Any, Any], array: Array) -> None:
        target[...] = array

    def download(self, array: Array, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        buffer = pool.take(array.nbytes)
        buffer.data[: array.nbytes] = array
        return buffer, _nothing

    def release_memory(self) -> None:
        pass

    def is_compiled(self, module: str, types: Types) -> bool:
        return cache.holds(compiler.library_name(module, types, compiler.level()))

    def preload(self, types: Types, rooms: Sequence[str]) -> None:
        pass

    def compile(self, module: str, types: Types) -> None:
        compiler.library(module, types)

    def synchronize(self) -> None:
        pass

    def run(self, kernel: Kernel, types: Types, count: Count, arguments: list[Bound]) -> None:
        if isinstance(count, BoundedCount):
            count = int(count.device_count[0])
            if not count:
                return
        function, threads = _function(kernel, types), self._threads
        given = by_address(arguments)
        item_type = kernel.signature.item_type
        first = SLICE if item_type == "Items" else 1
        launch = _Launch()
        try:
            threads.begin(launch, function, given, count, first, 1 if item_type == "OrderedWarpItems" else count)
            while not threads.join(launch, PATIENCE):
                pass  # where an interrupt is heard
        finally:
            # Whoever is interrupted drops the arrays, and the calls that are under way still write to them.
            threads.end(launch)

    @functools.cached_property
    def _threads(self) -> _Threads:
        with _opening:
            return _Threads(self.threads - self.concurrent_chunks)


#: The memory of a launch of kernels/common/host_threads.cu.
_Launch = ctypes.c_int64 * 8

_opening = threading.Lock()


class _Threads:
    """The host's threads of kernels/common/host_threads.cu: ctypes keeps the interpreter's lock but where that waits."""

    def __init__(self, count: int) -> None:
        """count: beside those that launch."""
        path = str(compiler.library("common/host_threads", ()))
        library, noting = ctypes.CDLL(path), ctypes.PyDLL(path)
        library.open_threads.restype = ctypes.c_void_p
        handle = library.open_threads(ctypes.c_int64(count))
        if not handle:
            raise MemoryError
        begin, join, end, close = noting.begin_launch, library.join_launch, noting.end_launch, library.close_threads
        number, address = ctypes.c_int64, ctypes.c_void_p
        begin.argtypes = [address, address, address, address, number, number, number]
        join.argtypes, join.restype = [address, address, number], ctypes.c_bool
        end.argtypes, close.argtypes = [address, address], [address]
        self.begin, self.join, self.end = (functools.partial(call, handle) for call in (begin, join, end))
        weakref.finalize(self, close, handle).atexit = False


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
def _function(kernel: Kernel, types: Types) -> int | None:
    """The address of its entry point that takes packed arguments."""
    function = getattr(_library(kernel.module, variant(kernel.module, types)), f"packed_{kernel.name}")
    return ctypes.cast(function, ctypes.c_void_p).value


def _nothing() -> None:
    pass
