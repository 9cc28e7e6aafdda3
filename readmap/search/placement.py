"""Windows -> Placements: which window a read belongs to, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.parsing import Reads
from readmap.reads.queries import Queries
from readmap.search.parameters import CLEAN_BASES, DISTANT, SETTLED_DIFFERENCES, WINDOWS, Scoring
from readmap.search.windows import Windows

_PLACE = Kernel("search/placement", "place_reads")


@dataclass(frozen=True)
class Placements:
    """The choice of every slot.

    Attributes:
        chosen: int32 [reads], the rank of the chosen window, -1 for none.
        seconds: int32 [reads], the score of the best place beside it, 0 for none.
        mapqs: uint8 [reads], phred of the probability that the read belongs elsewhere, 0 to 60.
        losses: int16 [reads * WINDOWS], by window: phred by which the chosen one explains the read better.
        variants: uint8 [reads], phred of a difference of the sample from the reference, as the read shows it.
        unsettled: uint8 [reads], CROWDED where places may have been missed, DISTANT where the best one found loses more
            than SETTLED_DIFFERENCES mismatches, SPLIT where it leaves a part of the read over that may have a place of
            its own; 0 where no other search would tell more.
        joint: uint8 [reads], 1 where the place and that of the mate make a fragment.
        part_begins, part_ends: int32 [reads], that part in orientation 0, or all of the read.
        clean_bases: in which one difference of the sample from the reference is expected.
    """

    chosen: Array
    seconds: Array
    mapqs: Array
    losses: Array
    variants: Array
    unsettled: Array
    joint: Array
    part_begins: Array
    part_ends: Array
    clean_bases: int


def no_placements(reads: int, backend: Backend) -> Placements:
    """Every slot without a place, and unsettled; nothing is known of the sample."""
    return Placements(
        backend.full(reads, -1, np.int32),
        backend.full(reads, 0, np.int32),
        backend.full(reads, 0, np.uint8),
        backend.empty(reads * WINDOWS, np.int16),
        backend.full(reads, 0, np.uint8),
        backend.full(reads, DISTANT, np.uint8),
        backend.full(reads, 0, np.uint8),
        backend.empty(reads, np.int32),
        backend.empty(reads, np.int32),
        CLEAN_BASES,
    )


def place_reads(
    placements: Placements,
    windows: Windows,
    reads: Reads,
    queries: Queries,
    selected: Array,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Choose among the windows of the slots `selected`, int32."""
    backend.launch(
        _PLACE,
        len(selected),
        reads.bytes,
        queries.order,
        reads.quality_starts,
        *queries.arguments,
        queries.hashes,
        selected,
        *index.reference,
        windows.rows,
        windows.counts,
        windows.missed,
        placements.chosen,
        placements.seconds,
        placements.mapqs,
        placements.losses,
        placements.variants,
        placements.unsettled,
        placements.part_begins,
        placements.part_ends,
        WINDOWS,
        SETTLED_DIFFERENCES * (scoring.match + scoring.mismatch),
        scoring.min_score,
        placements.clean_bases,
        *scoring.arguments(),
    )
