"""Where sequences belong, as Python sees it: arrays with a row a sequence, or one hit at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.formats.fasta import Contig
from readmap.search.inserts import InsertSize

OPERATIONS = "MIDNS"


@dataclass(frozen=True)
class Hit:
    """Where one read belongs.

    Attributes:
        query: number of the sequence, or of the pair, from 0.
        contig: name of the reference sequence.
        ref_start, ref_end: 0-based, half-open, on the contig.
        strand: 1 forward, -1 reverse.
        mapq: 0 to 60.
        cigar: as in SAM; score: without bonuses for reached ends; edit_distance: as SAM's NM.
    """

    query: int
    contig: str
    ref_start: int
    ref_end: int
    strand: int
    mapq: int
    cigar: str
    score: int
    edit_distance: int


@dataclass(frozen=True)
class Hits:
    """The places of sequences, one row each, in their order; iterating gives a Hit for each that is mapped.

    Attributes:
        contigs: int32 [n], number of the contig, -1 where a sequence has no place.
        ref_starts, ref_ends: int64 [n], 0-based, half-open, on the contig.
        strands: int8 [n], 1 or -1.
        mapqs: uint8 [n].
        scores, seconds, edit_distances: int32 [n]; seconds: of the best other place, 0 where none was found:
            what is 60 phred less likely is not looked for, unless Reporting.most_xa_hits is given.
        cigar_offsets: int64 [n]; cigar_lengths: int32 [n]; cigar_operations: uint32, length << 4 | operation as in BAM.
        names: the reference's contigs.
    """

    contigs: np.ndarray[Any, Any]
    ref_starts: np.ndarray[Any, Any]
    ref_ends: np.ndarray[Any, Any]
    strands: np.ndarray[Any, Any]
    mapqs: np.ndarray[Any, Any]
    scores: np.ndarray[Any, Any]
    seconds: np.ndarray[Any, Any]
    edit_distances: np.ndarray[Any, Any]
    cigar_offsets: np.ndarray[Any, Any]
    cigar_lengths: np.ndarray[Any, Any]
    cigar_operations: np.ndarray[Any, Any]
    names: Sequence[Contig]

    def __len__(self) -> int:
        return len(self.contigs)

    def __iter__(self) -> Iterator[Hit]:
        for query in np.flatnonzero(self.contigs >= 0).tolist():
            yield self._hit(query)

    def hit(self, query: int) -> Hit | None:
        """The place of one sequence, from 0; None where it has none."""
        return self._hit(query) if self.contigs[query] >= 0 else None

    def cigar(self, query: int) -> str:
        """The CIGAR of one sequence as text, `*` where it has no place."""
        begin = int(self.cigar_offsets[query])
        operations = self.cigar_operations[begin : begin + int(self.cigar_lengths[query])]
        return "".join(f"{int(op) >> 4}{OPERATIONS[int(op) & 15]}" for op in operations) or "*"

    def _hit(self, query: int) -> Hit:
        return Hit(
            query,
            self.names[int(self.contigs[query])].name,
            int(self.ref_starts[query]),
            int(self.ref_ends[query]),
            int(self.strands[query]),
            int(self.mapqs[query]),
            self.cigar(query),
            int(self.scores[query]),
            int(self.edit_distances[query]),
        )


@dataclass(frozen=True)
class Pairs:
    """The places of mates, one row a pair, in their order; iterating gives two Hits, None for a mate without a place.

    Attributes:
        first, second: the places of the mates.
        proper: bool [n], whether the two make a fragment of the library, in direction and size.
        template_lengths: int64 [n], bases from the first mate's 5' end to the second's, negative where that is the left
            one; 0 where one has no place or they are on two contigs. SAM's TLEN of the first mate.
        insert_sizes: of the library, one a direction; empty where the pairs did not show any.
    """

    first: Hits
    second: Hits
    proper: np.ndarray[Any, Any]
    template_lengths: np.ndarray[Any, Any]
    insert_sizes: tuple[InsertSize, ...]

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[tuple[Hit | None, Hit | None]]:
        for query in range(len(self)):
            yield self.first.hit(query), self.second.hit(query)
