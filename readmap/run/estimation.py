"""The first reads of a run -> what they show: what `readmap learn` does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from readmap.backend import Backend
from readmap.formats.byte_source import ByteSource
from readmap.formats.sam import ReadGroup
from readmap.reads.alignment_reads import AlignmentReads
from readmap.reads.chunks import PairLayout
from readmap.run import stream
from readmap.run.chunk_plan import ChunkPlan
from readmap.run.chunk_turns import Turn
from readmap.run.device_reads import DeviceReads
from readmap.run.read_mapper import MappingSummary, ReadMapper
from readmap.run.writer import Block


class _Enough(Exception):
    """Further reads show no more."""


@dataclass(frozen=True)
class _Learning:
    """Maps reads, and writes nothing of them, until no more is learnt."""

    mapping: ReadMapper

    @property
    def summary(self) -> MappingSummary:
        """What has been counted."""
        return self.mapping.summary

    @property
    def comments(self) -> bool:
        """Whether the reads' comments are tags."""
        return self.mapping.comments

    def blocks(self, arrival: DeviceReads, turn: Turn) -> Iterator[Block]:
        """None."""
        for _ in self.mapping.blocks(arrival, turn):
            if not self.mapping.is_learning:
                raise _Enough  # what is held need not be aligned
        turn()
        if not self.mapping.is_learning:
            raise _Enough
        yield from ()

    def rest(self, place: int = 0) -> Iterator[Block]:
        """None."""
        for _ in self.mapping.rest(place):
            pass
        yield from ()


def first_lanes(groups: Sequence[ReadGroup]) -> list[list[int]]:
    """Of each library the numbers of its lanes in front of those of another one; groups: those of all lanes."""
    libraries: dict[str | None, list[int]] = {}
    for library, lanes in groupby(range(len(groups)), lambda number: groups[number].field("LB")):
        libraries.setdefault(library, list(lanes))
    return [*libraries.values()]


def learn_from(
    reads: Sequence[str | ByteSource] | AlignmentReads,
    layout: PairLayout | Sequence[PairLayout],
    mapping: ReadMapper,
    backends: Sequence[Backend],
    plan: ChunkPlan | None = None,
    progress: Callable[[], None] | None = None,
) -> None:
    """Have a mapping learn what there is to learn of some reads, of which no more than needed are read; the arguments
    are those of stream.run, and its errors."""
    with contextlib.suppress(_Enough):
        stream.run(reads, [], _Learning(mapping), backends, layout=layout, plan=plan, progress=progress)
