"""Reads -> lines of their exact occurrences: what `readmap search --exact` does with a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.formats.header import PROGRAM
from readmap.formats.sam import NO_READ_GROUP, Form, ReadGroup, common_tags
from readmap.index.device import ContigNames, DeviceIndex, Structure
from readmap.index.occurrences import Occurrences, find_occurrences, total_occurrences
from readmap.index.reference import DeviceReference
from readmap.reads.parsing import Reads
from readmap.reads.patterns import pack_patterns
from readmap.search import stream
from readmap.search.turns import Turn
from readmap.search.writer import Block
from readmap.strand import Strand

_COUNT = Kernel("search/exact", "count_lines")
_MEASURE, _WRITE = Kernel("search/exact", "measure_lines"), Kernel("search/exact", "write_lines")

#: Device memory that a line of a block may take, for its length, its end and its bytes.
LINE_BYTES = 512

ALL = 2**62


class Format(StrEnum):
    """What is written: records, a table of occurrences, BED, or a table of counts."""

    SAM = "sam"
    BAM = "bam"
    TSV = "tsv"
    BED = "bed"
    COUNTS = "counts"

    @property
    def number(self) -> int:
        """The number by which the kernels know it."""
        return constant("search/exact.cu", self.name)

    @property
    def header(self) -> bytes:
        """The first line of a table; that of records needs more than the format, and BED has none."""
        tables = {Format.TSV: b"query\tcount\tcontig\tstart\tend\tstrand\n", Format.COUNTS: b"query\tcount\n"}
        return tables.get(self, b"")


@dataclass(frozen=True)
class Parameters:
    """What is searched, and what of it is written.

    Attributes:
        strand, structure: on which strands, by what; the structure is array or tree.
        format: of the lines.
        most_hits: occurrences of a read that are written; all are counted.
        read_group, program: of SAM or BAM records; the program is the ID of readmap's @PG in their header.
    """

    strand: Strand = Strand.BOTH
    structure: Structure = Structure.ARRAY
    format: Format = Format.SAM
    most_hits: int = ALL
    read_group: ReadGroup = NO_READ_GROUP
    program: str = PROGRAM

    @property
    def form(self) -> Form:
        """The form of records."""
        return Form.BINARY if self.format is Format.BAM else Form.TEXT


@dataclass
class ExactSummary(stream.RunSummary):
    """What a search counted.

    Attributes:
        found: reads that occur; unique: those that do once.
        occurrences: of all reads, also those that were not written.
        ambiguous: reads that occur nowhere because they hold an ambiguous base.
    """

    found: int = 0
    unique: int = 0
    occurrences: int = 0
    ambiguous: int = 0


@dataclass(frozen=True)
class _Lines:
    """What lines are written from: struct Lines of kernels/search/exact.cu."""

    texts: Reads
    lengths: Array
    marks: Array
    occurrences: Occurrences
    reference: DeviceReference
    index: DeviceIndex
    names: ContigNames
    common_tags: Array
    common_tags_length: int
    most_hits: int
    format: int


class ExactSearch:
    """Searches batches of reads and counts them in `summary`."""

    comments = False

    def __init__(self, index: DeviceIndex, parameters: Parameters, backend: Backend) -> None:
        self.summary = ExactSummary()
        self._index = index
        self._parameters = parameters
        self._backend = backend
        tags = common_tags(parameters.read_group, parameters.program, parameters.form)
        self._tags = backend.to_device(np.frombuffer(tags, np.uint8))

    def blocks(self, reads: Reads, turn: Turn) -> Iterator[Block]:
        """The lines of a batch, in blocks that a read with a million occurrences does not make larger."""
        backend, parameters = self._backend, self._parameters
        patterns = pack_patterns(reads.bytes, reads.sequence_starts, reads.lengths, backend)
        found = find_occurrences(patterns, self._index, parameters.strand, parameters.structure, backend)
        lines = self._lines(reads, found)
        counts = backend.empty(reads.count, np.int64)
        backend.launch(_COUNT, reads.count, lines=lines, counts_out=counts)
        line_ends, total = backend.ends(counts)
        first, most = 0, backend.scratch_bytes // LINE_BYTES
        while first < total:
            count = min(most, total - first)
            try:
                out = self._write(lines, line_ends, first, count)
            except backend.memory_error:
                if not first or count == 1:
                    raise
                most = count // 2
                backend.release_memory()
                continue
            if not first:
                turn()
                self._add(reads, found)  # not earlier: a batch that does not fit comes again, in halves
            first += count
            yield Block(out)
        if not total:
            turn()
            self._add(reads, found)

    def _write(self, lines: _Lines, line_ends: Array, first: int, count: int) -> Array:
        """The bytes of the lines [first, first + count), uint8."""
        backend, records = self._backend, len(lines.lengths)
        shared = {"lines": lines, "line_ends": line_ends, "record_count": records, "first_line": first}
        lengths = backend.empty(count, np.int64)
        backend.launch(_MEASURE, count, lengths_out=lengths, **shared)
        byte_ends, size = backend.ends(lengths)
        out = backend.empty(size, np.uint8)
        backend.launch(_WRITE, count, byte_ends=byte_ends, out=out, **shared)
        return out

    def rest(self) -> Iterator[Block]:
        """Nothing: no batch is held."""
        return iter(())

    def _lines(self, reads: Reads, found: Occurrences) -> _Lines:
        index, tags, parameters = self._index, self._tags, self._parameters
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
            most_hits=parameters.most_hits,
            format=parameters.format.number,
        )

    def _add(self, reads: Reads, found: Occurrences) -> None:
        """Count the batch."""
        backend, summary = self._backend, self.summary
        totals = backend.to_host(total_occurrences(found, backend))
        empty = int(np.count_nonzero(backend.to_host(reads.lengths) == 0))
        summary.reads += reads.count
        summary.found += int(np.count_nonzero(totals))
        summary.unique += int(np.count_nonzero(totals == 1))
        summary.occurrences += int(totals.sum())
        summary.ambiguous += int(np.count_nonzero(backend.to_host(found.patterns.lengths) == 0)) - empty
        summary.replaced += found.patterns.replaced
