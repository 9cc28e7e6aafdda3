"""BAM and CRAM as inputs: their primary records as reads, as they were sequenced, and the lines of their header.

BAM is inflated and parsed here; of CRAM, and of what is to be collated, samtools makes BAM in a process of its own.
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
from readmap.formats.byte_source import ByteSource, GeneratorSource, source_of_file, open_file
from readmap.formats.gzip_reader import GZIP_MAGIC, Inflaters, inflate, read_fully
from readmap.formats.samtools_input import SamtoolsInput
from readmap.reads import bam_records
from readmap.reads.alignment_chunks import AlignmentChunk
from readmap.reads.bam_records import KeptTags, Records, examine
from readmap.reads.chunks import BUFFERS
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.mate_collation import MateCollator
from readmap.reads.mate_matching import WINDOW

#: Enough of a file to know what it is.
START_BYTES = 4096

#: More have nothing to do while the records are inflated, which as many do.
MOST_THREADS = 4

CRAM_MAGIC = b"CRAM"

#: Uncompressed BAM of a CRAM file. With further threads htslib does not see that its end is missing.
VIEW = ("view", "-u", "--no-PG", "-")

#: The same of a file whose records are in any order, those of a name behind each other.
COLLATE = ("collate", "-u", "-O", "--no-PG", "-T", "{scratch}/part", "-")


class AlignmentReads:
    """The reads of a file of alignments; a context manager, which ends what runs for it.

    name: what messages call it: the path, or "standard input".
    header: the lines of its header. contigs: names and lengths, as the header has them once more.
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
        """file: closed in the end. start: what has been read of it. threads: the most that inflate, or that parse.
        inflaters, dropped: as open_reads has them.

        Raises DataError where the header cannot be read.
        """
        self.name = name
        self._backend = CpuBackend(min(threads, MOST_THREADS))
        self._samtools: SamtoolsInput | None = None
        self._dropping: SamtoolsInput | None = None
        if dropped:
            words = [*VIEW[:-1], "-x", ",".join(dropped), VIEW[-1]]
            file = self._dropping = SamtoolsInput(file, name, start, *words)
        try:
            if self._dropping:
                start = read_fully(self._dropping, START_BYTES)
            if collate or start.startswith(CRAM_MAGIC):
                self._samtools = SamtoolsInput(file, name, start, *(COLLATE if collate else VIEW))
            if self._samtools:
                start = read_fully(self._samtools, START_BYTES)
            inflated = self._samtools or file
            self._source = GeneratorSource(name, inflate(inflated, name, start, threads, inflaters), inflated)
            self.contigs, text = bam.contigs_and_text(self._read, name)
        except BaseException:
            for command in (self._samtools, self._dropping):
                if command:
                    command.close()
            raise
        lines = text.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
        self.header = [line for line in lines if line.startswith("@")]
        self._tags, self._seen = KeptTags.of(()), 0
        self._texts: MateCollator | None = None

    def read_progress(self) -> tuple[int, int] | None:
        """As of every ByteSource; None where samtools reads the file."""
        return self._source.read_progress()

    @property
    def reads(self) -> int:
        """Primary records that have been read."""
        return self._texts.reads if self._texts else 0

    @property
    def lost(self) -> int:
        """Reads whose mates have not been found."""
        return self._texts.lost if self._texts else 0

    def start(self, tags: Sequence[str], paired: bool, window: int = WINDOW) -> None:
        """Begin; to be called once, before `chunks`. tags: that reads keep. paired: whether mates belong together.

        window: records between which they are looked for.
        """
        self._tags, self._window = KeptTags.of(tags), window
        is_sorted = any(line.startswith("@HD") and "\tSO:coordinate" in line for line in self.header)
        self._texts = MateCollator(self._tags, window, paired, self._refuse if is_sorted else _let, self._backend)

    def chunks(
        self,
        allocate: Callable[[int], NDArray[np.uint8]],
        chunk_bytes: int,
        batch_reads: int | None = None,
        buffers: int = BUFFERS,
    ) -> Iterator[AlignmentChunk]:
        """All reads; the arguments are those of read_chunks. The file is closed behind them.

        Raises DataError, after the chunks of all that could be given before that place, where the file is broken, and
        where it is sorted and mates are too far apart; and OSError from reading.
        """
        assert self._texts is not None
        most = batch_reads or chunk_bytes
        with self._source, contextlib.closing(BufferPool(allocate, chunk_bytes, buffers)) as pool:
            for records in self._records(chunk_bytes // 2, most):
                if len(records) and (chunk := self._texts.take(records, pool)):
                    yield from chunk.parts(most)
                if records.fault:
                    raise self._error(f" {records.fault}")
            for chunk in self._texts.rest(pool, chunk_bytes):
                yield from chunk.parts(most)

    def records(self, chunk_bytes: int) -> Iterator[Records]:
        """All records as they are, in place of `chunks`; their bytes are those of a buffer that is used again.

        Raises DataError, after those in front of that place, where the file is broken, and OSError from reading.
        """
        with self._source:
            for records in self._records(chunk_bytes, chunk_bytes):
                yield records
                self._seen += len(records)
                if records.fault:
                    raise self._error(f" {records.fault}")

    def close(self) -> None:
        """Ends samtools, from any thread; whoever reads the chunks closes the file, and `drop` where nobody does."""
        for command in (self._samtools, self._dropping):
            if command:
                command.end()

    def drop(self) -> None:
        """Closes the file, where nobody reads the chunks."""
        self._source.close()
        if self._dropping:
            self._dropping.close()

    def __enter__(self) -> AlignmentReads:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _records(self, chunk_bytes: int, most: int) -> Iterator[Records]:
        """All records, at most so many at a time; behind the last ones the error where there is one."""
        data = np.empty(chunk_bytes, np.uint8)
        begin = filled = 0
        fault: DataError | OSError | None = None
        is_at_end = False
        while True:
            starts, end = bam.find_records(data[begin:filled], most, self._backend)
            if len(starts) > 1:
                records = examine(data[begin : begin + end], starts, self._tags, len(self.contigs), self._backend)
                yield records
                begin += end
                continue
            if wrong := bam.wrong_size(data[begin:filled]):
                raise self._error(f": {wrong}")
            if is_at_end:
                break
            left = filled - begin
            room = data if left <= len(data) // 2 else np.empty(2 * len(data), np.uint8)
            room[:left] = data[begin:filled].copy()
            data, begin, filled = room, 0, left
            try:
                count = self._source.readinto(data.data[filled:])
            except (DataError, OSError) as error:
                fault, count = error, 0
            filled += count
            is_at_end = not count
        if fault:
            raise fault
        if filled > begin:
            raise self._error(f": the record is cut short: {_missing(data[begin:filled].tobytes())}")

    def _read(self, count: int) -> bytes:
        """So many bytes of what is inflated, or fewer at the end."""
        parts = []
        while count:
            part = bytearray(min(count, 1 << 20))
            got = self._source.readinto(memoryview(part))
            parts.append(bytes(part[:got]))
            count -= got
            if not got:
                break
        return b"".join(parts)

    def _error(self, what: str) -> DataError:
        """That something is wrong with the record behind those that have been taken."""
        seen = self._texts.seen if self._texts else self._seen
        return DataError(f"{self.name}, record {seen + 1}{what}")

    def _refuse(self, ordinal: int, name: str) -> None:
        raise DataError(
            f"{self.name}, record {ordinal + 1} ({name}): its mate is not within {self._window:,} records of it, and "
            "the file is sorted by coordinate: --collate brings mates together"
        )


def open_reads(
    path: str,
    threads: int = 1,
    collate: bool = False,
    inflaters: Inflaters = HOST_INFLATERS,
    dropped: Sequence[str] = (),
) -> ByteSource | AlignmentReads:
    """The bytes of a file of reads, as open_bytes gives them; of BAM and CRAM AlignmentReads, still to be started.

    collate: whether samtools is to bring the records of a name together; only of BAM and CRAM. inflaters: what inflates
    the file. dropped: tags that samtools is to leave out of BAM and CRAM.
    Raises OSError where it cannot be read, DataError as AlignmentReads does.
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
    """Whether a file that begins so is BAM or CRAM."""
    if start.startswith(CRAM_MAGIC):
        return True
    found = b""
    with contextlib.suppress(zlib.error):
        while start.startswith(GZIP_MAGIC) and len(found) < 4:  # a block may be empty, or hold less
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            found += member.decompress(start, 4 - len(found))
            start = member.unused_data
    return found == b"BAM\1"


def _missing(data: bytes) -> str:
    """Of a record of which only these bytes are there."""
    if len(data) < 4:
        return f"expected 4 bytes of its size, found {len(data)}"
    return f"expected {4 + int.from_bytes(data[:4], 'little')} bytes, found {len(data)}"


def _let(ordinal: int, name: str) -> None:
    """What is left behind is a single read."""
