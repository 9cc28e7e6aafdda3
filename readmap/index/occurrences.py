"""Patterns -> Occurrences -> Locations: exact search by suffix array or suffix tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.reads.packing import Patterns
from readmap.strand import Strand

_BY_ARRAY, _BY_TREE = Kernel("index/occurrences", "find_by_array"), Kernel("index/occurrences", "find_by_tree")
_TOTAL, _LOCATE = Kernel("index/occurrences", "count_occurrences"), Kernel("index/occurrences", "locate")


@dataclass(frozen=True)
class Occurrences:
    """For each strand and pattern (by slot), the rank of the first suffix that starts with it, and their count."""

    ranks: Array
    counts: Array
    patterns: Patterns
    strand: Strand

    @property
    def slot_of(self) -> Array:
        """The slot of each pattern, int32, by read."""
        return self.patterns.slot_of

    @property
    def pattern_count(self) -> int:
        return len(self.patterns)

    @property
    def first_strand(self) -> int:
        """The strand of row 0: 0 forward, 1 reverse complement."""
        return self.strand.first

    @property
    def strand_count(self) -> int:
        return self.strand.rows


def find_occurrences(
    patterns: Patterns, index: DeviceIndex, strand: Strand, structure: IndexStructure, backend: Backend
) -> Occurrences:
    """Return the suffix ranks of all patterns, found by `structure`, ARRAY or TREE, which must be loaded in `index`."""
    shape, dtype = (strand.rows, len(patterns)), index.suffixes.dtype
    found = Occurrences(backend.empty(shape, dtype), backend.empty(shape, dtype), patterns, strand)
    items, groups = strand.rows * len(patterns), {"patterns": patterns, "reference": index.reference, "found": found}
    if structure is IndexStructure.TREE:
        backend.launch(_BY_TREE, items, tree=index, **groups)
    else:
        backend.launch(_BY_ARRAY, items, index=index, **groups)
    return found


def count_occurrences(found: Occurrences, backend: Backend) -> Array:
    """Return the number of occurrences of each read on all strands, int64 [reads] on the device."""
    totals = backend.empty(len(found.patterns), np.int64)
    backend.launch(_TOTAL, len(totals), occurrences=found, totals=totals)
    return totals


@dataclass(frozen=True)
class Location:
    """One exact occurrence.

    Attributes
    ----------
    query : int
        Index of the sequence.
    contig : str
        Name of the contig.
    start, end : int
        0-based half-open range on the contig.
    strand : int
        1 forward, -1 reverse.
    """

    query: int
    contig: str
    start: int
    end: int
    strand: int


@dataclass(frozen=True)
class Locations:
    """Exact occurrences of sequences; iterating yields Location objects.

    Attributes
    ----------
    totals : ndarray of int64, shape (queries,)
        Number of occurrences of each query, including those not listed.
    offsets : ndarray of int64, shape (queries + 1,)
        Query q has the rows offsets[q] to offsets[q + 1] of the arrays below.
    contigs : ndarray of int32, shape (locations,)
        Index of the contig.
    starts, ends : ndarray of int64, shape (locations,)
        0-based half-open range on the contig.
    strands : ndarray of int8, shape (locations,)
        1 forward, -1 reverse.
    names : sequence of Contig
        The contigs of the reference.
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


def locate(
    found: Occurrences, queries: int, index: DeviceIndex, max_per_query: int | None, backend: Backend
) -> Locations:
    """Return the locations of the first `queries` reads, at most `max_per_query` of each (None: all)."""
    if max_per_query is not None and max_per_query < 0:
        raise UsageError(f"max_per_query is {max_per_query}, expected 0 or more")
    totals = backend.to_host(count_occurrences(found, backend))[:queries]
    wanted = totals if max_per_query is None else np.minimum(totals, max_per_query)
    offsets = np.concatenate(([0], np.cumsum(wanted))).astype(np.int64)
    count = int(offsets[-1])
    dtypes = {"contigs": np.int32, "starts": np.int64, "strands": np.int8}
    outputs = {name: backend.empty(count, dtype) for name, dtype in dtypes.items()}
    inputs = {"occurrences": found, "reference": index.reference, "index": index, "record_count": queries}
    backend.launch(_LOCATE, count, **inputs, **outputs, ends=backend.to_device(offsets[1:]))
    patterns = found.patterns
    lengths = backend.to_host(patterns.lengths)[backend.to_host(patterns.slot_of)][:queries]
    contigs, starts, strands = map(backend.to_host, outputs.values())
    ends = starts + np.repeat(lengths, wanted)
    return Locations(totals, offsets, contigs, starts, ends, strands, index.host.contigs)
