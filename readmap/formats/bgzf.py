"""Output as blocked gzip (BGZF), as bgzip writes it and BAM is made of: blocks that several threads compress."""

from __future__ import annotations

import errno
import os
import queue
import struct
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from deflate import gzip_compress
from numpy.typing import NDArray

from readmap.formats.output import ByteSink

# libdeflate's level 1, measured on SAM and BAM of real reads: 170 to 210 MB/s a thread, 2.4 to 2.8 times smaller; level
# 2 has two thirds of its speed and saves up to 6%. isal is nearly twice as fast and makes files as small, but its
# codes differ between runs; zlib's level 6 has an eighth of the speed.
LEVEL = 1

# bgzip's: a block, stored if need be, has less than 64 KiB with its header and trailer.
BLOCK_BYTES = 65_280

# What a thread takes at a time: whole blocks, so that the groups do not show in the file.
GROUP_BLOCKS = 16

# Groups under way for each thread: the one in work, and the next, so that no thread waits for the caller.
GROUPS_A_THREAD = 2

# SAM specification, section 4.1: gzip with an extra field, "BC", that has the length of the block less 1.
HEADER = struct.Struct("<16s H")
HEADER_BEGIN = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200")
END_OF_FILE = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200 1b00 0300 00000000 00000000")

# What gzip has around the compressed bytes: a header, and behind them CRC-32 and length of the contents.
GZIP_HEADER_BYTES, TRAILER_BYTES = 10, 8
# A deflate block of bytes as they are: the last one, of this length, and the length's complement.
STORED = struct.Struct("<B H H")


class Codec(NamedTuple):
    """What makes blocks.

    name: for reports. compress: the blocks of some data, one behind the other, and the bytes of each; the level is
    libdeflate's. blocks: of a group, which is compressed together. threads: most that compress; None for all.
    """

    name: str
    compress: Callable[[NDArray[np.uint8], int], tuple[bytes | NDArray[np.uint8], list[int]]]
    blocks: int = GROUP_BLOCKS
    threads: int | None = None


