"""Blocks of BGZF -> their contents, on a GPU; they come to it from the host, and go back."""

from __future__ import annotations

import queue

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.cuda import PRIORITY, CudaBackend
from readmap.formats.gzip_reader import BLOCK_BYTES, Inflater, Opener, max_group_bytes, declared_sizes
from readmap.reads.blocks import bgzf_inflater

_INFLATE = Kernel("reads/bgzf_device", "inflate_members")

#: Blocks that are inflated together, and how many times that is under way.
BLOCKS, THREADS = 1024, 3


def device_bgzf_inflater(backend: CudaBackend) -> Opener:
    """What opens the inflater of all files; that of the host, where the device's memory does not suffice."""
    made: list[Inflater | None] = []

    def open_inflater() -> Inflater | None:
        if not made:
            made.append(_on_device(backend))
        return made[0] or bgzf_inflater()

    return open_inflater


def _on_device(backend: CudaBackend) -> Inflater | None:
    free: queue.SimpleQueue[_Room] = queue.SimpleQueue()
    try:
        for _ in range(THREADS):
            free.put(_Room(backend))
    except backend.memory_error:
        return None

    def inflate(data: bytes, ends: list[int]) -> memoryview | None:
        room = free.get()
        try:
            return room.inflate(data, ends)
        finally:
            free.put(room)

    return Inflater(inflate, BLOCKS, THREADS)


class _Room:
    """Arrays on the device for a group of blocks."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend = backend
        self._data = backend.empty(max_group_bytes(BLOCKS) + BLOCK_BYTES, np.uint8)
        self._contents = backend.empty(BLOCKS * BLOCK_BYTES, np.uint8)
        self._stream = backend.xp.cuda.Stream(non_blocking=True, priority=PRIORITY)

    def inflate(self, data: bytes, ends: list[int]) -> memoryview | None:
        """As an Inflater's."""
        compressed, borders = np.frombuffer(data, np.uint8), np.array(ends)
        told = declared_sizes(compressed, borders)
        with self._backend.device, self._stream:
            held, contents = self._data[: len(compressed)], self._contents[: int(told.sum())]
            held.set(compressed)
            if not inflate_members(held, borders, np.cumsum(told), contents, self._backend):
                return None
            made = np.empty(len(contents), np.uint8)
            contents.get(out=made)
            return made.data


def inflate_members(
    data: Array, ends: np.ndarray, contents_ends: np.ndarray, contents: Array, backend: Backend
) -> bool:
    """Write the contents of some blocks behind each other; whether they are as the ends of the blocks tell.

    data: uint8, the blocks. ends: int64 [blocks + 1], where they do. contents: uint8, of all; contents_ends: int64
    [blocks], where those of each end, by what the blocks tell. Both ends are on the host.
    """
    faults, count = backend.full(1, 0, np.uint64), len(contents_ends)
    places = {"ends": backend.to_device(ends), "contents_ends": backend.to_device(contents_ends)}
    shape = {"size": len(data), "room": len(contents)}
    backend.launch(_INFLATE, count, data=data, contents=contents, faults=faults, **places, **shape)
    return not int(backend.to_host(faults)[0])
