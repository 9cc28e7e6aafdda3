"""Bytes -> blocks of BGZF that GPUs make, by nvCOMP: of bytes on any of them, and of what the host has."""

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
from readmap.formats.bgzf import BLOCK_BYTES, HEADER_START, BlockOutput, Blocks, Bytes, Codec
from readmap.formats.output import ByteSink

_MEASURE, _WRITE = Kernel("bam/nvcomp_blocks", "measure_blocks"), Kernel("bam/nvcomp_blocks", "write_blocks")

#: Blocks that are made together, and rooms for them on each device: one is filled while others are compressed. The
#: library takes thousands of blocks for little more time than hundreds, and leaves the more of the device to those that
#: map.
BLOCKS, ROOMS = 2304, 3

#: The part of the device's free memory that rooms take at most; with less of it they have fewer blocks, but so many.
SHARE, MIN_BLOCKS = 8, 144

#: nvCOMP's, which makes files as small as libdeflate's first levels do. Those that make smaller ones make other bytes
#: from call to call.
ALGORITHM = 2

#: Of what a library asks for, as CUDA's allocations are.
ALIGNED = 256


def open_nvcomp_codec(backends: Sequence[Backend]) -> Codec:
    """What compresses on devices in turns, in memory that it takes at once. Raises BackendError where it cannot."""
    library, gpus = nvcomp(), [backend for backend in backends if isinstance(backend, CudaBackend)]
    if not gpus or library is None:
        raise BackendError("--codec nvcomp: expected a GPU and nvidia-libnvcomp, which readmap's CUDA extras bring")
    try:
        rooms = _Rooms(library, gpus)
    except (NvcompError, gpus[0].memory_error) as error:
        raise BackendError(f"--codec nvcomp: {error}") from error
    return Codec("nvcomp", lambda output, _threads, _level: DeviceOutput(output, rooms))


