"""The reads' way in: chunks of whole FASTQ or FASTA records, cut out of buffers that go round.

    buffer 1   @r1 ACGT + IIII  @r2 AC + II  @r3 AC
                                             ^ cut: behind the last line whose number is a multiple of four
    buffer 2   @r3 ACGG + IIII  @r4 ...        the tail, copied to the front of the next buffer

A FASTQ record is four lines: '@' is a quality too, so it never locates a record. From one with other lines on, the
file is normalised first. All else is checked where records are parsed, not here.

Of two files a chunk has as many records of both, so that mates are together. What one of them has more stays in its
buffer for the next chunk, unless it is little: then it is copied to the front of another buffer, as a tail is.

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
from readmap.reads.fasta_reads import two_line_records
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_file import RecordFile, read_start
from readmap.reads.record_scan import cut_between_pairs, find_records

Bytes = NDArray[np.uint8]

# One buffer is being filled, one is being mapped, and one waits between them.
BUFFERS = 3


class RecordFormat(Enum):
    """How the records of a chunk are laid out; the value is the number of lines a record."""

    FASTQ = 4
    FASTA = 2


class PairLayout(Enum):
    """Where reads and their mates lie; pairs come out as R1, R2, R1, R2 and so on from TWO_FILES and INTERLEAVED.

    files: that are read together. together: records of a file that no cut divides. paired: whether reads may have
    mates: of ADJACENT those have that stand side by side and have one name.
    """

    SINGLE = 1, 1, False
    TWO_FILES = 2, 1, True
    INTERLEAVED = 1, 2, True
    ADJACENT = 1, 1, True

    def __init__(self, files: int, together: int, paired: bool) -> None:
        self.files = files
        self.records_per_fragment = together
        self.paired = paired

    @property
    def alternates(self) -> bool:
        """Whether every second read is the mate of that before it."""
        return self.paired and self is not PairLayout.ADJACENT


@dataclass(frozen=True)
class Chunk:
    """Whole records of one file, or as many of each of two, in their order.

    parts: uint8 [nbytes] of each file, views of the buffers: each starts at a record and ends with the newline of its
        last one. A record is `format.value` lines: FASTQ's as in the file where it has four there, so that a line may
        end with CR LF; FASTA's are normalised to a header line and one sequence line, which is empty where there is no
        sequence, both without CR before LF.
    paths: what messages call the files.
    format, layout: of the records.
    first_record: the number of the first record in its file, from 0.
    records: how many of each file, at least 1; even where mates alternate.
    buffers: what the parts are views of.
    lane: its number, from 0.
    """

    parts: tuple[Bytes, ...]
    paths: tuple[str, ...]
    format: RecordFormat
    layout: PairLayout
    first_record: int
    records: int
    buffers: tuple[Buffer, ...]
    lane: int = 0

    @property
    def reads(self) -> int:
        """The records of all parts."""
        return self.records * len(self.parts)

    @property
    def is_divisible(self) -> bool:
        """Whether there is more than a read, or a pair."""
        return self.records > max(self.layout.records_per_fragment, 2 if self.layout is PairLayout.ADJACENT else 1)

    def release(self) -> None:
        """Gives the memory back to the reader; once a chunk, from any thread. `parts` must not be used after it."""
        for buffer in self.buffers:
            buffer.release()

    def keep(self) -> None:
        """Asks for one more release, and lets the reader go on with other memory."""
        for buffer in self.buffers:
            buffer.detach()

    def halves(self) -> "tuple[Chunk, Chunk]":
        """The same records as two chunks, each of which is to be released instead of this one.

        There must be at least two reads, or two pairs.
        """
        half = self.records // 2 // self.layout.records_per_fragment * self.layout.records_per_fragment
        ends = [find_records(part, self.format.value, checks=False).ends for part in self.parts]
        if self.layout is PairLayout.ADJACENT:

            def name(record: int) -> bytes:
                begin = int(ends[0][record - 1]) + 1 if record else 0
                header = self.parts[0][begin : int(ends[0][record])].tobytes().split(b"\n", 1)[0]
                return bad_records.read_name(header)

            half = cut_between_pairs(name, half, self.records) or 2
        cuts = [int(own[half - 1]) + 1 for own in ends]
        cut_parts = [(part[:cut], part[cut:]) for part, cut in zip(self.parts, cuts, strict=True)]
        first, second = zip(*cut_parts, strict=True)
        for buffer in self.buffers:
            buffer.retain()
        rest = replace(self, parts=second, first_record=self.first_record + half, records=self.records - half)
        return replace(self, parts=first, records=half), rest

    def error(self, bad: BadRecord) -> DataError:
        """The fault of one of the reads, in words."""
        if bad.code == bad_records.MATE_NAMES:
            return self._names_differ(bad.place)
        record, file = divmod(bad.place, len(self.parts))
        number = self.first_record + record + 1
        return bad_records.describe(self.parts[file], record, bad.code, self.format.value, self.paths[file], number)

    def _names_differ(self, place: int) -> DataError:
        """place: of a pair's second read."""
        places = [divmod(each, len(self.parts)) for each in (place - 1, place)]
        headers = [bad_records.record_lines(self.parts[file], index, self.format.value)[0] for index, file in places]
        first, second = map(bad_records.name_of, headers)
        index, file = places[1]
        number = self.first_record + index + 1
        mate = f"its mate in {self.paths[0]}" if file else f"its mate, record {number - 1},"
        where = f"{self.paths[file]}, record {number} ({second})"
        return DataError(f"{where}: {mate} is {first}: mates have the same name")


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
    """The records of all files, one file after the other, or two by two, in chunks; "-" is standard input.

    paths: of files, or sources that are open already. layout: of all of them, which are one lane, or of each lane, of
    which the files are read together. allocate: makes a buffer, uint8 [nbytes]; called at most
    `buffers` times for each of the files that are read together, and again for larger ones: the first are small, and
    a record may be longer than a buffer. chunk_bytes: the size of their buffers together, which bounds a chunk;
    first_bytes: that of each of the first ones at least, default little, since who maps waits for them.
    batch_reads: the most reads a chunk, but for a pair, which is never divided. threads: how many read or inflate a
    file, and find its records. warn: called where blocked gzip has no end-of-file block behind its last record; without
    it, and within a record, that is an error. The iterator waits while all buffers, at least 2 a file, are in chunks
    that have not been released.
    Raises DataError, after the chunks of all records before that place, where a file is neither FASTQ nor FASTA, its
    last FASTQ record is incomplete, gzip is broken, two files are not of one format, or a read has no mate; and OSError
    from reading.
    """
    is_one = isinstance(layout, PairLayout)
    layouts = [layout] * (len(paths) // layout.files) if isinstance(layout, PairLayout) else layout
    files, following = max((one.files for one in layouts), default=1), iter(paths)
    with contextlib.closing(BufferPool(allocate, chunk_bytes // files, buffers * files, first_bytes)) as pool:
        for lane, one in enumerate(layouts):
            with contextlib.ExitStack() as stack:
                named = list(itertools.islice(following, one.files))
                sources = [stack.enter_context(open_bytes(path, threads, HOST_INFLATERS)) for path in named]
                starts = [read_start(source) for source in sources]
                if any(starts):
                    for chunk in _Cutter(sources, starts, one, pool, batch_reads, threads, warn).chunks():
                        yield chunk if is_one else replace(chunk, lane=lane)


class _Cutter:
    """Makes chunks of files that are read together."""

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
        """starts: the first bytes of each source, already read; none of one that is empty."""
        self._layout = layout
        self._warn = warn
        self._format = _format_of(sources, starts)
        self._most = None
        if batch_reads:
            self._most = max(batch_reads // (layout.files * layout.records_per_fragment), 1) * layout.records_per_fragment
        if self._most and layout is PairLayout.ADJACENT:
            self._most = max(self._most, 2)
        self._files: list[RecordFile] = []
        self._pool = pool
        for source, start in zip(sources, starts, strict=True):
            is_fasta = start.startswith(b">")
            if is_fasta:
                records = GeneratorSource(source.name, two_line_records(source, start))
                records.first_record = source.first_record
                source, start = records, b""
            self._files.append(RecordFile(source, start, self._format.value, pool, is_fasta, threads))

    def chunks(self) -> Iterator[Chunk]:
        """All chunks, then the error where there is one."""
        while records := self._read_on():
            most = self._most or records
            while records and (count := self._whole(min(most, records))):
                yield self._chunk(count)
                records -= count
        for file in self._files:
            if file.error and file.records < self._layout.records_per_fragment:
                raise file.error
        if any(file.records for file in self._files):
            raise self._without_mate()
        for file in self._files:
            if file.doubt and not self._warn:
                raise file.doubt
            if file.doubt and self._warn:
                self._warn(f"{file.doubt}, which some programs do not write")
            file.release()

    def _read_on(self) -> int:
        """How many records of each file can be taken; 0 where one of them has no more."""
        together = self._layout.records_per_fragment
        least = 2 if self._layout is PairLayout.ADJACENT else together
        while low := [file for file in self._files if file.is_low(least)]:
            for file in low:
                file.turn()
            _read_together(low)
            self._pool.grow()
        return min(file.records for file in self._files) // together * together

    def _whole(self, records: int) -> int:
        """Some of the records that can be taken, of which none has a mate behind them."""
        if self._layout is not PairLayout.ADJACENT:
            return records
        (file,) = self._files
        if file.is_at_end and records == file.records:
            return records
        return cut_between_pairs(file.name_at, records, file.records)

    def _chunk(self, records: int) -> Chunk:
        first_record = self._files[0].taken
        parts, buffers = zip(*(file.take(records) for file in self._files), strict=True)
        names = tuple(file.name for file in self._files)
        return Chunk(parts, names, self._format, self._layout, first_record, records, buffers)

    def _without_mate(self) -> DataError:
        longer = max(self._files, key=lambda file: file.records)
        shorter = min(self._files, key=lambda file: file.records)
        if shorter.doubt:
            return shorter.doubt
        lonely = f"record {longer.taken + 1} ({longer.next_name()}) has no mate"
        if longer is shorter:
            return DataError(f"{longer.name} has {pluralize(longer.taken + 1, 'record')}, an odd number: {lonely}")
        return DataError(f"{shorter.name} has {pluralize(shorter.taken, 'record')}, and {longer.name} more: {lonely}")


def _read_together(files: Sequence[RecordFile]) -> None:
    """Read on in all of them at once: who writes two pipes in turns waits where one of them is not read."""
    faults: list[BaseException] = []

    def read(file: RecordFile) -> None:
        try:
            file.read()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=read, args=(file,), daemon=True) for file in files[1:]]
    for thread in threads:
        thread.start()
    read(files[0])
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def _format_of(sources: Sequence[ByteSource], starts: Sequence[bytes]) -> RecordFormat:
    """The format of all files that are not empty."""
    formats = {
        source.name: RecordFormat.FASTQ if start.startswith(b"@") else RecordFormat.FASTA
        for source, start in zip(sources, starts, strict=True)
        if start
    }
    if len(set(formats.values())) > 1:
        found = " and ".join(f"{name} is {format.name}" for name, format in formats.items())
        raise DataError(f"{found}: two files of pairs have the same format")
    return next(iter(formats.values()))
