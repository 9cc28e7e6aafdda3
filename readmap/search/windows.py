"""Diagonals -> Windows: the places where each read may belong, the best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search.diagonals import Diagonals
from readmap.search.parameters import FOUND_WINDOWS, WINDOWS, Scoring

_JOIN, _ADD = Kernel("search/windows", "join_diagonals"), Kernel("search/windows", "add_diagonals")

#: struct Window of kernels/search/windows.cuh, five 64-bit words.
WINDOW = np.dtype(
    [
        ("diagonal", np.int64),
        ("score", np.int32),
        ("ungapped", np.int32),
        ("begin", np.int32),
        ("end", np.int32),
        ("low", np.int32),
        ("high", np.int32),
        ("orientation", np.int16),
        ("band", np.int16),
        ("cover_begin", np.int16),
        ("cover_end", np.int16),
    ]
)


@dataclass(frozen=True)
class Windows:
    """WINDOWS rows a slot, of which the first `counts` are windows.

    Attributes:
        rows: int64 [reads * WINDOWS, 5]; on the host `rows.view(WINDOW)` names the fields.
        counts: int32 [reads].
        missed: int32 [reads], the most bases that a place shares at a seed and was not looked at, 0 where all were.
    """

    rows: Array
    counts: Array
    missed: Array


def no_windows(reads: int, backend: Backend) -> Windows:
    """Room for the windows of all slots, none found yet."""
    return Windows(
        backend.empty((reads * WINDOWS, 5), np.int64),
        backend.full(reads, 0, np.int32),
        backend.full(reads, 0, np.int32),
    )


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
        diagonals.missed,
        *index.reference,
        windows.rows,
        windows.counts,
        windows.missed,
        WINDOWS,
        FOUND_WINDOWS,
        *scoring.arguments(),
    )


def add_diagonals(
    windows: Windows,
    diagonals: Diagonals,
    queries: Queries,
    selected: Array,
    most: int,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    """Put the windows that further diagonals of the slots `selected` make behind those that they have, up to `most`."""
    backend.launch(
        _ADD,
        len(selected),
        queries.lengths,
        selected,
        diagonals.rows,
        diagonals.counts,
        *index.reference,
        windows.rows,
        windows.counts,
        WINDOWS,
        most,
        *scoring.arguments(),
    )
