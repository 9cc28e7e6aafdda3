"""Windows of two mates -> further ones, where their partners expect them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.marks import ANY_MARK, add_marked, list_marked
from readmap.search.batch import WINDOWS, Batch
from readmap.search.context import Context
from readmap.search.diagonals import Diagonals
from readmap.search.extension import score_windows
from readmap.search.inserts import Inserts
from readmap.search.placement import choose_windows
from readmap.search.windows import add_diagonals

_LIST, _RESCUE = Kernel("search/rescues", "list_rescues"), Kernel("search/rescues", "rescue_mates", grouped=True)
_MARK = Kernel("search/rescues", "mark_rescued")


@dataclass(frozen=True)
class Rescues:
    """Mates that were looked for.

    Attributes:
        slots: int32 [rescues]; window_counts: int32 [rescues], how many windows each had before.
    """

    slots: Array
    window_counts: Array


def rescue_mates(inserts: Inserts, batch: Batch, context: Context) -> Rescues | None:
    """Look for mates where their partners expect them, and place those anew that may be there; None where none may."""
    backend, count = context.backend, batch.reads.count
    wanted, deficits = backend.full(count, 0, np.uint8), backend.empty(count // 2, np.int32)
    batch.launch(_LIST, count // 2, context, inserts=inserts, wanted=wanted, choice_deficits=deficits)
    slots = list_marked(wanted, 1, backend)
    if not len(slots):
        return None
    rescues = Rescues(slots, backend.empty(len(slots), np.int32))
    batch.work.rescues += len(slots)
    diagonals = Diagonals.empty(len(slots), backend)
    batch.launch(
        _RESCUE,
        len(slots),
        context,
        inserts=inserts,
        selected=slots,
        choice_deficits=deficits,
        found=diagonals,
        window_counts=rescues.window_counts,
    )
    add_diagonals(slots, diagonals, WINDOWS, batch, context)
    score_windows(slots, batch, context)
    choose_windows(slots, batch, context)
    return rescues


def count_rescued(rescues: Rescues, batch: Batch, context: Context) -> None:
    """Count the mates that make a fragment where only their partners pointed to."""
    backend, slots = context.backend, rescues.slots
    rescued = backend.empty(len(slots), np.uint8)
    batch.launch(_MARK, len(slots), context, selected=slots, window_counts=rescues.window_counts, rescued=rescued)
    add_marked(rescued, ANY_MARK, batch.total("rescued"), backend)
