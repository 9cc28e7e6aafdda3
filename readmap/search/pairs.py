"""Windows of two mates -> the places that suit both.

Record 2p and record 2p + 1 are mates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.parsing import Reads
from readmap.reads.queries import Queries
from readmap.search.diagonals import KEPT, Diagonals
from readmap.search.extension import score_windows
from readmap.search.inserts import Inserts
from readmap.search.parameters import WINDOWS, Scoring
from readmap.search.placement import Placements, place_reads
from readmap.search.windows import Windows, add_diagonals

_MEASURE, _LIST = Kernel("search/pairs", "measure_inserts"), Kernel("search/pairs", "list_rescues")
_RESCUE, _PAIR = Kernel("search/pairs", "rescue_mates", grouped=True), Kernel("search/pairs", "pair_mates")

#: Phred of a point, as of a mismatch among four letters: 10 log10(4).
PHRED_OF_POINT = 6


def unpaired_cost(scoring: Scoring) -> int:
    """Phred by which places that make no fragment have to explain the reads better than places that do."""
    return scoring.unpaired_penalty * PHRED_OF_POINT // scoring.match


def measure_inserts(
    windows: Windows, placements: Placements, queries: Queries, index: DeviceIndex, backend: Backend
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Direction and size of every pair of which both mates are placed for sure, in the order of the input.

    uint8 and int32 [pairs]; the direction is 4 where they are not.
    """
    pairs = len(queries.host_lengths) // 2
    directions, sizes = backend.empty(pairs, np.uint8), backend.empty(pairs, np.int32)
    backend.launch(
        _MEASURE,
        pairs,
        *queries.arguments,
        queries.slot_of,
        *index.reference,
        windows.rows,
        windows.counts,
        placements.chosen,
        placements.mapqs,
        placements.losses,
        directions,
        sizes,
        WINDOWS,
    )
    return backend.to_host(directions), backend.to_host(sizes)


def rescue_mates(
    windows: Windows,
    placements: Placements,
    inserts: Inserts,
    reads: Reads,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Look for mates where their partners expect them, and place those anew that may be there."""
    pairs = reads.count // 2
    wanted, losses = backend.full(reads.count, 0, np.uint8), backend.empty(pairs, np.int32)
    arguments = _arguments(inserts, queries, index)
    states = (windows.rows, windows.counts, placements.chosen, placements.losses)
    costs = (unpaired_cost(scoring), scoring.joint_score, *scoring.arguments())
    backend.launch(_LIST, pairs, *arguments, *states, wanted, losses, WINDOWS, *costs)
    selected = backend.to_device(np.flatnonzero(backend.to_host(wanted)).astype(np.int32))
    count = len(selected)
    if not count:
        return
    diagonals = Diagonals(
        backend.empty((count * KEPT, 4), np.int64), backend.empty(count, np.int32), backend.empty(0, np.int32)
    )
    backend.launch(
        _RESCUE,
        count,
        *arguments,
        selected,
        queries.order,
        *states,
        losses,
        diagonals.rows,
        diagonals.counts,
        WINDOWS,
        *scoring.arguments(),
    )
    add_diagonals(windows, diagonals, queries, selected, WINDOWS, index, scoring, backend)
    score_windows(windows, queries, selected, index, scoring, backend)
    place_reads(placements, windows, reads, queries, selected, index, scoring, backend)


def pair_mates(
    placements: Placements,
    windows: Windows,
    inserts: Inserts,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Choose the windows of mates together."""
    backend.launch(
        _PAIR,
        len(queries.host_lengths) // 2,
        *_arguments(inserts, queries, index),
        windows.rows,
        windows.counts,
        windows.missed,
        placements.variants,
        placements.chosen,
        placements.losses,
        placements.seconds,
        placements.mapqs,
        placements.joint,
        WINDOWS,
        unpaired_cost(scoring),
        scoring.joint_score,
        *scoring.arguments(),
    )


def _arguments(inserts: Inserts, queries: Queries, index: DeviceIndex) -> tuple[Array | Any, ...]:
    """What kernels take as MATE_ARGUMENTS."""
    return (*queries.arguments, queries.slot_of, *index.reference, queries.hashes, *inserts.arguments)
