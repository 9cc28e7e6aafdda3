"""Windows of two mates -> the places that suit both.

Record 2p and record 2p + 1 are mates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Kernel
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.inserts import Inserts

_MEASURE, _PAIR = Kernel("mapping/pairs", "measure_inserts"), Kernel("mapping/pairs", "pair_mates")


def measure_inserts(batch: Batch, context: Context) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Direction and size of every pair of which both mates are placed for sure, in the order of the input.

    uint8 and int32 [pairs]; the direction of others, and of those that make no fragment, is of enum NoDirection.
    """
    backend, pairs = context.backend, batch.reads.count // 2
    directions, sizes = backend.empty(pairs, np.uint8), backend.empty(pairs, np.int32)
    batch.launch(_MEASURE, pairs, context, directions=directions, sizes=sizes)
    return backend.to_host(directions), backend.to_host(sizes)


def pair_mates(inserts: Inserts, rests: Array, batch: Batch, context: Context) -> None:
    """Choose the windows of mates together; rests: what `join_mates` returned."""
    batch.launch(_PAIR, batch.reads.count // 2, context, inserts=inserts, rests=rests)
