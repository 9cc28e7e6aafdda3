"""One input file of reads: reads into pool buffers, finds complete records and hands them out."""

import numpy as np
from numpy.typing import NDArray

from readmap.backend.buffers import Buffer, BufferPool
from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, GeneratorSource, describe_start
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import LINE_BREAKS, NEWLINE, end_of_text
from readmap.reads import bad_records
from readmap.reads.record_normalization import four_line_records
from readmap.reads.record_scan import RecordEnds, read_and_scan_records, scan_records

Bytes = NDArray[np.uint8]


class RecordFile:
    """The complete records in the current buffer that have not been taken.

    Call `switch_buffer` and then `read` if `is_low`. From the first FASTQ record without four lines on, the file is
    read through four_line_records.
    """

    def __init__(
        self,
        source: ByteSource,
        start: bytes,
        lines_per_record: int,
        pool: BufferPool,
        is_normalized: bool,
        threads: int,
    ) -> None:
        """start: the first bytes of the source, already read. is_normalized: records have lines_per_record lines."""
        self.name = source.name
        self.taken = source.first_record  # records taken so far, plus the records before the start of the source
        self.error: DataError | OSError | None = None  # after the last record, once the whole file has been read
        self.missing_eof: MissingEofBlock | None = None  # the file may have been truncated
        self._source, self._lines_per_record, self._is_normalized = source, lines_per_record, is_normalized
        self._pool, self._threads = pool, threads
        self._buffer: Buffer | None = None
        self._data: Bytes = np.frombuffer(start, np.uint8)
        self._start, self._filled = 0, len(start)
        # The last newline of each record that has not been taken, int64 [records].
        self._ends = np.empty(0, np.int64)
        self.is_at_end = False  # the whole file has been read

    @property
    def records(self) -> int:
        """The number of records that can be taken."""
        return len(self._ends)

    def is_low(self, min_records: int) -> bool:
        """Return True if fewer records are left, or so few bytes that moving them to another buffer is cheap."""
        left = self._filled - self._start
        return not self.is_at_end and (self.records < min_records or 2 * left + 2 <= len(self._data))

    def switch_buffer(self) -> None:
        """Move the bytes that have not been taken to the front of another buffer, and release the old buffer."""
        tail = self._data[self._start : self._filled]
        # A record longer than a buffer makes the next buffer larger. One byte is reserved for the newline that the last
        # line of a file may lack.
        buffer = self._pool.take(2 * len(tail) + 2)
        buffer.data[: len(tail)] = tail
        self.release()
        self._buffer, self._data = buffer, buffer.data
        self._start, self._filled = 0, len(tail)

    def read(self) -> None:
        """Fill the buffer from the file and find its records; a read error is stored in `error`."""
        checks_fastq, target = not self._is_normalized, self._data[:-1]
        found = read_and_scan_records(
            self._source, target, self._filled, self._lines_per_record, checks_fastq, self._threads
        )
        self._filled = found.filled if found else self._filled
        while not self.is_at_end and self._filled < len(self._data) - 1:
            count = 0
            try:
                count = self._source.readinto(self._data.data[self._filled : -1])
            except (DataError, OSError) as error:
                self.error = error
            self._filled += count
            self.is_at_end = not count
            found = None if count else found
        self._update_records(found)

    def take(self, records: int) -> tuple[Bytes, Buffer]:
        """Return the bytes of the next `records` records, and their buffer with a reference for the caller."""
        assert self._buffer is not None
        start, self._start = self._start, self._end(records)
        self._ends = self._ends[records:]
        self.taken += records
        self._buffer.retain()
        return self._data[start : self._start], self._buffer

    def name_at(self, record: int) -> bytes:
        """Return the read name, without /1 or /2, of record `record` of those that have not been taken."""
        return bad_records.read_name(self._header(record))

    def next_name(self) -> str:
        return bad_records.name_of(self._header(0))

    def release(self) -> None:
        """Release the current buffer; it stays in use until all records taken from it are released."""
        if self._buffer:
            self._buffer.release()
            self._buffer = None

    def _header(self, record: int) -> bytes:
        return self._data[self._end(record) : self._end(record + 1)].tobytes().split(b"\n", 1)[0]

    def _end(self, records: int) -> int:
        return int(self._ends[records - 1]) + 1 if records else self._start

    def _update_records(self, found: RecordEnds | None) -> None:
        """Find the records in the buffer, unless `found` has them; set `error` if the file ends inside a record."""
        if self.is_at_end and self._filled and self._data[self._filled - 1] != NEWLINE:
            self._data[self._filled] = NEWLINE
            self._filled += 1
            found = None
        data = self._data[: self._filled]
        found = found or scan_records(data, self._lines_per_record, not self._is_normalized, self._threads)
        self._ends, is_irregular = found.ends, found.is_irregular
        tail = data[self._end(self.records) :]
        is_incomplete = self.is_at_end and end_of_text(tail) > 0
        if is_irregular or (is_incomplete and not self._is_normalized):
            self._normalize(tail.tobytes())
        elif is_incomplete:
            self.error = self.error or self._truncated(tail.tobytes())
        elif isinstance(self.error, MissingEofBlock):
            self.missing_eof, self.error = self.error, None

    def _normalize(self, start: bytes) -> None:
        """Read the rest of the file through four_line_records. start: the bytes after the last record found."""
        self._source = GeneratorSource(self.name, four_line_records(start, self._source, self.error))
        self._filled -= len(start)
        self._is_normalized, self.is_at_end, self.error = True, False, None

    def _truncated(self, tail: bytes) -> DataError:
        """Return the error for a file that ends inside a record; tail: the incomplete record."""
        lines = tail.rstrip(LINE_BREAKS).split(b"\n")
        name = lines[0][1:].split(maxsplit=1)[:1] if lines[0].startswith(b"@") else []
        in_brackets = f" ({name[0].decode('utf-8', 'backslashreplace')})" if name else ""
        record = f"{self.name}, record {self.taken + self.records + 1}{in_brackets}"
        return DataError(f"{record}: record is truncated: expected {self._lines_per_record} lines, found {len(lines)}")


def read_start(source: ByteSource) -> bytes:
    """Return the first bytes after blank lines, b"" for a blank file. Raises DataError if they are not '@' or '>'."""
    head, start = bytearray(16), b""
    while not start and (count := source.readinto(memoryview(head))):
        start = bytes(head[:count]).lstrip(LINE_BREAKS)
    if not start or start.startswith((b"@", b">")):
        return start
    raise DataError(
        f"{source.name}: expected FASTQ or FASTA, which start with '@' or '>', found {describe_start(start)}"
    )
