"""Select the reads of a search pass and their seed stride (SearchPass, Batch -> Selection)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import Batch
from readmap.mapping.counters import PASS_COUNTERS
from readmap.mapping.parameters import SearchPass


@dataclass(frozen=True)
class Selection:
    """Reads that a pass searches with the same stride; none is shorter than the pass's shortest seed.

    Attributes:
        slots: slots of the reads, not empty as far as the host knows.
        stride: bases between seed positions.
        search_pass: the pass.
    """

    slots: DeviceList
    stride: int
    search_pass: SearchPass


def select_reads(search_pass: SearchPass, batch: Batch) -> Iterator[Selection]:
    """Yield the reads that a pass searches, grouped by stride; the slots are ordered by read length."""
    runs = batch.queries.length_runs
    start = runs.first_slot_of_length(search_pass.min_seed_bases)
    while start < runs.count:
        length = runs.length_of(start)
        stride = search_pass.stride_of(length)
        end = runs.first_slot_of_length(_next_length(length, stride, search_pass, runs.max_length))
        unresolved = batch.placements.unresolved[start:end]
        slots = batch.device_counters.select_flagged(
            PASS_COUNTERS[search_pass.reason], unresolved, search_pass.reason, start, variant=f" every {stride}"
        )
        if slots.count:
            yield Selection(slots, stride, search_pass)
        start = end


def _next_length(length: int, stride: int, search_pass: SearchPass, longest: int) -> int:
    """Return the smallest length above `length` with another stride, or longest + 1."""
    if search_pass.stride_of(longest) == stride:
        return longest + 1
    return next(n for n in range(length + 1, longest + 1) if search_pass.stride_of(n) != stride)
