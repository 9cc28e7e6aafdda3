"""BGZF blocks in host memory -> their contents in host memory, inflated on a GPU."""

from __future__ import annotations

import queue

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.cuda import PRIORITY, CudaBackend
from readmap.formats.gzip_reader import BLOCK_BYTES, Inflater, Opener, declared_sizes, max_group_bytes
from readmap.reads.inflaters import bgzf_inflater

_INFLATE = Kernel("reads/bgzf_device", "inflate_bgzf_blocks")

#: Maximum blocks per launch, and concurrent launches.
BLOCKS, THREADS = 1024, 3


def device_bgzf_inflater(backend: CudaBackend) -> Opener:
    """Return a function that opens the GPU's inflater, shared by all files.

    The function returns the host's inflater if the GPU is out of memory.
    """
    opened: list[Inflater | None] = []

    def open_inflater() -> Inflater | None:
        if not opened:
            opened.append(_open_on_device(backend))
        return opened[0] or bgzf_inflater()

    return open_inflater


def _open_on_device(backend: CudaBackend) -> Inflater | None:
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


class _DeviceBuffers:
    """Arrays on the device for BLOCKS blocks and their contents, and a stream."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend = backend
        self._data = backend.empty(max_group_bytes(BLOCKS) + BLOCK_BYTES, np.uint8)
        self._contents = backend.empty(BLOCKS * BLOCK_BYTES, np.uint8)
        self._stream = backend.xp.cuda.Stream(non_blocking=True, priority=PRIORITY)

    def inflate(self, data: bytes, ends: list[int]) -> memoryview | None:
        """Return the contents of the blocks, or None if a block is corrupt; see Inflater."""
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
    backend.launch(_INFLATE, len(contents_ends), **arrays, contents=contents, corrupt_count=corrupt_count, **sizes)
    return not int(backend.to_host(corrupt_count)[0])
