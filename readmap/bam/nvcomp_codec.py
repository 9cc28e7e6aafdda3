"""Arrays on GPUs or the host -> BGZF blocks, compressed by nvCOMP."""

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
#: Blocks of a batch, and batches per device: one is filled while others are compressed. nvCOMP compresses thousands of
#: blocks in little more time than hundreds, and then leaves more of the device to mapping.
BATCH_BLOCKS, BATCHES = 2304, 3
#: Batches take at most 1/SHARE of the free device memory; below that they have fewer blocks, but at least MIN_BLOCKS.
SHARE, MIN_BLOCKS = 8, 144
#: nvCOMP's algorithm with the file size of libdeflate's first levels. The output of the smaller ones is not
#: reproducible.
ALGORITHM = 2
#: Alignment of the output of a block, as of CUDA allocations.
ALIGNMENT = 256


def open_nvcomp_codec(backends: Sequence[Backend]) -> Codec:
    """Return a codec that compresses on all GPUs in turn, with its memory allocated. Raises BackendError."""
    library, gpus = nvcomp(), [backend for backend in backends if isinstance(backend, CudaBackend)]
    if not gpus or library is None:
        raise BackendError(
            "--codec nvcomp: expected a GPU and nvidia-libnvcomp, which is part of readmap's CUDA extras"
        )
    try:
        pool = _BatchPool(library, gpus)
    except (NvcompError, gpus[0].memory_error) as error:
        raise BackendError(f"--codec nvcomp: {error}") from error
    return Codec("nvcomp", lambda output, _threads, _level: DeviceOutput(output, pool))


