"""Crowd -> Windows -> Lines: all other places of a read's parts, whatever their number, as lines of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search.extension import score_rows
from readmap.search.matches import Crowd
from readmap.search.parameters import WINDOWS, Reporting, Scoring
from readmap.search.placement import Placements
from readmap.search.record_plan import PLACE_ROW, Lines, add_places
from readmap.search.windows import Windows

_CHOOSE = Kernel("search/secondaries", "choose_heads")
_COUNT_WINDOWS = Kernel("search/secondaries", "count_windows")
_LIST_WINDOWS = Kernel("search/secondaries", "list_windows")
_COUNT_PLACES, _LIST_PLACES = Kernel("search/secondaries", "count_places"), Kernel("search/secondaries", "list_places")

OPEN = -1  # of kernels/search/secondaries.cu


@dataclass(frozen=True)
class Found:
    """Windows of all reads, ordered by slot, orientation and place.

    Attributes:
        rows: int64 [found, 5], as those of Windows.
        slots: int32 [found].
    """

    rows: Array
    slots: Array


def tell_places(
    crowd: Crowd,
    lines: Lines,
    placements: Placements,
    windows: Windows,
    queries: Queries,
    reporting: Reporting,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> tuple[Lines, Windows]:
    """The lines with those of other places, the best ones of each part; and the windows with those of these places.

    lines: of the reads' parts, as they proved.
    """
    found = _find_windows(crowd, lines, windows, queries, index, scoring, backend)
    kept = len(windows.rows)
    rows = backend.empty((kept + len(found.rows), 5), np.int64)
    rows[:kept], rows[kept:] = windows.rows, found.rows
    windows = replace(windows, rows=rows)
    places = _best(_list_places(found, lines, windows, queries, scoring, backend), reporting.most_places)
    return add_places(lines, places, placements, windows, queries, reporting, scoring, backend), windows


def _find_windows(
    crowd: Crowd,
    lines: Lines,
    windows: Windows,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> Found:
    """The windows that a read's diagonals make, but for those beside its parts', with their scores."""
    count = len(crowd.slots)
    arguments = (crowd.rows, crowd.slots, queries.lengths, *index.reference, count)
    heads = _heads(arguments, count, scoring, backend)
    told = backend.empty(count, np.int64)
    parts = (queries.order, *lines.arguments, windows.rows)
    settings = (scoring.min_score, *scoring.arguments())
    backend.launch(_COUNT_WINDOWS, count, *arguments, heads, *parts, told, *settings)
    ends, total = backend.ends(told)
    found = Found(backend.empty((total, 5), np.int64), backend.empty(total, np.int32))
    bands = backend.empty(total, np.uint8)
    backend.launch(_LIST_WINDOWS, count, *arguments, ends, found.rows, found.slots, bands, *scoring.arguments())
    score_rows(found.rows, found.slots, bands, queries, index, scoring, backend)
    return found


def _heads(arguments: tuple[Any, ...], count: int, scoring: Scoring, backend: Backend) -> Array:
    """The diagonal that each diagonal belongs to, its own number for a window's best one, int64."""
    heads, following = backend.full(count, OPEN, np.int64), backend.empty(count, np.int64)
    left = count
    while left:
        still_open = backend.full(1, 0, np.uint64)
        backend.launch(_CHOOSE, count, *arguments, heads, following, still_open, *scoring.arguments())
        heads, following = following, heads
        left = int(backend.to_host(still_open)[0])
    return heads


def _list_places(
    found: Found, lines: Lines, windows: Windows, queries: Queries, scoring: Scoring, backend: Backend
) -> Any:
    """All windows that are other places of parts, PLACE_ROW [places] on the host, in any order."""
    count = len(windows.rows)
    arguments = (
        queries.lengths,
        queries.order,
        *lines.arguments,
        windows.rows,
        windows.counts,
        found.slots,
        count - len(found.rows),
        len(found.rows),
        WINDOWS,
    )
    told = backend.empty(count, np.int64)
    backend.launch(_COUNT_PLACES, count, *arguments, told, scoring.min_score)
    ends, total = backend.ends(told)
    places = backend.empty((total, 5), np.int64)
    backend.launch(_LIST_PLACES, count, *arguments, queries.hashes, ends, places)
    return backend.to_host(places).view(PLACE_ROW).reshape(-1)


def _best(places: Any, most: int) -> Any:
    """The best `most` places of each part."""
    order = np.lexsort((places["orientation"], places["tie"], -places["score"], places["owner"]))
    owners = places["owner"][order]
    ranks = np.arange(len(order)) - np.searchsorted(owners, owners)
    return places[order[ranks < most]]
