"""Output as BGZF, the blocked gzip of bgzip and BAM, compressed by several threads."""

import abc
import errno
import os
import queue
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from deflate import gzip_compress
from numpy.typing import NDArray

from readmap.formats.output import ByteSink

# Level of libdeflate. Measured on SAM and BAM of real reads: level 1 compresses 170 to 210 MB/s per thread by a factor
# of 2.4 to 2.8; level 2 has two thirds of its speed and saves up to 6%. isal is nearly twice as fast with the same
# sizes, but its output differs between runs; level 6 of zlib has an eighth of the speed.
LEVEL = 1
# Text of a block, as in bgzip: even a stored block has less than 64 KiB with its header and trailer.
BLOCK_BYTES = 65_280
# Blocks of a task and of a copy buffer: whole blocks, so that the file does not depend on the grouping.
GROUP_BLOCKS = 16
GROUP_BYTES = GROUP_BLOCKS * BLOCK_BYTES
# Pending groups per thread: the current and the next, so that no thread waits for the caller.
GROUPS_A_THREAD = 2
# SAM specification, section 4.1: gzip with an extra field "BC", the length of the block minus 1.
HEADER = struct.Struct("<16s H")
HEADER_START = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200")
END_OF_FILE = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200 1b00 0300 00000000 00000000")
# Sizes of the header of gzip, and of its trailer: CRC-32 and length of the text.
GZIP_HEADER_BYTES, TRAILER_BYTES = 10, 8
# Header of a stored deflate block: the flag of the last block, the length, and its complement.
STORED = struct.Struct("<B H H")


Bytes = NDArray[np.uint8]


class Blocks(NamedTuple):
    """BGZF blocks."""

    data: Sequence[bytes | Bytes]  # their bytes, in parts
    sizes: list[int]  # bytes of each block
    release: Callable[[], None] = lambda: None  # called when the parts have been read


#: (consecutive parts, level of libdeflate) -> their blocks. All parts but the last of a stream are whole blocks long.
Compress = Callable[[Sequence[Bytes], int], Blocks]


class BlockOutput(ByteSink):
    """An output of BGZF blocks, compressed in groups by threads and written in order to another output."""

    #: Allocates uint8 [nbytes] that `write_borrowed` reads fastest.
    buffer: Callable[[int], Bytes] = staticmethod(lambda nbytes: np.empty(nbytes, np.uint8))

    def __init__(self, output: ByteSink, threads: int, max_pending: int) -> None:
        """output: committed and aborted with this one. threads: that compress. max_pending: groups not yet written."""
        self.name = output.name
        self.block_sizes: list[int] = []  # bytes of each block written so far
        self._output = output
        self._pool = ThreadPoolExecutor(threads, "readmap-compress")
        # One more thread writes, in order.
        self._writer = ThreadPoolExecutor(1, "readmap-blocks")
        self._pending: deque[Future[None]] = deque()
        self._max_pending = max_pending
        self._has_failed = False
        self._is_ended = False

    @abc.abstractmethod
    def _flush(self) -> None:
        """Submit the data that have not been submitted."""

    def finish(self) -> None:
        """Compress and write the remaining data and the end-of-file block, and finish the underlying output."""
        if not self._is_ended:
            self._flush()
            while self._pending:
                self._pending.popleft().result()
            self._output.write(END_OF_FILE)
            self._shut_down()
        self._output.finish()

    def commit(self) -> None:
        self.finish()
        self._output.commit()

    def abort(self) -> None:
        """Abort the other output, after the groups being compressed, which take milliseconds."""
        self._shut_down()
        self._output.abort()

    def _expect_open(self) -> None:
        if self._is_ended:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.name)

    def _submit(self, make: Callable[[], Blocks]) -> Future[Blocks]:
        """Let threads call `make` and write its blocks; wait if max_pending are pending. Raises earlier errors."""
        if len(self._pending) == self._max_pending:
            self._pending.popleft().result()
        blocks = self._pool.submit(make)
        self._pending.append(self._writer.submit(self._write, blocks))
        return blocks

    def _write(self, future: Future[Blocks]) -> None:
        """Write and release the blocks of a group; do nothing after an error in an earlier group, or the end."""
        if self._has_failed or self._is_ended:
            return
        self._has_failed = True
        blocks = future.result()
        for data in blocks.data:
            self._output.write(data)
        self.block_sizes += blocks.sizes
        self._has_failed = False
        blocks.release()

    def _shut_down(self) -> None:
        """End the threads, and drop groups that are not being compressed or written."""
        self._is_ended = True
        # Do not wait: the reader of a pipe may never continue.
        self._writer.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(cancel_futures=True)


