"""Choose the best window of each read and compute its MAPQ (Windows -> Placements)."""

from __future__ import annotations

from readmap.backend import Kernel
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.parameters import DIVERGENT_DIFFERENCES

_CHOOSE = Kernel("mapping/placement", "choose_windows")


def choose_windows(slots: DeviceList, batch: Batch, context: Context, differences: int = DIVERGENT_DIFFERENCES) -> None:
    """Choose among the windows of the slots; more than `differences` mismatches make a read DIVERGENT."""
    divergent_deficit = differences * (context.scoring.match + context.scoring.mismatch)
    batch.launch(_CHOOSE, slots.count, context, selected=slots.indices, divergent_deficit=divergent_deficit)
