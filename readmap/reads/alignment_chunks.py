"""Chunks of reads from BAM or CRAM: text, and the positions of each read in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.buffers import Buffer
from readmap.reads.bam_records import HAS_QUALITY, READ_SPAN
from readmap.reads.parsing import PER_READ, READ_ABSENT, Reads

ABSENT = np.zeros(1, READ_SPAN)  # the span of an absent mate
ABSENT["marks"] = READ_ABSENT


@dataclass(frozen=True)
class AlignmentChunk:
    """Reads in order: single reads, or pairs if `paired`, where single reads have an absent mate."""

    text: NDArray[np.uint8]  # a view of the buffer
    spans: NDArray[Any]  # READ_SPAN [reads], mates side by side if `paired`
    paired: bool
    buffer: Buffer

    def to_device(self, backend: Backend) -> Reads:
        """Return the reads with their text and positions copied to the device."""
        spans, marks = self.spans, self.spans["marks"]
        sequences = spans["start"] + spans["header_length"]
        quality_starts = np.where(marks & HAS_QUALITY, sequences + spans["length"], -1)
        positions = spans["start"], spans["name_length"], sequences, spans["length"], quality_starts
        columns = zip(PER_READ, (*positions, (marks & ~HAS_QUALITY).astype(np.uint8)), strict=True)
        text = backend.upload([self.text])
        arrays = {name: backend.to_device(np.ascontiguousarray(column)) for name, column in columns}
        has_singles = bool((marks & READ_ABSENT).any())
        return Reads(text, **arrays, count=len(spans), bad=None, paired=self.paired, has_singles=has_singles)

    @property
    def reads(self) -> int:
        """The number of reads, including absent mates."""
        return len(self.spans)

    @property
    def is_divisible(self) -> bool:
        """The chunk has more than one read or pair."""
        return len(self.spans) > 1 + self.paired

    def halves(self) -> tuple[AlignmentChunk, AlignmentChunk]:
        """Split a divisible chunk into two chunks that share its memory; release both instead of this chunk."""
        middle = len(self.spans) // 2 // (1 + self.paired) * (1 + self.paired)
        self.buffer.retain()
        return replace(self, spans=self.spans[:middle]), replace(self, spans=self.spans[middle:])

    def split(self, max_reads: int) -> list[AlignmentChunk]:
        """Split into chunks of at most `max_reads` reads, or one pair; release them instead of this chunk."""
        step = max(max_reads // (1 + self.paired), 1) * (1 + self.paired)
        parts = [replace(self, spans=self.spans[i : i + step]) for i in range(0, len(self.spans), step)]
        for _ in parts[1:]:
            self.buffer.retain()
        return parts

    def keep(self) -> None:
        """Keep the memory until one more release, and let the reader continue with other memory."""
        self.buffer.detach()

    def release(self) -> None:
        """Return the memory to the reader; `text` is invalid afterwards."""
        self.buffer.release()
