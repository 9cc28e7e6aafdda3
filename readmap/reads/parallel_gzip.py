"""Gzip of one member -> its contents, by several threads: each inflates a part from where it finds a block.

compressed   | part 0     | part 1     | part 2     |
found        >   |   |   |   >  |   |    >   |   |   |     blocks: a part ends with the block that crosses its end
symbols      b b b b b b b  m b b m b    m b m b b b       bytes, and markers of what lies in front of the part

What a part copies from in front of it is told by the 32 KiB before, once these are known. A part whose block is not the
one that follows the part before it is inflated again from there.
"""

from __future__ import annotations

import io
import queue
import struct
import zlib
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from readmap.backend.base import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import CpuBackend, host_backend
from readmap.formats.gzip_reader import GZIP_MAGIC, MemberInflater, NotParallelizable, read_fully
from readmap.formats.gzip_access_points import AccessPoint, AccessPoints

_INFLATE, _RESOLVE = Kernel("reads/parallel_gzip", "inflate_part"), Kernel("reads/parallel_gzip", "resolve_symbols")
_WINDOW = constant("reads/deflate.cuh", "WINDOW_BYTES")
_LITERALS = np.arange(constant("reads/deflate.cuh", "LITERALS"), dtype=np.uint8)
_LAST = constant("reads/parallel_gzip.cu", "PART_IS_THE_LAST")

#: Compressed bytes of a part, and symbols for each of them that there is room for: what has more is inflated in several
#: steps.
PART_BYTES, MOST_SYMBOLS = 1 << 20, 8

#: Threads of a file at most, parts beside theirs that are inflated ahead, and parts of which the bytes are being made.
MOST_THREADS, PARTS_AHEAD, RESOLVED_AHEAD = 8, 4, 4

#: RFC 1952: behind the magic, the method, flags, time, and two bytes more.
HEADER, TRAILER = struct.Struct("<2s B B 6x"), struct.Struct("<I I")
DEFLATE = 8
HAS_CHECKSUM, HAS_EXTRA, HAS_NAME, HAS_COMMENT, RESERVED = 2, 4, 8, 16, 0xE0

Bytes = NDArray[np.uint8]


def parallel_gzip_inflater() -> MemberInflater | None:
    """What inflates members; None where the host has no kernels."""
    backend = host_backend("reads/parallel_gzip", 1)
    if backend is None:
        return None

    def inflate(
        file: io.FileIO, head: bytes, threads: int, points: AccessPoints | None = None, begin: AccessPoint | None = None
    ) -> Generator[memoryview, None, None]:
        with _Threads(backend, min(threads, MOST_THREADS)) as pool:
            yield from _Members(file, head, pool, points, begin).pieces()

    return inflate


@dataclass(frozen=True)
class _Part:
    """Whole blocks.

    Attributes:
        symbols: uint16. begin, end: bits, from the first of the data that they were found in. farthest: the lowest byte
            of the window in front of them that they ask for. is_last: whether a member ends with them.
    """

    symbols: NDArray[np.uint16]
    begin: int
    end: int
    farthest: int
    is_last: bool


@dataclass(frozen=True)
class _Making:
    """The bytes of a part, which are being made.

    Attributes:
        bytes: of the part. at: the bit where the next block begins. window: the text in front of that, as far as it is
            known; None where no block follows.
    """

    bytes: Future[Bytes]
    at: int
    window: Bytes | None


