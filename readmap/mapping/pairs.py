"""Rescue mates, and choose the windows of mates together (Windows -> Placements). Records 2p and 2p + 1 are mates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Kernel
from readmap.backend.compaction import ANY_FLAG, add_flagged_count
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import MAX_WINDOWS, Batch, Context
from readmap.mapping.diagonals import new_diagonals
from readmap.mapping.extension import score_windows
from readmap.mapping.inserts import InsertSizeTable
from readmap.mapping.windows import add_windows, choose_windows

_LIST, _RESCUE = Kernel("mapping/rescues", "list_rescues"), Kernel("mapping/rescues", "rescue_mates")
_MARK = Kernel("mapping/rescues", "mark_rescued")


@dataclass(frozen=True)
class Rescues:
    """Mates that were searched. window_counts: int32 [rescues], number of windows before the rescue."""

    slots: DeviceList
    window_counts: Array


def rescue_mates(inserts: InsertSizeTable, batch: Batch, context: Context) -> Rescues | None:
    """Add windows to mates near the positions that their partners predict, and choose again.

    Returns the searched mates, or None if no mate needs a search.
    """
    backend, count = context.backend, batch.reads.count
    wanted, deficits = backend.full(count, 0, np.uint8), backend.empty(count // 2, np.int32)
    batch.launch(_LIST, count // 2, context, inserts=inserts, wanted=wanted, choice_deficits=deficits)
    slots = batch.device_counters.select_flagged("rescues", wanted, 1)
    if not slots.count:
        return None
    rescues = Rescues(slots, backend.empty(len(slots.indices), np.int32))
    diagonals = new_diagonals(len(slots.indices), backend)
    given = {"inserts": inserts, "selected": slots.indices, "choice_deficits": deficits}
    batch.launch(_RESCUE, slots.count, context, **given, found=diagonals, window_counts=rescues.window_counts)
    add_windows(slots, diagonals, MAX_WINDOWS, batch, context)
    score_windows(slots, batch, context)
    choose_windows(slots, batch, context)
    return rescues


def count_rescued(rescues: Rescues, batch: Batch, context: Context) -> None:
    """Add the mates that form a fragment only at a window that the rescue added to the device counter "rescued"."""
    backend, slots = context.backend, rescues.slots
    rescued = backend.full(len(slots.indices), 0, np.uint8)
    selected = {"selected": slots.indices, "window_counts": rescues.window_counts}
    batch.launch(_MARK, slots.count, context, **selected, rescued=rescued)
    add_flagged_count(rescued, ANY_FLAG, batch.device_counters.total("rescued"), backend)


_MEASURE, _PAIR = Kernel("mapping/pairs", "measure_inserts"), Kernel("mapping/pairs", "pair_mates")


def measure_inserts(batch: Batch, context: Context) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the direction (uint8 [pairs]) and insert size (int32 [pairs]) of each pair, in input order.

    The direction is UNCERTAIN if a mate is not placed confidently, FAR_APART if the mates make no fragment.
    """
    backend, pairs = context.backend, batch.reads.count // 2
    directions, sizes = backend.empty(pairs, np.uint8), backend.empty(pairs, np.int32)
    batch.launch(_MEASURE, pairs, context, directions=directions, sizes=sizes)
    return backend.to_host(directions), backend.to_host(sizes)


def pair_mates(inserts: InsertSizeTable, other_fragments: Array, batch: Batch, context: Context) -> None:
    """Choose the placements of mates together, in batch.placements. other_fragments: the result of `join_mates`."""
    batch.launch(_PAIR, batch.reads.count // 2, context, inserts=inserts, other_fragments=other_fragments)
