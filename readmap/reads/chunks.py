"""Read FASTQ or FASTA files as chunks of complete records, cut from buffers that are reused.

    buffer 1   @r1 ACGT + IIII  @r2 AC + II  @r3 AC
                                             ^ cut: after the last line whose number is a multiple of four
    buffer 2   @r3 ACGG + IIII  @r4 ...        the tail, copied to the front of the next buffer

A FASTQ record is four lines: '@' is also a quality, so it cannot mark the start of a record. From the first record with
another number of lines on, a file is normalized to four. All other checks are made where records are parsed, not here.

A chunk of two files has the same number of records of both, so that mates are together. The surplus of one file stays
in its buffer for the next chunk, or is copied to the front of another buffer if it is small, like a tail.

    file 1     @r1 AC + II  @r2 AC + II  @r3 AC + II  @r
                                         ^ cut
    file 2     @r1 ACGTA + IIIII  @r2 ACGTA + IIIII  @r
                                                     ^ cut
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from readmap.backend.buffers import Buffer, BufferPool
from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, GeneratorSource, open_bytes
from readmap.formats.wording import pluralize
from readmap.reads import bad_records
from readmap.reads.bad_records import BadRecord
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_file import RecordFile, read_start
from readmap.reads.record_normalization import two_line_records
from readmap.reads.record_scan import cut_between_pairs, scan_records

Bytes = NDArray[np.uint8]

BUFFERS = 3  # one is being filled, one is being mapped, and one waits between them


class RecordFormat(Enum):
    """The format of a chunk's records; the value is the number of lines per record."""

    FASTQ = 4
    FASTA = 2


class PairLayout(Enum):
    """Where mates are in the input.

    Chunks of TWO_FILES and INTERLEAVED have mates in alternation: R1, R2, R1, R2. In ADJACENT two consecutive reads of
    one name are mates, all other reads are single.

    files: number of files read together. records_per_fragment: consecutive records of a file that are never separated.
    paired: reads may have mates.
    """

    SINGLE = 1, 1, False
    TWO_FILES = 2, 1, True
    INTERLEAVED = 1, 2, True
    ADJACENT = 1, 1, True

    def __init__(self, files: int, records_per_fragment: int, paired: bool) -> None:
        self.files = files
        self.records_per_fragment = records_per_fragment
        self.paired = paired

    @property
    def mates_alternate(self) -> bool:
        """Every second read is the mate of the read before it."""
        return self.paired and self is not PairLayout.ADJACENT

    @property
    def min_records(self) -> int:
        """The number of consecutive records needed to decide whether a cut separates mates."""
        return 2 if self is PairLayout.ADJACENT else self.records_per_fragment