class BgzfOutput(ByteSink):
    """An output that is compressed on its way to another.

    The bytes depend on the data alone, not on the pieces that they come in nor on the number of threads. A thread
    takes about 3 MB of memory.
    name: what messages call it: the other output's name.
    block_sizes: bytes of each block that has been written.
    """

    def __init__(self, output: ByteSink, threads: int, level: int = LEVEL, codec: Codec | None = None) -> None:
        """output: committed and aborted with this one. threads: that compress. level: libdeflate's, 1 to 12.

        codec: what compresses; None takes libdeflate's Python package.
        """
        self.name = output.name
        self.block_sizes: list[int] = []
        self._output = output
        self._level = level
        self._codec = codec or PYTHON_CODEC
        threads = min(threads, self._codec.threads or threads)
        self._pool = ThreadPoolExecutor(threads, "readmap-compress")
        self._waiting: deque[Future[tuple[bytes | NDArray[np.uint8], list[int]]]] = deque()
        self._most_waiting = GROUPS_A_THREAD * threads
        self._group_bytes = self._codec.blocks * BLOCK_BYTES
        # Those that have been read: fresh memory takes longer than what is copied into it.
        self._free: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()
        self._group = self._empty_group()
        self._filled = 0
        self._is_ended = False

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Appends all of `data`, contiguous and one byte an item; on return it may be overwritten.

        Raises what the other output's write raises, then or later; then it is still to be aborted.
        """
        if self._is_ended:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.name)
        # A copy, by numpy, as it lets the compressing threads run meanwhile: without it they would have to finish
        # with the caller's data, and be idle, at the end of every piece.
        data = np.frombuffer(data, np.uint8)
        copied = 0
        while copied < len(data):
            count = min(len(data) - copied, self._group_bytes - self._filled)
            self._group[self._filled : self._filled + count] = data[copied : copied + count]
            self._filled += count
            copied += count
            if self._filled == self._group_bytes:
                self._compress_group()

    def lend(self, data: NDArray[np.uint8], done: Callable[[], None]) -> None:
        """As `write`, without a copy: the bytes stay as they are until `done` is called. Raises what `write` does."""
        head = min((self._group_bytes - self._filled) % self._group_bytes, len(data))
        self.write(data[:head])
        ends = range(head + self._group_bytes, len(data) + 1, self._group_bytes)
        left = _Countdown(len(ends) + 1, done)
        for end in ends:
            self._compress(data[end - self._group_bytes : end], left)
        self.write(data[ends[-1] if ends else head :])
        left()

    def finish(self) -> None:
        """Writes what is left and the end-of-file block, and finishes the other output.

        Raises OSError that names the output; then it is still to be aborted.
        """
        if not self._is_ended:
            if self._filled:
                self._compress_group()
            while self._waiting:
                self._write_first()
            self._output.write(END_OF_FILE)
            self._end()
        self._output.finish()

    def commit(self) -> None:
        """Finishes both outputs, and commits the other one. Raises OSError as `finish` does."""
        self.finish()
        self._output.commit()

    def abort(self) -> None:
        """Aborts the other output. Waits for the groups in work only, some milliseconds."""
        self._end()
        self._output.abort()

    def _compress_group(self) -> None:
        """Has the group compressed, and begins another."""
        self._compress(self._group[: self._filled], _Countdown(1, partial(self._free.put, self._group)))
        self._group = self._empty_group()
        self._filled = 0

    def _empty_group(self) -> NDArray[np.uint8]:
        """Room for a group: there is as much as groups are under way."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return np.empty(self._group_bytes, np.uint8)

    def _compress(self, data: NDArray[np.uint8], left: _Countdown) -> None:
        """Has some data compressed, once not too many groups wait; left: hears when they have been read."""
        if len(self._waiting) == self._most_waiting:
            self._write_first()
        blocks = self._pool.submit(self._codec.compress, data, self._level)
        blocks.add_done_callback(left)
        self._waiting.append(blocks)

    def _write_first(self) -> None:
        # By the caller's thread, so that errors are raised there.
        data, sizes = self._waiting.popleft().result()
        self.block_sizes += sizes
        self._output.write(data)

    def _end(self) -> None:
        self._is_ended = True
        self._pool.shutdown(cancel_futures=True)


class _Countdown:
    """Calls a function when it has itself been called so many times, by any threads."""

    def __init__(self, count: int, done: Callable[[], None]) -> None:
        self._count, self._done = count, done
        self._lock = threading.Lock()

    def __call__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            is_last = not self._count
        if is_last:
            self._done()


def compress(data: NDArray[np.uint8], level: int) -> tuple[bytes, list[int]]:
    """The blocks of the data, one behind the other, and the bytes of each."""
    parts: list[bytes | bytearray | memoryview] = []
    sizes = []
    for start in range(0, len(data), BLOCK_BYTES):
        block = _block(data[start : start + BLOCK_BYTES].data, level)
        parts += block
        sizes.append(sum(map(len, block)))
    return b"".join(parts), sizes


def _block(data: memoryview, level: int) -> list[bytes | bytearray | memoryview]:
    """The block of at most BLOCK_BYTES bytes, in parts."""
    # One call has the checksum too: a thread waits for Python's lock behind each.
    compressed = memoryview(gzip_compress(data, level))
    contents: list[bytes | bytearray | memoryview] = [compressed[GZIP_HEADER_BYTES:-TRAILER_BYTES]]
    length = len(contents[0])
    if length >= STORED.size + len(data):
        contents = [STORED.pack(1, len(data), len(data) ^ 0xFFFF), data]
        length = STORED.size + len(data)
    header = HEADER.pack(HEADER_BEGIN, HEADER.size + length + TRAILER_BYTES - 1)
    return [header, *contents, compressed[-TRAILER_BYTES:]]


PYTHON_CODEC = Codec("libdeflate", compress)
