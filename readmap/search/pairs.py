"""Windows of two mates -> the places that suit both.

Record 2p and record 2p + 1 are mates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Kernel
from readmap.search.batch import WINDOWS, Batch
from readmap.search.context import Context
from readmap.search.diagonals import Diagonals
from readmap.search.extension import score_windows
from readmap.search.inserts import Inserts
from readmap.search.placement import choose_windows
from readmap.search.windows import add_diagonals

_MEASURE, _LIST = Kernel("search/pairs", "measure_inserts"), Kernel("search/pairs", "list_rescues")
_RESCUE, _PAIR = Kernel("search/pairs", "rescue_mates", grouped=True), Kernel("search/pairs", "pair_mates")


def measure_inserts(batch: Batch, context: Context) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Direction and size of every pair of which both mates are placed for sure, in the order of the input.

    uint8 and int32 [pairs]; the direction of others, and of those that make no fragment, is of enum NoDirection.
    """
    backend, pairs = context.backend, batch.reads.count // 2
    directions, sizes = backend.empty(pairs, np.uint8), backend.empty(pairs, np.int32)
    batch.launch(_MEASURE, pairs, context, directions=directions, sizes=sizes)
    return backend.to_host(directions), backend.to_host(sizes)


def rescue_mates(inserts: Inserts, batch: Batch, context: Context) -> None:
    """Look for mates where their partners expect them, and place those anew that may be there."""
    backend, count = context.backend, batch.reads.count
    wanted, deficits = backend.full(count, 0, np.uint8), backend.empty(count // 2, np.int32)
    batch.launch(_LIST, count // 2, context, inserts=inserts, wanted=wanted, choice_deficits=deficits)
    slots = backend.to_device(np.flatnonzero(backend.to_host(wanted)).astype(np.int32))
    if not len(slots):
        return
    diagonals = Diagonals.empty(len(slots), backend)
    batch.launch(
        _RESCUE, len(slots), context, inserts=inserts, selected=slots, choice_deficits=deficits, found=diagonals
    )
    add_diagonals(slots, diagonals, WINDOWS, batch, context)
    score_windows(slots, batch, context)
    choose_windows(slots, batch, context)


def pair_mates(inserts: Inserts, batch: Batch, context: Context) -> None:
    """Choose the windows of mates together."""
    batch.launch(_PAIR, batch.reads.count // 2, context, inserts=inserts)