@dataclass(frozen=True)
class Chunk:
    """Consecutive complete records of one file, or the same number of records of each of two files."""

    #: uint8 [nbytes] of each file, views of the buffers, from the start of a record to the newline of the last record.
    #: A record has `format.value` lines. FASTQ of four lines is as in the file, so lines may end with CR LF. FASTA is
    #: normalized to a header line and one sequence line, which may be empty, without CR.
    parts: tuple[Bytes, ...]
    paths: tuple[str, ...]  # names of the files for messages
    format: RecordFormat
    layout: PairLayout
    first_record: int  # 0-based, in its file
    records: int  # per file, at least 1, and even if mates alternate in one file
    buffers: tuple[Buffer, ...]  # that the parts are views of
    lane: int = 0  # 0-based

    @property
    def reads(self) -> int:
        return self.records * len(self.parts)

    @property
    def is_divisible(self) -> bool:
        """The chunk has more than one read or pair."""
        return self.records > self.layout.min_records

    def release(self) -> None:
        """Return the memory to the reader. Call once per chunk, from any thread; `parts` are invalid afterwards."""
        for buffer in self.buffers:
            buffer.release()

    def keep(self) -> None:
        """Keep the memory until one more release, and let the reader continue with other memory."""
        for buffer in self.buffers:
            buffer.detach()

    def halves(self) -> "tuple[Chunk, Chunk]":
        """Split a divisible chunk into two chunks that share its memory; release both instead of this chunk."""
        half = self.records // 2 // self.layout.records_per_fragment * self.layout.records_per_fragment
        ends = [scan_records(part, self.format.value, checks_fastq=False).ends for part in self.parts]
        if self.layout is PairLayout.ADJACENT:

            def name(record: int) -> bytes:
                start = int(ends[0][record - 1]) + 1 if record else 0
                header = self.parts[0][start : int(ends[0][record])].tobytes().split(b"\n", 1)[0]
                return bad_records.read_name(header)

            half = cut_between_pairs(name, half, self.records) or 2
        cuts = [int(part_ends[half - 1]) + 1 for part_ends in ends]
        cut_parts = [(part[:cut], part[cut:]) for part, cut in zip(self.parts, cuts, strict=True)]
        first, second = zip(*cut_parts, strict=True)
        for buffer in self.buffers:
            buffer.retain()
        rest = replace(self, parts=second, first_record=self.first_record + half, records=self.records - half)
        return replace(self, parts=first, records=half), rest

    def error(self, bad: BadRecord) -> DataError:
        """Return the error that describes an invalid read of the chunk."""
        if bad.code == bad_records.MATE_NAMES:
            return self._mate_names_error(bad.read)
        record, file = divmod(bad.read, len(self.parts))
        number = self.first_record + record + 1
        return bad_records.describe(self.parts[file], record, bad.code, self.format.value, self.paths[file], number)

    def _mate_names_error(self, read: int) -> DataError:
        """Return the error for mates with different names; read: index of the second mate in the chunk."""
        mates = [divmod(each, len(self.parts)) for each in (read - 1, read)]
        headers = [bad_records.record_lines(self.parts[file], index, self.format.value)[0] for index, file in mates]
        first, second = map(bad_records.name_of, headers)
        index, file = mates[1]
        number = self.first_record + index + 1
        mate = f"in {self.paths[0]}" if file else f"in record {number - 1}"
        record = f"{self.paths[file]}, record {number} ({second})"
        return DataError(f"{record}: its mate {mate} is named {first}; mates must have the same name")


