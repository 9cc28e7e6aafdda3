"""Reads -> records of their alignments: what `readmap search` does with a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.formats.reads import Reads
from readmap.formats.sam import NO_READ_GROUP, Form, ReadGroup
from readmap.index.device import DeviceIndex
from readmap.search import stream
from readmap.search.alignments import format_records
from readmap.search.parameters import Scoring
from readmap.search.pipeline import map_batch


@dataclass
class Summary(stream.Summary):
    """What a search counted.

    Attributes:
        mapped: reads with a place.
        too_short: reads that cannot reach the minimum score even without a difference.
        mapqs: int64 [61], mapped reads by MAPQ.
    """

    mapped: int = 0
    too_short: int = 0
    mapqs: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(61, np.int64))


class Mapping:
    """Maps batches of reads and counts them in `summary`."""

    def __init__(
        self,
        index: DeviceIndex,
        scoring: Scoring,
        backend: Backend,
        form: Form = Form.TEXT,
        read_group: ReadGroup = NO_READ_GROUP,
    ) -> None:
        self.summary = Summary()
        self._index = index
        self._scoring = scoring
        self._backend = backend
        self._form = form
        self._tag = backend.to_device(np.frombuffer(read_group.tag(form), np.uint8))

    def lines(self, reads: Reads) -> Iterator[Array]:
        """The records of a batch, in one piece."""
        backend, scoring, summary = self._backend, self._scoring, self.summary
        mapped = map_batch(reads, self._index, scoring, backend)
        records = format_records(mapped.alignments, reads, mapped.queries, self._index, self._form, self._tag, backend)
        placed = backend.to_host(mapped.alignments.contigs) >= 0
        mapqs = backend.to_host(mapped.alignments.mapqs)[placed]
        summary.reads += len(placed)
        summary.mapped += len(mapqs)
        summary.mapqs += np.bincount(mapqs, minlength=61)
        summary.too_short += int(np.count_nonzero(mapped.queries.host_lengths * scoring.match < scoring.min_score))
        summary.replaced += mapped.queries.replaced
        yield records
