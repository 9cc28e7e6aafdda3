"""Which reads a pass searches, and how densely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readmap.backend import Array, Backend
from readmap.backend.marks import list_marked
from readmap.search.batch import Batch
from readmap.search.parameters import Effort


@dataclass(frozen=True)
class Selection:
    """Reads that are searched alike, at least one, none shorter than the effort's shortest seed.

    Attributes:
        slots: int32 [selected] on the device.
        stride: bases between seed positions.
        effort: of the pass.
    """

    slots: Array
    stride: int
    effort: Effort

    @property
    def count(self) -> int:
        """How many reads there are."""
        return len(self.slots)


def select(effort: Effort, batch: Batch, backend: Backend) -> Iterator[Selection]:
    """The reads that a pass takes, by the stride of their length; slots are ordered by length."""
    steps = batch.queries.steps
    begin = steps.first_of(effort.shortest_seed)
    while begin < steps.count:
        length = steps.length_of(begin)
        stride = effort.stride_of(length)
        end = steps.first_of(_next_length(length, stride, effort, steps.longest))
        slots = list_marked(batch.placements.unsettled[begin:end], effort.takes, backend, begin)
        if len(slots):
            yield Selection(slots, stride, effort)
        begin = end


def _next_length(length: int, stride: int, effort: Effort, longest: int) -> int:
    """The smallest greater length of which the stride is another."""
    if effort.stride_of(longest) == stride:
        return longest + 1
    return next(n for n in range(length + 1, longest + 1) if effort.stride_of(n) != stride)
