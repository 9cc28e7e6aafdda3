"""What is done with the reads of a run, as whoever runs it sees it, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from readmap.run.device_reads import DeviceReads
from readmap.run.chunk_turns import Turn
from readmap.run.writer import Block


@dataclass
class RunSummary:
    """What a search counted.

    Attributes:
        reads: records read.
        replaced: ambiguous letters of reads other than N, written as N.
        warnings: what may be wrong with the files of reads, in words.
        seconds: since the first chunk was asked for; waiting: of these, how long the mapping threads waited for the
            reader, on the average, and for the writer.
        devices: by name, the reads that each device mapped, and how long each of its threads waited on the average for
            the reader, and for its turn to write.
    """

    reads: int = 0
    replaced: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    waiting: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})
    devices: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """Reads whose records have been written."""
        return self.reads


class DoesNotFit(MemoryError):
    """For a read, or a pair, that work holds the memory does not suffice, even where it is alone."""


class Work(Protocol):
    """What is done with the reads: `blocks` gives what to write of a batch, and counts it in `summary`. When it goes on
    behind a block it looks whether that has an error, and gives the same bytes again, as far as they were not copied.

    A batch lies on one of several devices, and goes on elsewhere where that fails. Batches are computed by several
    threads at once: `turn` waits until those in front have given all their blocks, and is called before anything is
    learnt, counted, held or given. A batch may be held, to give its blocks before those of a later one, or in `rest`.
    Where memory ends out of turn, or in turn before a block was given, the batch comes again in halves; what does not
    fit alone raises DoesNotFit.
    """

    @property
    def summary(self) -> RunSummary:
        """What has been counted so far."""

    @property
    def comments(self) -> bool:
        """Whether what stands behind a read's name is SAM tags, which are written too."""

    def blocks(self, arrival: DeviceReads, turn: Turn) -> Iterator[Block]:
        """What to write, of this batch or of those before."""

    def rest(self, place: int = 0) -> Iterator[Block]:
        """What is still to be written behind the last batch; on the device of a place, which the thread uses."""
