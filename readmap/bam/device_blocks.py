"""Bytes -> blocks of BGZF that a GPU makes, by nvCOMP: of bytes on the device, and of what the host has."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.buffers import SLACK
from readmap.backend.cuda import CudaBackend
from readmap.backend.nvcomp import Nvcomp, NvcompError, nvcomp
from readmap.errors import BackendError
from readmap.formats.bgzf import BLOCK_BYTES, HEADER_BEGIN, Blocks, Bytes, Codec

_MEASURE, _WRITE = Kernel("bam/members", "measure_blocks"), Kernel("bam/members", "write_blocks", grouped=True)

#: Blocks that are made together, and how many times that is under way: the library takes hundreds of them for the time
#: of one, so that a piece that is lent, of 32 MiB and what is left of the one before, is to be one group.
BLOCKS, THREADS = 576, 8

#: nvCOMP's, which makes files as small as libdeflate's first levels do. Those that make smaller ones make other bytes
#: from call to call.
ALGORITHM = 2

#: Of what a library asks for, as CUDA's allocations are.
ALIGNED = 256


def device_codec(backend: Backend) -> Codec:
    """What compresses on the device, in memory that it takes at once. Raises BackendError where it cannot."""
    library = nvcomp()
    if not isinstance(backend, CudaBackend) or library is None:
        raise BackendError("--codec nvcomp: expected a GPU and nvidia-libnvcomp, which readmap's CUDA extras bring")
    try:
        rooms = _Rooms(library, backend)
    except (NvcompError, backend.memory_error) as error:
        raise BackendError(f"--codec nvcomp: {error}") from error
    return Codec("nvcomp", rooms.compress, BLOCKS, THREADS, backend.host_buffer, backend.to_host)


class _Room:
    """Arrays on the device for a group of blocks."""

    def __init__(self, library: Nvcomp, backend: CudaBackend) -> None:
        self._library, self._backend = library, backend
        sizes = library.sizes(BLOCKS, BLOCK_BYTES, ALGORITHM)
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

    def compress(self, parts: Sequence[Any], buffer: Callable[[int], Bytes]) -> tuple[Bytes, list[int]]:
        """The blocks of the parts at the beginning of a buffer of the host, and the bytes of each."""
        with self._backend.device, self._stream:
            ends, blocks = self._made(parts)
            made = buffer(len(blocks))
            blocks.get(out=made[: len(blocks)])
            return made, np.diff(self._backend.to_host(ends), prepend=0).tolist()

    def _made(self, parts: Sequence[Any]) -> tuple[Array, Array]:
        """Where the blocks end, and these."""
        size, backend = 0, self._backend
        for part in parts:
            target = self._data[size : size + len(part)]
            if isinstance(part, np.ndarray):
                target.set(part)
            else:
                target.data.copy_from_device_async(part.data, part.nbytes)
            size += len(part)
        count = -(-size // BLOCK_BYTES)
        held, made = self._data[:size], self._member_bytes[:count]
        lengths = np.full(count, BLOCK_BYTES, np.uint64)
        lengths[-1] = size - (count - 1) * BLOCK_BYTES
        on_device = backend.to_device(lengths)
        self._library.compress(
            count,
            BLOCK_BYTES,
            ALGORITHM,
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
    """Rooms that threads take in turns, and buffers of the host for what is made in them."""

    def __init__(self, library: Nvcomp, backend: CudaBackend) -> None:
        self._free: queue.SimpleQueue[_Room] = queue.SimpleQueue()
        for _ in range(THREADS):
            self._free.put(_Room(library, backend))
        self._allocate = backend.host_buffer
        self._buffers: queue.SimpleQueue[Bytes] = queue.SimpleQueue()

    def compress(self, parts: Sequence[Any], level: int) -> Blocks:
        """As a Codec's; there is but one level."""
        room = self._free.get()
        try:
            made, sizes = room.compress(parts, self._buffer)
        finally:
            self._free.put(room)
        return Blocks([made[: sum(sizes)]], sizes, partial(self._buffers.put, made))

    def _buffer(self, nbytes: int) -> Bytes:
        """One that has been read, where it is large enough; there are about as many as groups are under way."""
        try:
            buffer = self._buffers.get_nowait()
        except queue.Empty:
            buffer = np.empty(0, np.uint8)
        return buffer if len(buffer) >= nbytes else self._allocate(nbytes + nbytes // SLACK)
