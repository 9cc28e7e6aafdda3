"""Look up seeds in the suffix array: insertion point and length of the common prefixes (Queries -> Seeds)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.sizes import Count, Listed, most_of
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.passes import Selection

_COUNT, _FIND = Kernel("mapping/seeds", "count_seeds"), Kernel("mapping/seeds", "find_seeds")


@dataclass(frozen=True)
class Seeds:
    """Seeds of the selected reads, every `stride` bases, orientation 0 first.

    Attributes:
        offsets: int64 [selected + 1], index of each read's first seed.
        ranks: suffix type [seeds], insertion point: the number of suffixes that sort before the query at the seed's
            position.
        before, after: uint16 [seeds], length of the prefix shared with the suffixes at rank - 1 and at rank.
        stride: bases between seed positions.
    """

    offsets: Array
    ranks: Array
    before: Array
    after: Array
    stride: int


def seed_offsets(slots: Listed, seed_bases: int, stride: int, batch: Batch, context: Context) -> tuple[Array, Count]:
    """Return the index of each read's first seed, int64 [slots + 1], and the total number of seeds.

    Seeds start every `stride` bases on both strands; a read shorter than a seed has none.
    """
    counts = context.backend.full(len(slots.numbers) + 1, 0, np.int64)
    what = {"selected": slots.numbers, "counts": counts, "seed_bases": seed_bases, "stride": stride}
    batch.launch(_COUNT, slots.count, context, **what)
    of_a_read = 2 * (max(batch.queries.longest - seed_bases, 0) // stride + 1)
    return batch.ledger.ends("seeds", counts, slots, of_a_read * len(slots.numbers))


def find_seeds(selection: Selection, batch: Batch, context: Context) -> Seeds:
    """Return the seeds of the selected reads."""
    backend, shortest, stride = context.backend, selection.search_pass.min_seed_bases, selection.stride
    offsets, total = seed_offsets(selection.slots, shortest, stride, batch, context)
    most = most_of(total)
    ranks = backend.empty(most, context.index.suffixes.dtype)
    seeds = Seeds(offsets, ranks, backend.empty(most, np.uint16), backend.empty(most, np.uint16), stride)
    selected = {"selected": selection.slots.numbers, "selected_count": len(selection.slots.numbers)}
    batch.launch(_FIND, total, context, seeds=seeds, min_seed_bases=shortest, **selected)
    return seeds
