"""Reads -> records of their alignments: what `readmap search` does with a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from readmap.backend import Backend
from readmap.index.device import DeviceIndex
from readmap.reads.parsing import Reads
from readmap.search import stream
from readmap.search.alignments import MAPQS, PROPER_TALLY, SECONDARY_TALLY, SUPPLEMENTARY_TALLY, Alignments
from readmap.search.batch import Searched
from readmap.search.inserts import InsertSize
from readmap.search.parameters import Pairing, Reporting, Scoring
from readmap.search.pipeline import align_reads, search_reads
from readmap.search.records import Style, format_records
from readmap.search.sample import Observed, Sample, enough, learn, observe
from readmap.search.unmapped import format_unmapped

#: The outputs of the pieces: records, and reads without a place.
RECORDS, UNMAPPED_READS = range(2)


@dataclass
class Summary(stream.Summary):
    """What a search counted.

    Attributes:
        mapped: reads with a place.
        properly_paired: reads that make a fragment of the library with their mates.
        supplementary, secondary: alignments beside the primary ones.
        too_short: reads that cannot reach the minimum score even without a difference.
        mapqs: int64 [61], mapped reads by MAPQ.
        clean_bases: in which the sample is expected to differ once from the reference; None where no reads came.
        insert_sizes: of the library, one a direction; None where there are no pairs.
    """

    mapped: int = 0
    properly_paired: int = 0
    supplementary: int = 0
    secondary: int = 0
    too_short: int = 0
    mapqs: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(MAPQS, np.int64))
    clean_bases: int | None = None
    insert_sizes: tuple[InsertSize, ...] | None = None


class Mapping:
    """Maps batches of reads and counts them in `summary`.

    What is expected of the reads is what the first ones tell, however they come in batches: until enough of them have
    been searched, batches are held, and aligned afterwards.
    """

    def __init__(
        self,
        index: DeviceIndex,
        scoring: Scoring,
        backend: Backend,
        style: Style | None = None,
        pairing: Pairing | None = None,
        reporting: Reporting | None = None,
    ) -> None:
        self.summary = Summary()
        self._index = index
        self._scoring = scoring
        self._backend = backend
        self._style = style or Style()
        self._pairing = pairing or Pairing()
        self._reporting = reporting or Reporting()
        self._sample: Sample | None = None
        self._observed: list[Observed] = []
        self._held: list[Searched] = []

    @property
    def comments(self) -> bool:
        """Whether the reads' comments are tags."""
        return self._style.comments

    def lines(self, reads: Reads) -> Iterator[stream.Piece]:
        """The pieces of a batch, behind those of all that are held; none yet where it is held itself."""
        searched = search_reads(reads, self._index, self._scoring, self._backend)
        if not self._sample and not self._learn(searched):
            # The bytes are a view of a buffer that goes round.
            self._held.append(replace(searched, reads=replace(reads, bytes=reads.bytes.copy())))
            return
        # Where memory ends here, the sample stays, and this batch comes again in parts, behind those that are held.
        yield from self._written()
        yield from self._pieces(searched)

    def rest(self) -> Iterator[stream.Piece]:
        """The pieces of the batches that are held."""
        if self._held and not self._sample:
            self._know(self._observed)
        yield from self._written()

    def _written(self) -> Iterator[stream.Piece]:
        while self._held:
            yield from self._pieces(self._held[0])
            del self._held[0]

    def _learn(self, searched: Searched) -> bool:
        """Whether the sample is known, with what these reads tell."""
        observed = [*self._observed, observe(searched, self._index, self._backend)]
        if known := enough(observed, self._pairing.insert_size):
            self._know(observed)
        else:
            self._observed = observed
        return known

    def _know(self, observed: Sequence[Observed]) -> None:
        self._sample = learn(observed, self._pairing.insert_size, self._backend)
        self._observed = []
        self.summary.clean_bases = self._sample.clean_bases
        if observed[0].paired:
            self.summary.insert_sizes = self._sample.inserts.sizes

    def _pieces(self, searched: Searched) -> Iterator[stream.Piece]:
        """The records of a batch, and its reads without a place where those are wanted."""
        backend, index, reporting = self._backend, self._index, self._reporting
        assert self._sample
        parts = align_reads(searched, self._sample, index, self._scoring, self._pairing, reporting, backend)
        for part, alignments in parts:
            records = format_records(alignments, part.reads, part.queries, index, reporting, self._style, backend)
            pieces = [stream.Piece(records, RECORDS)]
            if self._style.unmapped and len(unmapped := format_unmapped(alignments, part.reads, backend)):
                pieces.append(stream.Piece(unmapped, UNMAPPED_READS))
            self._count(alignments, part)
            yield from pieces

    def _count(self, alignments: Alignments, searched: Searched) -> None:
        summary, queries = self.summary, searched.queries
        counts = np.bincount(self._backend.to_host(alignments.tallies), minlength=SECONDARY_TALLY + 1)
        proper = counts[PROPER_TALLY : PROPER_TALLY + MAPQS]
        mapqs = counts[:MAPQS] + proper
        summary.reads += searched.reads.count
        summary.mapped += int(mapqs.sum())
        summary.properly_paired += int(proper.sum())
        summary.supplementary += int(counts[SUPPLEMENTARY_TALLY])
        summary.secondary += int(counts[SECONDARY_TALLY])
        summary.mapqs += mapqs
        # Slots are ordered by length.
        summary.too_short += int(
            np.searchsorted(queries.host_lengths, -(-self._scoring.min_score // self._scoring.match))
        )
        summary.replaced += queries.replaced
