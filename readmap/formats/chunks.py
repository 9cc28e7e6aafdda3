"""The reads' way in: chunks of whole FASTQ or FASTA records, cut out of buffers that go round.

    buffer 1   @r1 ACGT + IIII  @r2 AC + II  @r3 AC
                                             ^ cut: behind the last line whose number is a multiple of four
    buffer 2   @r3 ACGG + IIII  @r4 ...        the tail, copied to the front of the next buffer

A FASTQ record is four lines and nothing else: '@' is a quality too, so it never locates a record. The records
are checked where they are parsed, not here.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.buffers import Buffer, BufferPool
from readmap.formats.compression import ByteSource, PieceSource, describe_start, open_bytes
from readmap.formats.fasta_reads import two_line_records
from readmap.formats.lines import LINE_BREAKS, NEWLINE, LineIndex, end_of_text

Bytes = NDArray[np.uint8]

# One buffer is being filled, one is being mapped, and one waits between them.
BUFFERS = 3


class Format(Enum):
    """How the records of a chunk are laid out; the value is the number of lines a record."""

    FASTQ = 4
    FASTA = 2


@dataclass(frozen=True)
class Chunk:
    """Whole records of one file, in its order.

    data: uint8 [nbytes], a view of the buffer: starts at a record and ends with the newline of its last one. A record
        is `format.value` lines: FASTQ's as in the file, so that a line may end with CR LF; FASTA's are normalised to a
        header line and one sequence line, which is empty where there is no sequence, both without CR before LF.
    path: what messages call the file.
    format: of the records.
    first_record: the number of the first record in its file, from 0.
    records: how many, at least 1.
    buffer: what `data` is a view of.
    """

    data: Bytes
    path: str
    format: Format
    first_record: int
    records: int
    buffer: Buffer

    def release(self) -> None:
        """Gives the memory back to the reader; once a chunk, from any thread. `data` must not be used after it."""
        self.buffer.release()


def read_chunks(
    paths: Sequence[str],
    allocate: Callable[[int], Bytes],
    chunk_bytes: int,
    batch_reads: int | None = None,
    threads: int = 1,
    buffers: int = BUFFERS,
) -> Iterator[Chunk]:
    """The records of all files, one file after the other, in chunks; "-" is standard input.

    allocate: makes a buffer, uint8 [nbytes]; called at most `buffers` times, and again for a record that is longer
    than a buffer. chunk_bytes: the size of a buffer, which bounds a chunk. batch_reads: the most records a chunk.
    threads: how many read or inflate. The iterator waits while all `buffers`, at least 2, are in chunks
    that have not been released.
    Raises DataError, after the chunks of all records before that place, where a file is neither FASTQ nor FASTA, its
    last FASTQ record is incomplete, blank lines stand between records, or gzip is broken; and OSError from reading.
    """
    with contextlib.closing(BufferPool(allocate, chunk_bytes, buffers)) as pool:
        for path in paths:
            with open_bytes(path, threads) as source:
                start = _read_start(source)
                if start.startswith(b"@"):
                    yield from _Cutter(source, Format.FASTQ, pool, batch_reads).chunks(start)
                elif start:
                    records = PieceSource(source.name, two_line_records(source, start))
                    yield from _Cutter(records, Format.FASTA, pool, batch_reads).chunks(b"")


def _read_start(source: ByteSource) -> bytes:
    """The first bytes of a file of reads, which say whether it is FASTQ or FASTA; none where it is empty or blank."""
    head = bytearray(16)
    start = bytes(head[: source.readinto(memoryview(head))])
    if start.startswith((b"@", b">")):
        return start
    if not start.strip(LINE_BREAKS) and _is_blank(source):
        return b""
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


class _Cutter:
    """Makes chunks of the bytes of one file, whose records have a fixed number of lines."""

    def __init__(
        self,
        source: ByteSource,
        format: Format,
        pool: BufferPool,
        batch_reads: int | None,
    ) -> None:
        self._source = source
        self._format = format
        self._pool = pool
        self._batch_reads = batch_reads
        self._records = 0

    def chunks(self, start: bytes) -> Iterator[Chunk]:
        """All chunks. start: the first bytes of the source, already read."""
        tail = start
        is_at_end = False
        while not is_at_end:
            # A record that is longer than a buffer makes the next one larger. One byte is kept for the newline that
            # the file's last line may lack.
            buffer = self._pool.take(2 * len(tail) + 2)
            data = buffer.data
            data[: len(tail)] = np.frombuffer(tail, np.uint8)
            filled = len(tail) + self._source.readinto(data.data[len(tail) : -1])
            is_at_end = filled == len(tail)
            if is_at_end and tail and not tail.endswith(b"\n"):
                data[filled] = NEWLINE
                filled += 1
            lines = LineIndex(data[:filled])
            records = lines.total // self._format.value
            end = lines.end(records * self._format.value)
            tail = data[end:filled].tobytes()
            whole = self._without_blank_records(data, lines, records)
            yield from self._batches(buffer, lines, whole)
            if whole < records:
                return self._expect_blank(tail)
        if tail.strip(LINE_BREAKS):
            raise self._truncated(tail)
        return None

    def _batches(self, buffer: Buffer, lines: LineIndex, records: int) -> Iterator[Chunk]:
        """Chunks of the first `records` records of a buffer, which each of them holds and this releases."""
        batch = self._batch_reads or max(records, 1)
        begin = 0
        for first in range(0, records, batch):
            count = min(batch, records - first)
            end = lines.end((first + count) * self._format.value)
            buffer.hold()
            yield Chunk(buffer.data[begin:end], self._source.name, self._format, self._records, count, buffer)
            self._records += count
            begin = end
        buffer.release()

    def _without_blank_records(self, data: Bytes, lines: LineIndex, records: int) -> int:
        """How many of a buffer's records are left without those at its end that are nothing but blank lines."""
        last = lines.end(max(records - 1, 0) * self._format.value)
        if not records or not data[last : last + 2].tobytes().startswith((b"\n", b"\r\n")):
            return records
        end = end_of_text(data[: lines.end(records * self._format.value)])
        text_lines = lines.count_before(end) + 1 if end else 0
        return -(-text_lines // self._format.value)

    def _expect_blank(self, tail: bytes) -> None:
        """Blank records end a file; between records they are an error."""
        if tail.strip(LINE_BREAKS) or not _is_blank(self._source):
            raise DataError(f"{self._source.name}, record {self._records + 1}: expected '@', found a blank line")

    def _truncated(self, tail: bytes) -> DataError:
        lines = tail.rstrip(LINE_BREAKS).split(b"\n")
        name = lines[0][1:].split(maxsplit=1)[:1] if lines[0].startswith(b"@") else []
        in_words = f" ({name[0].decode('utf-8', 'backslashreplace')})" if name else ""
        place = f"{self._source.name}, record {self._records + 1}{in_words}"
        return DataError(f"{place}: record is truncated: expected {self._format.value} lines, found {len(lines)}")
