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
    context.backend.launch(
        _CHOOSE,
        len(slots),
        texts=batch.reads,
        queries=batch.queries,
        reference=context.index.reference,
        scoring=scoring,
        selected=slots,
        windows=batch.windows,
        placements=batch.placements,
        settled_deficit=SETTLED_DIFFERENCES * (scoring.match + scoring.mismatch),
        bases_per_variant=context.sample.bases_per_variant,
    )
