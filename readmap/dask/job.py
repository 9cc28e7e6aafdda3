"""What all tasks of a search on a cluster are told, as one value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from readmap.duplicates.marker import DuplicateRules
from readmap.formats.sam_header import ReadGroupInfo
from readmap.formats.sam import NO_READ_GROUP, ReadGroup, parse_read_group
from readmap.mapping.parameters import Pairing, Reporting, Scoring
from readmap.mapping.records import Style
from readmap.reads.chunks import PairLayout

#: Of a shard's records, of its reads without a place, and of what decides about its duplicates.
RECORDS, UNMAPPED = "records", "unmapped"


@dataclass(frozen=True)
class Lane:
    """Files of reads that belong together, one, or two of pairs; how mates lie in them, and the read group of all."""

    files: tuple[str, ...]
    layout: PairLayout
    group: ReadGroup = NO_READ_GROUP

    @classmethod
    def of(
        cls, first: str, second: str | None = None, read_group: str | None = None, *, interleaved: bool = False
    ) -> Lane:
        r"""The lane of one file, or of two of pairs; second: "" for none, as in --lane of the command.

        read_group: as '@RG\tID:a\tSM:b'. interleaved: whether mates alternate in one file.
        Raises UsageError where the read group is none.
        """
        files = (first, second) if second else (first,)
        layout = PairLayout.TWO_FILES if second else PairLayout.INTERLEAVED if interleaved else PairLayout.SINGLE
        return cls(files, layout, parse_read_group(read_group, "read group") if read_group else NO_READ_GROUP)


@dataclass(frozen=True)
class Resources:
    """What a worker may use.

    Attributes:
        device: as open_backend takes it, on the worker. threads: None for those of the worker.
        gpu_memory: most bytes of a GPU's; sort_memory: most bytes of records that are sorted; None for what there is.
    """

    device: str = "auto"
    threads: int | None = None
    gpu_memory: int | None = None
    sort_memory: int | None = None
    batch_reads: int | None = None


@dataclass(frozen=True)
class IndexLocation:
    """An index that all workers see: its folder, whether its arrays are checked, and whether it has ALT contigs."""

    path: str
    check: bool = True
    alternates: bool = True


@dataclass(frozen=True)
class Packing:
    """How outputs are compressed: the codec's name, the level, and whether each output is, by its name."""

    codec: str
    level: int
    blocked: dict[str, bool]


@dataclass(frozen=True)
class Job:
    """A search.

    Attributes:
        folder: for what tasks write, which all workers see.
        index, lanes: what is searched for what. contig_lengths: of the index.
        tasks: shards of the reads, once they are known.
        style, scoring, pairing, reporting: as a search has them; the style's order is that of coordinates, or none.
        groups: the read groups of the header. rules: of duplicates; None where they are not marked.
        command_line: for the metrics.
    """

    folder: str
    index: IndexLocation
    lanes: tuple[Lane, ...]
    contig_lengths: tuple[int, ...]
    style: Style
    packing: Packing
    scoring: Scoring = field(default_factory=Scoring)
    pairing: Pairing = field(default_factory=Pairing)
    reporting: Reporting = field(default_factory=Reporting)
    resources: Resources = field(default_factory=Resources)
    groups: tuple[ReadGroupInfo, ...] = ()
    rules: DuplicateRules | None = None
    command_line: str = ""
    tasks: int = 0

    @property
    def files(self) -> list[str]:
        """Of all lanes."""
        return [file for lane in self.lanes for file in lane.files]

    @property
    def layouts(self) -> list[PairLayout]:
        """Of each lane."""
        return [lane.layout for lane in self.lanes]

    @property
    def is_sorted(self) -> bool:
        """Whether the records are brought in order."""
        return self.style.order is not None

    @property
    def outputs(self) -> list[str]:
        """The names of what a shard writes beside what is sorted."""
        return [RECORDS, *([UNMAPPED] if self.style.unmapped else [])]

    def shard(self, number: int) -> Path:
        """The folder of a shard, from 0."""
        return Path(self.folder) / f"shard-{number}"

    def range(self, number: int) -> Path:
        """The folder of a range of keys, from 0."""
        return Path(self.folder) / f"range-{number}"

    @property
    def marks(self) -> Path:
        """The folder of which fragments are duplicates."""
        return Path(self.folder) / "marks"


def anywhere(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The same lanes by names that do not depend on the current folder, which workers do not share."""
    return tuple(Lane(tuple(map(os.path.abspath, lane.files)), lane.layout, lane.group) for lane in lanes)
