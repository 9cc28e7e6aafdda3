"""Place the reads whose partition seeds name every placement that matters (Queries -> SeedHits -> Windows).

A read is partitioned into up to eight seeds, which are looked up on both strands. By the pigeonhole principle a
placement that
no occurrence of a seed names has at least one difference in every seed.
"""

from __future__ import annotations

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.compaction import ANY_FLAG, add_flagged_count
from readmap.mapping.batch import Batch, PartitionSeedTable
from readmap.mapping.context import Context
from readmap.mapping.diagonals import new_diagonals
from readmap.mapping.divergence import MIN_BASES_PER_DIFFERENCE
from readmap.mapping.extension import score_windows
from readmap.mapping.parameters import DIVERGENT_DIFFERENCES, dense_seed_bases
from readmap.mapping.placement import choose_windows
from readmap.mapping.windows import replace_windows

#: More differences than any read has: only the likelihood of alternative placements decides.
ANY_DIFFERENCES = 1 << 14

_FIND, _SETTLE = (
    Kernel("mapping/partition_seeds", "find_partition_seeds"),
    Kernel("mapping/partition_seeds", "resolve_reads"),
)
_NAME, _CONFIRM = (
    Kernel("mapping/partition_seeds", "list_seed_diagonals"),
    Kernel("mapping/partition_seeds", "confirm_reads"),
)
_TILE, _LOOK_UPS = (
    constant("mapping/partition_seeds.cuh", "TILE"),
    constant("mapping/partition_seeds.cuh", "LOOKUPS_PER_READ"),
)
_ONE_PLACE, _FEW_PLACES = (
    constant("mapping/partition_seeds.cu", "ONE_PLACE"),
    constant("mapping/partition_seeds.cu", "FEW_PLACES"),
)


def resolve_reads(batch: Batch, context: Context) -> None:
    """Give windows to the reads whose partition seeds name all placements that matter, independently of the sample.

    Any other placement of a resolved read is 60 phred less likely and changes no MAPQ.
    """
    backend, table = context.backend, _find_pieces(batch, context)
    divergent_deficit = DIVERGENT_DIFFERENCES * (context.scoring.match + context.scoring.mismatch)
    shared = {"divergent_deficit": divergent_deficit, "bases_per_difference": MIN_BASES_PER_DIFFERENCE}
    verdicts = backend.empty(batch.reads.count, np.uint8)
    batch.launch(_SETTLE, batch.reads.count, context, table=table, verdicts=verdicts, **shared)
    few = batch.device_counters.select_flagged("few placements", verdicts, _FEW_PLACES)
    if few.count:
        diagonals = new_diagonals(len(few.numbers), backend)
        batch.launch(_NAME, few.count, context, table=table, selected=few.numbers, found=diagonals)
        replace_windows(few, diagonals, batch, context)
    slots = batch.device_counters.select_flagged("placed by partition seeds", verdicts, _ONE_PLACE | _FEW_PLACES)
    if slots.count:
        score_windows(slots, batch, context, long_gaps=True)
    if few.count:
        choose_windows(few, batch, context, ANY_DIFFERENCES)
        batch.launch(_CONFIRM, few.count, context, table=table, selected=few.numbers, **shared)
    batch.pieces = table
    backend.copy_into(batch.placements.unresolved_before_search, batch.placements.unresolved)
    batch.work.resolved = batch.reads.count  # minus the total "unresolved", once the device counters are read
    add_flagged_count(batch.placements.unresolved_before_search, ANY_FLAG, batch.device_counters.total("unresolved"), backend)


def _find_pieces(batch: Batch, context: Context) -> PartitionSeedTable:
    backend, reads = context.backend, batch.reads.count
    lookups = -(-reads // _TILE) * _TILE * _LOOK_UPS
    places, counts = backend.empty(lookups, context.index.suffixes.dtype), backend.empty(lookups, np.uint8)
    table = PartitionSeedTable(places=places, counts=counts, min_bases=dense_seed_bases(context.index.suffix_count))
    batch.launch(_FIND, lookups, context, table=table, reads=reads)
    return table
