"""Seeds -> Diagonals: where the reference resembles each read without gaps, the best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search.parameters import Effort, Scoring
from readmap.search.seeds import Seeds

KEPT = 32  # of kernels/search/diagonals.cuh

_FIND = Kernel("search/diagonals", "find_diagonals", grouped=True)

#: struct Diagonal of kernels/search/diagonals.cuh, four 64-bit words.
DIAGONAL = np.dtype(
    [
        ("diagonal", np.int64),
        ("tie", np.uint64),
        ("score", np.int32),
        ("begin", np.int32),
        ("end", np.int32),
        ("orientation", np.int32),
    ]
)


@dataclass(frozen=True)
class Diagonals:
    """KEPT rows a selected read, of which the first `counts` are diagonals.

    Attributes:
        rows: int64 [selected * KEPT, 4]; on the host `rows.view(DIAGONAL)` names the fields.
        counts: int32 [selected].
        missed: int32 [selected], the most bases that a place shares at a seed and was not looked at, 0 where all were.
    """

    rows: Array
    counts: Array
    missed: Array


def find_diagonals(
    queries: Queries,
    selected: Array,
    seeds: Seeds,
    parts: tuple[Array, Array],
    index: DeviceIndex,
    effort: Effort,
    scoring: Scoring,
    backend: Backend,
) -> Diagonals:
    """The best diagonals of the slots `selected`, int32, that their seeds lead to.

    parts: int32 [reads] twice, begins and ends by slot in orientation 0: seeds are taken from that part of a read.
    """
    count = len(selected)
    diagonals = Diagonals(
        backend.empty((count * KEPT, 4), np.int64), backend.empty(count, np.int32), backend.empty(count, np.int32)
    )
    backend.launch(
        _FIND,
        count,
        *queries.arguments,
        queries.hashes,
        selected,
        seeds.offsets,
        seeds.ranks,
        seeds.before,
        seeds.after,
        *parts,
        *index.reference,
        index.suffixes,
        diagonals.rows,
        diagonals.counts,
        diagonals.missed,
        index.suffix_count,
        seeds.stride,
        effort.shortest_seed,
        effort.neighbours,
        *scoring.arguments(),
    )
    return diagonals
