"""The bytes of a file or of standard input, inflated where they are gzip, delivered into the caller's buffer."""

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
from readmap.formats.gzip_access_points import AccessPoints
from readmap.formats.gzip_reader import BLOCK_HEADER, GZIP_MAGIC, NO_INFLATERS, Inflaters, Piece, inflate, read_fully

# Below this, handing slices of a read to threads costs more than it saves, and so do more threads: each waits for
# Python's lock, which others want.
PARALLEL_READ_BYTES, MAX_THREADS = 8 << 20, 4
# What people take for FASTA and FASTQ.
OTHER_FORMATS = {
    b"BAM\1": "BAM",
    b"CRAM": "CRAM",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\3\4": "zip",
    b"\xef\xbb\xbf": "text behind a byte order mark",
}


class FilePosition(NamedTuple):
    """Where bytes lie: in an open file, by its descriptor, from an offset on; so many at most, or all to its end."""

    file: int
    offset: int
    max_bytes: int | None = None


class ByteSource(ABC):
    """The bytes of one input, in order; a context manager.

    name: what messages call it, the path or "standard input".
    first_record: how many records lie in front of its bytes, where they are a part of a file of reads.
    """

    name: str
    first_record: int = 0
    _file: io.RawIOBase | None = None
    _size: int = 0

    def read_progress(self) -> tuple[int, int] | None:
        """How many bytes of the file have been read, as they lie there, and of how many; None of other inputs."""
        return (self._file.delivered, self._size) if isinstance(self._file, NamedFile) and self._size else None

    @abstractmethod
    def readinto(self, target: memoryview) -> int:
        """The number of bytes written to the front of `target`: its length, or less at the end or before a fault.

        target: writable, one byte an item. 0 says that the input is at its end. Raises DataError for broken gzip
        and OSError from reading, once the bytes before the fault are delivered (of a corrupt piece, a megabyte at
        most, none is).
        """

    @abstractmethod
    def close(self) -> None:
        """Closes the file and ends the threads; standard input stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_bytes(path: str | ByteSource, threads: int = 1, inflaters: Inflaters = NO_INFLATERS) -> ByteSource:
    """The bytes of the file at `path`, or of standard input where it is "-". gzip is known by its magic, and inflated.

    path: a source that is already open is returned as it is. threads: how many read a plain file or inflate
    gzip. inflaters: as `inflate` takes it. Raises OSError
    where the file cannot be opened or read.
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
    """The file at `path`, or standard input where it is "-", and what messages call it."""
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
    """The bytes of an open file, as `open_bytes` gives them. head: the first 18 or more, or all, already read.

    points: to be kept of gzip, as `inflate` does it.
    """
    if head.startswith(GZIP_MAGIC):
        return GeneratorSource(name, inflate(file, name, head, threads, inflaters, points), file)
    return PlainSource(file, name, head, threads)


def describe_start(data: bytes) -> str:
    """The first of the bytes in words for a message, with the format that it points to."""
    if data[:1] in (b"\r", b"\n"):
        return "a blank line"
    found = f"'{chr(data[0])}'" if 32 <= data[0] < 127 else f"byte 0x{data[0]:02x}"
    formats = [name for magic, name in OTHER_FORMATS.items() if data.startswith(magic)]
    return f"{found} (it looks like {formats[0]})" if formats else found


def _size_of(file: io.RawIOBase | None) -> int:
    """The bytes of a regular file; 0 of others."""
    facts = os.fstat(file.fileno()) if isinstance(file, io.FileIO) else None
    return facts.st_size if facts and stat.S_ISREG(facts.st_mode) else 0


class PlainSource(ByteSource):
    """A file's own bytes; `head` is what has been read of them."""

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
        """Where the next bytes lie, for whoever reads them there; None in a pipe, or where some have been read."""
        return FilePosition(self._file.fileno(), self._file.tell()) if self._is_regular and not self._head else None

    def skip(self, count: int) -> None:
        """Go on behind so many bytes, which were read at their place."""
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
        start = self._file.tell()
        cuts = [len(target) * i // self._threads for i in range(self._threads + 1)]

        def read_slice(begin: int, end: int) -> int:
            at = begin
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
    """The bytes that a generator yields in pieces. An error is held back until all before it is delivered.

    pieces: not one of them empty; its threads, if any, end when it is closed. file: what it reads, closed with it.
    """

    def __init__(self, name: str, pieces: Generator[Piece, None, None], file: io.RawIOBase | None = None) -> None:
        self.name = name
        self._file = file
        self._pieces = pieces
        self._piece: Piece = b""
        self._at = 0
        self._fault: DataError | OSError | None = None
        self._size = _size_of(file)

    def readinto(self, target: memoryview) -> int:
        filled = 0
        while filled < len(target) and (self._at < len(self._piece) or self._next_piece()):
            count = min(len(target) - filled, len(self._piece) - self._at)
            # By numpy, as it lets the inflating threads run meanwhile.
            np.copyto(
                np.frombuffer(target, np.uint8, count, filled), np.frombuffer(self._piece, np.uint8, count, self._at)
            )
            filled += count
            self._at += count
        if self._fault and not filled and len(target):
            raise self._fault
        return filled

    def close(self) -> None:
        self._pieces.close()
        if self._file:
            self._file.close()

    def _next_piece(self) -> bool:
        self._at, self._piece = 0, b""
        if not self._fault:
            try:
                self._piece = next(self._pieces, b"")
            except (DataError, OSError) as fault:
                self._fault = fault
        return bool(self._piece)
