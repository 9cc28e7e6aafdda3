"""FASTQ whose sequences have several lines, or that has blank lines between records, normalised to four lines a record.

It is read as kseq does: a sequence goes on up to the line that begins with '+', its qualities until they are as many.
What is no such record is given as it is: what is wrong with it is found where records are parsed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.compression import ByteSource, PieceSource
from readmap.formats.lines import CARRIAGE_RETURN, LINE_BREAKS, NEWLINE

#: What is read and given at a time.
PIECE_BYTES = 1 << 19


#: The beginning of a file that shows whether its records have four lines each.
SEEN_BYTES = 1 << 18


def with_four_lines(source: ByteSource, start: bytes) -> ByteSource:
    """FASTQ as it is where the records that it begins with have four lines each; else it is normalised.

    start: the first bytes of `source`, already read; it is to be closed.
    """
    head = bytearray(max(SEEN_BYTES, len(start)))
    head[: len(start)] = start
    filled, fault = len(start), None
    try:
        while count := source.readinto(memoryview(head)[filled:]):
            filled += count
    except (DataError, OSError) as error:
        fault = error
    whole = _Whole(bytes(head[:filled]), source, fault)
    if have_four_lines(np.frombuffer(head, np.uint8, filled)[:SEEN_BYTES]):
        return whole
    return PieceSource(source.name, four_line_records(whole))


class _Whole(ByteSource):
    """Bytes that have been read of a source, and behind them the source, or the fault that ended it."""

    def __init__(self, read: bytes, source: ByteSource, fault: DataError | OSError | None) -> None:
        self.name = source.name
        self._read, self._source, self._fault = read, source, fault

    def readinto(self, target: memoryview) -> int:
        if not self._read and self._fault:
            raise self._fault
        if not self._read:
            return self._source.readinto(target)
        count = min(len(self._read), len(target))
        target[:count], self._read = self._read[:count], self._read[count:]
        return count

    def close(self) -> None:
        self._source.close()


def have_four_lines(data: NDArray[np.uint8]) -> bool:
    """Whether the whole records that some FASTQ begins with are header, bases, '+' and as many qualities, a line each.

    data: uint8 [nbytes].
    """
    ends = np.flatnonzero(data == NEWLINE)
    ends = ends[: len(ends) // 4 * 4]
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lengths = ends - starts
    lengths -= (lengths > 0) & (data[ends - 1] == CARRIAGE_RETURN)
    headers, separators = data[starts[::4]], data[starts[2::4]]
    is_regular = (headers == ord("@")) & (separators == ord("+")) & (lengths[1::4] == lengths[3::4])
    return bool(is_regular.all())


def four_line_records(source: ByteSource) -> Generator[bytes, None, None]:
    """The records in four lines each, in pieces. Raises what the source raises, behind what came before it."""
    piece: list[bytes] = []
    size = 0
    fault = None
    try:
        for lines in _records(_lines(source)):
            piece += lines
            size += sum(map(len, lines))
            if size >= PIECE_BYTES:
                yield b"".join(piece)
                piece, size = [], 0
    except (DataError, OSError) as error:
        fault = error
    if piece:
        yield b"".join(piece)
    if fault:
        raise fault


def _lines(source: ByteSource) -> Iterator[bytes]:
    """With their line breaks, which the last one may lack."""
    target = bytearray(PIECE_BYTES)
    rest = b""
    while count := source.readinto(memoryview(target)):
        lines = (rest + target[:count]).split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _records(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Four lines of each record; from one that is none on, all lines as they are."""
    for header in lines:
        if not header.strip(LINE_BREAKS):
            continue
        given, bases, qualities = [header], b"", b""
        for line in lines:
            given.append(line)
            if line.startswith((b"+", b"@")):
                break
            bases += line.rstrip(LINE_BREAKS)
        separator = given[-1].rstrip(LINE_BREAKS)
        for line in lines if separator.startswith(b"+") else ():
            given.append(line)
            qualities += line.rstrip(LINE_BREAKS)
            if len(qualities) >= len(bases):
                break
        if not header.startswith(b"@") or not separator.startswith(b"+") or len(bases) != len(qualities):
            yield given
            yield from ([line] for line in lines)
            return
        yield [header.rstrip(LINE_BREAKS), b"\n", bases, b"\n", separator, b"\n", qualities, b"\n"]