class BgzfOutput(BlockOutput):
    """A BlockOutput compressed by CPU threads, each with about 3 MB of memory; the bytes depend on the data alone."""

    def __init__(self, output: ByteSink, threads: int, level: int = LEVEL, compress: Compress | None = None) -> None:
        """level: of libdeflate, 1 to 12. compress: default: libdeflate's Python package."""
        super().__init__(output, threads, GROUPS_A_THREAD * threads)
        self._level, self._compress = level, compress or compress_with_package
        # Whole blocks of the next group, and the functions to call when they have been read.
        self._group: list[tuple[Bytes, Callable[[], None]]] = []
        # Buffers for reuse: fresh memory takes longer than the copy into it.
        self._free: queue.SimpleQueue[Bytes] = queue.SimpleQueue()
        self._copied = self._take_buffer()
        self._filled = 0

    def write(self, data: memoryview | bytes | Bytes) -> None:
        """Append all of `data`, which may be overwritten then. Raises errors of writing, now or in a later call."""
        self._expect_open()
        # Copied, by NumPy, which releases the GIL: otherwise the threads would have to finish with the caller's data,
        # and idle, at the end of each write.
        data = np.frombuffer(data, np.uint8)
        while len(data):
            count = min(len(data), len(self._copied) - self._filled)
            self._copied[self._filled : self._filled + count] = data[:count]
            self._filled += count
            data = data[count:]
            if self._filled == len(self._copied):
                self._add_copied()

    def write_borrowed(self, data: Bytes, release: Callable[[], None]) -> None:
        """Append all of `data`, almost without a copy, and call `release` when all of it has been read."""
        head = min(-self._filled % BLOCK_BYTES, len(data))
        self.write(data[:head])
        whole = head + (len(data) - head) // BLOCK_BYTES * BLOCK_BYTES
        if whole > head and self._filled:
            self._add_copied()
        starts = range(head - self._group_size(), whole, GROUP_BYTES) if whole > head else range(0)
        release_part = _Countdown(len(starts) + 1, release)
        for start in starts:
            self._add_to_group(data[max(start, head) : min(start + GROUP_BYTES, whole)], release_part)
        self._submit_group()
        self.write(data[whole:])
        release_part()

    def _flush(self) -> None:
        if self._filled:
            self._add_copied()
        self._submit_group()

    def _add_copied(self) -> None:
        self._add_to_group(self._copied[: self._filled], partial(self._free.put, self._copied))
        self._copied = self._take_buffer()
        self._filled = 0

    def _take_buffer(self) -> Bytes:
        """Return a buffer of GROUP_BYTES bytes, reused if one is free."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return np.empty(GROUP_BYTES, np.uint8)

    def _add_to_group(self, data: Bytes, release: Callable[[], None]) -> None:
        """Add data to the group, and submit the group when it is complete; `release` is called after reading."""
        self._group.append((data, release))
        if self._group_size() >= GROUP_BYTES:
            self._submit_group()

    def _group_size(self) -> int:
        return sum(len(data) for data, _ in self._group)

    def _submit_group(self) -> None:
        """Start to compress the group, if it is not empty; call its `release` functions when it has been read."""
        if not self._group:
            return
        group, self._group = self._group, []
        blocks = self._submit(partial(self._compress, [data for data, _ in group], self._level))

        def release_all(_: object) -> None:
            for _, release in group:
                release()

        blocks.add_done_callback(release_all)


class _Countdown:
    """A function that calls another one when it has been called `count` times, from any threads."""

    def __init__(self, count: int, function: Callable[[], None]) -> None:
        self._count, self._function = count, function
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._count -= 1
            is_last = not self._count
        if is_last:
            self._function()


def compress_with_package(parts: Sequence[Bytes], level: int) -> Blocks:
    """Compress a group of parts to BGZF blocks with libdeflate's Python package; level: 1 to 12."""
    texts = (part[start : start + BLOCK_BYTES] for part in parts for start in range(0, len(part), BLOCK_BYTES))
    blocks = [_block(text.data, level) for text in texts]
    return Blocks([b"".join(map(b"".join, blocks))], [sum(map(len, block)) for block in blocks])


def _block(data: memoryview, level: int) -> list[bytes | bytearray | memoryview]:
    """Return the BGZF block of at most BLOCK_BYTES bytes, in pieces to concatenate; stored if that is not larger."""
    # gzip_compress also computes the checksum: each further call would wait for the GIL.
    compressed = memoryview(gzip_compress(data, level))
    contents: list[bytes | bytearray | memoryview] = [compressed[GZIP_HEADER_BYTES:-TRAILER_BYTES]]
    length = len(contents[0])
    if length >= STORED.size + len(data):
        contents = [STORED.pack(1, len(data), len(data) ^ 0xFFFF), data]
        length = STORED.size + len(data)
    header = HEADER.pack(HEADER_START, HEADER.size + length + TRAILER_BYTES - 1)
    return [header, *contents, compressed[-TRAILER_BYTES:]]


class Codec(NamedTuple):
    """An implementation of BGZF compression."""

    name: str
    open: Callable[[ByteSink, int, int], BlockOutput]  # (output, threads, level of libdeflate) -> compressing output
