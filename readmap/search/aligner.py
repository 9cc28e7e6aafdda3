"""The Python API: sequences in, arrays out, or one hit or one segment of pysam's at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pysam

from readmap.backend import open_backend
from readmap.index.index import Index
from readmap.reads.parsing import Reads, Texts, reads_of_pairs, reads_of_sequences
from readmap.search.alignments import PROPER_PAIR, Alignments
from readmap.search.batch import Searched
from readmap.search.hits import Hits, Pairs
from readmap.search.parameters import Pairing, Reporting, Scoring
from readmap.search.pipeline import align_reads, search_reads
from readmap.search.records import Style, format_records
from readmap.search.sample import Sample, learn, observe
from readmap.search.segments import header_of, parse_records


@dataclass(frozen=True)
class _Batch:
    """`count` reads or pairs that were searched, or the empty ones that stand for none, and what they tell of all."""

    searched: Searched
    sample: Sample
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

        With qualities they tell together how often their sample differs from the reference, which MAPQ goes by.

        Raises DataError naming the sequence, from 1, where one holds what is no nucleotide, or where its qualities are
        missing or of another length.
        """
        batch = self._search(*reads_of_sequences(sequences, qualities, self.backend))
        return self._hits(self._primary(batch), np.arange(batch.count))

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
        batch = self._search_pairs(first, second, first_qualities, second_qualities, insert_size, None)
        alignments, records = self._primary(batch), 2 * np.arange(batch.count)
        hits = self._hits(alignments, records), self._hits(alignments, records + 1)
        flags = self.backend.to_host(alignments.flags)
        offsets = self.backend.to_host(alignments.lines.offsets)
        proper = flags[offsets[records]] & PROPER_PAIR > 0
        return Pairs(*hits, proper, _template_lengths(*hits), batch.sample.inserts.sizes)

    def segments(
        self, sequences: Texts, qualities: Texts | None = None, names: Texts | None = None
    ) -> list[pysam.AlignedSegment]:
        """The records that `readmap search` writes of sequences, in its order: of each the primary one, mapped or not,
        then those of its other parts and places.

        names: each up to its first blank, without /1 and /2; without names they are *.
        Raises DataError as `map` does, and where names are missing.
        """
        return self._segments(self._search(*reads_of_sequences(sequences, qualities, self.backend, names)))

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
        return self._segments(self._search_pairs(first, second, first_qualities, second_qualities, insert_size, names))

    def _search_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None,
        second_qualities: Texts | None,
        insert_size: tuple[float, float] | None,
        names: Texts | None,
    ) -> _Batch:
        reads = reads_of_pairs(first, second, first_qualities, second_qualities, self.backend, names)
        return self._search(*reads, insert_size or self.pairing.insert_size)

    def _search(self, reads: Reads, count: int, insert_size: tuple[float, float] | None = None) -> _Batch:
        searched = search_reads(reads, self.index, self.scoring, self.backend)
        sample = learn([observe(searched, self.index, self.backend)], insert_size, self.backend)
        return _Batch(searched, sample, count)

    def _primary(self, batch: _Batch) -> Alignments:
        """The alignments without other places, of which hits tell nothing."""
        ((_, alignments),) = self._align(batch, replace(self.reporting, most_places=0))
        return alignments

    def _align(self, batch: _Batch, reporting: Reporting) -> Iterator[tuple[Searched, Alignments]]:
        return align_reads(
            batch.searched, batch.sample, self.index, self.scoring, self.pairing, reporting, self.backend
        )

    def _segments(self, batch: _Batch) -> list[pysam.AlignedSegment]:
        segments: list[pysam.AlignedSegment] = []
        for part, alignments in self._align(batch, self.reporting) if batch.count else ():
            own = alignments, part.reads, part.queries
            records = format_records(*own, self.index, self.reporting, Style(), self.backend)
            segments += parse_records(records, self.header, self.backend)
        return segments

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
