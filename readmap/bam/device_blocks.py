"""Bytes -> blocks of BGZF that a GPU makes, by nvCOMP; whatever is written comes to it from the host, and goes back."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.cuda import CudaBackend
from readmap.backend.nvcomp import Nvcomp, NvcompError, nvcomp
from readmap.errors import BackendError
from readmap.formats.bgzf import BLOCK_BYTES, HEADER_BEGIN, Codec

_MEASURE, _WRITE = Kernel("bam/members", "measure_blocks"), Kernel("bam/members", "write_blocks", grouped=True)

#: Blocks that are made together, and how many times that is under way: the library takes thousands of them for the time
#: of one, and what is copied and what is computed overlap.
BLOCKS, THREADS = 1024, 4

#: nvCOMP's algorithms, by libdeflate's level from which on they make about as small files. The next one's bytes differ
#: from call to call.
ALGORITHMS = {6: 4, 1: 2}

#: Of what a library asks for, as CUDA's allocations are.
ALIGNED = 256


def device_codec(backend: Backend, level: int) -> Codec:
    """What compresses on the device, in memory that it takes at once. Raises BackendError where it cannot."""
    library = nvcomp()
    if not isinstance(backend, CudaBackend) or library is None:
        raise BackendError("--codec nvcomp: expected a GPU and nvidia-libnvcomp, which readmap's CUDA extras bring")
    try:
        rooms = _Rooms(library, next(made for least, made in ALGORITHMS.items() if level >= least), backend)
    except (NvcompError, backend.memory_error) as error:
        raise BackendError(f"--codec nvcomp: {error}") from error
    return Codec("nvcomp", rooms.compress, BLOCKS, THREADS)


class _Room:
    """Arrays on the device for a group of blocks."""

    def __init__(self, library: Nvcomp, algorithm: int, backend: CudaBackend) -> None:
        self._library, self._algorithm, self._backend = library, algorithm, backend
        sizes = library.sizes(BLOCKS, BLOCK_BYTES, algorithm)
        self._stride = -(-sizes.member // ALIGNED) * ALIGNED
        self._data = backend.empty(BLOCKS * BLOCK_BYTES, np.uint8)
        self._members = backend.empty(BLOCKS * self._stride, np.uint8)
        self._blocks = backend.empty(BLOCKS << 16, np.uint8)
        self._scratch = backend.empty(max(sizes.scratch, 1), np.uint8)
        self._statuses = backend.empty(BLOCKS, np.int32)
        self._member_bytes = backend.empty(BLOCKS, np.int64)
        numbers = np.arange(BLOCKS, dtype=np.uint64)
        self._starts = backend.to_device(numbers * BLOCK_BYTES + self._data.data.ptr)
        self._member_starts = backend.to_device(numbers * np.uint64(self._stride) + self._members.data.ptr)
        self._header = backend.to_device(np.frombuffer(HEADER_BEGIN, np.uint8))
        self._stream = backend.xp.cuda.Stream(non_blocking=True)
        backend.synchronize()

    def compress(self, data: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], list[int]]:
        """The blocks of the data, and the bytes of each."""
        with self._backend.device, self._stream:
            ends, blocks = self._made(data)
            return self._backend.to_host(blocks), np.diff(self._backend.to_host(ends), prepend=0).tolist()

    def _made(self, data: NDArray[np.uint8]) -> tuple[Array, Array]:
        """Where the blocks end, and these."""
        backend, count = self._backend, -(-len(data) // BLOCK_BYTES)
        held, made = self._data[: len(data)], self._member_bytes[:count]
        held.set(data)
        lengths = np.full(count, BLOCK_BYTES, np.uint64)
        lengths[-1] = len(data) - (count - 1) * BLOCK_BYTES
        on_device = backend.to_device(lengths)
        self._library.compress(
            count,
            BLOCK_BYTES,
            self._algorithm,
            starts=self._starts.data.ptr,
            lengths=on_device.data.ptr,
            scratch=(self._scratch.data.ptr, len(self._scratch)),
            members=self._member_starts.data.ptr,
            member_lengths=made.data.ptr,
            statuses=self._statuses.data.ptr,
            stream=self._stream.ptr,
        )
        if backend.to_host(self._statuses[:count]).any():
            raise BackendError("nvCOMP could not compress a block: --codec libdeflate does without it")
        ends, total = blocks_of(held, self._members[: count * self._stride], made, self._header, self._blocks, backend)
        return ends, self._blocks[:total]


def blocks_of(
    data: Array, members: Array, member_bytes: Array, header: Array, blocks: Array, backend: Backend
) -> tuple[Array, int]:
    """Write the blocks of the data's members of gzip behind each other; where each ends, and all.

    data: uint8, the contents. members: uint8 [members * stride], each begins a stride behind the one before.
    member_bytes: int64 [members]. header: HEADER_BEGIN. blocks: uint8, with room for 64 KiB a member.
    """
    count = len(member_bytes)
    shape = {"size": len(data), "header_bytes": len(header), "block_bytes": BLOCK_BYTES}
    lengths = backend.empty(count, np.int64)
    backend.launch(_MEASURE, count, member_bytes=member_bytes, lengths=lengths, **shape)
    ends, total = backend.ends(lengths)
    given: dict[str, Any] = {"data": data, "header": header, "members": members, "member_bytes": member_bytes}
    shape |= {"room": len(blocks), "stride": len(members) // count}
    backend.launch(_WRITE, count, **given, ends=ends, blocks=blocks, **shape)
    return ends, total


class _Rooms:
    """Rooms that threads take in turns."""

    def __init__(self, library: Nvcomp, algorithm: int, backend: CudaBackend) -> None:
        self._free: queue.SimpleQueue[_Room] = queue.SimpleQueue()
        for _ in range(THREADS):
            self._free.put(_Room(library, algorithm, backend))

    @contextmanager
    def _room(self) -> Iterator[_Room]:
        room = self._free.get()
        try:
            yield room
        finally:
            self._free.put(room)

    def compress(self, data: NDArray[np.uint8], level: int) -> tuple[NDArray[np.uint8], list[int]]:
        """As a Codec's; the level is that of all."""
        with self._room() as room:
            return room.compress(data)
