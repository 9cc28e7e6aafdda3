"""Inflaters of gzip and BGZF input: host kernels, or the kernel of a GPU for BGZF."""

from __future__ import annotations

import functools
import queue
from typing import TYPE_CHECKING, cast

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.cpu import host_backend
from readmap.backend.libdeflate import libdeflate
from readmap.formats.gzip_reader import BLOCK_BYTES, Inflater, Inflaters, Opener, declared_sizes, max_group_bytes
from readmap.reads.parallel_gzip import parallel_gzip_inflater

if TYPE_CHECKING:
    from readmap.backend.cuda import CudaBackend

_INFLATE = Kernel("reads/bgzf_libdeflate", "inflate_blocks")
_INFLATE_ON_DEVICE = Kernel("reads/bgzf_device", "inflate_bgzf_blocks")
BLOCKS, THREADS = 1024, 3  # maximum blocks per launch on a GPU, and concurrent launches


def bgzf_inflater() -> Inflater | None:
    """Return the BGZF inflater of the host; None without host kernels or if libdeflate exports no functions."""
    library, backend = libdeflate(), host_backend("reads/bgzf_libdeflate", 1)
    if library is None or backend is None:
        return None

    def inflate_blocks(data: bytes, ends: list[int]) -> memoryview | None:
        compressed, block_ends = np.frombuffer(data, np.uint8), np.array(ends)
        # A block that needs more than the size in its trailer is corrupt.
        contents = np.empty(int(declared_sizes(compressed, block_ends).sum()), np.uint8)
        total = np.empty(1, np.int64)
        arrays = {"data": compressed, "ends": block_ends, "contents": contents, "total": total}
        sizes = {"size": len(data), "count": len(ends) - 1, "capacity": len(contents)}
        backend.launch(_INFLATE, 1, **arrays, **sizes, library=library)
        return contents[: total[0]].data if total[0] >= 0 else None

    return Inflater(inflate_blocks)


HOST_INFLATERS = Inflaters(bgzf_inflater, parallel_gzip_inflater)


def inflaters_for(backend: Backend) -> Inflaters:
    """Return inflaters that use the backend's GPU for BGZF; HOST_INFLATERS for a CPU backend."""
    if backend.name == "cpu":
        return HOST_INFLATERS
    return Inflaters(device_bgzf_inflater(cast("CudaBackend", backend)), parallel_gzip_inflater)


def device_bgzf_inflater(backend: CudaBackend) -> Opener:
    """Return a function that opens the GPU's inflater for all files, or the host's if the GPU is out of memory."""

    @functools.cache
    def open_on_device() -> Inflater | None:
        idle: queue.SimpleQueue[_DeviceBuffers] = queue.SimpleQueue()
        try:
            for _ in range(THREADS):
                idle.put(_DeviceBuffers(backend))
        except backend.memory_error:
            return None

        def inflate(data: bytes, ends: list[int]) -> memoryview | None:
            buffers = idle.get()
            try:
                return buffers.inflate(data, ends)
            finally:
                idle.put(buffers)

        return Inflater(inflate, BLOCKS, THREADS)

    return lambda: open_on_device() or bgzf_inflater()


class _DeviceBuffers:
    """Arrays on the device for BLOCKS blocks and their contents, and a stream."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend = backend
        self._data = backend.empty(max_group_bytes(BLOCKS) + BLOCK_BYTES, np.uint8)
        self._contents = backend.empty(BLOCKS * BLOCK_BYTES, np.uint8)
        self._stream = backend.make_stream()

    def inflate(self, data: bytes, ends: list[int]) -> memoryview | None:
        """Inflate blocks data[ends[i]:ends[i + 1]]; return their contents, or None if a block is corrupt."""
        compressed, block_ends = np.frombuffer(data, np.uint8), np.array(ends)
        sizes = declared_sizes(compressed, block_ends)
        with self._backend.device, self._stream:
            on_device, contents = self._data[: len(compressed)], self._contents[: int(sizes.sum())]
            on_device.set(compressed)
            if not inflate_bgzf_blocks(on_device, block_ends, np.cumsum(sizes), contents, self._backend):
                return None
            result = np.empty(len(contents), np.uint8)
            contents.get(out=result)
            return result.data


def inflate_bgzf_blocks(
    data: Array, ends: np.ndarray, contents_ends: np.ndarray, contents: Array, backend: Backend
) -> bool:
    """Inflate blocks into `contents`. Return True if all contents have the size and checksum of their trailers.

    data: uint8 on the device. ends: int64 [blocks + 1] on the host: block i is data[ends[i]:ends[i + 1]].
    contents: uint8 on the device. contents_ends: int64 [blocks] on the host, by the sizes in the trailers.
    """
    corrupt_count = backend.full(1, 0, np.uint64)
    arrays = {"data": data, "ends": backend.to_device(ends), "contents_ends": backend.to_device(contents_ends)}
    sizes = {"size": len(data), "capacity": len(contents)}
    backend.launch(
        _INFLATE_ON_DEVICE, len(contents_ends), **arrays, contents=contents, corrupt_count=corrupt_count, **sizes
    )
    return not int(backend.to_host(corrupt_count)[0])
