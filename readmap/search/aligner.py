"""The Python API: sequences in, arrays out, or one hit or one segment of pysam's at a time."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import pysam

from readmap.backend import open_backend
from readmap.index.index import Index
from readmap.reads.parsing import Reads, Texts, reads_of_pairs, reads_of_sequences
from readmap.search.alignments import PROPER_PAIR, Alignments
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.hits import Hits, Pairs
from readmap.search.parameters import Pairing, Reporting, Scoring
from readmap.search.pipeline import align_reads, search_again, search_reads
from readmap.search.records import Style, format_records
from readmap.search.sample import learn, observe
from readmap.search.segments import header_of, parse_records


@dataclass(frozen=True)
class _Searched:
    """`count` reads or pairs that were searched, or the empty ones that stand for none, and what they show of all."""

    batch: Batch
    context: Context
    count: int


class Aligner:
    """An index on a device, ready to map.

    Attributes:
        scoring, pairing, reporting: how alignments score, how mates are placed and what segments report; as the options
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
        self.index = index.to_device(self.backend)
        self._context = Context(self.index, self.backend, self.scoring, self.pairing, self.reporting)

    @functools.cached_property
    def header(self) -> pysam.AlignmentHeader:
        """The header of a file of the segments."""
        return header_of(self.index.host.contigs)

    def map(self, sequences: Texts, qualities: Texts | None = None) -> Hits:
        """Map DNA sequences, of 0 to 10,000 bases each, with their Phred+33 qualities if there are any.

        With qualities they show together how often their sample differs from the reference, which MAPQ goes by.

        Raises DataError naming the sequence, from 1, where one holds what is no nucleotide, or where its qualities are
        missing or of another length.
        """
        searched = self._search(*reads_of_sequences(sequences, qualities, self.backend))
        return self._hits(self._primary(searched), np.arange(searched.count))

    def map_pairs(
        self,
        first: Texts,
        second: Texts,
        first_qualities: Texts | None = None,
        second_qualities: Texts | None = None,
        insert_size: tuple[float, ...] | None = None,
    ) -> Pairs:
        """Map pairs, first[i] with its mate second[i], both as they were sequenced.

        insert_size: mean and standard deviation, in bases from one mate's 5' end to the other's, of mates that face
            each other; without it, and without that of `pairing`, the pairs themselves show it, where at least ten
            do. Otherwise mates are placed without regard to each other.

        Raises DataError as `map` does, and where a mate or the qualities of one are missing; UsageError where the
        insert size is none.
        """
        searched = self._search_pairs(first, second, first_qualities, second_qualities, insert_size, None)
        alignments, records = self._primary(searched), 2 * np.arange(searched.count)
        hits = self._hits(alignments, records), self._hits(alignments, records + 1)
        flags = self.backend.to_host(alignments.flags)
        offsets = self.backend.to_host(alignments.plan.offsets)
        proper = flags[offsets[records]] & PROPER_PAIR > 0
        return Pairs(*hits, proper, _template_lengths(*hits), searched.context.sample.insert_sizes)

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
        insert_size: tuple[float, ...] | None = None,
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
        insert_size: tuple[float, ...] | None,
        names: Texts | None,
    ) -> _Searched:
        reads = reads_of_pairs(first, second, first_qualities, second_qualities, self.backend, names)
        return self._search(*reads, insert_size or self.pairing.insert_size)

    def _search(self, reads: Reads, count: int, insert_size: tuple[float, ...] | None = None) -> _Searched:
        batch = search_reads(reads, self._context)
        sample = learn([observe(batch, self._context)], insert_size)
        context = replace(self._context, sample=sample)
        return _Searched(search_again(batch, context), context, count)

    def _primary(self, searched: _Searched) -> Alignments:
        """The alignments without secondary ones, of which hits report nothing."""
        reporting = replace(self.reporting, most_secondary=0)
        ((_, alignments),) = align_reads(searched.batch, replace(searched.context, reporting=reporting))
        return alignments

    def _segments(self, searched: _Searched) -> list[pysam.AlignedSegment]:
        segments: list[pysam.AlignedSegment] = []
        for part, alignments in align_reads(searched.batch, searched.context) if searched.count else ():
            records = format_records(alignments, part, Style(), searched.context)
            segments += parse_records(records.bytes, self.header, self.backend)
        return segments

    def _hits(self, alignments: Alignments, records: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Hits:
        """The arrays of some reads' primary alignments on the host."""
        reference, host = self.index.host, self.backend.to_host
        entries = host(alignments.plan.offsets)[records]
        contigs = host(alignments.contigs)[entries]
        placed = contigs >= 0
        origin = reference.contig_starts[contigs]
        extensions = alignments.extensions
        return Hits(
            contigs,
            np.where(placed, host(alignments.reference_starts)[entries] - origin, 0),
            np.where(placed, host(alignments.reference_ends)[entries] - origin, 0),
            np.where(host(alignments.reversed)[entries] > 0, -1, 1).astype(np.int8),
            host(alignments.mapqs)[entries],
            host(alignments.scores)[entries],
            np.where(placed, host(alignments.seconds)[entries], 0).astype(np.int32),
            host(alignments.edit_distances)[entries],
            (host(extensions.ends) - host(extensions.rooms))[entries],
            np.where(placed, host(extensions.counts)[entries], 0).astype(np.int32),
            host(extensions.operations),
            reference.contigs,
        )


def _template_lengths(first: Hits, second: Hits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """From the first mate's 5' end to the second's; 0 where they are not on one contig."""
    ends = [np.where(hits.strands < 0, hits.ref_ends, hits.ref_starts) for hits in (first, second)]
    together = (first.contigs >= 0) & (first.contigs == second.contigs)
    return np.where(together, ends[1] - ends[0], 0)
