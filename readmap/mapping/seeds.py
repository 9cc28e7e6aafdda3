"""Select the reads of a search pass and look up their seeds in the suffix array (Batch -> Selection -> Seeds)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.device_counts import Count, DeviceList, capacity_of
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch, Context
from readmap.mapping.counters import PASS_COUNTERS
from readmap.mapping.parameters import SearchPass


@dataclass(frozen=True)
class Selection:
    """Reads, by slot, that a pass searches with the same stride; none is shorter than the pass's shortest seed."""

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


_COUNT, _FIND = Kernel("mapping/seeds", "count_seeds"), Kernel("mapping/seeds", "find_seeds")


class Seeds(Table, struct="mapping/seeds.cuh:Seeds"):
    """Seeds of the selected reads, every `stride` bases, orientation 0 first."""


def seed_offsets(
    slots: DeviceList, seed_bases: int, stride: int, batch: Batch, context: Context
) -> tuple[Array, Count]:
    """Return the index of each read's first seed, int64 [slots + 1], and the total number of seeds.

    Seeds start every `stride` bases on both strands; a read shorter than a seed gets no seeds.
    """
    counts = context.backend.full(len(slots.indices) + 1, 0, np.int64)
    what = {"selected": slots.indices, "counts": counts, "seed_bases": seed_bases, "stride": stride}
    batch.launch(_COUNT, slots.count, context, **what)
    of_a_read = 2 * (max(batch.queries.max_length - seed_bases, 0) // stride + 1)
    return batch.device_counters.scan("seeds", counts, slots, of_a_read * len(slots.indices))


def find_seeds(selection: Selection, batch: Batch, context: Context) -> Seeds:
    """Look up the seeds of the selected reads in the suffix array, at least min_seed_bases long, on both strands."""
    backend, shortest, stride = context.backend, selection.search_pass.min_seed_bases, selection.stride
    offsets, total = seed_offsets(selection.slots, shortest, stride, batch, context)
    dtype = context.index.suffixes.dtype
    seeds = Seeds.allocate(backend, offsets=offsets, seeds=capacity_of(total), suffix_t=dtype, stride=stride)
    selected = {"selected": selection.slots.indices, "selected_count": len(selection.slots.indices)}
    batch.launch(_FIND, total, context, seeds=seeds, min_seed_bases=shortest, **selected)
    return seeds
