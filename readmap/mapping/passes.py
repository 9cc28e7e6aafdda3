"""Select the reads of a search pass and their seed stride (SearchPass, Batch -> Selection)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readmap.backend.sizes import Listed
from readmap.mapping.batch import Batch
from readmap.mapping.counters import TAKEN
from readmap.mapping.parameters import Effort


@dataclass(frozen=True)
class Selection:
    """Reads that a pass searches with the same stride; none is shorter than the pass's shortest seed.

    Attributes:
        slots: slots of the reads, not empty as far as the host knows.
        stride: bases between seed positions.
        effort: the pass.
    """

    slots: Listed
    stride: int
    effort: Effort


def select(effort: Effort, batch: Batch) -> Iterator[Selection]:
    """Yield the reads that a pass searches, grouped by stride; the slots are ordered by read length."""
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
    """Return the smallest length above `length` with another stride, or longest + 1."""
    if effort.stride_of(longest) == stride:
        return longest + 1
    return next(n for n in range(length + 1, longest + 1) if effort.stride_of(n) != stride)