class DeviceOutput(BlockOutput):
    """A BlockOutput compressed by GPUs, with a single level; the bytes depend on the data alone."""

    from_device = True

    def __init__(self, output: ByteSink, pool: _BatchPool) -> None:
        super().__init__(output, pool.count, pool.count)
        self._batches, self.buffer = pool, pool.allocate
        self._batch: _Batch | None = None

    def write(self, data: memoryview | bytes | Bytes) -> None:
        self._fill(np.frombuffer(data, np.uint8))

    def write_borrowed(self, data: Any, release: Callable[[], None]) -> None:
        """Append an array on the host or the device, which may be overwritten after the return."""
        self._fill(data)
        release()

    def _fill(self, data: Any) -> None:
        """Append an array on the host or the device, and submit each batch that is full."""
        self._expect_open()
        while len(data):
            self._batch = self._batch or self._batches.take()
            data = data[self._batch.fill(data) :]
            if self._batch.is_full:
                self._flush()

    def _flush(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            self._submit(partial(self._batches.compress, batch))


class _Batch:
    """The device arrays to compress a batch of blocks."""

    def __init__(self, library: Nvcomp, blocks: int, backend: CudaBackend) -> None:
        self._library, self._backend = library, backend
        sizes = library.sizes(blocks, BLOCK_BYTES, ALGORITHM)
        self._stride = -(-sizes.member // ALIGNMENT) * ALIGNMENT
        self._data, self._filled = backend.empty(blocks * BLOCK_BYTES, np.uint8), 0
        self._members = backend.empty(blocks * self._stride, np.uint8)
        self._blocks = backend.empty(blocks << 16, np.uint8)
        self._scratch = backend.empty(max(sizes.scratch, 1), np.uint8)
        self._statuses = backend.empty(blocks, np.int32)
        self._member_bytes = backend.empty(blocks, np.int64)
        indices = np.arange(blocks, dtype=np.uint64)
        self._starts = backend.to_device(indices * BLOCK_BYTES + self._data.data.ptr)
        self._member_starts = backend.to_device(indices * np.uint64(self._stride) + self._members.data.ptr)
        self._header = backend.to_device(np.frombuffer(HEADER_START, np.uint8))
        self._stream, self._sources = backend.xp.cuda.Stream(non_blocking=True), list[Array]()
        backend.synchronize()

    @property
    def is_full(self) -> bool:
        return self._filled == len(self._data)

    def fill(self, data: Any) -> int:
        """Append the part of an array, on the host or the device, that fits; return its length."""
        target = self._data[self._filled : self._filled + len(data)]
        part = data[: len(target)]
        with self._backend.device, self._stream:
            if isinstance(part, np.ndarray):
                target.set(part)
                self._stream.synchronize()
            else:
                target.data.copy_from_device_async(part.data, part.nbytes)
                self._sources.append(part)  # keeps its memory until it has been copied
        self._filled += len(part)
        return len(part)

    def compress(self, buffer: Callable[[int], Bytes]) -> tuple[Bytes, list[int]]:
        """Compress the batch and copy its blocks to a host buffer; return the buffer and the sizes of the blocks."""
        with self._backend.device, self._stream:
            ends, blocks = self._compress_on_device()
            target = buffer(len(blocks))
            blocks.get(out=target[: len(blocks)])
            return target, np.diff(self._backend.to_host(ends), prepend=0).tolist()

    def _compress_on_device(self) -> tuple[Array, Array]:
        """Compress the batch and empty it; return where each block ends, int64, and the blocks, uint8."""
        size, self._filled, backend = self._filled, 0, self._backend
        count = -(-size // BLOCK_BYTES)
        data, member_bytes = self._data[:size], self._member_bytes[:count]
        lengths = np.full(count, BLOCK_BYTES, np.uint64)
        lengths[-1] = size - (count - 1) * BLOCK_BYTES
        arrays = {"starts": self._starts, "lengths": backend.to_device(lengths), "members": self._member_starts}
        arrays |= {"member_lengths": member_bytes, "statuses": self._statuses}
        pointers = {name: array.data.ptr for name, array in arrays.items()}
        scratch = self._scratch.data.ptr, len(self._scratch)
        self._library.compress(count, BLOCK_BYTES, ALGORITHM, **pointers, scratch=scratch, stream=self._stream.ptr)
        if backend.to_host(self._statuses[:count]).any():
            raise BackendError("nvCOMP could not compress a block; use --codec libdeflate")
        self._sources.clear()
        members = self._members[: count * self._stride]
        ends, total = build_blocks(data, members, member_bytes, self._header, self._blocks, backend)
        return ends, self._blocks[:total]


def build_blocks(
    data: Array, members: Array, member_bytes: Array, header: Array, blocks: Array, backend: Backend
) -> tuple[Array, int]:
    """Write the BGZF blocks of gzip members to `blocks`; return where each block ends and the total bytes.

    data: uint8, the uncompressed data. members: uint8 [members * stride], one member every `stride` bytes.
    member_bytes: int64 [members]. header: HEADER_START. blocks: uint8, 64 KiB per member.
    """
    count = len(member_bytes)
    shape = {"size": len(data), "header_bytes": len(header), "block_bytes": BLOCK_BYTES}
    lengths = backend.empty(count, np.int64)
    backend.launch(_MEASURE, count, member_bytes=member_bytes, lengths=lengths, **shape)
    ends, total = backend.inclusive_sum_with_total(lengths)
    arrays: dict[str, Any] = {"data": data, "header": header, "members": members, "member_bytes": member_bytes}
    shape |= {"capacity": len(blocks), "stride": len(members) // count}
    backend.launch(_WRITE, count, **arrays, ends=ends, blocks=blocks, **shape)
    return ends, total


def _batch_blocks(library: Nvcomp, backend: CudaBackend) -> int:
    """Return the number of blocks of a batch that fits in the share of free device memory."""
    blocks, max_bytes = BATCH_BLOCKS, backend.memory()[0] // SHARE // BATCHES
    while blocks > MIN_BLOCKS:
        member, scratch = library.sizes(blocks, BLOCK_BYTES, ALGORITHM)
        if blocks * (BLOCK_BYTES + member + (1 << 16)) + scratch <= max_bytes:
            break
        blocks //= 2
    return blocks


class _BatchPool:
    """Batches on all devices, which outputs use in turn, and host buffers for their blocks."""

    def __init__(self, library: Nvcomp, backends: Sequence[CudaBackend]) -> None:
        self._free: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        self.count = BATCHES * len(backends)
        sizes = [_batch_blocks(library, backend) for backend in backends]
        for _ in range(BATCHES):
            for blocks, backend in zip(sizes, backends, strict=True):
                with backend.device:
                    self._free.put(_Batch(library, blocks, backend))
        self.allocate = backends[0].host_buffer
        self._buffers: queue.SimpleQueue[Bytes] = queue.SimpleQueue()

    def take(self) -> _Batch:
        """Wait for an empty batch and return it."""
        return self._free.get()

    def compress(self, batch: _Batch) -> Blocks:
        """Compress a batch and return it to the pool; return its blocks, in a host buffer that is reused."""
        try:
            blocks, sizes = batch.compress(self._buffer)
        finally:
            self._free.put(batch)
        return Blocks([blocks[: sum(sizes)]], sizes, partial(self._buffers.put, blocks))

    def _buffer(self, nbytes: int) -> Bytes:
        """Return a host buffer, reused if one is free and large enough."""
        try:
            buffer = self._buffers.get_nowait()
        except queue.Empty:
            buffer = np.empty(0, np.uint8)
        return buffer if len(buffer) >= nbytes else self.allocate(nbytes + nbytes // SLACK)
