"""The Python API: sequences in, arrays out, or one hit or one segment of pysam's at a time."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pysam

from readmap.backend import open_backend
from readmap.formats.reads import Reads, Texts, reads_of_pairs, reads_of_sequences
from readmap.index.index import Index
from readmap.search.alignments import PROPER_PAIR, Alignments
from readmap.search.hits import Hits, Pairs
from readmap.search.inserts import InsertSize, estimate, given_insert_size, place_inserts
from readmap.search.mapping import SAMPLE
from readmap.search.pairs import measure_inserts
from readmap.search.parameters import Pairing, Reporting, Scoring
from readmap.search.pipeline import Searched, align_reads, search_reads
from readmap.search.records import Style, format_records
from readmap.search.segments import header_of, parse_records


@dataclass(frozen=True)
class _Aligned:
    """A batch of `count` reads or pairs, or of the empty ones that stand for none; insert_sizes: of the pairs."""

    searched: Searched
    alignments: Alignments
    insert_sizes: tuple[InsertSize, ...]
    count: int


class Aligner:
    """An index on a device, ready to map.

    Attributes:
        scoring, pairing, reporting: how alignments score, how mates are placed and what segments tell; as the options
            of `readmap search` have them, and with its defaults.
    """

    def __init__(
        self,
        index: Index,
        device: str = "auto",
        threads: int | None = None,
        scoring: Scoring | None = None,
        pairing: Pairing | None = None,
        reporting: Reporting | None = None,
    ) -> None:
        """device: auto, cpu, cuda or cuda:N. Raises BackendError where it cannot be used."""
        self.backend = open_backend(device, threads)
        self.scoring = scoring or Scoring()
        self.pairing = pairing or Pairing()
        self.reporting = reporting or Reporting()
        self.index = index.place(self.backend)

    @functools.cached_property
    def header(self) -> pysam.AlignmentHeader:
        """The header of a file of the segments."""
        return header_of(self.index.host.contigs)

    def map(self, sequences: Texts, qualities: Texts | None = None) -> Hits:
        """Map DNA sequences, of 0 to 10,000 bases each, with their Phred+33 qualities if there are any.

        Raises DataError naming the sequence, from 1, where one holds what is no nucleotide, or where its qualities are
        missing or of another length.
        """
        aligned = self._align(*reads_of_sequences(sequences, qualities, self.backend))
        return self._hits(aligned.alignments, np.arange(aligned.count))

    def map_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, float] | None = None,
    ) -> Pairs:
        """Map pairs, first[i] with its mate second[i], both as they were sequenced.

        insert_size: mean and standard deviation, in bases from one mate's 5' end to the other's, of mates that face
            each other; without it, and without that of `pairing`, the pairs themselves tell, where at least ten of them
            do. Otherwise mates are placed without regard to each other.

        Raises DataError as `map` does, and where a mate or the qualities of one are missing; UsageError where the
        insert size is none.
        """
        aligned = self._align_pairs(first, second, first_qualities, second_qualities, insert_size, None)
        records = 2 * np.arange(aligned.count)
        hits = self._hits(aligned.alignments, records), self._hits(aligned.alignments, records + 1)
        flags = self.backend.to_host(aligned.alignments.flags)
        offsets = self.backend.to_host(aligned.alignments.lines.offsets)
        proper = flags[offsets[records]] & PROPER_PAIR > 0
        return Pairs(*hits, proper, _template_lengths(*hits), aligned.insert_sizes)

    def segments(
        self, sequences: Texts, qualities: Texts | None = None, names: Texts | None = None
    ) -> list[pysam.AlignedSegment]:
        """The records that `readmap search` writes of sequences, in its order: of each the primary one, mapped or not,
        then those of its other parts and places.

        names: each up to its first blank, without /1 and /2; without names they are *.
        Raises DataError as `map` does, and where names are missing.
        """
        return self._segments(self._align(*reads_of_sequences(sequences, qualities, self.backend, names)))

    def pair_segments(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, float] | None = None,
        names: Texts | None = None,
    ) -> list[pysam.AlignedSegment]:
        """The same of pairs, the records of a first mate before those of its second one; names: one a pair.

        Raises DataError as `map_pairs` does, and where names are missing.
        """
        return self._segments(self._align_pairs(first, second, first_qualities, second_qualities, insert_size, names))

    def _align_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None,
        second_qualities: Texts | None,
        insert_size: tuple[float, float] | None,
        names: Texts | None,
    ) -> _Aligned:
        reads = reads_of_pairs(first, second, first_qualities, second_qualities, self.backend, names)
        return self._align(*reads, insert_size or self.pairing.insert_size)

    def _align(self, reads: Reads, count: int, insert_size: tuple[float, float] | None = None) -> _Aligned:
        backend, index, scoring = self.backend, self.index, self.scoring
        searched = search_reads(reads, index, scoring, backend)
        sizes: tuple[InsertSize, ...] = ()
        if reads.paired:
            sizes = given_insert_size(*insert_size) if insert_size else self._estimate(searched)
        inserts = place_inserts(sizes, backend)
        alignments = align_reads(searched, inserts, index, scoring, self.pairing, self.reporting, backend)
        return _Aligned(searched, alignments, sizes, count)

    def _estimate(self, searched: Searched) -> tuple[InsertSize, ...]:
        """The insert sizes that the first pairs show."""
        directions, sizes = measure_inserts(
            searched.windows, searched.placements, searched.queries, self.index, self.backend
        )
        return estimate(directions[:SAMPLE], sizes[:SAMPLE])

    def _segments(self, aligned: _Aligned) -> list[pysam.AlignedSegment]:
        if not aligned.count:
            return []
        reads, queries = aligned.searched.reads, aligned.searched.queries
        records = format_records(aligned.alignments, reads, queries, self.index, self.reporting, Style(), self.backend)
        return parse_records(records, self.header, self.backend)

    def _hits(self, alignments: Alignments, records: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Hits:
        """The arrays of some reads' primary alignments on the host."""
        reference, host = self.index.host, self.backend.to_host
        lines = host(alignments.lines.offsets)[records]
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


def _template_lengths(first: Hits, second: Hits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """From the first mate's 5' end to the second's; 0 where they are not on one contig."""
    ends = [np.where(hits.strands < 0, hits.ref_ends, hits.ref_starts) for hits in (first, second)]
    together = (first.contigs >= 0) & (first.contigs == second.contigs)
    return np.where(together, ends[1] - ends[0], 0)