class _Threads:
    """Threads that inflate parts, and others that make bytes of them; a context manager, which ends them."""

    def __init__(self, backend: CpuBackend, threads: int) -> None:
        self.ahead = PARTS_AHEAD + threads
        self._backend = backend
        self._inflaters = ThreadPoolExecutor(threads, "readmap-parts")
        self._resolvers = ThreadPoolExecutor(2, "readmap-resolve")
        # Those that are used again: fresh memory takes longer than what is written into it.
        self._rooms: queue.SimpleQueue[NDArray[np.uint16]] = queue.SimpleQueue()

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in (self._inflaters, self._resolvers):
            pool.shutdown(cancel_futures=True)

    def begin(self, data: Bytes, to: int) -> Future[_Part]:
        """Have a part inflated from where it has a block."""
        return self._inflaters.submit(self.inflate, data, 0, to, True)

    def inflate(self, data: Bytes, begin: int, to: int, searches: bool = False) -> _Part:
        """Blocks from a bit on, or from the first block behind it, until one begins at the bit `to` or behind it."""
        room = self._room()
        told, shape = np.empty(5, np.int64), {"size": len(data), "room": len(room)}
        given = {"data": data, "symbols": room, "told": told, "from": begin, "to": to, "searches": int(searches)}
        self._backend.launch(_INFLATE, 1, **given, **shape)
        first, end, count, farthest, reason = told.tolist()
        return _Part(room[:count], first, end, farthest, reason == _LAST)

    def _room(self) -> NDArray[np.uint16]:
        """For the symbols of a part. Raises NotParallelizable where there is no memory: one thread takes less."""
        try:
            return self._rooms.get_nowait()
        except queue.Empty:
            pass
        try:
            return np.empty(MOST_SYMBOLS * PART_BYTES, np.uint16)
        except MemoryError as error:
            raise NotParallelizable from error

    def drop(self, part: _Part) -> None:
        """The symbols of a part are not needed any more."""
        base = part.symbols.base
        assert isinstance(base, np.ndarray)
        self._rooms.put(base)

    def resolve(self, part: _Part, meanings: Bytes) -> Future[Bytes]:
        """Have the bytes of a part made, and its symbols dropped."""

        def made() -> Bytes:
            found = self.bytes_of(part.symbols, meanings)
            self.drop(part)
            return found

        return self._resolvers.submit(made)

    def bytes_of(self, symbols: NDArray[np.uint16], meanings: Bytes) -> Bytes:
        """The bytes of symbols."""
        made = np.empty(len(symbols), np.uint8)
        self._backend.launch(_RESOLVE, 1, symbols=symbols, meanings=meanings, bytes=made, count=len(symbols))
        return made


