"""Output as blocked gzip (BGZF), as bgzip writes it and BAM is made of: blocks that several threads compress."""

from __future__ import annotations

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

# libdeflate's level 1, measured on SAM and BAM of real reads: 170 to 210 MB/s a thread, 2.4 to 2.8 times smaller; level
# 2 has two thirds of its speed and saves up to 6%. isal is nearly twice as fast and makes files as small, but its
# codes differ between runs; zlib's level 6 has an eighth of the speed.
LEVEL = 1

# bgzip's: a block, stored if need be, has less than 64 KiB with its header and trailer.
BLOCK_BYTES = 65_280

# What a thread takes at a time: whole blocks, so that the groups do not show in the file. What is copied is held in
# buffers of as many.
GROUP_BLOCKS = 16
GROUP_BYTES = GROUP_BLOCKS * BLOCK_BYTES

# Groups under way for each thread: the one in work, and the next, so that no thread waits for the caller.
GROUPS_A_THREAD = 2

# SAM specification, section 4.1: gzip with an extra field, "BC", that has the length of the block less 1.
HEADER = struct.Struct("<16s H")
HEADER_START = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200")
END_OF_FILE = bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200 1b00 0300 00000000 00000000")

# What gzip has around the compressed bytes: a header, and behind them CRC-32 and length of the contents.
GZIP_HEADER_BYTES, TRAILER_BYTES = 10, 8
# A deflate block of bytes as they are: the last one, of this length, and the length's complement.
STORED = struct.Struct("<B H H")


Bytes = NDArray[np.uint8]


class Blocks(NamedTuple):
    """Blocks of BGZF.

    data: their bytes, in pieces. sizes: the bytes of each. done: to be called when the pieces have been read.
    """

    data: Sequence[bytes | Bytes]
    sizes: list[int]
    done: Callable[[], None] = lambda: None


#: The blocks of some parts, which follow each other; all but the last of a stream are as long as whole blocks. The
#: level is libdeflate's.
Compress = Callable[[Sequence[Bytes], int], Blocks]


class BlockOutput(ByteSink):
    """An output of blocks, groups of which threads make; they are written in order to another output.

    name: what messages call it: the other output's name.
    block_sizes: bytes of each block that has been written.
    buffer: allocates memory, uint8 [nbytes], from which what is lent is read fastest.
    """

    buffer: Callable[[int], Bytes] = staticmethod(lambda nbytes: np.empty(nbytes, np.uint8))

    def __init__(self, output: ByteSink, threads: int, max_pending: int) -> None:
        """output: committed and aborted with this one. threads: that make groups. max_pending: groups under way."""
        self.name = output.name
        self.block_sizes: list[int] = []
        self._output = output
        self._pool = ThreadPoolExecutor(threads, "readmap-compress")
        # A thread of its own writes, in order, while others compress.
        self._writer = ThreadPoolExecutor(1, "readmap-blocks")
        self._waiting: deque[Future[None]] = deque()
        self._max_pending = max_pending
        self._has_failed = False
        self._is_ended = False

    @abc.abstractmethod
    def _make_rest(self) -> None:
        """Have the blocks of what is left made."""

    def finish(self) -> None:
        """Writes what is left and the end-of-file block, and finishes the other output.

        Raises OSError that names the output; then it is still to be aborted.
        """
        if not self._is_ended:
            self._make_rest()
            while self._waiting:
                self._waiting.popleft().result()
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

    def _expect_open(self) -> None:
        """Raises OSError where the output has ended."""
        if self._is_ended:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.name)

    def _make(self, make: Callable[[], Blocks]) -> Future[Blocks]:
        """Have the next group made and written, once not too many others wait. Raises what writing one raises."""
        if len(self._waiting) == self._max_pending:
            self._waiting.popleft().result()
        blocks = self._pool.submit(make)
        self._waiting.append(self._writer.submit(self._write, blocks))
        return blocks

    def _write(self, coming: Future[Blocks]) -> None:
        """Write blocks behind those before; nothing once that has failed, which the caller hears of, or has ended."""
        if self._has_failed or self._is_ended:
            return
        self._has_failed = True
        blocks = coming.result()
        for data in blocks.data:
            self._output.write(data)
        self.block_sizes += blocks.sizes
        self._has_failed = False
        blocks.done()

    def _end(self) -> None:
        self._is_ended = True
        # Who reads a pipe may never read on.
        self._writer.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(cancel_futures=True)


