"""Diagonals -> Windows: the places where each read may belong, the best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.search.diagonals import Diagonals
from readmap.search.parameters import WINDOWS, Scoring
from readmap.search.queries import Queries

_JOIN = Kernel("windows", "join_diagonals")

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
    """

    rows: Array
    counts: Array


def no_windows(reads: int, backend: Backend) -> Windows:
    """Room for the windows of all slots, none found yet."""
    return Windows(backend.empty((reads * WINDOWS, 5), np.int64), backend.full(reads, 0, np.int32))


def join_diagonals(
    windows: Windows,
    diagonals: Diagonals,
    queries: Queries,
    selected: Array,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Replace the windows of the slots `selected` by those that their diagonals make."""
    backend.launch(
        _JOIN,
        len(selected),
        queries.lengths,
        selected,
        diagonals.rows,
        diagonals.counts,
        *index.reference,
        windows.rows,
        windows.counts,
        WINDOWS,
        *scoring.arguments(),
    )
