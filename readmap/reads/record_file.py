"""A file of reads whose records have a fixed number of lines, as far as it has been read."""

import numpy as np
from numpy.typing import NDArray

from readmap.backend.buffers import Buffer, BufferPool
from readmap.errors import DataError
from readmap.formats.compression import ByteSource, describe_start
from readmap.formats.lines import LINE_BREAKS, NEWLINE, LineIndex, end_of_text
from readmap.reads import bad_records

Bytes = NDArray[np.uint8]


class RecordFile:
    """The whole records that have been read and not been taken, in a buffer of the pool.

    Where they are low, `turn` and then `read`, until that is done, find more; so several files can be read in turns.

    name: what messages call the file.
    taken: records that have been taken.
    records: how many there are to be taken.
    error: what is wrong behind them, once all of the file has been read that is to be.
    """

    def __init__(self, source: ByteSource, start: bytes, lines_a_record: int, pool: BufferPool) -> None:
        """start: the first bytes of the source, already read."""
        self.name = source.name
        self.taken = 0
        self.records = 0
        self.error: DataError | OSError | None = None
        self._source = source
        self._lines_a_record = lines_a_record
        self._pool = pool
        self._buffer: Buffer | None = None
        self._data: Bytes = np.frombuffer(start, np.uint8)
        self._begin, self._filled = 0, len(start)
        self._lines = LineIndex(self._data[:0])
        self._lines_taken = 0
        self._is_at_end = False

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

    def read(self, most: int) -> bool:
        """Whether there is more to read and room for it, after some more bytes; if not, the records are found."""
        count = 0
        try:
            count = self._source.readinto(self._data.data[self._filled : -1][:most])
        except (DataError, OSError) as error:
            self.error = error
        self._filled += count
        self._is_at_end = not count
        if count and self._filled < len(self._data) - 1:
            return True
        self._find_records()
        return False

    def take(self, records: int) -> tuple[Bytes, Buffer]:
        """The bytes of the first `records` records, and their buffer, which is held for whoever uses them."""
        assert self._buffer is not None
        begin, self._begin = self._begin, self._end(records)
        self._lines_taken += records * self._lines_a_record
        self.taken += records
        self.records -= records
        self._buffer.hold()
        return self._data[begin : self._begin], self._buffer

    def next_name(self) -> str:
        """The name in messages of the first record that has not been taken."""
        return bad_records.name_of(self._data[self._begin : self._end(1)].tobytes().split(b"\n")[0])

    def release(self) -> None:
        """Gives the buffer back, once all parts of it that have been taken are released."""
        if self._buffer:
            self._buffer.release()
            self._buffer = None

    def _end(self, records: int) -> int:
        return self._lines.end(self._lines_taken + records * self._lines_a_record)

    def _find_records(self) -> None:
        if self._is_at_end and self._filled and self._data[self._filled - 1] != NEWLINE:
            self._data[self._filled] = NEWLINE
            self._filled += 1
        self._lines, self._lines_taken = LineIndex(self._data[: self._filled]), 0
        whole = self._lines.total // self._lines_a_record
        tail = self._data[self._end(whole) : self._filled]
        self.records = self._without_blank_records(whole)
        if self.records < whole:
            self.error = self.error or self._behind_blank_records(tail)
            self._is_at_end = True
        elif self._is_at_end and end_of_text(tail):
            self.error = self.error or self._truncated(tail.tobytes())

    def _without_blank_records(self, records: int) -> int:
        """How many of the records are left without those at their end that are nothing but blank lines."""
        last = self._end(max(records - 1, 0))
        if not records or not self._data[last : last + 2].tobytes().startswith((b"\n", b"\r\n")):
            return records
        end = end_of_text(self._data[: self._end(records)])
        text_lines = self._lines.count_before(end) + 1 if end else 0
        return -(-text_lines // self._lines_a_record)

    def _behind_blank_records(self, tail: Bytes) -> DataError | OSError | None:
        """Blank records end a file; between records they are an error."""
        try:
            if not end_of_text(tail) and _is_blank(self._source):
                return None
        except (DataError, OSError) as error:
            return error
        return DataError(f"{self.name}, record {self.taken + self.records + 1}: expected '@', found a blank line")

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


def _is_blank(source: ByteSource) -> bool:
    """Whether nothing but line breaks is left."""
    block = bytearray(1 << 16)
    while count := source.readinto(memoryview(block)):
        if block[:count].strip(LINE_BREAKS):
            return False
    return True
