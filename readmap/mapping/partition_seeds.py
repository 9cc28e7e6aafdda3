"""Place the reads whose partition seeds name every placement that matters (Queries -> SeedHits -> Windows).

A read is partitioned into up to eight seeds, which are looked up on both strands. By the pigeonhole principle a
placement that no occurrence of a seed names has at least one difference in every seed.
"""

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compaction import ANY_FLAG, add_flagged_count
from readmap.backend.compilation.declarations import constant
from readmap.mapping.batch import Batch, Context, PartitionSeedTable
from readmap.mapping.diagonals import new_diagonals
from readmap.mapping.divergence import MIN_BASES_PER_DIFFERENCE
from readmap.mapping.extension import score_windows
from readmap.mapping.parameters import DIVERGENT_DIFFERENCES, dense_seed_bases
from readmap.mapping.windows import choose_windows, replace_windows

#: More differences than any read has: only the likelihood of alternative placements decides.
ANY_DIFFERENCES = 1 << 14

_FIND, _RESOLVE, _CONFIRM = (
    Kernel("mapping/partition_seeds", name) for name in ("find_partition_seeds", "resolve_reads", "confirm_reads")
)
_LIST_DIAGONALS = Kernel("mapping/partition_seeds", "list_seed_diagonals")
_TILE, _LOOKUPS_PER_READ = (constant("mapping/partition_seeds.cuh", name) for name in ("TILE", "LOOKUPS_PER_READ"))
_UNIQUE, _FEW = (constant("mapping/partition_seeds.cu", name) for name in ("UNIQUE_PLACEMENT", "FEW_PLACEMENTS"))


def resolve_reads(batch: Batch, context: Context) -> None:
    """Look up the partition seeds of all reads, and store windows and placements of the reads that they resolve.

    Any other placement of a resolved read is 60 phred less likely and changes no MAPQ, for any sample. The other
    reads are marked in placements.unresolved. The look-ups remain in batch.partition_seeds.
    """
    backend, table = context.backend, _look_up_seeds(batch, context)
    divergent_deficit = DIVERGENT_DIFFERENCES * (context.scoring.match + context.scoring.mismatch)
    shared = {"divergent_deficit": divergent_deficit, "bases_per_difference": MIN_BASES_PER_DIFFERENCE}
    resolutions = backend.empty(batch.reads.count, np.uint8)
    batch.launch(_RESOLVE, batch.reads.count, context, table=table, resolutions=resolutions, **shared)
    few = batch.device_counters.select_flagged("few placements", resolutions, _FEW)
    if few.count:
        diagonals = new_diagonals(len(few.indices), backend)
        batch.launch(_LIST_DIAGONALS, few.count, context, table=table, selected=few.indices, found=diagonals)
        replace_windows(few, diagonals, batch, context)
    slots = batch.device_counters.select_flagged("placed by partition seeds", resolutions, _UNIQUE | _FEW)
    if slots.count:
        score_windows(slots, batch, context, long_gaps=True)
    if few.count:
        choose_windows(few, batch, context, ANY_DIFFERENCES)
        batch.launch(_CONFIRM, few.count, context, table=table, selected=few.indices, **shared)
    batch.partition_seeds = table
    backend.copy_into(batch.placements.unresolved_before_search, batch.placements.unresolved)
    batch.work.resolved = batch.reads.count  # minus the total "unresolved", once the device counters are read
    add_flagged_count(
        batch.placements.unresolved_before_search, ANY_FLAG, batch.device_counters.total("unresolved"), backend
    )


def _look_up_seeds(batch: Batch, context: Context) -> PartitionSeedTable:
    """Return the location and the number of occurrences of each partition seed of each read, on both strands."""
    backend, reads = context.backend, batch.reads.count
    lookups = -(-reads // _TILE) * _TILE * _LOOKUPS_PER_READ
    locations, counts = backend.empty(lookups, context.index.suffixes.dtype), backend.empty(lookups, np.uint8)
    table = PartitionSeedTable(
        locations=locations, counts=counts, min_bases=dense_seed_bases(context.index.suffix_count)
    )
    batch.launch(_FIND, lookups, context, table=table, reads=reads)
    return table
