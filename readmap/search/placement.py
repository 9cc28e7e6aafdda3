"""Windows -> Placements: which window a read belongs to, and how sure that is."""

from __future__ import annotations

from readmap.backend import Array, Kernel
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.parameters import SETTLED_DIFFERENCES

_CHOOSE = Kernel("search/placement", "choose_windows")


def choose_windows(slots: Array, batch: Batch, context: Context, differences: int = SETTLED_DIFFERENCES) -> None:
    """Choose among the windows of the slots, int32; differences: mismatches up to which a read is not distant."""
    settled_deficit = differences * (context.scoring.match + context.scoring.mismatch)
    batch.launch(_CHOOSE, len(slots), context, selected=slots, settled_deficit=settled_deficit)
