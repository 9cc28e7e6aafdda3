"""The contents of gzip data in pieces: members one after the other, the blocks of blocked gzip by several threads.

Blocked gzip is bgzip's: every member holds at most 64 KB and has its own length in its header.
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
# Inflated bytes of a member come in pieces of this size at most: of a megabyte, each would be fresh memory.
PIECE_BYTES = 1 << 19
PIECES_AHEAD = 16
READ_BYTES = 1 << 17
# The least input a member starts with: isal 1.9 forgets what it knows of a header that its input cuts, and the
# extra field alone may have 65,535 bytes.
HEADER_BYTES = 80_000
# Blocks that one thread takes at a time: no more, since what is inflated ahead is bounded; and fewer where these have
# more compressed bytes than this a block.
GROUP_BLOCKS, USUAL_BYTES = 64, 1 << 13
# Without an Inflater more threads wait for each other's interpreter lock between blocks: on 16 cores 2.9 GB/s with 4,
# 2.4 with 16.
MAX_THREADS = 4
# Of which several inflate one member: each takes twice as long as one that knows what is in front.
MIN_THREADS = 4
# isal's stub has its exception as an instance.
IsalError = cast(type[Exception], igzip_lib.IsalError)


class Inflater(NamedTuple):
    """What inflates blocks.

    inflate: the contents of some blocks, given as a group of _BlockGroups is; None where one of them is corrupt.
    blocks: most that are inflated together. threads: most that inflate; None for all.
    """

    inflate: Callable[[bytes, list[int]], memoryview | None]
    blocks: int = GROUP_BLOCKS
    threads: int | None = None


#: Opens one where there are blocks; None where there is none.
Opener = Callable[[], Inflater | None]

#: The contents, in pieces, of all members of a file whose first bytes are given, by some threads; raises NotParallelizable where
#: it leaves that to others, behind pieces that are right. It keeps the points that are asked for, or begins at a point
#: where one is given, whose first byte the file is at.
MemberInflater = Callable[[io.FileIO, bytes, int, AccessPoints | None, AccessPoint | None], Generator[memoryview, None, None]]


class NotParallelizable(Exception):
    """Nothing that several threads can inflate, or something is wrong."""


def no_inflater() -> None:
    """Blocks are inflated here."""


class Inflaters(NamedTuple):
    """What inflates in less time than it is done here.

    open_blocks: opens what inflates blocks. open_members: opens what inflates other members; None where there is none.
    """

    open_blocks: Opener = no_inflater
    open_members: Callable[[], MemberInflater | None] = no_inflater


NO_INFLATERS = Inflaters()


class MissingEofBlock(DataError):
    """Blocked gzip without its end-of-file block: it may be cut short between blocks, but some programs write none."""


def inflate(
    file: File,
    name: str,
    head: bytes,
    threads: int,
    inflaters: Inflaters = NO_INFLATERS,
    points: AccessPoints | None = None,
    done: int = 0,
) -> Generator[Piece, None, None]:
    """The contents of gzip data in pieces of 1 byte to 4 MiB, in order.

    head: the first 18 bytes of the data, or more, or all there are, already read from `file`. name: for messages.
    threads: the most that inflate. Other gzip than blocked one is inflated ahead by one thread if there are few, and
    if it comes from elsewhere than a file. points: to be kept of a regular file; of other gzip by parts. done: bytes of
    text in front, for messages.
    Raises DataError where the data break off, are corrupt, or are followed by anything but zeros, after the
    pieces before that place; MissingEofBlock behind all of them. Closing the generator ends the threads.
    """
    if _block_length(head, 0):
        inflater = inflaters.open_blocks()
        most = min(threads, (inflater.threads or threads) if inflater else MAX_THREADS)
        return _inflate_blocks(file, name, head, most, inflater, points, done)
    is_file = isinstance(file, io.FileIO) and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    if (threads >= MIN_THREADS or points) and is_file and (by_parts := inflaters.open_members()):
        start = file.tell() - len(head)
        parts = by_parts(cast(io.FileIO, file), head, threads, points, None)
        return _or_members(file, name, parts, AccessPoint(done, 8 * start, start, done), points)
    members = _inflate_members(file, name, head, done, points)
    return members if threads == 1 else _one_ahead(members)


def inflate_from(
    file: io.FileIO, name: str, point: AccessPoint, threads: int, inflaters: Inflaters
) -> Generator[Piece, None, None]:
    """The contents of a file of gzip from a point on, as `inflate` gives them.

    Where nothing begins within a member, that is inflated from its begin on.
    """
    if not point.is_member and (by_parts := inflaters.open_members()):
        file.seek(point.bit // 8)
        parts = by_parts(file, b"", threads, None, point)
        return _or_members(file, name, parts, point, None)
    file.seek(point.member)
    head = read_fully(file, BLOCK_HEADER.size)
    return _behind(inflate(file, name, head, threads, inflaters, None, point.member_text), point.skipped)


def read_fully(file: File, count: int) -> bytes:
    """The next `count` bytes, or fewer at the end: pipes give what they hold, which may be less than is to come."""
    parts = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _inflate_members(
    file: File, name: str, data: bytes, done: int, points: AccessPoints | None = None
) -> Generator[bytes, None, None]:
    """The contents of members one after the other.

    data: the first bytes of a member, already read. done: bytes delivered before, for messages.
    """
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


def _or_members(
    file: File,
    name: str,
    parts: Generator[memoryview, None, None],
    begin: AccessPoint,
    points: AccessPoints | None,
) -> Generator[Piece, None, None]:
    """The contents of members by parts, as far as that goes, then one after the other.

    begin: of the first part; its member is inflated again where parts do not go further.
    """
    done = begin.skipped
    try:
        with contextlib.closing(parts):
            for piece in parts:
                done += len(piece)
                yield piece
        return
    except NotParallelizable:
        file.seek(begin.member)
    head = read_fully(file, BLOCK_HEADER.size)
    yield from _behind(_one_ahead(_inflate_members(file, name, head, begin.member_text, points)), done)


def _behind(pieces: Generator[Piece, None, None], skipped: int) -> Generator[Piece, None, None]:
    """The same pieces without the first so many bytes."""
    with contextlib.closing(pieces):
        for whole in pieces:
            rest = memoryview(whole)[skipped:]
            skipped -= len(whole) - len(rest)
            if rest:
                yield rest


def _next_member(file: File, name: str, data: bytes) -> bytes:
    """The first bytes of the member that follows, or nothing at the end. Zeros that pad the file are skipped."""
    behind = 0
    while data := data or read_fully(file, READ_BYTES):
        rest = data.lstrip(b"\0")
        behind += len(data) - len(rest)
        if len(rest) == 1:
            rest += read_fully(file, READ_BYTES)
        if rest.startswith(GZIP_MAGIC):
            return rest
        if rest:
            while rest:
                behind += len(rest)
                rest = read_fully(file, READ_BYTES)
            raise DataError(f"{name}: the file carries {behind} bytes that are not gzip behind its end")
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
    """The contents of blocked gzip. From where it is no longer in whole blocks, it is inflated as any gzip."""
    groups = _BlockGroups(file, data, inflater.blocks if inflater else GROUP_BLOCKS, points)
    ahead = 1 if threads == 1 else 2 * threads
    inflate_group = partial(_inflate_group, inflater)
    with contextlib.closing(_ahead(inflate_group, groups, threads, ahead)) as results:
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
    """An iterable of groups of whole blocks, (data, ends): block i is data[ends[i]:ends[i + 1]].

    rest: behind the last group, what was read and is no whole block.
    is_marked: whether the last block is that which ends a file.
    """

    def __init__(self, file: File, data: bytes, blocks: int, points: AccessPoints | None) -> None:
        """data: read already. blocks: most of a group. points: kept where groups begin."""
        self.rest = data
        self._points = points
        self._blocks = blocks
        self.is_marked = False
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
                # Where a block does not hold what it says, it is corrupt.
                text += int(declared_sizes(np.frombuffer(data, np.uint8), np.array(ends)).sum())
            yield data, ends


def max_group_bytes(blocks: int) -> int:
    """Compressed bytes of groups of so many blocks at most, but for what was read before."""
    return blocks * USUAL_BYTES


def declared_sizes(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each block says at its end that it holds, int64 [blocks], no more than it may; they are given as a group."""
    told: NDArray[np.uint32] = data[ends[1:, None] - np.arange(4, 0, -1)].view("<u4")
    return np.minimum(told, BLOCK_BYTES).astype(np.int64).reshape(-1)


def _block_length(data: bytes, start: int) -> int:
    """The length of the block that starts there by its header (SAM specification, section 4.1), or 0 if it is none."""
    if len(data) - start < BLOCK_HEADER.size:
        return 0
    magic, extra_length, field, field_length, length = BLOCK_HEADER.unpack_from(data, start)
    is_block = (magic, extra_length, field, field_length) == (b"\x1f\x8b\x08\x04", 6, b"BC", 2)
    return int(length) + 1 if is_block else 0


def _inflate_group(inflater: Inflater | None, group: tuple[bytes, list[int]]) -> tuple[list[Piece], str]:
    """The contents of the blocks up to the first corrupt one, without empty ones, and what is wrong with it or ''."""
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


def _one_ahead(pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """The same pieces, made by a thread of their own."""
    made = _ahead(lambda source: next(source, b""), itertools.repeat(pieces), 1, PIECES_AHEAD)
    with contextlib.closing(made):
        yield from itertools.takewhile(len, made)


def _ahead(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int
) -> Generator[Result, None, None]:
    """function(item) of all items in order; threads make up to `ahead` of them before they are asked for."""
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
