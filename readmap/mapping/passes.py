"""Which reads a pass searches, and how densely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readmap.backend.sizes import Listed
from readmap.mapping.batch import Batch
from readmap.mapping.counters import TAKEN
from readmap.mapping.parameters import Effort


@dataclass(frozen=True)
class Selection:
    """Reads that are searched alike, at least one as far as the host knows, none shorter than a seed of the effort.

    Attributes:
        slots: of the reads.
        stride: bases between seed positions.
        effort: of the pass.
    """

    slots: Listed
    stride: int
    effort: Effort


def select(effort: Effort, batch: Batch) -> Iterator[Selection]:
    """The reads that a pass takes, by the stride of their length; slots are ordered by length."""
    steps = batch.queries.steps
    begin = steps.first_of(effort.shortest_seed)
    while begin < steps.count:
        length = steps.length_of(begin)
        stride = effort.stride_of(length)
        end = steps.first_of(_next_length(length, stride, effort, steps.longest))
        unsettled = batch.placements.unsettled[begin:end]
        slots = batch.ledger.list_marked(TAKEN[effort.takes], unsettled, effort.takes, begin, apart=f" every {stride}")
        if slots.count:
            yield Selection(slots, stride, effort)
        begin = end


def _next_length(length: int, stride: int, effort: Effort, longest: int) -> int:
    """The smallest greater length of which the stride is another."""
    if effort.stride_of(longest) == stride:
        return longest + 1
    return next(n for n in range(length + 1, longest + 1) if effort.stride_of(n) != stride)
