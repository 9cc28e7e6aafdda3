"""Multi-threaded gzip: each thread inflates a part of the file from the first deflate block it finds there.

compressed   | part 0     | part 1     | part 2     |
start        >   |   |   |   >  |   |    >   |   |   |     blocks: a part ends with the block that crosses its end
symbols      b b b b b b b  m b b m b    m b m b b b       bytes, and markers of the window before the part

A marker refers to a byte in the 32 KiB before its part and is replaced once this byte is known. A part that does
not start where the part before it ends was found by mistake, and is inflated again from there.
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
from readmap.formats.gzip_access_points import AccessPoint, AccessPoints
from readmap.formats.gzip_reader import GZIP_MAGIC, MemberInflater, NotParallelizable, read_fully

_INFLATE = Kernel("reads/parallel_gzip", "inflate_part")
_RESOLVE = Kernel("reads/parallel_gzip", "resolve_symbols")
_WINDOW = constant("reads/deflate.cuh", "WINDOW_BYTES")
_LITERALS = np.arange(constant("reads/deflate.cuh", "LITERALS"), dtype=np.uint8)
_ENDS_MEMBER = constant("reads/parallel_gzip.cu", "PART_ENDS_MEMBER")

#: Compressed bytes of a part, and the symbol capacity per compressed byte; a part that expands more takes several
#: steps.
PART_BYTES, MAX_EXPANSION = 1 << 20, 8

#: Maximum threads per file, parts inflated ahead in addition to one per thread, and parts being resolved.
MAX_THREADS, PARTS_AHEAD, RESOLVED_AHEAD = 8, 4, 4

#: RFC 1952: magic, method and flags, then time and two more bytes.
HEADER, TRAILER = struct.Struct("<2s B B 6x"), struct.Struct("<I I")
DEFLATE = 8
HAS_CHECKSUM, HAS_EXTRA, HAS_NAME, HAS_COMMENT, RESERVED = 2, 4, 8, 16, 0xE0

Bytes = NDArray[np.uint8]


def parallel_gzip_inflater() -> MemberInflater | None:
    """Return a function that inflates gzip members with several threads, or None without host kernels."""
    backend = host_backend("reads/parallel_gzip", 1)
    if backend is None:
        return None

    def inflate(
        file: io.FileIO, head: bytes, threads: int, points: AccessPoints | None = None, start: AccessPoint | None = None
    ) -> Generator[memoryview, None, None]:
        with _PartThreads(backend, min(threads, MAX_THREADS)) as pool:
            yield from _MemberStream(file, head, pool, points, start).pieces()

    return inflate


@dataclass(frozen=True)
class _SymbolPart:
    """Whole deflate blocks."""

    symbols: NDArray[np.uint16]  # bytes and markers
    start: int  # bits, relative to the data that the part was found in
    end: int
    min_window_index: int  # the smallest index of the preceding window that a marker refers to
    ends_member: bool  # the last block is the last block of its member


@dataclass(frozen=True)
class _PendingPart:
    """A part whose bytes are being resolved."""

    bytes: Future[Bytes]
    next_bit: int  # where the next block starts
    window: Bytes | None  # the known text before the next block, up to 32 KiB; None if the member ends


class _PartThreads:
    """Threads that inflate parts and threads that resolve their symbols; a context manager, which ends them."""

    def __init__(self, backend: CpuBackend, threads: int) -> None:
        self.ahead = PARTS_AHEAD + threads
        self._backend = backend
        self._inflaters = ThreadPoolExecutor(threads, "readmap-parts")
        self._resolvers = ThreadPoolExecutor(2, "readmap-resolve")
        # Symbol buffers are reused: page faults of fresh memory cost more than writing the symbols.
        self._idle_buffers: queue.SimpleQueue[NDArray[np.uint16]] = queue.SimpleQueue()

    def __enter__(self) -> _PartThreads:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in (self._inflaters, self._resolvers):
            pool.shutdown(cancel_futures=True)

    def submit(self, data: Bytes, to: int) -> Future[_SymbolPart]:
        """Start to inflate a part from the first block found in `data` up to bit `to`."""
        return self._inflaters.submit(self.inflate, data, 0, to, True)

    def inflate(self, data: Bytes, start: int, to: int, searches: bool = False) -> _SymbolPart:
        """Inflate from bit `start` (searches: from the first block found) to the first block at or after bit `to`."""
        buffer = self._take_buffer()
        result, sizes = np.empty(5, np.int64), {"size": len(data), "capacity": len(buffer)}
        arguments = {"data": data, "symbols": buffer, "result": result, "from": start, "to": to}
        self._backend.launch(_INFLATE, 1, **arguments, searches=int(searches), **sizes)
        first, end, count, min_window_index, status = result.tolist()
        return _SymbolPart(buffer[:count], first, end, min_window_index, status == _ENDS_MEMBER)

    def _take_buffer(self) -> NDArray[np.uint16]:
        """Return a symbol buffer. Raises NotParallelizable if memory is exhausted: one thread needs less."""
        try:
            return self._idle_buffers.get_nowait()
        except queue.Empty:
            pass
        try:
            return np.empty(MAX_EXPANSION * PART_BYTES, np.uint16)
        except MemoryError as error:
            raise NotParallelizable from error

    def drop(self, part: _SymbolPart) -> None:
        """Reuse the symbol buffer of a part."""
        base = part.symbols.base
        assert isinstance(base, np.ndarray)
        self._idle_buffers.put(base)

    def submit_resolve(self, part: _SymbolPart, values: Bytes) -> Future[Bytes]:
        """Start to convert a part's symbols to bytes by the table `values`; its symbol buffer is reused then."""

        def resolve() -> Bytes:
            resolved = self.resolve(part.symbols, values)
            self.drop(part)
            return resolved

        return self._resolvers.submit(resolve)

    def resolve(self, symbols: NDArray[np.uint16], values: Bytes) -> Bytes:
        """Return values[symbols], uint8."""
        resolved = np.empty(len(symbols), np.uint8)
        self._backend.launch(_RESOLVE, 1, symbols=symbols, values=values, bytes=resolved, count=len(symbols))
        return resolved


