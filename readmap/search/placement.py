"""Windows -> Placements: which window a read belongs to, and how sure that is."""

from __future__ import annotations

from readmap.backend import Array, Kernel
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.parameters import SETTLED_DIFFERENCES

_CHOOSE = Kernel("search/placement", "choose_windows")


def choose_windows(slots: Array, batch: Batch, context: Context) -> None:
    """Choose among the windows of the slots, int32."""
    scoring = context.scoring
    batch.launch(
        _CHOOSE,
        len(slots),
        context,
        selected=slots,
        settled_deficit=SETTLED_DIFFERENCES * (scoring.match + scoring.mismatch),
    )
