"""Queries -> Windows of the reads that belong to one place beyond doubt, found by a few look-ups."""

from __future__ import annotations

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.marks import list_marked
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.divergence import LEAST_BASES
from readmap.search.extension import score_windows
from readmap.search.parameters import dense_seed
from readmap.search.placement import choose_windows

#: Differences of a read that is settled so.
MOST_DIFFERENCES = 3

_FIND, _SETTLE = Kernel("search/pieces", "find_pieces"), Kernel("search/pieces", "settle_reads")
_TILE, _LOOK_UPS = constant("search/pieces.cu", "TILE"), constant("search/pieces.cuh", "LOOK_UPS")


def settle_reads(batch: Batch, context: Context) -> None:
    """Settle the reads of which no other place is worth looking for, whatever the sample proves to be.

    What else there may be of such a read is 60 phred less likely, and so changes no MAPQ.
    """
    backend, reads, least_bases = context.backend, batch.reads.count, dense_seed(context.index.suffix_count)
    items = -(-reads // _TILE) * _TILE * _LOOK_UPS
    places, settled = backend.empty(items, context.index.suffixes.dtype), backend.empty(reads, np.uint8)
    batch.launch(_FIND, items, context, places=places, reads=reads, least_bases=least_bases)
    batch.launch(
        _SETTLE,
        reads,
        context,
        places=places,
        settled=settled,
        least_bases=least_bases,
        most_lost=MOST_DIFFERENCES * (context.scoring.match + context.scoring.mismatch),
        bases_per_variant=LEAST_BASES,
    )
    slots = list_marked(settled, 1, backend)
    if len(slots):
        score_windows(slots, batch, context, long_gaps=False)
        choose_windows(slots, batch, context, MOST_DIFFERENCES)
