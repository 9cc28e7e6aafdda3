"""Seeds -> Windows: the places where each read may belong, the best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.index import DeviceIndex
from readmap.search.parameters import WINDOWS, Effort, Scoring
from readmap.search.queries import Queries
from readmap.search.seeds import Seeds

_FIND = Kernel("windows", "find_windows", grouped=True)

#: struct Window of kernels/windows.cuh, five 64-bit words.
WINDOW = np.dtype(
    [
        ("diagonal", np.int64),
        ("score", np.int32),
        ("ungapped", np.int32),
        ("begin", np.int32),
        ("end", np.int32),
        ("low", np.int32),
        ("high", np.int32),
        ("orientation", np.int32),
        ("band", np.int32),
    ]
)


@dataclass(frozen=True)
class Windows:
    """WINDOWS rows a slot, of which the first `counts` are windows.

    Attributes:
        rows: int64 [reads * WINDOWS, 5]; on the host `rows.view(WINDOW)` names the fields.
        counts: int32 [reads].
        cut: uint8 [reads], 1 where the walk ended at a limit and may have missed a place.
    """

    rows: Array
    counts: Array
    cut: Array


def no_windows(reads: int, backend: Backend) -> Windows:
    """Room for the windows of all slots, none found yet."""
    return Windows(
        backend.empty((reads * WINDOWS, 5), np.int64),
        backend.full(reads, 0, np.int32),
        backend.full(reads, 0, np.uint8),
    )


def find_windows(
    windows: Windows,
    queries: Queries,
    selected: Array,
    seeds: Seeds,
    index: DeviceIndex,
    effort: Effort,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Replace the windows of the slots `selected` by those that their seeds lead to."""
    arguments: tuple[Any, ...] = (
        *queries.arguments,
        queries.hashes,
        selected,
        seeds.offsets,
        seeds.ranks,
        seeds.before,
        seeds.after,
        *index.reference,
        index.suffixes,
        windows.rows,
        windows.counts,
        windows.cut,
        index.suffix_count,
        seeds.stride,
        effort.shortest_seed,
        effort.neighbours,
        WINDOWS,
        *scoring.arguments(),
    )
    backend.launch(_FIND, len(selected), *arguments)
