"""What a run does with batches of reads, and what it counts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from readmap.run.chunk_turns import ChunkTurn
from readmap.run.device_reads import DeviceReads
from readmap.run.writer import Block


@dataclass
class RunSummary:
    """What a run counted. replaced: ambiguous letters of reads other than N, which are written as N. warnings: doubts
    about the files of reads, and devices that failed. waiting: seconds that the mapping threads waited, on average, for
    the reader and for the writer. devices: by name of a device, the reads it mapped and the seconds that each of its
    threads waited, on average, for the reader and for its turn to write."""

    reads: int = 0
    replaced: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    waiting: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})
    devices: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """The number of reads whose records have been written."""
        return self.reads

    def describe_progress(self) -> str:
        return f"{self.reads:,} reads"


class DoesNotFit(MemoryError):
    """Too little memory for a read or a pair, even if it is alone on the device."""


class BatchProcessor(Protocol):
    """Turns batches of reads into blocks for the outputs and counts them in `summary`.

    Several threads process batches at once, each on one of several devices. `turn.wait()` returns after all earlier
    batches have yielded all their blocks; a processor calls it before it estimates, counts, keeps or yields anything. A
    batch may be kept, and yield its blocks before a later batch's or in `remaining_blocks`.

    If memory runs out before a batch has yielded a block, the batch is processed again in halves; DoesNotFit ends the
    run. After a block has been yielded, the processor checks the block's error: if its device has failed, the processor
    continues on another device and yields the bytes that have not been copied again."""

    @property
    def summary(self) -> RunSummary:
        """The counts so far."""

    @property
    def comments(self) -> bool:
        """True if comments after the names of reads must be SAM tags, which are written too."""

    def blocks(self, reads: DeviceReads, turn: ChunkTurn) -> Iterator[Block]:
        """Yield the blocks of this batch or of kept ones."""

    def remaining_blocks(self, device_index: int = 0) -> Iterator[Block]:
        """Yield the blocks that remain after the last batch; device_index: the device that the thread uses."""
