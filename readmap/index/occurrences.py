"""Patterns -> Occurrences -> Locations: where patterns occur exactly, by the suffix array or by the suffix tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.reads.patterns import Patterns
from readmap.strand import Strand

_BY_ARRAY, _BY_TREE = Kernel("index/occurrences", "find_by_array"), Kernel("index/occurrences", "find_by_tree")
_TOTAL, _LOCATE = Kernel("index/occurrences", "count_occurrences"), Kernel("index/occurrences", "locate")


@dataclass(frozen=True)
class Occurrences:
    """Ranges of the suffix array, empty where a pattern does not occur.

    Attributes:
        ranks, counts: suffix type [strands, patterns] by slot: the first suffix that begins with the pattern, and how
            many do.
        patterns: what was searched; strand: on which strands.
    """

    ranks: Array
    counts: Array
    patterns: Patterns
    strand: Strand

    @property
    def slot_of(self) -> Array:
        """The patterns' slots, int32, by record."""
        return self.patterns.slot_of

    @property
    def pattern_count(self) -> int:
        """How many patterns were searched."""
        return len(self.patterns)

    @property
    def first_strand(self) -> int:
        """The strand of the first row, 0 for patterns as they were read, 1 for their reverse complements."""
        return self.strand.first

    @property
    def strand_count(self) -> int:
        """How many rows there are."""
        return self.strand.rows


def find_occurrences(
    patterns: Patterns, index: DeviceIndex, strand: Strand, structure: IndexStructure, backend: Backend
) -> Occurrences:
    """Find all patterns by `structure`, array or tree, which the index must have on the device."""
    shape = (strand.rows, len(patterns))
    found = Occurrences(
        backend.empty(shape, index.suffixes.dtype), backend.empty(shape, index.suffixes.dtype), patterns, strand
    )
    items, groups = strand.rows * len(patterns), {"patterns": patterns, "reference": index.reference, "found": found}
    if structure is IndexStructure.TREE:
        backend.launch(_BY_TREE, items, tree=index, **groups)
    else:
        backend.launch(_BY_ARRAY, items, index=index, **groups)
    return found


def count_occurrences(found: Occurrences, backend: Backend) -> Array:
    """How often each record occurs on all strands, int64 [records] on the device."""
    totals = backend.empty(len(found.patterns), np.int64)
    backend.launch(_TOTAL, len(totals), occurrences=found, totals=totals)
    return totals


@dataclass(frozen=True)
class Location:
    """One exact occurrence: query from 0, contig's name, 0-based half-open on it, strand 1 or -1."""

    query: int
    contig: str
    start: int
    end: int
    strand: int


@dataclass(frozen=True)
class Locations:
    """Exact occurrences of sequences; iterating gives a Location for each.

    Attributes:
        totals: int64 [queries], how often each occurs.
        offsets: int64 [queries + 1]; rows offsets[q] to offsets[q + 1] of the arrays below are those of query q.
        contigs: int32 [locations], number of the contig.
        starts, ends: int64 [locations], 0-based half-open on the contig.
        strands: int8 [locations], 1 or -1.
        names: the reference's contigs.
    """

    totals: NDArray[np.int64]
    offsets: NDArray[np.int64]
    contigs: NDArray[np.int32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    strands: NDArray[np.int8]
    names: Sequence[Contig]

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Location]:
        queries = np.repeat(np.arange(len(self.totals)), np.diff(self.offsets)).tolist()
        columns = (self.contigs, self.starts, self.ends, self.strands)
        rows = zip(queries, *(column.tolist() for column in columns), strict=True)
        for query, contig, start, end, strand in rows:
            yield Location(query, self.names[contig].name, start, end, strand)


def locate(found: Occurrences, queries: int, index: DeviceIndex, most: int | None, backend: Backend) -> Locations:
    """The locations of the first `queries` records, at most `most` of each; UsageError where that is negative."""
    if most is not None and most < 0:
        raise UsageError(f"at most {most} places are asked for, expected 0 or more")
    totals = backend.to_host(count_occurrences(found, backend))[:queries]
    wanted = totals if most is None else np.minimum(totals, most)
    offsets = np.concatenate(([0], np.cumsum(wanted))).astype(np.int64)
    count = int(offsets[-1])
    contigs, starts = backend.empty(count, np.int32), backend.empty(count, np.int64)
    strands = backend.empty(count, np.int8)
    backend.launch(
        _LOCATE,
        count,
        occurrences=found,
        reference=index.reference,
        index=index,
        ends=backend.to_device(offsets[1:]),
        contigs=contigs,
        starts=starts,
        strands=strands,
        record_count=queries,
    )
    patterns = found.patterns
    lengths = backend.to_host(patterns.lengths)[backend.to_host(patterns.slot_of)][:queries]
    host_starts = backend.to_host(starts)
    return Locations(
        totals,
        offsets,
        backend.to_host(contigs),
        host_starts,
        host_starts + np.repeat(lengths, wanted),
        backend.to_host(strands),
        index.host.contigs,
    )
