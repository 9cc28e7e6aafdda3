"""Look up seeds in the suffix array: insertion point and length of the common prefixes (Queries -> Seeds)."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.device_counts import Count, DeviceList, capacity_of
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.seeds import Selection

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
    """Return the seeds of the selected reads."""
    backend, shortest, stride = context.backend, selection.search_pass.min_seed_bases, selection.stride
    offsets, total = seed_offsets(selection.slots, shortest, stride, batch, context)
    dtype = context.index.suffixes.dtype
    seeds = Seeds.allocate(backend, offsets=offsets, seeds=capacity_of(total), suffix_t=dtype, stride=stride)
    selected = {"selected": selection.slots.indices, "selected_count": len(selection.slots.indices)}
    batch.launch(_FIND, total, context, seeds=seeds, min_seed_bases=shortest, **selected)
    return seeds