class DeviceOutput(BlockOutput):
    """An output that GPUs compress on its way to another; there is but one level.

    The bytes depend on the data alone, not on the pieces that they come in.
    """

    from_device = True

    def __init__(self, output: ByteSink, rooms: _Rooms) -> None:
        super().__init__(output, rooms.count, rooms.count)
        self._rooms, self.buffer = rooms, rooms.allocate
        self._room: _Room | None = None

    def write(self, data: memoryview | bytes | Bytes) -> None:
        """Appends all of `data`, contiguous and one byte an item; on return it may be overwritten.

        Raises what the other output's write raises, then or later; then it is still to be aborted.
        """
        self._fill(np.frombuffer(data, np.uint8))

    def write_borrowed(self, data: Any, release: Callable[[], None]) -> None:
        """As `write`, of what the host or the device has; `release` is called on return."""
        self._fill(data)
        release()

    def _fill(self, data: Any) -> None:
        self._expect_open()
        while len(data):
            self._room = self._room or self._rooms.take()
            data = data[self._room.fill(data) :]
            if self._room.is_full:
                self._flush()

    def _flush(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            self._submit(partial(self._rooms.compress, room))


class _Room:
    """Arrays on the device for a group of blocks, of which the data are filled in piece by piece."""

    def __init__(self, library: Nvcomp, blocks: int, backend: CudaBackend) -> None:
        self._library, self._backend = library, backend
        sizes = library.sizes(blocks, BLOCK_BYTES, ALGORITHM)
        self._stride = -(-sizes.member // ALIGNED) * ALIGNED
        self._data, self._filled = backend.empty(blocks * BLOCK_BYTES, np.uint8), 0
        self._members = backend.empty(blocks * self._stride, np.uint8)
        self._blocks = backend.empty(blocks << 16, np.uint8)
        self._scratch = backend.empty(max(sizes.scratch, 1), np.uint8)
        self._statuses = backend.empty(blocks, np.int32)
        self._member_bytes = backend.empty(blocks, np.int64)
        numbers = np.arange(blocks, dtype=np.uint64)
        self._starts = backend.to_device(numbers * BLOCK_BYTES + self._data.data.ptr)
        self._member_starts = backend.to_device(numbers * np.uint64(self._stride) + self._members.data.ptr)
        self._header = backend.to_device(np.frombuffer(HEADER_START, np.uint8))
        self._stream, self._coming = backend.xp.cuda.Stream(non_blocking=True), list[Array]()
        backend.synchronize()

    @property
    def is_full(self) -> bool:
        """Whether all blocks are whole."""
        return self._filled == len(self._data)

    def fill(self, data: Any) -> int:
        """Append as much of some bytes, of the host or the device, as there is room for; how much that is."""
        target = self._data[self._filled : self._filled + len(data)]
        part = data[: len(target)]
        with self._backend.device, self._stream:
            if isinstance(part, np.ndarray):
                target.set(part)
                self._stream.synchronize()
            else:
                target.data.copy_from_device_async(part.data, part.nbytes)
                self._coming.append(part)  # until it has been copied its memory is nobody else's
        self._filled += len(part)
        return len(part)

    def compress(self, buffer: Callable[[int], Bytes]) -> tuple[Bytes, list[int]]:
        """The blocks of what has been filled in at the beginning of a buffer of the host, and the bytes of each."""
        with self._backend.device, self._stream:
            ends, blocks = self._made()
            made = buffer(len(blocks))
            blocks.get(out=made[: len(blocks)])
            return made, np.diff(self._backend.to_host(ends), prepend=0).tolist()

    def _made(self) -> tuple[Array, Array]:
        """Where the blocks end, and these; then there is room again."""
        size, self._filled, backend = self._filled, 0, self._backend
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
        self._coming.clear()
        ends, total = blocks_of(held, self._members[: count * self._stride], made, self._header, self._blocks, backend)
        return ends, self._blocks[:total]


def blocks_of(
    data: Array, members: Array, member_bytes: Array, header: Array, blocks: Array, backend: Backend
) -> tuple[Array, int]:
    """Write the blocks of the data's members of gzip behind each other; where each ends, and all.

    data: uint8, the contents. members: uint8 [members * stride], each begins a stride behind the one before.
    member_bytes: int64 [members]. header: HEADER_START. blocks: uint8, with room for 64 KiB a member.
    """
    count = len(member_bytes)
    shape = {"size": len(data), "header_bytes": len(header), "block_bytes": BLOCK_BYTES}
    lengths = backend.empty(count, np.int64)
    backend.launch(_MEASURE, count, member_bytes=member_bytes, lengths=lengths, **shape)
    ends, total = backend.inclusive_sum_with_total(lengths)
    given: dict[str, Any] = {"data": data, "header": header, "members": members, "member_bytes": member_bytes}
    shape |= {"room": len(blocks), "stride": len(members) // count}
    backend.launch(_WRITE, count, **given, ends=ends, blocks=blocks, **shape)
    return ends, total


def _fitting_blocks(library: Nvcomp, backend: CudaBackend) -> int:
    """Blocks of a room."""
    blocks, most = BLOCKS, backend.memory()[0] // SHARE // ROOMS
    while blocks > MIN_BLOCKS:
        member, scratch = library.sizes(blocks, BLOCK_BYTES, ALGORITHM)
        if blocks * (BLOCK_BYTES + member + (1 << 16)) + scratch <= most:
            break
        blocks //= 2
    return blocks


class _Rooms:
    """Rooms that outputs take in turns, one device after the other, and buffers of the host for what is made in them.

    count: of the rooms.
    """

    def __init__(self, library: Nvcomp, backends: Sequence[CudaBackend]) -> None:
        self._free: queue.SimpleQueue[_Room] = queue.SimpleQueue()
        self.count = ROOMS * len(backends)
        sizes = [_fitting_blocks(library, backend) for backend in backends]
        for _ in range(ROOMS):
            for blocks, backend in zip(sizes, backends, strict=True):
                with backend.device:
                    self._free.put(_Room(library, blocks, backend))
        self.allocate = backends[0].host_buffer
        self._buffers: queue.SimpleQueue[Bytes] = queue.SimpleQueue()

    def take(self) -> _Room:
        """An empty one, as soon as there is one."""
        return self._free.get()

    def compress(self, room: _Room) -> Blocks:
        """The blocks of what a room has, which others may take then."""
        try:
            made, sizes = room.compress(self._buffer)
        finally:
            self._free.put(room)
        return Blocks([made[: sum(sizes)]], sizes, partial(self._buffers.put, made))

    def _buffer(self, nbytes: int) -> Bytes:
        """One that has been read, where it is large enough; there are about as many as groups are under way."""
        try:
            buffer = self._buffers.get_nowait()
        except queue.Empty:
            buffer = np.empty(0, np.uint8)
        return buffer if len(buffer) >= nbytes else self.allocate(nbytes + nbytes // SLACK)
