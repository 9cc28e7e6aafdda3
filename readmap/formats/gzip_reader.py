"""Decompress gzip in pieces: BGZF blocks by several threads, other members in sequence or by a MemberInflater.

BGZF is the blocked gzip of bgzip: each member has at most 64 KB of text and its compressed length in its header.
"""

import contextlib
import io
import itertools
import os
import stat
import struct
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar, cast

import numpy as np
from isal import igzip_lib
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.bgzf import END_OF_FILE
from readmap.formats.gzip_access_points import AccessPoint, AccessPoints

File = io.RawIOBase | io.BufferedIOBase
Piece = bytes | memoryview
Item = TypeVar("Item")
Result = TypeVar("Result")

GZIP_MAGIC = b"\x1f\x8b"
BLOCK_HEADER = struct.Struct("<4s 6x H 2s H H")
BLOCK_BYTES = 1 << 16
# Maximum size of the pieces of a member: malloc would map fresh memory for each piece of a megabyte.
PIECE_BYTES = 1 << 19
PIECES_AHEAD = 16
READ_BYTES = 1 << 17
# Minimum input to start a member with: isal 1.9 loses its state if a header is cut, and the extra field alone may have
# 65,535 bytes.
HEADER_BYTES = 80_000
# Maximum blocks of a task, to bound the text inflated ahead, and the compressed bytes per block that are read for them:
# a task has fewer blocks if they are larger.
GROUP_BLOCKS, TYPICAL_BLOCK_BYTES = 64, 1 << 13
# Without an Inflater, more threads contend for the GIL between blocks: on 16 cores 2.9 GB/s with 4, 2.4 with 16.
MAX_THREADS = 4
# Minimum threads to inflate one member in parallel: without the preceding window each takes twice as long.
MIN_THREADS = 4
# isal's stub has its exception as an instance.
IsalError = cast(type[Exception], igzip_lib.IsalError)


class Inflater(NamedTuple):
    """An implementation that inflates groups of BGZF blocks, as _BlockGroups yields them, in parallel."""

    inflate: Callable[[bytes, list[int]], memoryview | None]  # (data, ends) -> text; None if corrupt
    blocks: int = GROUP_BLOCKS  # maximum of a group
    threads: int | None = None  # maximum that call `inflate`; None for no limit


#: Creates an Inflater once a file has blocks; returns None if it is not available.
Opener = Callable[[], Inflater | None]
#: (file, first bytes, threads, points to collect, point to start at) -> the text of all members of the file, in pieces.
#: With a start point, the file is positioned at the byte of the point. Raises NotParallelizable after correct pieces if
#: the rest has to be inflated in sequence.
MemberInflater = Callable[
    [io.FileIO, bytes, int, AccessPoints | None, AccessPoint | None], Generator[memoryview, None, None]
]


class NotParallelizable(Exception):
    """The data cannot be inflated by several threads, or may be corrupt."""


def no_inflater() -> None:
    """Return None: isal inflates the data."""


class Inflaters(NamedTuple):
    """Optional faster implementations: open_blocks for BGZF blocks, open_members for other members."""

    open_blocks: Opener = no_inflater
    open_members: Callable[[], MemberInflater | None] = no_inflater


NO_INFLATERS = Inflaters()


class MissingEofBlock(DataError):
    """BGZF without its end-of-file block: it may be truncated between blocks, but some programs write none."""


def inflate(
    file: File,
    name: str,
    head: bytes,
    threads: int,
    inflaters: Inflaters = NO_INFLATERS,
    points: AccessPoints | None = None,
    done: int = 0,
) -> Generator[Piece, None, None]:
    """Yield the text of gzip data in pieces of 1 byte to 4 MiB, in order. Closing the generator ends its threads.

    head: the first 18 or more bytes, or all, which have been read from `file` already. name: for messages. threads: at
    most. With few threads, or if the data are not a file, one thread inflates gzip other than BGZF ahead. points:
    access points to collect from a regular file. done: bytes of text before the data, for messages. Raises DataError,
    after all pieces before the error, if the data are truncated, corrupt, or followed by anything but zeros;
    MissingEofBlock after all pieces.
    """
    if _block_length(head, 0):
        inflater = inflaters.open_blocks()
        max_threads = min(threads, (inflater.threads or threads) if inflater else MAX_THREADS)
        return _inflate_blocks(file, name, head, max_threads, inflater, points, done)
    is_file = isinstance(file, io.FileIO) and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    if (threads >= MIN_THREADS or points) and is_file and (by_parts := inflaters.open_members()):
        start = file.tell() - len(head)
        parts = by_parts(cast(io.FileIO, file), head, threads, points, None)
        return _with_sequential_fallback(file, name, parts, AccessPoint(done, 8 * start, start, done), points)
    members = _inflate_members(file, name, head, done, points)
    return members if threads == 1 else _produce_ahead(members)