def read_chunks(
    paths: Sequence[str | ByteSource],
    allocate: Callable[[int], Bytes],
    chunk_bytes: int,
    batch_reads: int | None = None,
    threads: int = 1,
    buffers: int = BUFFERS,
    first_bytes: int | None = None,
    layout: PairLayout | Sequence[PairLayout] = PairLayout.SINGLE,
    warn: Callable[[str], None] | None = None,
) -> Iterator[Chunk]:
    """Yield the records of all files in chunks, file after file or pair of files after pair of files.

    The iterator waits while all buffers are in chunks that have not been released.

    paths: paths, "-" for standard input, or open sources.
    allocate: returns a buffer, uint8 [nbytes]. Called at most `buffers` times for each of the files read together, and
        again for larger buffers: the first buffers are small, and a record may be longer than a buffer.
    chunk_bytes: size of the buffers read together, which bounds the size of a chunk.
    batch_reads: maximum number of reads of a chunk; a pair is never separated.
    threads: for reading or inflating each file and finding its records.
    buffers: buffers per file, at least 2.
    first_bytes: minimum size of the first buffers; small by default, because mapping waits for the first chunk.
    layout: one layout for all files, which then are one lane, or one layout per lane.
    warn: called if BGZF lacks its end-of-file block after the last record. Without `warn` that is an error.
    Raises DataError, after the chunks of all records before the error, if a file is neither FASTQ nor FASTA, its last
    FASTQ record is incomplete, gzip data are corrupt, two files have different formats, or a read has no mate; and
    OSError from reading.
    """
    is_one_lane = isinstance(layout, PairLayout)
    layouts = [layout] * (len(paths) // layout.files) if isinstance(layout, PairLayout) else layout
    files, remaining = max((one.files for one in layouts), default=1), iter(paths)
    with contextlib.closing(BufferPool(allocate, chunk_bytes // files, buffers * files, first_bytes)) as pool:
        for lane, one in enumerate(layouts):
            with contextlib.ExitStack() as stack:
                lane_paths = list(itertools.islice(remaining, one.files))
                sources = [stack.enter_context(open_bytes(path, threads, HOST_INFLATERS)) for path in lane_paths]
                starts = [read_start(source) for source in sources]
                if any(starts):
                    for chunk in _LaneReader(sources, starts, one, pool, batch_reads, threads, warn).chunks():
                        yield chunk if is_one_lane else replace(chunk, lane=lane)


class _LaneReader:
    """Makes chunks of the files that are read together."""

    def __init__(
        self,
        sources: Sequence[ByteSource],
        starts: Sequence[bytes],
        layout: PairLayout,
        pool: BufferPool,
        batch_reads: int | None,
        threads: int,
        warn: Callable[[str], None] | None,
    ) -> None:
        """starts: the first bytes of each source, already read; empty if the source is empty."""
        self._layout, self._pool, self._warn = layout, pool, warn
        self._format, self._max_records = _common_format(sources, starts), None
        if batch_reads:
            step = layout.records_per_fragment
            self._max_records = max(batch_reads // (layout.files * step) * step, layout.min_records)
        self._files: list[RecordFile] = []
        for source, start in zip(sources, starts, strict=True):
            is_fasta = start.startswith(b">")
            if is_fasta:
                records = GeneratorSource(source.name, two_line_records(source, start))
                records.first_record = source.first_record
                source, start = records, b""
            self._files.append(RecordFile(source, start, self._format.value, pool, is_fasta, threads))

    def chunks(self) -> Iterator[Chunk]:
        """Yield all chunks, then raise the error if there is one."""
        while records := self._fill_buffers():
            max_records = self._max_records or records
            while records and (count := self._without_separating_mates(min(max_records, records))):
                yield self._take_chunk(count)
                records -= count
        for file in self._files:
            if file.error and file.records < self._layout.records_per_fragment:
                raise file.error
        if any(file.records for file in self._files):
            raise self._missing_mate_error()
        for file in self._files:
            if file.missing_eof:
                if not self._warn:
                    raise file.missing_eof
                self._warn(f"{file.missing_eof}, which some programs do not write")
            file.release()

    def _fill_buffers(self) -> int:
        """Read more if needed; return how many records of each file can be taken, 0 at the end of a file."""
        while low := [file for file in self._files if file.is_low(self._layout.min_records)]:
            for file in low:
                file.switch_buffer()
            _read_concurrently(low)
            self._pool.grow()
        step = self._layout.records_per_fragment
        return min(file.records for file in self._files) // step * step

    def _without_separating_mates(self, records: int) -> int:
        """Return `records`, or one less if the next chunk would start with the mate of the last record."""
        if self._layout is not PairLayout.ADJACENT:
            return records
        (file,) = self._files
        if file.is_at_end and records == file.records:
            return records
        return cut_between_pairs(file.name_at, records, file.records)

    def _take_chunk(self, records: int) -> Chunk:
        """Return a chunk of the next `records` records of each file."""
        first_record = self._files[0].taken
        parts, buffers = zip(*(file.take(records) for file in self._files), strict=True)
        names = tuple(file.name for file in self._files)
        return Chunk(parts, names, self._format, self._layout, first_record, records, buffers)

    def _missing_mate_error(self) -> DataError:
        """Return the error for an odd number of records, or two files with different numbers."""
        longer = max(self._files, key=lambda file: file.records)
        shorter = min(self._files, key=lambda file: file.records)
        if shorter.missing_eof:
            return shorter.missing_eof
        unpaired = f"record {longer.taken + 1} ({longer.next_name()}) has no mate"
        if longer is shorter:
            return DataError(f"{longer.name} has {pluralize(longer.taken + 1, 'record')}, an odd number: {unpaired}")
        return DataError(f"{shorter.name} has {pluralize(shorter.taken, 'record')}, {longer.name} has more: {unpaired}")


def _read_concurrently(files: Sequence[RecordFile]) -> None:
    """Read all files at once: a program that writes two pipes in turn blocks if one of them is not read."""
    errors: list[BaseException] = []

    def read(file: RecordFile) -> None:
        try:
            file.read()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(file,), daemon=True) for file in files[1:]]
    for thread in threads:
        thread.start()
    read(files[0])
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _common_format(sources: Sequence[ByteSource], starts: Sequence[bytes]) -> RecordFormat:
    """Return the format of all files that are not empty. Raises DataError if their formats differ."""
    formats = {
        source.name: RecordFormat.FASTQ if start.startswith(b"@") else RecordFormat.FASTA
        for source, start in zip(sources, starts, strict=True)
        if start
    }
    if len(set(formats.values())) > 1:
        found = " and ".join(f"{name} is {format.name}" for name, format in formats.items())
        raise DataError(f"{found}: files of pairs must have the same format")
    return next(iter(formats.values()))
