"""Search unresolved reads in the insert-size window of their resolved mates (SeedHits, Windows -> Windows).

A read that its partition seeds could not place, for example inside a repeat, is aligned along every diagonal at which
it would form a proper pair with its mate. It is resolved here if every alternative placement of the pair is at least 60
phred less likely; otherwise the seed search handles it.
"""

from dataclasses import replace

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compaction import ANY_FLAG, add_flagged_count
from readmap.backend.compilation.declarations import constant
from readmap.mapping.batch import Batch, Context, Sample
from readmap.mapping.diagonals import new_diagonals
from readmap.mapping.divergence import MIN_BASES_PER_DIFFERENCE
from readmap.mapping.extension import score_windows
from readmap.mapping.inserts import insert_size_table
from readmap.mapping.windows import choose_windows, replace_windows

#: Above this number of diagonals a seed search is faster than trying all of them.
MAX_MATE_DIAGONALS = 1024

_LIST, _LOOK = Kernel("mapping/near_mates", "assign_roles"), Kernel("mapping/near_mates", "search_near_mates")
_CONFIRM = Kernel("mapping/near_mates", "confirm_near_mates")
_TARGET, _ANCHOR = constant("mapping/near_mates.cu", "TARGET"), constant("mapping/near_mates.cu", "ANCHOR")


def can_search_near_mates(batch: Batch, context: Context) -> bool:
    """Return True if the library's insert sizes are known and narrow enough, and pairing and rescue are enabled."""
    sizes, pairing = context.sample.insert_sizes, context.pairing
    tried = sum(size.high - size.low + 1 for size in sizes)
    is_known = batch.reads.paired and 0 < tried <= MAX_MATE_DIAGONALS
    return is_known and batch.partition_seeds is not None and pairing.joint and pairing.rescue


def resolve_near_mates(batch: Batch, context: Context, *, seeded: bool) -> None:
    """Place the reads that fit a proper pair with their resolved mate; leave the others to the seed search.

    seeded: the batch has been searched by seeds, so a read without a resolved mate is not searched again.
    """
    backend, table, sizes = context.backend, batch.partition_seeds, context.sample.insert_sizes
    context = replace(context, sample=Sample(MIN_BASES_PER_DIFFERENCE))  # the result must not depend on the sample
    inserts, roles = insert_size_table(sizes, backend), backend.empty(batch.reads.count, np.uint8)
    batch.launch(_LIST, batch.reads.count // 2, context, roles=roles, seeded=int(seeded))
    targets = batch.device_counters.select_flagged("near_mates", roles, _TARGET)
    anchors = batch.device_counters.select_flagged("anchors", roles, _ANCHOR, required_by=targets)
    if not targets.count:
        return
    choose_windows(anchors, batch, context)
    diagonals = new_diagonals(len(targets.indices), backend)
    selected = {"inserts": inserts, "selected": targets.indices}
    batch.launch(_LOOK, targets.count, context, **selected, found=diagonals)
    replace_windows(targets, diagonals, batch, context)
    score_windows(targets, batch, context)
    choose_windows(targets, batch, context)
    resolved = backend.full(len(targets.indices), 0, np.uint8)
    batch.launch(_CONFIRM, targets.count, context, **selected, table=table, resolved=resolved)
    add_flagged_count(resolved, ANY_FLAG, batch.device_counters.total("resolved_near_mates"), backend)
