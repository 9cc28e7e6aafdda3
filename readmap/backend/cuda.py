"""The CUDA backend: CuPy arrays, and kernels that NVRTC compiles from the same sources as the CPU's."""

import contextlib
import functools
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from readmap.backend.base import Array, Backend, Kernel, unavailable
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation import cache, nvrtc
from readmap.backend.compilation.parameters import address
from readmap.backend.compilation.signatures import Bound, GenericTypes, pack_arguments, variant
from readmap.backend.compilation.sources import modules
from readmap.backend.cuda_driver import CudaDriver
from readmap.backend.device_counts import BoundedCount, Count, capacity_of
from readmap.backend.machine import available_processors
from readmap.backend.pinned_memory import allocate_pinned, set_pinned_cache_size
from readmap.backend.staging import MIN_STAGED_BYTES, Staging

Stream = TypeVar("Stream")

#: Priority of the threads' streams: above compression, for which nobody waits. The highest priority is -5.
PRIORITY = -1

BLOCK, WARP = 128, 32  # BLOCK_WIDTH and WARP_WIDTH of kernels/common/portable.cuh


class CudaBackend(Backend):
    """One GPU. A thread that launches may have a stream of its own."""

    host_threshold = -1
    host_sees_counts = False
    seconds_per_module = 1.0  # NVRTC compiles one module at a time
    warp_width = WARP
    lanes_16bit = 2
    lanes_32bit = 1
    traceback_lanes = 1
    max_table_bases = 15
    scratch_bytes = 1 << 30
    chunk_bytes = 512 << 20
    concurrent_chunks = 2
    driver_host_bytes = 384 << 20

    def __init__(self, index: int = 0, threads: int | None = None, memory_limit: int | None = None) -> None:
        """memory_limit: bytes of device memory for arrays; default, all free memory."""
        os.environ.setdefault("CUPY_CACHE_DIR", str(cache.folder() / "cupy"))
        import cupy

        devices = cupy.cuda.runtime.getDeviceCount()
        if index >= devices:
            raise unavailable(f"cuda:{index}", f"this machine has {devices} GPU(s), numbered from 0")
        self.name = f"cuda:{index}"
        self.xp = cupy
        self.threads = threads or available_processors()
        self.device = cupy.cuda.Device(index)
        self.device.use()
        self.concurrent_warps = 8 * self.device.attributes["MultiProcessorCount"]
        self.resident_warps = BLOCK // WARP * self.device.attributes["MultiProcessorCount"]
        if memory_limit:
            cupy.get_default_memory_pool().set_limit(size=memory_limit)
        self._streams = Streams(self.make_stream)
        self._driver = CudaDriver(cupy)
        self._staging = Staging(cupy, self.device, self.threads)
        self.device_errors = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
        self.memory_error = cupy.cuda.memory.OutOfMemoryError
        self.architecture = f"sm_{self.device.compute_capability}"

    @contextlib.contextmanager
    def thread_stream(self) -> Iterator[None]:
        with self.device, self._streams.borrow() as stream, stream:
            yield
            stream.synchronize()

    def use_thread_stream(self) -> None:
        self.device.use()
        self._streams.own().use()

    def make_stream(self) -> Any:
        """Create a stream of the priority of the threads' streams."""
        with self.device:
            return self.xp.cuda.Stream(non_blocking=True, priority=PRIORITY)

    def full(self, shape: int | tuple[int, ...], value: int, dtype: Any) -> Array:
        byte = _repeated_byte(value, dtype)
        if byte is None:
            return self.to_device(np.full(shape, value, dtype))
        array = self.empty(shape, dtype)
        self._driver.fill(array.data.ptr, byte, array.nbytes)  # CuPy's fill would compile a kernel
        return array

    def host_buffer(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return allocate_pinned(size, self.xp.cuda.runtime)

    def cache_host_buffers(self, max_bytes: int) -> None:
        set_pinned_cache_size(max_bytes)

    def host_array(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
        pinned = self.xp.cuda.alloc_pinned_memory(max(size, 1))
        memory = self.xp.cuda.UnownedMemory(pinned.ptr, size, pinned)
        return self.xp.ndarray(shape, dtype, self.xp.cuda.MemoryPointer(memory, 0))

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        target, source = self.xp.empty(array.shape, array.dtype), np.ascontiguousarray(array)
        if source.nbytes > MIN_STAGED_BYTES:
            self._staging.send(source, target)
        else:
            self._driver.copy_from_host(target.data.ptr, address(source), source.nbytes)
        return target

    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        target, end = self.empty(sum(map(len, parts)), np.uint8), 0
        for part in parts:
            start, end = end, end + len(part)
            self._driver.copy_from_host(target.data.ptr + start, address(part), len(part))
        self._driver.synchronize()
        return target

    def _copy_into(self, target: Array, source: Array) -> None:
        # CuPy's assignment would compile a kernel.
        if source.device.id == self.device.id:
            self._driver.copy(target.data.ptr, source.data.ptr, source.nbytes)
            return
        _enable_peer_access(self.device.id, source.device.id)
        target.data.copy_from_device_async(source.data, source.nbytes)

    def copy_from_peer(self, array: Array) -> Array:
        if array.device.id == self.device.id:
            return array
        with self.thread_stream():  # its exit waits for the copy: then the source may be freed
            target = self.empty(array.shape, array.dtype)
            self.copy_into(target, array)
            return target

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        if not array.flags.c_contiguous:
            return self.xp.asnumpy(array)  # type: ignore[no-any-return]
        target = np.empty(array.shape, array.dtype)
        if array.nbytes > MIN_STAGED_BYTES:
            self._staging.receive(target, array)
        else:
            self._driver.copy_to_host(address(target), array.data.ptr, array.nbytes)
        return target

    def copy_to_host(self, target: np.ndarray[Any, Any], array: Array) -> None:
        self._staging.receive(target, array)

    def download(self, array: Array, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        buffer = pool.take(array.nbytes)
        try:
            with array.device:
                self._driver.copy(address(buffer.data), array.data.ptr, array.nbytes)
                return buffer, self._driver.record_event()
        except BaseException:
            buffer.release()
            raise

    def memory(self) -> tuple[int, int]:
        with self.device:
            free, total = self.xp.cuda.runtime.memGetInfo()
            pool = self.xp.get_default_memory_pool()
            free += pool.free_bytes()
            limit = pool.get_limit()
            return (min(free, limit - pool.used_bytes()), min(total, limit)) if limit else (free, total)

    def release_memory(self) -> None:
        with self.device:
            self.xp.get_default_memory_pool().free_all_blocks()

    def is_compiled(self, module: str, types: GenericTypes) -> bool:
        return nvrtc.is_compiled(module, types, self.architecture)

    def compile(self, module: str, types: GenericTypes) -> None:
        nvrtc.code(module, types, self.architecture)

    def preload(self, types: GenericTypes, folders: Sequence[str]) -> None:
        needed = [module for folder in folders for module in modules(for_gpu=True) if module.startswith(f"{folder}/")]

        def load() -> None:
            self.device.use()
            with contextlib.suppress(Exception):  # the first launch of the module raises the error
                for module in needed:
                    _module(self.device.id, module, variant(module, types), self.architecture)

        threading.Thread(target=load, name="readmap-load", daemon=True).start()

    def synchronize(self) -> None:
        self._driver.synchronize()

    def run(self, kernel: Kernel, types: GenericTypes, count: Count, arguments: list[Bound]) -> None:
        function = _function(self.device.id, kernel, types, self.architecture)
        item_type = kernel.signature.item_type
        block_items = {"Items": BLOCK, "BlockItems": 1}.get(item_type, BLOCK // WARP)
        max_blocks = max(self.resident_warps // block_items, 1) if item_type == "OrderedWarpItems" else 1 << 30
        device_count = address(count.device_count) if isinstance(count, BoundedCount) else 0
        addresses = pack_arguments(arguments, capacity_of(count), device_count)  # struct Items of common/portable.cuh
        blocks = min(-(-capacity_of(count) // block_items), max_blocks)
        self._driver.launch(function.ptr, blocks, BLOCK, addresses)


@functools.cache
def _enable_peer_access(device: int, other: int) -> None:
    """Let a device copy from another device's memory directly, if possible; otherwise copies go through the host."""
    import cupy

    runtime = cupy.cuda.runtime
    if runtime.deviceCanAccessPeer(device, other):
        with cupy.cuda.Device(device), contextlib.suppress(runtime.CUDARuntimeError):  # already enabled by CuPy
            runtime.deviceEnablePeerAccess(other)


@functools.cache
def _repeated_byte(value: int, dtype: Any) -> int | None:
    """Return the byte if all bytes of the value are equal, else None."""
    distinct = set(np.full(1, value, dtype).tobytes())
    return None if len(distinct) > 1 else distinct.pop()


_loading = threading.Lock()


@functools.cache
def _function(device: int, kernel: Kernel, types: GenericTypes, architecture: str) -> Any:
    module = _module(device, kernel.module, variant(kernel.module, types), architecture)
    with _loading:  # if two threads loaded the module at once, CuPy would unload one while its kernels may be running
        return module.get_function(kernel.name).kernel


@functools.cache
def _module(device: int, module: str, types: GenericTypes, architecture: str) -> Any:
    import cupy

    return cupy.RawModule(path=str(nvrtc.code(module, types, architecture)))


class Streams(Generic[Stream]):
    """CUDA streams, one per thread, that threads of one kind inherit from each other.

    CuPy's memory pool reuses freed memory only on the stream that freed it. So a thread leaves its stream, and with it
    the memory, to the next thread of its kind. Otherwise every task of a cluster worker would take more device memory.
    """

    def __init__(self, make: Callable[[], Stream]) -> None:
        """make: creates a stream if no ended thread has left one."""
        self._make = make
        self._idle: dict[str, deque[Stream]] = {}
        self._thread = threading.local()

    def own(self) -> Stream:
        """Return the calling thread's stream, which it keeps until the thread ends."""
        if not hasattr(self._thread, "owner"):
            # Threads of one kind have the same name except for their numbers.
            idle = self._idle.setdefault(threading.current_thread().name.rstrip("-_0123456789"), deque())
            try:
                stream = idle.pop()
            except IndexError:
                stream = self._make()
            self._thread.owner = _Owner(stream, idle)
        owner: _Owner[Stream] = self._thread.owner
        return owner.stream

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Stream]:
        """Yield the calling thread's stream; on exit leave it to other threads, unless the thread had it before."""
        had_stream, stream = hasattr(self._thread, "owner"), self.own()
        try:
            yield stream
        finally:
            if not had_stream:
                del self._thread.owner


class _Owner(Generic[Stream]):
    """Returns the stream to the idle streams when it is deleted, which happens when its thread ends."""

    def __init__(self, stream: Stream, idle: deque[Stream]) -> None:
        self.stream, self._idle = stream, idle

    def __del__(self) -> None:
        self._idle.append(self.stream)
