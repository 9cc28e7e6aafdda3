"""A CUDA GPU: CuPy holds the arrays, and the kernels are cubins that NVRTC made from the same sources."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from readmap.backend.base import Array, Backend, Kernel, unavailable
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation import cache, nvrtc
from readmap.backend.compilation.parameters import address
from readmap.backend.compilation.signatures import Bound, Types, by_address, variant
from readmap.backend.compilation.sources import modules
from readmap.backend.cuda_driver import CudaDriver
from readmap.backend.machine import available_processors
from readmap.backend.pinned_memory import set_pinned_cache_size, allocate_pinned
from readmap.backend.device_counts import BoundedCount, Count, capacity_of
from readmap.backend.staging import LEAST_BYTES, Staging
from readmap.backend.streams import Streams

#: Of threads' own streams: what they launch comes before what is compressed, for which nobody waits. The highest is -5.
PRIORITY = -1

BLOCK, WARP = 128, 32  # BLOCK_WIDTH and WARP_WIDTH of kernels/common/portable.cuh


class CudaBackend(Backend):
    """One GPU; a thread that launches has a stream of its own where it asks for one."""

    few = -1
    host_sees_counts = False
    seconds_per_module = 1.0  # NVRTC does one at a time
    lanes = 32
    lanes_16bit = 2
    lanes_32bit = 1
    traceback_lanes = 1
    max_table_bases = 15
    scratch_bytes = 1 << 30
    chunk_bytes = 512 << 20
    concurrent_chunks = 2
    host_bytes = 384 << 20

    def __init__(self, number: int = 0, threads: int | None = None, memory_limit: int | None = None) -> None:
        """memory_limit: bytes of device memory that arrays may take; default, all that are free."""
        os.environ.setdefault("CUPY_CACHE_DIR", str(cache.folder() / "cupy"))
        import cupy

        devices = cupy.cuda.runtime.getDeviceCount()
        if number >= devices:
            raise unavailable(f"cuda:{number}", f"this machine has {devices} GPU(s), numbered from 0")
        self.name = f"cuda:{number}"
        self.xp = cupy
        self.threads = threads or available_processors()
        self.device = cupy.cuda.Device(number)
        self.device.use()
        self.groups = 8 * self.device.attributes["MultiProcessorCount"]
        self.resident_warps = BLOCK // WARP * self.device.attributes["MultiProcessorCount"]
        if memory_limit:
            cupy.get_default_memory_pool().set_limit(size=memory_limit)
        self._streams = Streams(self._make_stream)
        self._driver = CudaDriver(cupy)
        self._staging = Staging(cupy, self.device, self.threads)
        self.device_errors = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
        self.memory_error = cupy.cuda.memory.OutOfMemoryError
        self.architecture = f"sm_{self.device.compute_capability}"

    @contextlib.contextmanager
    def thread_stream(self) -> Iterator[None]:
        with self.device, self._streams.lent() as stream, stream:
            yield
            stream.synchronize()

    def use_thread_stream(self) -> None:
        self.device.use()
        self._streams.own().use()

    def _make_stream(self) -> Any:
        with self.device:
            return self.xp.cuda.Stream(non_blocking=True, priority=PRIORITY)

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        return self.xp.empty(shape, dtype)

    def full(self, shape: int | tuple[int, ...], value: int, dtype: Any) -> Array:
        byte = _only_byte(value, dtype)
        if byte is None:
            return self.to_device(np.full(shape, value, dtype))
        array = self.empty(shape, dtype)
        self._driver.fill(array.data.ptr, byte, array.nbytes)  # CuPy's own would ask NVRTC for a kernel
        return array

    def host_buffer(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return allocate_pinned(size, self.xp.cuda.runtime)

    def cache_host_buffers(self, most: int) -> None:
        set_pinned_cache_size(most)

    def host_array(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
        pinned = self.xp.cuda.alloc_pinned_memory(max(size, 1))
        memory = self.xp.cuda.UnownedMemory(pinned.ptr, size, pinned)
        return self.xp.ndarray(shape, dtype, self.xp.cuda.MemoryPointer(memory, 0))

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        held, source = self.xp.empty(array.shape, array.dtype), np.ascontiguousarray(array)
        if source.nbytes > LEAST_BYTES:
            self._staging.send(source, held)
        else:
            self._driver.send(held.data.ptr, address(source), source.nbytes)
        return held

    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        held = self.empty(sum(map(len, parts)), np.uint8)
        end = 0
        for part in parts:
            begin, end = end, end + len(part)
            self._driver.send(held.data.ptr + begin, address(part), len(part))
        self._driver.wait()
        return held

    def _put(self, target: Array, source: Array) -> None:
        # CuPy's own assignment would ask NVRTC for a kernel.
        if source.device.id == self.device.id:
            self._driver.copy(target.data.ptr, source.data.ptr, source.nbytes)
            return
        _link(self.device.id, source.device.id)
        target.data.copy_from_device_async(source.data, source.nbytes)

    def bring(self, array: Array) -> Array:
        if array.device.id == self.device.id:
            return array
        with self.thread_stream():  # in whose end the other one may be let go
            held = self.empty(array.shape, array.dtype)
            self.put(held, array)
            return held

    def hold(self, array: np.ndarray[Any, Any]) -> Array:
        return self.to_device(array)

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        if not array.flags.c_contiguous:
            return self.xp.asnumpy(array)  # type: ignore[no-any-return]
        held = np.empty(array.shape, array.dtype)
        if array.nbytes > LEAST_BYTES:
            self._staging.receive(held, array)
        else:
            self._driver.fetch(address(held), array.data.ptr, array.nbytes)
        return held

    def receive(self, target: np.ndarray[Any, Any], array: Array) -> None:
        self._staging.receive(target, array)

    def download(self, array: Array, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        buffer = pool.take(array.nbytes)
        try:
            with array.device:
                self._driver.copy(address(buffer.data), array.data.ptr, array.nbytes)
                return buffer, self._driver.mark()
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

    def is_compiled(self, module: str, types: Types) -> bool:
        return nvrtc.is_compiled(module, types, self.architecture)

    def compile(self, module: str, types: Types) -> None:
        nvrtc.code(module, types, self.architecture)

    def preload(self, types: Types, rooms: Sequence[str]) -> None:
        needed = [module for module in modules(for_gpu=True) if module.split("/")[0] in rooms]

        def load() -> None:
            self.device.use()
            with contextlib.suppress(Exception):  # whoever needs the module is told
                for module in needed:
                    _module(self.device.id, module, variant(module, types), self.architecture)

        threading.Thread(target=load, name="readmap-load", daemon=True).start()

    def synchronize(self) -> None:
        self._driver.wait()

    def run(self, kernel: Kernel, types: Types, count: Count, arguments: list[Bound]) -> None:
        function = _function(self.device.id, kernel, types, self.architecture)
        item_type = kernel.signature.item_type
        block_items = {"Items": BLOCK, "BlockItems": 1}.get(item_type, BLOCK // WARP)
        most = max(self.resident_warps // block_items, 1) if item_type == "OrderedWarpItems" else 1 << 30
        device_count = address(count.device_count) if isinstance(count, BoundedCount) else 0
        given = by_address(arguments, capacity_of(count), device_count)  # struct Items of common/portable.cuh
        self._driver.launch(function.ptr, min(-(-capacity_of(count) // block_items), most), BLOCK, given)


@functools.cache
def _link(device: int, other: int) -> None:
    """Let a device copy from another's memory by itself, where the machine can; else copies go through the host's."""
    import cupy

    runtime = cupy.cuda.runtime
    if runtime.deviceCanAccessPeer(device, other):
        with cupy.cuda.Device(device), contextlib.suppress(runtime.CUDARuntimeError):  # CuPy may have done it
            runtime.deviceEnablePeerAccess(other)


@functools.cache
def _only_byte(value: int, dtype: Any) -> int | None:
    """The byte of which a number is made, None where it has several."""
    same = set(np.full(1, value, dtype).tobytes())
    return None if len(same) > 1 else same.pop()


_loading = threading.Lock()


@functools.cache
def _function(device: int, kernel: Kernel, types: Types, architecture: str) -> Any:
    module = _module(device, kernel.module, variant(kernel.module, types), architecture)
    with _loading:  # of two modules that were loaded at once CuPy would let one go, whatever it has launched
        return module.get_function(kernel.name).kernel


@functools.cache
def _module(device: int, module: str, types: Types, architecture: str) -> Any:
    import cupy

    return cupy.RawModule(path=str(nvrtc.code(module, types, architecture)))
