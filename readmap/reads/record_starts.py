"""Text of FASTQ or FASTA -> the offsets at which its records start, for records of any number of lines."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.byte_source import ByteRange
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import NEWLINE, end_of_text
from readmap.reads.record_file import read_start
from readmap.reads.record_normalization import HEADER_MARK, record_sizes
from readmap.reads.record_scan import read_and_scan_records, scan_records

BUFFER_BYTES = 8 << 20  # bytes of text scanned at a time; the maximum size of a FASTQ record
RECORDS_PER_ARRAY = 4096  # records per array if records are parsed one by one

Starts = NDArray[np.int64]


def record_starts(source: ByteRange, first: int = 0, threads: int = 1) -> Iterator[Starts]:
    """Yield the offsets of the records in the text of `source`, int64, ascending, in several arrays.

    Blank lines before a FASTQ record may count as part of it. first: the index of the first record, for messages.
    threads: for scanning uncompressed FASTQ. Raises DataError if the text is neither FASTQ nor FASTA or a FASTQ record
    is invalid, after the records before it; MissingEofBlock after all records; and what the source raises.
    """
    start = read_start(source)
    if not start:
        return iter(())
    return _fasta_starts(source, start) if start.startswith(b">") else _fastq_starts(source, start, first, threads)


def _fastq_starts(source: ByteRange, start: bytes, first: int, threads: int) -> Iterator[Starts]:
    """Yield the text offsets of FASTQ records; start: the last bytes read; first: the next record, for messages."""
    data, offset, filled = np.empty(BUFFER_BYTES, np.uint8), source.delivered - len(start), len(start)
    data[:filled] = np.frombuffer(start, np.uint8)
    is_at_end, missing_eof = False, None
    while not is_at_end:
        # One byte is reserved for the newline that the last line may lack.
        records, rest = read_and_scan_records(source, data[:-1], filled, 4, True, threads), data.data[filled:-1]
        count = records.filled - filled if records else 0
        if not count:  # not an uncompressed file, or its end
            try:
                count = source.readinto(rest)
            except MissingEofBlock as error:
                missing_eof = error
            records = None if count else records
        filled += count
        is_at_end = not count
        if is_at_end and filled and data[filled - 1] != NEWLINE:
            data[filled], records = NEWLINE, None
            filled += 1
        records = records or scan_records(data[:filled], 4, True)
        ends, is_irregular = records.ends, records.is_irregular
        starts = np.append(0, ends + 1)
        yield offset + starts[:-1]
        tail = data[starts[-1] : filled].copy()
        offset, first = offset + int(starts[-1]), first + len(ends)
        if is_irregular or len(tail) > len(data) // 2 or (is_at_end and end_of_text(tail)):
            yield from _irregular_starts(source, tail.tobytes(), offset, first)
            return
        data[: len(tail)] = tail
        filled = len(tail)
    if missing_eof:
        raise missing_eof


def _irregular_starts(source: ByteRange, start: bytes, offset: int, first: int) -> Iterator[Starts]:
    """Yield the text offsets of FASTQ records of any number of lines. offset: of `start`, the last bytes read."""
    sizes = record_sizes(start, source)
    while some := list(islice(sizes, RECORDS_PER_ARRAY)):
        is_valid = bool(some[-1])
        starts = np.append(offset, offset + np.cumsum(some if is_valid else some[:-1], dtype=np.int64))
        yield starts[:-1]
        offset, first = int(starts[-1]), first + len(starts) - 1
        if not is_valid:
            expected = "a header with '@', bases, a line with '+', and one quality per base"
            raise DataError(f"{source.name}, record {first + 1}: expected {expected}")


def _fasta_starts(source: ByteRange, start: bytes) -> Iterator[Starts]:
    """Yield the text offsets of FASTA records in several arrays. start: the last bytes read from `source`."""
    # data[0] is the byte before the text.
    data, offset, filled = np.empty(1 + BUFFER_BYTES, np.uint8), source.delivered - len(start), len(start)
    data[0] = NEWLINE
    data[1 : filled + 1] = np.frombuffer(start, np.uint8)
    while filled:
        marks = np.flatnonzero(data[1 : filled + 1] == HEADER_MARK)
        yield offset + marks[data[marks] == NEWLINE]
        data[0] = data[filled]
        offset += filled
        filled = source.readinto(data.data[1:])