class BgzfOutput(BlockOutput):
    """An output that threads of the host compress on its way to another.

    The bytes depend on the data alone, not on the pieces that they come in nor on the number of threads. A thread
    takes about 3 MB of memory.
    """

    def __init__(self, output: ByteSink, threads: int, level: int = LEVEL, compress: Compress | None = None) -> None:
        """level: libdeflate's, 1 to 12. compress: makes a group; None takes libdeflate's Python package."""
        super().__init__(output, threads, GROUPS_A_THREAD * threads)
        self._level, self._compress = level, compress or compress_with_package
        # Whole blocks that are compressed next, and who is to hear when they have been read.
        self._group: list[tuple[Bytes, Callable[[], None]]] = []
        # Buffers that have been read: fresh memory takes longer than what is copied into it.
        self._free: queue.SimpleQueue[Bytes] = queue.SimpleQueue()
        self._copied = self._empty_buffer()
        self._filled = 0

    def write(self, data: memoryview | bytes | Bytes) -> None:
        """Appends all of `data`, contiguous and one byte an item; on return it may be overwritten.

        Raises what the other output's write raises, then or later; then it is still to be aborted.
        """
        self._expect_open()
        # A copy, by numpy, as it lets the compressing threads run meanwhile: without it they would have to finish
        # with the caller's data, and be idle, at the end of every piece.
        data = np.frombuffer(data, np.uint8)
        while len(data):
            count = min(len(data), len(self._copied) - self._filled)
            self._copied[self._filled : self._filled + count] = data[:count]
            self._filled += count
            data = data[count:]
            if self._filled == len(self._copied):
                self._add_copied()

    def write_borrowed(self, data: Bytes, done: Callable[[], None]) -> None:
        """As `write`, almost without a copy: the bytes stay as they are until `done` is called, without another write.

        Raises what `write` does.
        """
        head = min(-self._filled % BLOCK_BYTES, len(data))
        self.write(data[:head])
        whole = head + (len(data) - head) // BLOCK_BYTES * BLOCK_BYTES
        if whole > head and self._filled:
            self._add_copied()
        begins = range(head - self._room_taken(), whole, GROUP_BYTES) if whole > head else range(0)
        left = _Countdown(len(begins) + 1, done)
        for begin in begins:
            self._add(data[max(begin, head) : min(begin + GROUP_BYTES, whole)], left)
        self._compress_group()
        self.write(data[whole:])
        left()

    def _make_rest(self) -> None:
        if self._filled:
            self._add_copied()
        self._compress_group()

    def _add_copied(self) -> None:
        """Add what has been copied to the group."""
        self._add(self._copied[: self._filled], partial(self._free.put, self._copied))
        self._copied = self._empty_buffer()
        self._filled = 0

    def _empty_buffer(self) -> Bytes:
        """There are about as many as groups are under way."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return np.empty(GROUP_BYTES, np.uint8)

    def _add(self, data: Bytes, done: Callable[[], None]) -> None:
        """Add some data to the group, which is compressed as soon as it is whole."""
        self._group.append((data, done))
        if self._room_taken() >= GROUP_BYTES:
            self._compress_group()

    def _room_taken(self) -> int:
        return sum(len(data) for data, _ in self._group)

    def _compress_group(self) -> None:
        """Have the group compressed."""
        if not self._group:
            return
        group, self._group = self._group, []
        blocks = self._make(partial(self._compress, [data for data, _ in group], self._level))
        for _, done in group:
            blocks.add_done_callback(partial(_call, done))


class _Countdown:
    """Calls a function when it has itself been called so many times, by any threads."""

    def __init__(self, count: int, done: Callable[[], None]) -> None:
        self._count, self._done = count, done
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._count -= 1
            is_last = not self._count
        if is_last:
            self._done()


def _call(done: Callable[[], None], _: object) -> None:
    done()


def compress_with_package(parts: Sequence[Bytes], level: int) -> Blocks:
    """A group of blocks, by libdeflate's Python package."""
    blocks = [
        _block(part[start : start + BLOCK_BYTES].data, level)
        for part in parts
        for start in range(0, len(part), BLOCK_BYTES)
    ]
    return Blocks([b"".join(map(b"".join, blocks))], [sum(map(len, block)) for block in blocks])


def _block(data: memoryview, level: int) -> list[bytes | bytearray | memoryview]:
    """The block of at most BLOCK_BYTES bytes, in parts."""
    # One call has the checksum too: a thread waits for Python's lock behind each.
    compressed = memoryview(gzip_compress(data, level))
    contents: list[bytes | bytearray | memoryview] = [compressed[GZIP_HEADER_BYTES:-TRAILER_BYTES]]
    length = len(contents[0])
    if length >= STORED.size + len(data):
        contents = [STORED.pack(1, len(data), len(data) ^ 0xFFFF), data]
        length = STORED.size + len(data)
    header = HEADER.pack(HEADER_START, HEADER.size + length + TRAILER_BYTES - 1)
    return [header, *contents, compressed[-TRAILER_BYTES:]]


class Codec(NamedTuple):
    """What makes blocks.

    name: for reports. open: an output that it compresses on its way to another, by threads, with a level of
    libdeflate's.
    """

    name: str
    open: Callable[[ByteSink, int, int], BlockOutput]
