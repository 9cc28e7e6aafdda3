"""Chunks of the reads of alignments: text, and where the parts of each read and of its mate lie in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.buffers import Buffer
from readmap.reads.bam_records import HAS_QUALITY, PLACE
from readmap.reads.parsing import READ_ABSENT, Reads

#: The read that stands for the mate of a single one.
ABSENT = np.zeros(1, PLACE)
ABSENT["marks"] = READ_ABSENT


@dataclass(frozen=True)
class AlignmentChunk:
    """Reads in their order, or pairs among which there may be single reads: then those have an absent mate.

    Attributes:
        text: uint8, a view of the buffer.
        places: PLACE [reads], mates side by side where they are paired.
        paired: whether there are pairs.
        buffer: what the text is a view of.
    """

    text: NDArray[np.uint8]
    places: NDArray[Any]
    paired: bool
    buffer: Buffer

    def find(self, backend: Backend) -> Reads:
        """The reads on the device."""
        places, count = self.places, len(self.places)
        sequences = places["start"] + places["header_length"]
        has_quality = (places["marks"] & HAS_QUALITY) > 0
        to_device = backend.to_device
        return Reads(
            backend.upload([self.text]),
            to_device(np.ascontiguousarray(places["start"])),
            to_device(np.ascontiguousarray(places["name_length"])),
            to_device(sequences),
            to_device(np.ascontiguousarray(places["length"])),
            to_device(np.where(has_quality, sequences + places["length"], -1)),
            to_device((places["marks"] & ~HAS_QUALITY).astype(np.uint8)),
            count,
            None,
            self.paired,
            bool((places["marks"] & READ_ABSENT).any()),
        )

    @property
    def reads(self) -> int:
        """How many there are, absent mates among them."""
        return len(self.places)

    @property
    def is_divisible(self) -> bool:
        """Whether there is more than a read, or a pair."""
        return len(self.places) > 1 + self.paired

    def halves(self) -> tuple[AlignmentChunk, AlignmentChunk]:
        """The same reads as two chunks, each of which is to be released instead of this one; to be divisible."""
        middle = len(self.places) // 2 // (1 + self.paired) * (1 + self.paired)
        self.buffer.retain()
        return replace(self, places=self.places[:middle]), replace(self, places=self.places[middle:])

    def parts(self, most: int) -> list[AlignmentChunk]:
        """The same reads as chunks of at most so many, but for a pair; each of them is to be released instead."""
        step = max(most // (1 + self.paired), 1) * (1 + self.paired)
        parts = [replace(self, places=self.places[i : i + step]) for i in range(0, len(self.places), step)]
        for _ in parts[1:]:
            self.buffer.retain()
        return parts

    def keep(self) -> None:
        """Asks for one more release, and lets the reader go on with other memory."""
        self.buffer.detach()

    def release(self) -> None:
        """Gives the memory back to the reader; `text` must not be used after it."""
        self.buffer.release()
