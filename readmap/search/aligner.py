"""The Python API: sequences in, arrays out, or one hit at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import open_backend
from readmap.formats.fasta import Contig
from readmap.formats.reads import reads_of_sequences
from readmap.index.index import Index
from readmap.search.alignments import Alignments
from readmap.search.inserts import Inserts, place_inserts
from readmap.search.parameters import Pairing, Reporting, Scoring
from readmap.search.pipeline import Searched, align_reads, search_reads

OPERATIONS = "MIDNS"


@dataclass(frozen=True)
class Hit:
    """Where one read belongs.

    Attributes:
        query: number of the sequence, from 0.
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
        scores, seconds, edit_distances: int32 [n]; seconds is the score of the best other place, 0 for none.
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

    def cigar(self, query: int) -> str:
        """The CIGAR of one sequence as text, `*` where it has no place."""
        begin = int(self.cigar_offsets[query])
        operations = self.cigar_operations[begin : begin + int(self.cigar_lengths[query])]
        return "".join(f"{int(op) >> 4}{OPERATIONS[int(op) & 15]}" for op in operations) or "*"

    def __iter__(self) -> Iterator[Hit]:
        for query in np.flatnonzero(self.contigs >= 0).tolist():
            yield Hit(
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


class Aligner:
    """An index on a device, ready to map."""

    def __init__(
        self, index: Index, device: str = "auto", threads: int | None = None, scoring: Scoring | None = None
    ) -> None:
        """device: auto, cpu, cuda or cuda:N. Raises BackendError where it cannot be used."""
        self.backend = open_backend(device, threads)
        self.scoring = scoring or Scoring()
        self.index = index.place(self.backend)

    def map(self, sequences: Iterable[str | bytes], qualities: Iterable[str | bytes] | None = None) -> Hits:
        """Map DNA sequences, of 0 to 10,000 bases each, with their Phred+33 qualities if there are any.

        Raises DataError naming the sequence, from 1, where one holds what is no nucleotide, or where its qualities are
        missing or of another length.
        """
        reads, count = reads_of_sequences(sequences, qualities, self.backend)
        searched = search_reads(reads, self.index, self.scoring, self.backend)
        return self._hits(self._align(searched, place_inserts((), self.backend)), count)

    def _align(self, searched: Searched, inserts: Inserts) -> Alignments:
        return align_reads(searched, inserts, self.index, self.scoring, Pairing(), Reporting(), self.backend)

    def _hits(self, alignments: Alignments, count: int) -> Hits:
        """The arrays of the first `count` reads' primary alignments on the host, in the order of the input."""
        reference, host = self.index.host, self.backend.to_host
        lines = host(alignments.lines.offsets)[:count]
        contigs = host(alignments.contigs)[lines]
        placed = contigs >= 0
        origin = reference.contig_starts[contigs]
        extensions = alignments.extensions
        return Hits(
            contigs,
            np.where(placed, host(alignments.reference_starts)[lines] - origin, 0),
            np.where(placed, host(alignments.reference_ends)[lines] - origin, 0),
            np.where(host(alignments.reversed)[lines] > 0, -1, 1).astype(np.int8),
            host(alignments.mapqs)[lines],
            host(alignments.scores)[lines],
            np.where(placed, host(alignments.seconds)[lines], 0).astype(np.int32),
            host(alignments.edit_distances)[lines],
            (host(extensions.ends) - host(extensions.rooms))[lines],
            np.where(placed, host(extensions.counts)[lines], 0).astype(np.int32),
            host(extensions.operations),
            reference.contigs,
        )
