"""Choose the windows of two mates together (Windows -> Placements). Records 2p and 2p + 1 are mates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Kernel
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.inserts import InsertSizeTable

_MEASURE, _PAIR = Kernel("mapping/pairs", "measure_inserts"), Kernel("mapping/pairs", "pair_mates")


def measure_inserts(batch: Batch, context: Context) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the direction (uint8 [pairs]) and insert size (int32 [pairs]) of each pair, in input order.

    The direction is UNCERTAIN if a mate is not placed confidently, FAR_APART if the mates make no fragment; the size is
    then 0.
    """
    backend, pairs = context.backend, batch.reads.count // 2
    directions, sizes = backend.empty(pairs, np.uint8), backend.empty(pairs, np.int32)
    batch.launch(_MEASURE, pairs, context, directions=directions, sizes=sizes)
    return backend.to_host(directions), backend.to_host(sizes)


def pair_mates(inserts: InsertSizeTable, other_fragments: Array, batch: Batch, context: Context) -> None:
    """Choose the windows of mates together. other_fragments: the result of `join_mates`."""
    batch.launch(_PAIR, batch.reads.count // 2, context, inserts=inserts, other_fragments=other_fragments)
