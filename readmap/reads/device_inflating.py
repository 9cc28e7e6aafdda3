"""Blocks of BGZF -> their contents, by nvCOMP on a GPU; they come to it from the host, and go back."""

from __future__ import annotations

import queue

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.cuda import CudaBackend
from readmap.backend.nvcomp import Nvcomp, NvcompError, nvcomp
from readmap.formats.gzip_data import BLOCK_BYTES, Inflater, Opener, group_bytes, told_bytes
from readmap.reads.blocks import block_inflater

_LAY, _JOIN = (Kernel("reads/members", name, grouped=True) for name in ("lay_members", "join_contents"))

#: Blocks that are inflated together, and how many times that is under way.
BLOCKS, THREADS = 1024, 3

#: What nvCOMP may read beside what it is given, where that is corrupt: room for it, in front and behind.
BESIDE = 1 << 16


def device_inflater(backend: Backend) -> Opener:
    """What opens the inflater of all files: on the device where nvCOMP is there, and where not, of the host."""
    library = nvcomp() if isinstance(backend, CudaBackend) else None
    made: list[Inflater | None] = []

    def open_inflater() -> Inflater | None:
        if not made:
            made.append(_on_device(library, backend) if library and isinstance(backend, CudaBackend) else None)
        return made[0] or block_inflater()

    return open_inflater


def _on_device(library: Nvcomp, backend: CudaBackend) -> Inflater | None:
    """The device's; None where its memory does not suffice."""
    free: queue.SimpleQueue[_Room] = queue.SimpleQueue()
    try:
        for _ in range(THREADS):
            free.put(_Room(library, backend))
    except (NvcompError, backend.memory_error):
        return None
    host = block_inflater()

    def inflate(data: bytes, ends: list[int]) -> memoryview | None:
        room = free.get()
        try:
            contents = room.inflate(data, ends)
        finally:
            free.put(room)
        # What it does not make may be corrupt: what is before that is wanted.
        return contents if contents is not None or host is None else host.inflate(data, ends)

    return Inflater(inflate, BLOCKS, THREADS)


class _Room:
    """Arrays on the device for a group of blocks."""

    def __init__(self, library: Nvcomp, backend: CudaBackend) -> None:
        self._library, self._backend = library, backend
        self._data = backend.empty(group_bytes(BLOCKS) + BLOCK_BYTES, np.uint8)
        self._members, self._inflated = (backend.full(BLOCKS * BLOCK_BYTES + 2 * BESIDE, 0, np.uint8) for _ in range(2))
        self._contents = backend.empty(BLOCKS * BLOCK_BYTES, np.uint8)
        self._scratch = backend.empty(max(library.inflate_scratch(BLOCKS, BLOCK_BYTES), 1), np.uint8)
        self._sizes, self._made = (backend.empty(BLOCKS, np.uint64) for _ in range(2))
        self._sums, self._statuses = backend.empty(BLOCKS, np.uint32), backend.empty(BLOCKS, np.int32)
        starts = np.arange(BLOCKS, dtype=np.uint64) * np.uint64(BLOCK_BYTES) + np.uint64(BESIDE)
        self._member_starts = backend.to_device(starts + np.uint64(self._members.data.ptr))
        self._content_starts = backend.to_device(starts + np.uint64(self._inflated.data.ptr))
        self._rooms = backend.to_device(np.full(BLOCKS, BLOCK_BYTES, np.uint64))
        self._stream = backend.xp.cuda.Stream(non_blocking=True)
        backend.synchronize()

    def inflate(self, data: bytes, ends: list[int]) -> memoryview | None:
        """As an Inflater's."""
        compressed, borders = np.frombuffer(data, np.uint8), np.array(ends)
        with self._backend.device, self._stream:
            made = self._contents_of(compressed, borders)
            if made is None:
                return None
            contents = np.empty(len(made), np.uint8)
            made.get(out=contents)
            return contents.data

    def _contents_of(self, compressed: NDArray[np.uint8], borders: NDArray[np.int64]) -> Array | None:
        backend, count = self._backend, len(borders) - 1
        data, told = self._data[: len(compressed)], told_bytes(compressed, borders)
        data.set(compressed)
        places, lengths = backend.to_device(borders), backend.to_device(told.astype(np.uint64))
        members, inflated = (held[BESIDE:-BESIDE] for held in (self._members, self._inflated))
        made, sums, statuses = self._made[:count], self._sums[:count], self._statuses[:count]
        shape = {"size": len(data), "room": len(members), "stride": BLOCK_BYTES}
        backend.launch(_LAY, count, data=data, ends=places, members=members, sizes=self._sizes[:count], **shape)
        self._library.inflate(
            count,
            members=self._member_starts.data.ptr,
            member_lengths=self._sizes.data.ptr,
            rooms=self._rooms.data.ptr,
            made=made.data.ptr,
            scratch=(self._scratch.data.ptr, len(self._scratch)),
            contents=self._content_starts.data.ptr,
            statuses=statuses.data.ptr,
            stream=self._stream.ptr,
        )
        where = {"contents": self._content_starts.data.ptr, "lengths": lengths.data.ptr, "sums": sums.data.ptr}
        self._library.checksums(count, BLOCK_BYTES, **where, stream=self._stream.ptr)
        contents = self._contents[: int(told.sum())]
        found = {"made": made, "sums": sums, "statuses": statuses}
        is_whole = join_contents(data, places, np.cumsum(told), inflated, found, contents, backend)
        return contents if is_whole else None


def join_contents(
    data: Array,
    ends: Array,
    contents_ends: NDArray[np.int64],
    inflated: Array,
    found: dict[str, Array],
    contents: Array,
    backend: Backend,
) -> bool:
    """Write what has been inflated behind each other; whether all is as the ends of the blocks tell.

    data: uint8, the blocks; ends: int64 [blocks + 1], where they do. inflated: uint8, the contents of each begin
    BLOCK_BYTES behind those of the one before. found: of each block, made: uint64, bytes; sums: uint32, their CRC-32;
    statuses: int32, 0 where they are made. contents: uint8, of all; contents_ends: where those of each end, by what the
    blocks tell.
    """
    faults = backend.full(1, 0, np.uint64)
    shape = {"size": len(data), "room": len(inflated), "contents_bytes": len(contents), "stride": BLOCK_BYTES}
    given = {"data": data, "ends": ends, "inflated": inflated, "contents_ends": backend.to_device(contents_ends)}
    backend.launch(_JOIN, len(contents_ends), **given, **found, contents=contents, faults=faults, **shape)
    return not int(backend.to_host(faults)[0])
