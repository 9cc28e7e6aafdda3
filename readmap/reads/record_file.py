"""A file of reads whose records have a fixed number of lines, or are made to have it, as far as it has been read."""

import numpy as np
from numpy.typing import NDArray

from readmap.backend.buffers import Buffer, BufferPool
from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, GeneratorSource, describe_start
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import LINE_BREAKS, NEWLINE, end_of_text
from readmap.reads import bad_records
from readmap.reads.record_scan import Records, find_records, read_records
from readmap.reads.fastq_reads import four_line_records

Bytes = NDArray[np.uint8]


class RecordFile:
    """The whole records that have been read and not been taken, in a buffer of the pool.

    Where they are low, `turn` and then `read` find more.
    From the first record of FASTQ on that does not have four lines, the file is read as four_line_records gives it.

    name: what messages call the file.
    taken: records of the file that have been taken, or lie in front of the source.
    error: what is wrong behind them, once all of the file has been read that is to be.
    doubt: that something may be missing behind them, then.
    """

    def __init__(
        self,
        source: ByteSource,
        start: bytes,
        lines_a_record: int,
        pool: BufferPool,
        is_normalised: bool,
        threads: int,
    ) -> None:
        """start: the first bytes of the source, already read. is_normalised: whether no record has other lines.
        threads: that find its records.
        """
        self.name = source.name
        self.taken = source.first_record
        self.error: DataError | OSError | None = None
        self.doubt: MissingEofBlock | None = None
        self._source = source
        self._lines_a_record = lines_a_record
        self._is_normalised = is_normalised
        self._pool, self._threads = pool, threads
        self._buffer: Buffer | None = None
        self._data: Bytes = np.frombuffer(start, np.uint8)
        self._begin, self._filled = 0, len(start)
        # The offsets of the last newlines of those that are to be taken, int64 [records].
        self._ends = np.empty(0, np.int64)
        self._is_at_end = False

    @property
    def is_at_end(self) -> bool:
        """Whether all of the file has been read."""
        return self._is_at_end

    @property
    def records(self) -> int:
        """How many there are to be taken."""
        return len(self._ends)

    def is_low(self, least: int) -> bool:
        """Whether to read on: fewer than `least` records are there, or so little that it is cheap to copy."""
        left = self._filled - self._begin
        return not self._is_at_end and (self.records < least or 2 * left + 2 <= len(self._data))

    def turn(self) -> None:
        """Goes on in another buffer, with what is left at its front."""
        tail = self._data[self._begin : self._filled]
        # A record that is longer than a buffer makes the next one larger. One byte is kept for the newline that the
        # file's last line may lack.
        buffer = self._pool.take(2 * len(tail) + 2)
        buffer.data[: len(tail)] = tail
        self.release()
        self._buffer, self._data = buffer, buffer.data
        self._begin, self._filled = 0, len(tail)

    def read(self) -> None:
        """Fill the buffer as far as the file goes, and find its records."""
        checks = not self._is_normalised
        found = read_records(self._source, self._data[:-1], self._filled, self._lines_a_record, checks, self._threads)
        self._filled = found.filled if found else self._filled
        while not self._is_at_end and self._filled < len(self._data) - 1:
            count = 0
            try:
                count = self._source.readinto(self._data.data[self._filled : -1])
            except (DataError, OSError) as error:
                self.error = error
            self._filled += count
            self._is_at_end = not count
            found = None if count else found
        self._find_records(found)

    def take(self, records: int) -> tuple[Bytes, Buffer]:
        """The bytes of the first `records` records, and their buffer, which is held for whoever uses them."""
        assert self._buffer is not None
        begin, self._begin = self._begin, self._end(records)
        self._ends = self._ends[records:]
        self.taken += records
        self._buffer.retain()
        return self._data[begin : self._begin], self._buffer

    def name_at(self, record: int) -> bytes:
        """The name of one of the records that have not been taken, by its number, from 0."""
        begin = self._end(record)
        return bad_records.read_name(self._data[begin : self._end(record + 1)].tobytes().split(b"\n", 1)[0])

    def next_name(self) -> str:
        """The name in messages of the first record that has not been taken."""
        return bad_records.name_of(self._data[self._begin : self._end(1)].tobytes().split(b"\n")[0])

    def release(self) -> None:
        """Gives the buffer back, once all parts of it that have been taken are released."""
        if self._buffer:
            self._buffer.release()
            self._buffer = None

    def _end(self, records: int) -> int:
        return int(self._ends[records - 1]) + 1 if records else self._begin

    def _find_records(self, found: Records | None) -> None:
        """found: those that have been found."""
        if self._is_at_end and self._filled and self._data[self._filled - 1] != NEWLINE:
            self._data[self._filled] = NEWLINE
            self._filled += 1
            found = None
        data = self._data[: self._filled]
        found = found or find_records(data, self._lines_a_record, not self._is_normalised, self._threads)
        self._ends, is_irregular = found.ends, found.is_irregular
        tail = data[self._end(self.records) :]
        is_cut = self._is_at_end and end_of_text(tail) > 0
        if is_irregular or (is_cut and not self._is_normalised):
            self._normalise(tail.tobytes())
        elif is_cut:
            self.error = self.error or self._truncated(tail.tobytes())
        elif isinstance(self.error, MissingEofBlock):
            self.doubt, self.error = self.error, None

    def _normalise(self, start: bytes) -> None:
        """Have all that is behind the records that there are read as of any lines. start: what has been read of it."""
        self._source = GeneratorSource(self.name, four_line_records(start, self._source, self.error))
        self._filled -= len(start)
        self._is_normalised, self._is_at_end, self.error = True, False, None

    def _truncated(self, tail: bytes) -> DataError:
        lines = tail.rstrip(LINE_BREAKS).split(b"\n")
        name = lines[0][1:].split(maxsplit=1)[:1] if lines[0].startswith(b"@") else []
        in_words = f" ({name[0].decode('utf-8', 'backslashreplace')})" if name else ""
        place = f"{self.name}, record {self.taken + self.records + 1}{in_words}"
        return DataError(f"{place}: record is truncated: expected {self._lines_a_record} lines, found {len(lines)}")


def read_start(source: ByteSource) -> bytes:
    """The first bytes of a file of reads behind blank lines; none where there are no others.

    They say whether it is FASTQ or FASTA. Raises DataError where it is neither.
    """
    head, start = bytearray(16), b""
    while not start and (count := source.readinto(memoryview(head))):
        start = bytes(head[:count]).lstrip(LINE_BREAKS)
    if not start or start.startswith((b"@", b">")):
        return start
    raise DataError(
        f"{source.name}: expected reads, FASTQ's '@' or FASTA's '>' at the start, found {describe_start(start)}"
    )