class _MemberStream:
    """Inflates the members of a file in order. Positions are bits from the first byte that is read of the file."""

    def __init__(
        self,
        file: io.FileIO,
        head: bytes,
        threads: _PartThreads,
        points: AccessPoints | None,
        start: AccessPoint | None,
    ) -> None:
        """head: the bytes already read. points: collects access points, only if the file is read from its first byte.
        start: an access point at whose first byte the file is positioned; None for the start of the file.
        """
        self._file, self._threads, self._points = file, threads, points
        # Data of a part and of the part after it, bytes of the part, and its blocks.
        self._ahead: deque[tuple[Bytes, int, Future[_SymbolPart]]] = deque()
        self._following = head + read_fully(file, PART_BYTES - len(head))
        # Values of the symbols: all byte values, then the window; its last `_known` bytes are known.
        self._values, self._known = np.concatenate([_LITERALS, np.zeros(_WINDOW, np.uint8)]), 0
        self._pending: deque[_PendingPart] = deque()
        # Text bytes delivered, and text offset, file offset and checksum of the member.
        self._text = self._member_text = self._member = self._checksum = 0
        if start:
            self._start_at_point(start)
        else:
            self._at = self._start_member(self._following, 0)

    def pieces(self) -> Generator[memoryview, None, None]:
        """Yield the contents of all members. Raises NotParallelizable if the data are, or may be, invalid."""
        offset, is_ended = 0, False
        while (following := self._next_part()) is not None:
            data, size, future = following
            part: _SymbolPart | None = future.result()
            if is_ended:
                _expect(not data.any())
            while not is_ended and self._at < offset + 8 * size:
                if part is None or offset + part.start != self._at:
                    if part is not None:
                        self._threads.drop(part)
                    part = self._threads.inflate(data, self._at - offset, 8 * size)
                _expect(part.end > part.start >= 0 and part.min_window_index >= _WINDOW - self._known)
                self._at = offset + part.end
                self._add_part(part)
                if part.ends_member:
                    yield from self._resolved_texts(0)
                    next_byte = self._check_trailer(data, -(-part.end // 8))
                    is_ended = not data[next_byte:].any()
                    if not is_ended:
                        header = data[next_byte : next_byte + PART_BYTES].tobytes()
                        self._at = self._start_member(header, offset // 8 + next_byte)
                part = None
                yield from self._resolved_texts(RESOLVED_AHEAD)
            if part is not None:
                self._threads.drop(part)
            offset += 8 * size
        _expect(is_ended)

    def _next_part(self) -> tuple[Bytes, int, Future[_SymbolPart]] | None:
        """Start more parts; return the next (data, bytes of the part, its future blocks), or None at the file's end."""
        while self._following and len(self._ahead) < self._threads.ahead:
            own, self._following = self._following, read_fully(self._file, PART_BYTES)
            data = np.frombuffer(own + self._following, np.uint8)
            self._ahead.append((data, len(own), self._threads.submit(data, 8 * len(own))))
        return self._ahead.popleft() if self._ahead else None

    def _add_part(self, part: _SymbolPart) -> None:
        """Start to resolve a part's symbols, and compute the window for the next part."""
        # Before submit_resolve, which drops the symbols.
        tail = self._threads.resolve(part.symbols[-_WINDOW:], self._values)
        resolved = self._threads.submit_resolve(part, self._values)
        self._known = min(self._known + len(part.symbols), _WINDOW)
        self._values = np.concatenate([_LITERALS, self._values[len(_LITERALS) + len(tail) :], tail])
        window = None if part.ends_member else self._values[len(self._values) - self._known :]
        self._pending.append(_PendingPart(resolved, self._at, window))

    def _resolved_texts(self, ahead: int) -> Generator[memoryview, None, None]:
        """Yield the text of all pending parts but the last `ahead`; update the checksum, add access points."""
        while len(self._pending) > ahead:
            pending = self._pending.popleft()
            text = pending.bytes.result()
            self._checksum = isal_zlib.crc32(text, self._checksum)
            self._text += len(text)
            if self._points and pending.window is not None and self._points.is_due(self._text):
                position = self._text, pending.next_bit, self._member, self._member_text
                self._points.add(AccessPoint(*position, self._checksum, zlib.compress(pending.window.tobytes())))
            if len(text):
                yield text.data

    def _check_trailer(self, data: Bytes, at: int) -> int:
        """Check checksum and size in the trailer at byte `at`; return the byte after it. Raises NotParallelizable."""
        _expect(at + TRAILER.size <= len(data))
        found = self._checksum, self._text - self._member_text & 0xFFFFFFFF
        _expect(TRAILER.unpack(data[at : at + TRAILER.size].tobytes()) == found)
        return at + TRAILER.size

    def _start_at_point(self, point: AccessPoint) -> None:
        """Restore window, position and checksum from an access point. Raises NotParallelizable if damaged."""
        try:
            window = np.frombuffer(point.inflated_window(), np.uint8)
        except zlib.error:
            raise NotParallelizable from None
        self._known, self._at = len(window), point.bit % 8
        self._values[len(self._values) - len(window) :] = window
        self._text, self._member_text, self._checksum = point.text, point.member_text, point.checksum

    def _start_member(self, data: bytes, offset: int) -> int:
        """Start the member at byte `offset` of the file; return its first bit. data: the member, header first."""
        self._member, self._member_text, self._checksum, self._known = offset, self._text, 0, 0
        if self._points:
            self._points.at_member(offset, self._text)
        return 8 * (offset + _gzip_header_size(data))


def _gzip_header_size(data: bytes) -> int:
    """Return the size of the gzip header at the front of `data`. Raises NotParallelizable if it is invalid."""
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
