"""Batches of reads -> lines of their exact occurrences (DeviceReads -> Block)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.tables import Table
from readmap.formats.sam import NO_READ_GROUP, PROGRAM, ReadGroup, SamEncoding, common_tags
from readmap.formats.wording import format_ratio, pluralize
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.index.occurrences import Occurrences, count_occurrences, find_occurrences
from readmap.reads.packing import pack_patterns
from readmap.reads.parsing import Reads
from readmap.run.batch_processor import RunSummary
from readmap.run.chunk_turns import ChunkTurn
from readmap.run.device_reads import DeviceReads
from readmap.run.writer import Block, ReplayFilter
from readmap.strand import Strand

_COUNT = Kernel("run/exact", "count_lines")
_MEASURE, _WRITE = Kernel("run/exact", "measure_lines"), Kernel("run/exact", "write_lines")
#: Upper bound of the device memory that a line takes for its length, its end and its bytes.
LINE_BYTES = 512

ALL = 2**62


class LineFormat(StrEnum):
    """The format of the lines of an exact search: records, a table of occurrences, BED, or a table of counts."""

    SAM = "sam"
    BAM = "bam"
    TSV = "tsv"
    BED = "bed"
    COUNTS = "counts"

    @property
    def number(self) -> int:
        return constant("run/exact.cu", self.name)

    @property
    def header(self) -> bytes:
        """The first line of a table; empty for BED and for records."""
        tables = {LineFormat.TSV: b"query\tcount\tcontig\tstart\tend\tstrand\n", LineFormat.COUNTS: b"query\tcount\n"}
        return tables.get(self, b"")


@dataclass(frozen=True)
class Parameters:
    """What an exact search looks for, and what it writes. max_hits: limit of the occurrences of a read that are
    written; all are counted. read_group, program: of SAM or BAM records; program is the ID of readmap's @PG line in the
    header."""

    strand: Strand = Strand.BOTH
    structure: IndexStructure = IndexStructure.ARRAY
    format: LineFormat = LineFormat.SAM
    max_hits: int = ALL
    read_group: ReadGroup = NO_READ_GROUP
    program: str = PROGRAM


@dataclass
class ExactSummary(RunSummary):
    """What an exact search counted. found: reads that occur; unique: reads that occur once. occurrences: their number,
    written or not. ambiguous: reads that occur nowhere because they contain an ambiguous base."""

    found: int = 0
    unique: int = 0
    occurrences: int = 0
    ambiguous: int = 0

    def describe_progress(self) -> str:
        return f"{format_ratio(self.found, self.reads)} found, {pluralize(self.occurrences, 'occurrence')}"


class _Lines(Table, struct="run/exact.cu:Lines"):
    """What the lines are written from."""


@dataclass(frozen=True)
class _DeviceData:
    """The index and the tags of all records, uint8, on one device."""

    index: DeviceIndex
    backend: Backend
    tags: Array


class ExactSearch:
    """Searches batches of reads and counts them in `summary`."""

    comments = False

    def __init__(self, indexes: Sequence[DeviceIndex], parameters: Parameters, backends: Sequence[Backend]) -> None:
        self.summary = ExactSummary()
        self.parameters = parameters
        encoding = SamEncoding.BINARY if parameters.format is LineFormat.BAM else SamEncoding.TEXT
        tags = np.frombuffer(common_tags(parameters.read_group, parameters.program, encoding), np.uint8)
        self._devices: list[_DeviceData] = []
        for index, backend in zip(indexes, backends, strict=True):
            with backend.thread_stream():
                self._devices.append(_DeviceData(index, backend, backend.to_device(tags)))
        self._errors = tuple({error for backend in backends for error in backend.device_errors})

    def blocks(self, reads: DeviceReads, turn: ChunkTurn) -> Iterator[Block]:
        """Yield the lines of a batch, in blocks whose size does not grow with the occurrences of a read."""
        return self._blocks_from(0, reads, turn, ReplayFilter())

    def _blocks_from(
        self, first: int, reads: DeviceReads, turn: ChunkTurn, replay_filter: ReplayFilter, is_counted: bool = False
    ) -> Iterator[Block]:
        """Yield the blocks of the lines from index `first` on, on another device if this one fails. replay_filter:
        skips bytes that were written before. is_counted: the batch has been counted."""
        written = first
        try:
            for end, block in self._blocks(first, reads, turn, is_counted):
                is_counted = True
                yield from replay_filter.missing([block])
                written = end
        except self._errors as error:
            yield from self._blocks_from(
                written, reads.on(reads.exclude_device(error)), turn, replay_filter, is_counted
            )

    def _blocks(
        self, first: int, device_reads: DeviceReads, turn: ChunkTurn, is_counted: bool
    ) -> Iterator[tuple[int, Block]]:
        """Yield (index after the last line, block) from line `first` on; first wait for `turn` and count the batch."""
        reads, parameters, device = device_reads.reads, self.parameters, self._devices[device_reads.device_index]
        backend = device.backend
        patterns = pack_patterns(reads.bytes, reads.sequence_starts, reads.lengths, backend)
        found = find_occurrences(patterns, device.index, parameters.strand, parameters.structure, backend)
        lines = self._lines(reads, found, device)
        counts = backend.empty(reads.count, np.int64)
        backend.launch(_COUNT, reads.count, lines=lines, counts_out=counts)
        line_ends, total = backend.inclusive_sum_with_total(counts)
        limit = backend.scratch_bytes // LINE_BYTES
        while first < total:
            count = min(limit, total - first)
            try:
                out = _write(lines, line_ends, first, count, backend)
            except backend.memory_error:
                if not first or count == 1:
                    raise
                limit = count // 2
                backend.release_memory()
                continue
            if not (first or is_counted):
                turn.wait()
                self._count(reads, found, backend)  # not earlier: a batch that does not fit comes again, in halves
            first += count
            yield first, Block(out, backend)
        if not total:
            turn.wait()
            self._count(reads, found, backend)

    def remaining_blocks(self, device_index: int = 0) -> Iterator[Block]:
        return iter(())

    def _lines(self, reads: Reads, found: Occurrences, device: _DeviceData) -> _Lines:
        """Return the kernel argument from which lines are written."""
        index, tags, parameters = device.index, device.tags, self.parameters
        return _Lines(
            texts=reads,
            lengths=reads.lengths,
            marks=reads.marks,
            occurrences=found,
            reference=index.reference,
            index=index,
            names=index.contig_names,
            common_tags=tags,
            common_tags_length=len(tags),
            max_hits=parameters.max_hits,
            format=parameters.format.number,
        )

    def _count(self, reads: Reads, found: Occurrences, backend: Backend) -> None:
        """Add the counts of a batch to `summary`: reads, found and unique reads, occurrences and ambiguous letters."""
        summary, totals = self.summary, backend.to_host(count_occurrences(found, backend))
        empty, unused = (backend.to_host(lengths) == 0 for lengths in (reads.lengths, found.patterns.lengths))
        summary.reads += reads.count
        summary.found += int(np.count_nonzero(totals))
        summary.unique += int(np.count_nonzero(totals == 1))
        summary.occurrences += int(totals.sum())
        summary.ambiguous += int(np.count_nonzero(unused)) - int(np.count_nonzero(empty))
        summary.replaced += found.patterns.replaced


def _write(lines: _Lines, line_ends: Array, first: int, count: int, backend: Backend) -> Array:
    """Return lines [first, first + count), uint8 on the device. line_ends: int64 [reads], lines up to each read."""
    shared = {"lines": lines, "line_ends": line_ends, "record_count": len(lines.lengths), "first_line": first}
    lengths = backend.empty(count, np.int64)
    backend.launch(_MEASURE, count, lengths_out=lengths, **shared)
    byte_ends, size = backend.inclusive_sum_with_total(lengths)
    out = backend.empty(size, np.uint8)
    backend.launch(_WRITE, count, byte_ends=byte_ends, out=out, **shared)
    return out
