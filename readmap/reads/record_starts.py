"""Text of FASTQ or FASTA -> where its records begin, whatever lines they have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import NEWLINE, end_of_text
from readmap.formats.byte_range import ByteRange
from readmap.reads.record_scan import find_records, read_records
from readmap.reads.fasta_reads import HEADER_MARK
from readmap.reads.fastq_reads import record_sizes
from readmap.reads.record_file import read_start

#: Text that is looked at together; no record of FASTQ is longer.
BUFFER_BYTES = 8 << 20

#: Records that are given together, where each is found by itself.
SOME_RECORDS = 4096

Starts = NDArray[np.int64]


def record_starts(source: ByteRange, first: int = 0, threads: int = 1) -> Iterator[Starts]:
    """The offsets of the records' first bytes in what the source gives, int64, ascending, some at a time.

    That of a record of FASTQ may be that of blank lines in front of it. first: the number of the first record, from 0,
    for messages. threads: that read FASTQ which is not compressed.
    Raises DataError where the text is neither, where a record of FASTQ is none, and what the source raises, behind
    the records in front of that; MissingEofBlock behind all of them.
    """
    start = read_start(source)
    if not start:
        return iter(())
    return _fasta_starts(source, start) if start.startswith(b">") else _fastq_starts(source, start, first, threads)


def _fastq_starts(source: ByteRange, start: bytes, first: int, threads: int) -> Iterator[Starts]:
    """start: the last bytes that have been read."""
    data, begin, filled = np.empty(BUFFER_BYTES, np.uint8), source.delivered - len(start), len(start)
    data[:filled] = np.frombuffer(start, np.uint8)
    is_at_end, doubt = False, None
    while not is_at_end:
        # One byte is kept for the newline that the last line may lack.
        records, room = read_records(source, data[:-1], filled, 4, True, threads), data.data[filled:-1]
        count = records.filled - filled if records else 0
        if not count:  # nothing was read: the end, or what the source says of it
            try:
                count = source.readinto(room)
            except MissingEofBlock as error:
                doubt = error
            records = None if count else records
        filled += count
        is_at_end = not count
        if is_at_end and filled and data[filled - 1] != NEWLINE:
            data[filled], records = NEWLINE, None
            filled += 1
        records = records or find_records(data[:filled], 4, True)
        ends, is_irregular = records.ends, records.is_irregular
        starts = np.append(0, ends + 1)
        yield begin + starts[:-1]
        tail = data[starts[-1] : filled].copy()
        begin, first = begin + int(starts[-1]), first + len(ends)
        if is_irregular or len(tail) > len(data) // 2 or (is_at_end and end_of_text(tail)):
            yield from _irregular_starts(source, tail.tobytes(), begin, first)
            return
        data[: len(tail)] = tail
        filled = len(tail)
    if doubt:
        raise doubt


def _irregular_starts(source: ByteRange, start: bytes, begin: int, first: int) -> Iterator[Starts]:
    """Where records have any lines. begin: the offset of `start`."""
    sizes = record_sizes(start, source)
    while some := list(islice(sizes, SOME_RECORDS)):
        is_whole = bool(some[-1])
        ends = begin + np.cumsum(some if is_whole else some[:-1], dtype=np.int64)
        starts = np.append(begin, ends)
        yield starts[:-1]
        begin, first = int(starts[-1]), first + len(ends)
        if not is_whole:
            expected = "a header with '@', bases, a line with '+', and as many qualities as bases"
            raise DataError(f"{source.name}, record {first + 1}: expected {expected}")


def _fasta_starts(source: ByteRange, start: bytes) -> Iterator[Starts]:
    """start: the last bytes that have been read."""
    # One byte in front, for what is in front of the text.
    data, begin, filled = np.empty(1 + BUFFER_BYTES, np.uint8), source.delivered - len(start), len(start)
    data[0] = NEWLINE
    data[1 : filled + 1] = np.frombuffer(start, np.uint8)
    while filled:
        marks = np.flatnonzero(data[1 : filled + 1] == HEADER_MARK)
        yield begin + marks[data[marks] == NEWLINE]
        data[0] = data[filled]
        begin += filled
        filled = source.readinto(data.data[1:])
