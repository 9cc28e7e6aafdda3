"""Windows of two mates -> further ones, where their partners expect them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.marks import ANY_MARK, add_marked
from readmap.backend.sizes import Listed
from readmap.mapping.batch import WINDOWS, Batch
from readmap.mapping.context import Context
from readmap.mapping.diagonals import Diagonals
from readmap.mapping.extension import score_windows
from readmap.mapping.inserts import Inserts
from readmap.mapping.placement import choose_windows
from readmap.mapping.windows import add_diagonals

_LIST, _RESCUE = Kernel("mapping/rescues", "list_rescues"), Kernel("mapping/rescues", "rescue_mates", grouped=True)
_MARK = Kernel("mapping/rescues", "mark_rescued")


@dataclass(frozen=True)
class Rescues:
    """Mates that were looked for.

    Attributes:
        slots: of them; window_counts: int32 [rescues], how many windows each had before.
    """

    slots: Listed
    window_counts: Array


def rescue_mates(inserts: Inserts, batch: Batch, context: Context) -> Rescues | None:
    """Look for mates where their partners expect them, and place those anew that may be there; None where none may."""
    backend, count = context.backend, batch.reads.count
    wanted, deficits = backend.full(count, 0, np.uint8), backend.empty(count // 2, np.int32)
    batch.launch(_LIST, count // 2, context, inserts=inserts, wanted=wanted, choice_deficits=deficits)
    slots = batch.ledger.list_marked("rescues", wanted, 1)
    if not slots.count:
        return None
    rescues = Rescues(slots, backend.empty(len(slots.numbers), np.int32))
    diagonals = Diagonals.empty(len(slots.numbers), backend)
    batch.launch(
        _RESCUE,
        slots.count,
        context,
        inserts=inserts,
        selected=slots.numbers,
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
    rescued = backend.full(len(slots.numbers), 0, np.uint8)
    selected = {"selected": slots.numbers, "window_counts": rescues.window_counts}
    batch.launch(_MARK, slots.count, context, **selected, rescued=rescued)
    add_marked(rescued, ANY_MARK, batch.ledger.total("rescued"), backend)