class _Members:
    """The members of a file, one after the other; places are bits from the first byte on that is read of it."""

    def __init__(
        self, file: io.FileIO, head: bytes, threads: _Threads, points: AccessPoints | None, begin: AccessPoint | None
    ) -> None:
        """head: what has been read of the file. points: to be kept, of a file that is read from its first byte on.
        begin: None for that byte; the file is at that of the point's block."""
        self._file, self._threads, self._points = file, threads, points
        self._coming: deque[tuple[Bytes, int, Future[_Part]]] = deque()  # data, of which so many bytes are the part
        self._following = head + read_fully(file, PART_BYTES - len(head))
        # What symbols mean: all bytes, and behind them the window, of which the last ones are known.
        self._meanings, self._known = np.concatenate([_LITERALS, np.zeros(_WINDOW, np.uint8)]), 0
        self._resolved: deque[_Making] = deque()
        # Of the text: what has been given, and where the member begins, in bytes; there also of the file.
        self._text = self._member_text = self._member = self._checksum = 0
        if begin:
            self._begin_at(begin)
        else:
            self._at = self._begin_member(self._following, 0)

    def pieces(self) -> Generator[memoryview, None, None]:
        """The contents of all. Raises NotParallelizable where something is, or may be, wrong."""
        begin, is_ended = 0, False
        while (coming := self._next()) is not None:
            data, size, future = coming
            part: _Part | None = future.result()
            if is_ended:
                _expect(not data.any())
            while not is_ended and self._at < begin + 8 * size:
                if part is None or begin + part.begin != self._at:
                    if part is not None:
                        self._threads.drop(part)
                    part = self._threads.inflate(data, self._at - begin, 8 * size)
                _expect(part.end > part.begin >= 0 and part.farthest >= _WINDOW - self._known)
                self._at = begin + part.end
                self._take(part)
                if part.is_last:
                    yield from self._ready(0)
                    behind = self._behind_trailer(data, -(-part.end // 8))
                    is_ended = not data[behind:].any()
                    if not is_ended:
                        self._at = self._begin_member(data[behind : behind + PART_BYTES].tobytes(), begin // 8 + behind)
                part = None
                yield from self._ready(RESOLVED_AHEAD)
            if part is not None:
                self._threads.drop(part)
            begin += 8 * size
        _expect(is_ended)

    def _next(self) -> tuple[Bytes, int, Future[_Part]] | None:
        """The next part, with what is behind it, and its blocks; others are begun. None behind the last one."""
        while self._following and len(self._coming) < self._threads.ahead:
            own, self._following = self._following, read_fully(self._file, PART_BYTES)
            data = np.frombuffer(own + self._following, np.uint8)
            self._coming.append((data, len(own), self._threads.begin(data, 8 * len(own))))
        return self._coming.popleft() if self._coming else None

    def _take(self, part: _Part) -> None:
        """Go on behind a part."""
        # Before the symbols are dropped.
        tail = self._threads.bytes_of(part.symbols[-_WINDOW:], self._meanings)
        made = self._threads.resolve(part, self._meanings)
        self._known = min(self._known + len(part.symbols), _WINDOW)
        self._meanings = np.concatenate([_LITERALS, self._meanings[len(_LITERALS) + len(tail) :], tail])
        window = None if part.is_last else self._meanings[len(self._meanings) - self._known :]
        self._resolved.append(_Making(made, self._at, window))

    def _ready(self, ahead: int) -> Generator[memoryview, None, None]:
        """The bytes of all parts but the last ones, which are being made."""
        while len(self._resolved) > ahead:
            making = self._resolved.popleft()
            made = making.bytes.result()
            self._checksum = isal_zlib.crc32(made, self._checksum)
            self._text += len(made)
            if self._points and making.window is not None and self._points.is_due(self._text):
                place = self._text, making.at, self._member, self._member_text
                self._points.add(AccessPoint(*place, self._checksum, zlib.compress(making.window.tobytes())))
            if len(made):
                yield made.data

    def _behind_trailer(self, data: Bytes, at: int) -> int:
        """Where the trailer of the member ends, which is to be right; at: where it begins."""
        _expect(at + TRAILER.size <= len(data))
        found = self._checksum, self._text - self._member_text & 0xFFFFFFFF
        _expect(TRAILER.unpack(data[at : at + TRAILER.size].tobytes()) == found)
        return at + TRAILER.size

    def _begin_at(self, point: AccessPoint) -> None:
        """Go on at a point's block, whose first byte comes first."""
        try:
            window = np.frombuffer(point.inflated_window(), np.uint8)
        except zlib.error:
            raise NotParallelizable from None
        self._known, self._at = len(window), point.bit % 8
        self._meanings[len(self._meanings) - len(window) :] = window
        self._text, self._member_text, self._checksum = point.text, point.member_text, point.checksum

    def _begin_member(self, data: bytes, place: int) -> int:
        """The bit where the first block of a member begins, whose first byte is at `place`; data: from there on."""
        self._member, self._member_text, self._checksum, self._known = place, self._text, 0, 0
        if self._points:
            self._points.at_member(place, self._text)
        return 8 * (place + _header_bytes(data))


def _header_bytes(data: bytes) -> int:
    """Bytes of the header that the data begin with."""
    _expect(len(data) >= HEADER.size)
    magic, method, flags = HEADER.unpack_from(data)
    _expect(magic == GZIP_MAGIC and method == DEFLATE and not flags & RESERVED)
    at = HEADER.size
    if flags & HAS_EXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (HAS_NAME, HAS_COMMENT):
        if flags & flag:
            at = data.find(0, at) + 1
            _expect(at > 0)
    at += 2 if flags & HAS_CHECKSUM else 0
    _expect(at < len(data))
    return at


def _expect(is_usual: bool) -> None:
    if not is_usual:
        raise NotParallelizable
