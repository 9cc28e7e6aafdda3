"""A file, a range of its text, or standard input -> bytes, read into buffers of the caller; gzip is decompressed."""

import errno
import io
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Self

import numpy as np

from readmap.errors import DataError
from readmap.formats.file_errors import NamedFile, file_name_context
from readmap.formats.gzip_access_points import AccessPoint, AccessPoints
from readmap.formats.gzip_reader import (
    BLOCK_HEADER,
    GZIP_MAGIC,
    NO_INFLATERS,
    Inflaters,
    Piece,
    inflate,
    inflate_from,
    read_fully,
)

# For smaller reads, or with more threads, splitting a read costs more than it saves: each slice waits for the GIL.
PARALLEL_READ_BYTES, MAX_THREADS = 8 << 20, 4
# Formats that are often passed instead of FASTA or FASTQ, by their first bytes.
OTHER_FORMATS = {
    b"BAM\1": "BAM",
    b"CRAM": "CRAM",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\3\4": "zip",
    b"\xef\xbb\xbf": "text with a byte order mark",
}


class FilePosition(NamedTuple):
    """A position in an open file, given as a descriptor; max_bytes: bytes that may be read from there, None for all."""

    file: int
    offset: int
    max_bytes: int | None = None


class ByteSource(ABC):
    """The bytes of one input, in order; a context manager. first_record: records of the file before a part of it."""

    name: str
    first_record: int = 0
    _file: io.RawIOBase | None = None
    _size: int = 0

    def read_progress(self) -> tuple[int, int] | None:
        """Return the bytes read from the file, before decompression, and its size; None if it is not a regular file."""
        return (self._file.delivered, self._size) if isinstance(self._file, NamedFile) and self._size else None

    @abstractmethod
    def readinto(self, target: memoryview) -> int:
        """Fill `target`, one writable byte an item, and return the number of bytes written.

        Fewer bytes than len(target) mean the end of the input or an error after them. Raises DataError for corrupt gzip
        and OSError from reading once the bytes before the error have been returned, except a corrupt piece of up to
        1 MB.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file, except standard input, and end the threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_bytes(path: str | ByteSource, threads: int = 1, inflaters: Inflaters = NO_INFLATERS) -> ByteSource:
    """Open a file, or standard input for "-", decompressed if it starts with the magic bytes of gzip.

    path: an open source is returned unchanged. threads: to read a plain file or to decompress gzip. Raises OSError.
    """
    if isinstance(path, ByteSource):
        return path
    file, name = open_file(path)
    try:
        return source_of_file(file, name, read_fully(file, BLOCK_HEADER.size), threads, inflaters)
    except BaseException:
        file.close()
        raise


def open_file(path: str) -> tuple[io.FileIO, str]:
    """Open a file, or standard input if path is "-", and return it with its name for messages."""
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
        return NamedFile(0, "standard input"), "standard input"
    return NamedFile(path), path


def source_of_file(
    file: io.FileIO,
    name: str,
    head: bytes,
    threads: int,
    inflaters: Inflaters = NO_INFLATERS,
    points: AccessPoints | None = None,
) -> ByteSource:
    """Return the bytes of an open file as a source, decompressed if they start with the magic bytes of gzip.

    head: the first 18 or more bytes, or all, which have been read already. points: filled while gzip is decompressed.
    """
    if head.startswith(GZIP_MAGIC):
        return GeneratorSource(name, inflate(file, name, head, threads, inflaters, points), file)
    return PlainSource(file, name, head, threads)


def describe_start(data: bytes) -> str:
    """Describe the first byte for a message, with the format that `data` looks like."""
    if data[:1] in (b"\r", b"\n"):
        return "a blank line"
    found = f"'{chr(data[0])}'" if 32 <= data[0] < 127 else f"byte 0x{data[0]:02x}"
    formats = [name for magic, name in OTHER_FORMATS.items() if data.startswith(magic)]
    return f"{found} (it looks like {formats[0]})" if formats else found


def _size_of(file: io.RawIOBase | None) -> int:
    """Return the size of a regular file, else 0."""
    status = os.fstat(file.fileno()) if isinstance(file, io.FileIO) else None
    return status.st_size if status and stat.S_ISREG(status.st_mode) else 0


class PlainSource(ByteSource):
    """The bytes of an uncompressed file; `head` has been read already."""

    _file: io.FileIO

    def __init__(self, file: io.FileIO, name: str, head: bytes, threads: int) -> None:
        self.name = name
        self._file = file
        self._head = head
        self._threads = min(threads, MAX_THREADS)
        self._is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        self._pool = ThreadPoolExecutor(self._threads) if threads > 1 and self._is_regular else None
        self._size = _size_of(file)

    def position(self) -> FilePosition | None:
        """Return the position of the next byte; None for a pipe, or if bytes of `head` are left."""
        return FilePosition(self._file.fileno(), self._file.tell()) if self._is_regular and not self._head else None

    def skip(self, count: int) -> None:
        self._file.seek(count, os.SEEK_CUR)
        if isinstance(self._file, NamedFile):
            self._file.delivered += count

    def readinto(self, target: memoryview) -> int:
        filled = min(len(self._head), len(target))
        target[:filled] = self._head[:filled]
        self._head = self._head[filled:]
        if self._pool and len(target) >= PARALLEL_READ_BYTES:
            return filled + self._read_slices(self._pool, target[filled:])
        while count := self._file.readinto(target[filled:]):
            filled += count
        return filled

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()
        self._file.close()

    def _read_slices(self, pool: ThreadPoolExecutor, target: memoryview) -> int:
        """Fill `target` from the file, each thread a slice; return the bytes read, fewer at the end."""
        start = self._file.tell()
        cuts = [len(target) * i // self._threads for i in range(self._threads + 1)]

        def read_slice(at: int, end: int) -> int:
            with file_name_context(self.name):
                while at < end and (count := os.preadv(self._file.fileno(), [target[at:end]], start + at)):
                    at += count
            return at

        filled = 0
        for end, reached in zip(cuts[1:], pool.map(read_slice, cuts[:-1], cuts[1:]), strict=True):
            filled = reached
            if reached < end:
                break
        self.skip(filled)
        return filled


class GeneratorSource(ByteSource):
    """The bytes that a generator yields; an error it raises is delayed until all bytes before it have been returned.

    Closing the generator, which is not empty, ends its threads. file: its input, closed with the source.
    """

    def __init__(self, name: str, pieces: Generator[Piece, None, None], file: io.RawIOBase | None = None) -> None:
        self.name = name
        self._file = file
        self._pieces = pieces
        self._piece: Piece = b""
        self._offset = 0
        self._error: DataError | OSError | None = None
        self._size = _size_of(file)

    def readinto(self, target: memoryview) -> int:
        filled = 0
        while filled < len(target) and (self._offset < len(self._piece) or self._next_piece()):
            count = min(len(target) - filled, len(self._piece) - self._offset)
            # NumPy releases the GIL, so that inflating threads go on.
            source = np.frombuffer(self._piece, np.uint8, count, self._offset)
            np.copyto(np.frombuffer(target, np.uint8, count, filled), source)
            filled += count
            self._offset += count
        if self._error and not filled and len(target):
            raise self._error
        return filled

    def close(self) -> None:
        self._pieces.close()
        if self._file:
            self._file.close()

    def _next_piece(self) -> bool:
        """Get the next piece; return False at the end or an error, which `readinto` raises later."""
        self._offset, self._piece = 0, b""
        if not self._error:
            try:
                self._piece = next(self._pieces, b"")
            except (DataError, OSError) as error:
                self._error = error
        return bool(self._piece)


#: Bytes read and dropped at a time.
SKIPPED_BYTES = 1 << 19


class ByteRange(ByteSource):
    """A range of another source, which is closed with the range. delivered: bytes read so far."""

    def __init__(self, source: ByteSource, skipped: int = 0, size: int | None = None, is_last: bool = True) -> None:
        """size: None for all bytes that remain. is_last: the source is expected to end at the end of the range."""
        self.name = source.name
        self.delivered = 0
        self._source, self._skipped = source, skipped
        self._end, self._is_last = size, is_last

    def read_progress(self) -> tuple[int, int] | None:
        return self._source.read_progress() if self._end is None else (self.delivered, self._end)

    def position(self) -> FilePosition | None:
        """Return the position of the next byte in a plain file; None for gzip and at the end of the range."""
        source = self._source
        position = source.position() if isinstance(source, PlainSource) and not self._skipped else None
        if position is None or self._end is None:
            return position
        left = self._end - self.delivered
        return position._replace(max_bytes=left) if left else None

    def skip(self, count: int) -> None:
        assert isinstance(self._source, PlainSource)
        self._source.skip(count)
        self.delivered += count

    def readinto(self, target: memoryview) -> int:
        while self._skipped:
            scratch = memoryview(bytearray(min(self._skipped, SKIPPED_BYTES)))
            self._skipped -= self._read_or_raise(scratch)
        if self._end is None:
            count = self._source.readinto(target)
        elif self.delivered < self._end:
            count = self._read_or_raise(target[: self._end - self.delivered]) if target else 0
        else:
            count = 0
            if self._is_last and self._source.readinto(memoryview(bytearray(1))):
                raise DataError(f"{self.name}: expected the end of the file, found more data than in its split table")
        self.delivered += count
        return count

    def close(self) -> None:
        self._source.close()

    def _read_or_raise(self, target: memoryview) -> int:
        """Read at least one byte into `target`; return how many. Raises DataError at the end of the source."""
        count = self._source.readinto(target)
        if not count:
            raise DataError(f"{self.name}: the file ends before an offset of its split table")
        return count


def open_range(
    path: str, start: int, end: int, is_last: bool, point: AccessPoint | None, threads: int, inflaters: Inflaters
) -> ByteRange:
    """Open the decompressed text [start, end) of a file. Raises OSError.

    is_last: the text is expected to end there. point: of gzip, at or before `start`; None for a plain file.
    """
    file = NamedFile(path)
    if point is None:
        file.seek(start)
        return ByteRange(PlainSource(file, path, b"", threads), 0, end - start, is_last)
    pieces = inflate_from(file, path, point, threads, inflaters)
    return ByteRange(GeneratorSource(path, pieces, file), start - point.text, end - start, is_last)
