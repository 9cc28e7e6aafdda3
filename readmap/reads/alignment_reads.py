"""BAM and CRAM input: the primary records as reads as they were sequenced, and the lines of the header.

BAM is inflated and parsed here. CRAM, and input to be collated, is converted to BAM by a samtools process.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from readmap.backend.buffers import BufferPool
from readmap.backend.cpu import CpuBackend
from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, GeneratorSource, open_file, source_of_file
from readmap.formats.gzip_reader import GZIP_MAGIC, Inflaters, inflate, read_fully
from readmap.formats.samtools import SamtoolsInput
from readmap.reads.alignment_chunks import AlignmentChunk
from readmap.reads.bam_records import (
    BamRecords,
    KeptTags,
    check_records,
    describe_invalid_size,
    find_records,
    read_header,
)
from readmap.reads.chunks import BUFFERS
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.mate_collation import WINDOW, MateCollator

START_BYTES = 4096  # bytes at the start of a file from which its format is recognized

#: Maximum threads that parse records. The same number inflates; more threads would be idle.
MAX_THREADS = 4

CRAM_MAGIC = b"CRAM"

#: Converts CRAM to uncompressed BAM. With further threads htslib does not notice a missing end of file.
VIEW = ("view", "-u", "--no-PG", "-")

#: Converts to uncompressed BAM with the records of each name together.
COLLATE = ("collate", "-u", "-O", "--no-PG", "-T", "{scratch}/part", "-")


class AlignmentReads:
    """The reads of a BAM or CRAM file; a context manager, which ends samtools.

    header: the header's lines. contigs: names and lengths from BAM's binary list of contigs.
    """

    def __init__(
        self,
        file: io.RawIOBase,
        name: str,
        start: bytes,
        threads: int,
        collate: bool,
        inflaters: Inflaters,
        dropped: Sequence[str] = (),
    ) -> None:
        """file: closed after reading. start: the bytes already read. Otherwise see open_reads."""
        self.name = name
        self._backend = CpuBackend(min(threads, MAX_THREADS))
        self._processes = list[SamtoolsInput]()  # each reads the file or the process before it
        try:
            if dropped:
                file, start = self._pipe_through_samtools(file, start, *VIEW[:-1], "-x", ",".join(dropped), VIEW[-1])
            if collate or start.startswith(CRAM_MAGIC):
                file, start = self._pipe_through_samtools(file, start, *(COLLATE if collate else VIEW))
            self._source = GeneratorSource(name, inflate(file, name, start, threads, inflaters), file)
            self.contigs, text = read_header(self._read_bytes, name)
        except BaseException:
            for process in reversed(self._processes):
                process.close()
            raise
        lines = text.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
        self.header = [line for line in lines if line.startswith("@")]
        self._tags, self._seen = KeptTags.of(()), 0
        self._collator: MateCollator | None = None

    def _pipe_through_samtools(self, file: io.RawIOBase, start: bytes, *arguments: str) -> tuple[io.RawIOBase, bytes]:
        """Start a samtools command that reads a file; return its output, and the output's first bytes."""
        process = SamtoolsInput(file, self.name, start, *arguments)
        self._processes.append(process)
        return process, read_fully(process, START_BYTES)

    def read_progress(self) -> tuple[int, int] | None:
        """Return ByteSource.read_progress; None if samtools reads the file."""
        return self._source.read_progress()

    @property
    def reads(self) -> int:
        """The number of primary records read so far."""
        return self._collator.reads if self._collator else 0

    @property
    def lost(self) -> int:
        """The number of reads whose mates are missing."""
        return self._collator.lost if self._collator else 0

    def start(self, tags: Sequence[str], paired: bool, window: int = WINDOW) -> None:
        """Configure `chunks`, before reading. tags: names to keep. paired: match mates up to `window` records apart."""
        self._tags, self._window = KeptTags.of(tags), window
        is_sorted = any(line.startswith("@HD") and "\tSO:coordinate" in line for line in self.header)
        on_missing = self._refuse_missing_mate if is_sorted else lambda ordinal, name: None
        self._collator = MateCollator(self._tags, window, paired, on_missing, self._backend)

    def chunks(
        self,
        allocate: Callable[[int], NDArray[np.uint8]],
        chunk_bytes: int,
        batch_reads: int | None = None,
        buffers: int = BUFFERS,
    ) -> Iterator[AlignmentChunk]:
        """Yield all reads in chunks of at most `batch_reads` reads, and close the file.

        allocate, chunk_bytes, buffers: function, size and maximum number of the uint8 buffers.
        Raises DataError if the file is corrupt, or if it is sorted and mates are too far apart, after the chunks of all
        reads before that record; and OSError from reading.
        """
        assert self._collator is not None
        max_reads = batch_reads or chunk_bytes
        with self._source, contextlib.closing(BufferPool(allocate, chunk_bytes, buffers)) as pool:
            for records in self._records(chunk_bytes // 2, max_reads):
                if len(records) and (chunk := self._collator.add(records, pool)):
                    yield from chunk.split(max_reads)
                if records.error:
                    raise self._error(f" {records.error}")
            for chunk in self._collator.remaining_chunks(pool, chunk_bytes):
                yield from chunk.split(max_reads)

    def records(self, chunk_bytes: int) -> Iterator[BamRecords]:
        """Yield all records unchanged, as an alternative to `chunks`. Their buffer is overwritten by the next records.

        Raises DataError, after the records before the error, if the file is corrupt, and OSError from reading.
        """
        with self._source:
            for records in self._records(chunk_bytes, chunk_bytes):
                yield records
                self._seen += len(records)
                if records.error:
                    raise self._error(f" {records.error}")

    def close(self) -> None:
        """End samtools, from any thread. Reading the chunks closes the file; otherwise call `drop`."""
        for process in reversed(self._processes):
            process.end()

    def drop(self) -> None:
        """Close the file without reading it."""
        self._source.close()
        for process in self._processes[:1]:
            process.close()

    def __enter__(self) -> AlignmentReads:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _records(self, chunk_bytes: int, max_records: int) -> Iterator[BamRecords]:
        """Yield all records, at most `max_records` at a time, then raise the error if there is one."""
        data = np.empty(chunk_bytes, np.uint8)
        start = filled = 0
        read_error: DataError | OSError | None = None
        is_at_end = False
        while True:
            starts, end = find_records(data[start:filled], max_records, self._backend)
            if len(starts) > 1:
                yield check_records(data[start : start + end], starts, self._tags, len(self.contigs), self._backend)
                start += end
                continue
            if invalid := describe_invalid_size(data[start:filled]):
                raise self._error(f": {invalid}")
            if is_at_end:
                break
            rest = filled - start
            target = data if rest <= len(data) // 2 else np.empty(2 * len(data), np.uint8)
            target[:rest] = data[start:filled].copy()
            data, start, filled = target, 0, rest
            try:
                count = self._source.readinto(data.data[filled:])
            except (DataError, OSError) as error:
                read_error, count = error, 0
            filled += count
            is_at_end = not count
        if read_error:
            raise read_error
        if left := data[start:filled].tobytes():
            size = f"{4 + int.from_bytes(left[:4], 'little')} bytes" if len(left) >= 4 else "4 bytes of its size"
            raise self._error(f": record is truncated: expected {size}, found {len(left)}")

    def _read_bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of BAM, fewer at the end."""
        parts = []
        while count:
            part = bytearray(min(count, 1 << 20))
            size = self._source.readinto(memoryview(part))
            parts.append(bytes(part[:size]))
            count -= size
            if not size:
                break
        return b"".join(parts)

    def _error(self, what: str) -> DataError:
        """Return an error that names the next record."""
        seen = self._collator.seen if self._collator else self._seen
        return DataError(f"{self.name}, record {seen + 1}{what}")

    def _refuse_missing_mate(self, ordinal: int, name: str) -> None:
        """Raise DataError about a record of a sorted file whose mate is not in the window."""
        raise DataError(
            f"{self.name}, record {ordinal + 1} ({name}): its mate is not within {self._window:,} records of it, and "
            "the file is sorted by coordinate: use --collate to put mates together"
        )


def open_reads(
    path: str,
    threads: int = 1,
    collate: bool = False,
    inflaters: Inflaters = HOST_INFLATERS,
    dropped: Sequence[str] = (),
) -> ByteSource | AlignmentReads:
    """Open a file of reads: FASTQ or FASTA as open_bytes does, BAM and CRAM as AlignmentReads that must be started.

    threads: maximum number that read or inflate. collate: let samtools group the records by name.
    dropped: tags that samtools removes. Both apply to BAM and CRAM only.
    Raises OSError if the file cannot be read, and DataError as AlignmentReads does.
    """
    file, name = open_file(path)
    try:
        start = read_fully(file, START_BYTES)
        if is_bam_or_cram(start):
            return AlignmentReads(file, name, start, threads, collate, inflaters, dropped)
        return source_of_file(file, name, start, threads, inflaters)
    except BaseException:
        file.close()
        raise


def is_bam_or_cram(start: bytes) -> bool:
    """Return True if a file that starts with `start` is BAM or CRAM."""
    if start.startswith(CRAM_MAGIC):
        return True
    text = b""
    with contextlib.suppress(zlib.error):
        while start.startswith(GZIP_MAGIC) and len(text) < 4:  # a block may have fewer than 4 bytes, or none
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            text += member.decompress(start, 4 - len(text))
            start = member.unused_data
    return text == b"BAM\1"