def inflate_from(
    file: io.FileIO, name: str, point: AccessPoint, threads: int, inflaters: Inflaters
) -> Generator[Piece, None, None]:
    """Yield the text of a gzip file from an access point on, in pieces of 1 byte to 4 MiB. Raises DataError.

    If no implementation can start inside a gzip member, inflate the member from its start and skip the prefix.
    """
    if not point.is_member and (by_parts := inflaters.open_members()):
        file.seek(point.bit // 8)
        parts = by_parts(file, b"", threads, None, point)
        return _with_sequential_fallback(file, name, parts, point, None)
    file.seek(point.member)
    head = read_fully(file, BLOCK_HEADER.size)
    return _skip_text(inflate(file, name, head, threads, inflaters, None, point.member_text), point.skipped)


def read_fully(file: File, count: int) -> bytes:
    """Read `count` bytes, or fewer at the end; a single read from a pipe may return fewer before the end."""
    parts = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _inflate_members(
    file: File, name: str, data: bytes, done: int, points: AccessPoints | None = None
) -> Generator[bytes, None, None]:
    """Yield the text of members, one by one; data: bytes already read; done: bytes of text before, for messages."""
    while data:
        if points:
            points.at_member(file.tell() - len(data), done)
        if len(data) < HEADER_BYTES:
            data += read_fully(file, READ_BYTES)
        member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        while not member.eof:
            if member.needs_input:
                data = data or read_fully(file, READ_BYTES)
                if not data:
                    raise DataError(_broken_off(name, done))
            try:
                piece = member.decompress(data, PIECE_BYTES)
            except IsalError as error:
                raise _corrupt(name, done, str(error)) from None
            data = b""
            done += len(piece)
            if piece:
                yield piece
        data = _next_member(file, name, member.unused_data)


def _with_sequential_fallback(
    file: File,
    name: str,
    parts: Generator[memoryview, None, None],
    start: AccessPoint,
    points: AccessPoints | None,
) -> Generator[Piece, None, None]:
    """Yield the text of `parts`; after NotParallelizable, inflate the rest from the member at `start` on."""
    done = start.skipped
    try:
        with contextlib.closing(parts):
            for piece in parts:
                done += len(piece)
                yield piece
        return
    except NotParallelizable:
        file.seek(start.member)
    head = read_fully(file, BLOCK_HEADER.size)
    yield from _skip_text(_produce_ahead(_inflate_members(file, name, head, start.member_text, points)), done)


def _skip_text(pieces: Generator[Piece, None, None], skipped: int) -> Generator[Piece, None, None]:
    """Yield the pieces without their first `skipped` bytes."""
    with contextlib.closing(pieces):
        for whole in pieces:
            rest = memoryview(whole)[skipped:]
            skipped -= len(whole) - len(rest)
            if rest:
                yield rest


def _next_member(file: File, name: str, data: bytes) -> bytes:
    """Skip zeros; return the first bytes of the next member, b"" at the end. Raises DataError for other bytes."""
    trailing = 0
    while data := data or read_fully(file, READ_BYTES):
        rest = data.lstrip(b"\0")
        trailing += len(data) - len(rest)
        if len(rest) == 1:
            rest += read_fully(file, READ_BYTES)
        if rest.startswith(GZIP_MAGIC):
            return rest
        if rest:
            while rest:
                trailing += len(rest)
                rest = read_fully(file, READ_BYTES)
            raise DataError(f"{name}: {trailing} bytes after the end of the gzip data are not gzip")
        data = b""
    return b""


def _inflate_blocks(
    file: File,
    name: str,
    data: bytes,
    threads: int,
    inflater: Inflater | None,
    points: AccessPoints | None = None,
    done: int = 0,
) -> Generator[Piece, None, None]:
    """Yield the text of BGZF blocks, and of any other members after them; data: the first bytes, already read."""
    groups = _BlockGroups(file, data, inflater.blocks if inflater else GROUP_BLOCKS, points)
    ahead = 1 if threads == 1 else 2 * threads
    inflate_group = partial(_inflate_group, inflater)
    with contextlib.closing(_map_ahead(inflate_group, groups, threads, ahead)) as results:
        for pieces, reason in results:
            for piece in pieces:
                done += len(piece)
                yield piece
            if reason:
                raise _corrupt(name, done, reason)
    rest = _next_member(file, name, groups.rest)
    if not rest and not groups.is_marked:
        raise MissingEofBlock(f"{_broken_off(name, done)}: BGZF's end-of-file block is missing")
    yield from _inflate_members(file, name, rest, done, points)


class _BlockGroups:
    """An iterable of groups of complete blocks, (data, ends): block i is data[ends[i]:ends[i + 1]]."""

    def __init__(self, file: File, data: bytes, blocks: int, points: AccessPoints | None) -> None:
        self.rest = data  # bytes read after the last group, not a complete block
        self._points = points
        self._blocks = blocks
        self.is_marked = False  # whether the last block is an end-of-file block
        self._file = file

    def __iter__(self) -> Iterator[tuple[bytes, list[int]]]:
        text = 0
        while True:
            data = self.rest + read_fully(self._file, max(max_group_bytes(self._blocks) - len(self.rest), 0))
            ends = [0]
            while len(ends) <= self._blocks and (length := _block_length(data, ends[-1])):
                if ends[-1] + length > len(data):
                    break
                ends.append(ends[-1] + length)
            self.rest = data[ends[-1] :]
            if len(ends) == 1:
                return
            self.is_marked = data[ends[-2] : ends[-1]] == END_OF_FILE
            if self._points:
                self._points.at_member(self._file.tell() - len(data), text)
                # A block whose text has another size is corrupt, and the points are not used.
                text += int(declared_sizes(np.frombuffer(data, np.uint8), np.array(ends)).sum())
            yield data, ends


def max_group_bytes(blocks: int) -> int:
    """Return the compressed bytes that are read for a group of at most `blocks` blocks."""
    return blocks * TYPICAL_BLOCK_BYTES


def declared_sizes(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the text size in the trailer of each block of a group, at most BLOCK_BYTES: int64 [blocks]."""
    sizes: NDArray[np.uint32] = data[ends[1:, None] - np.arange(4, 0, -1)].view("<u4")
    return np.minimum(sizes, BLOCK_BYTES).astype(np.int64).reshape(-1)


def _block_length(data: bytes, start: int) -> int:
    """Return the length of the BGZF block at `start` (SAM specification, section 4.1); 0 if no block starts there."""
    if len(data) - start < BLOCK_HEADER.size:
        return 0
    magic, extra_length, field, field_length, length = BLOCK_HEADER.unpack_from(data, start)
    is_block = (magic, extra_length, field, field_length) == (b"\x1f\x8b\x08\x04", 6, b"BC", 2)
    return int(length) + 1 if is_block else 0


def _inflate_group(inflater: Inflater | None, group: tuple[bytes, list[int]]) -> tuple[list[Piece], str]:
    """Inflate blocks, (data, ends); return the texts before the first corrupt block, and its error or ''."""
    data, ends = group
    if inflater and (contents := inflater.inflate(data, ends)) is not None:
        return [contents] if contents else [], ""
    view = memoryview(data)
    pieces: list[Piece] = []
    try:
        for start, end in itertools.pairwise(ends):
            piece = igzip_lib.decompress(view[start:end], igzip_lib.DECOMP_GZIP, bufsize=BLOCK_BYTES)
            if piece:
                pieces.append(piece)
    except IsalError as error:
        return pieces, str(error)
    return pieces, ""


def _produce_ahead(pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """Yield the pieces, while a thread produces the next PIECES_AHEAD pieces."""
    made = _map_ahead(lambda source: next(source, b""), itertools.repeat(pieces), 1, PIECES_AHEAD)
    with contextlib.closing(made):
        yield from itertools.takewhile(len, made)


def _map_ahead(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int
) -> Generator[Result, None, None]:
    """Yield function(item) of all items in order, while threads compute up to `ahead` items ahead."""
    if ahead == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) == ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _broken_off(name: str, done: int) -> str:
    return f"{name}: unexpected end of the compressed data after {done:,} inflated bytes"


def _corrupt(name: str, done: int, reason: str) -> DataError:
    return DataError(f"{name}: the gzip data are corrupt after {done:,} inflated bytes ({reason})")
