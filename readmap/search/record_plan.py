"""Placements -> Lines: what is told of each read: its place, the other parts of a split read, other places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.reads.queries import Queries
from readmap.search.parameters import WINDOWS, Reporting, Scoring
from readmap.search.placement import Placements
from readmap.search.windows import Windows

_COUNT, _LIST = Kernel("search/record_plan", "count_lines"), Kernel("search/record_plan", "list_lines")
_ADD = Kernel("search/record_plan", "add_places")

#: struct Place of kernels/search/record_plan.cuh, five 64-bit words.
PLACE_ROW = np.dtype(
    [
        ("row", np.int64),
        ("diagonal", np.int64),
        ("tie", np.uint64),
        ("slot", np.int32),
        ("owner", np.int32),
        ("score", np.int32),
        ("orientation", np.int32),
    ]
)

#: The roles of kernels/search/record_plan.cuh, by number.
PRIMARY, PIECE, PLACE, MENTION, NOTHING = range(5)


@dataclass(frozen=True)
class Lines:
    """What is told of the reads, in the order of the input; the first line of a read is its primary one.

    Attributes:
        offsets: int64 [reads + 1], where each read's lines begin.
        slots: int32 [lines]; windows: int64 [lines], the row of the line's window, -1 where the read has no place.
        roles: uint8 [lines], PRIMARY to NOTHING.
        owners: int32 [lines], the line of the part of which this is another place; of parts, themselves.
        mapqs: uint8 [lines]; seconds: int32 [lines], the score of the best place beside it, 0 for none.
        bands: uint8 [lines], the kind of band of an alignment that is traced, else 0.
        least_scores: int32 [lines], what the alignment has to score, without bonuses.
        rooms: int64 [lines], the most operations that its CIGAR may have.
        count: lines in all.
    """

    offsets: Array
    slots: Array
    windows: Array
    roles: Array
    owners: Array
    mapqs: Array
    seconds: Array
    bands: Array
    least_scores: Array
    rooms: Array
    count: int

    @property
    def arguments(self) -> tuple[Array, ...]:
        """What kernels take as LINE_ARGUMENTS."""
        return self.offsets, self.slots, self.windows, self.roles, self.owners

    @property
    def results(self) -> tuple[Array, ...]:
        """What kernels that fill them take as LINE_RESULT_ARGUMENTS."""
        return (*self.arguments[1:], self.mapqs, self.seconds, self.bands, self.least_scores, self.rooms)


def select_lines(
    placements: Placements, windows: Windows, queries: Queries, reporting: Reporting, scoring: Scoring, backend: Backend
) -> Lines:
    """The lines of all reads, but for places."""
    reads = len(queries.host_lengths)
    counts = backend.empty(reads, np.int64)
    arguments, settings = _arguments(placements, windows, queries), _settings(reporting, scoring)
    backend.launch(_COUNT, reads, *arguments, counts, *settings)
    ends, total = backend.ends(counts)
    offsets = backend.full(reads + 1, 0, np.int64)
    offsets[1:] = ends
    lines = _no_lines(offsets, total, backend)
    backend.launch(_LIST, reads, *arguments, offsets, *lines.results, *settings)
    return lines


def traced_where_several(lines: Lines, backend: Backend) -> Lines:
    """The same lines, of which those of reads with but one are not traced."""
    counts = np.diff(backend.to_host(lines.offsets))
    bands = np.where(np.repeat(counts > 1, counts), backend.to_host(lines.bands), np.uint8(0))
    return replace(lines, bands=backend.to_device(bands))


def add_places(
    lines: Lines,
    places: Any,
    placements: Placements,
    windows: Windows,
    queries: Queries,
    reporting: Reporting,
    scoring: Scoring,
    backend: Backend,
) -> Lines:
    """The same lines and, behind those of each read, its places in their order: by orientation, then by diagonal.

    places: PLACE_ROW on the host, of which the owners are lines of `lines`.
    """
    reads, own = len(queries.host_lengths), backend.to_host(lines.offsets)
    records = backend.to_host(queries.order)[places["slot"]]
    order = np.lexsort((places["diagonal"], places["orientation"], records))
    places, records = places[order], records[order]
    before = np.zeros(reads + 1, np.int64)
    np.cumsum(np.bincount(records, minlength=reads), out=before[1:])
    offsets = backend.to_device(own + before)
    more = _no_lines(offsets, lines.count + len(places), backend)
    arguments, settings = _arguments(placements, windows, queries), _settings(reporting, scoring)
    backend.launch(_LIST, reads, *arguments, offsets, *more.results, *settings)
    places["owner"] += before[records].astype(np.int32)
    backend.launch(
        _ADD,
        len(places),
        queries.lengths,
        windows.rows,
        backend.to_device(places.view(np.int64).reshape(-1, 5)),
        backend.to_device(own[records + 1] + np.arange(len(places))),
        *more.results,
        scoring.min_score,
        *scoring.arguments(),
    )
    return more


def _no_lines(offsets: Array, count: int, backend: Backend) -> Lines:
    """Room for so many lines."""
    return Lines(
        offsets,
        backend.empty(count, np.int32),
        backend.empty(count, np.int64),
        backend.empty(count, np.uint8),
        backend.empty(count, np.int32),
        backend.empty(count, np.uint8),
        backend.empty(count, np.int32),
        backend.empty(count, np.uint8),
        backend.empty(count, np.int32),
        backend.empty(count, np.int64),
        count,
    )


def _arguments(placements: Placements, windows: Windows, queries: Queries) -> tuple[Array | int, ...]:
    """What kernels take as SELECTION_ARGUMENTS."""
    return (
        queries.slot_of,
        queries.lengths,
        queries.flags,
        queries.hashes,
        windows.rows,
        windows.counts,
        windows.missed,
        placements.chosen,
        placements.seconds,
        placements.mapqs,
        placements.joint,
        placements.clean_bases,
    )


def _settings(reporting: Reporting, scoring: Scoring) -> tuple[int, ...]:
    """What they take behind the arrays."""
    return (
        WINDOWS,
        0 if reporting.most_places else reporting.most_mentions,
        reporting.mention_share,
        scoring.min_score,
        scoring.joint_score,
        int(reporting.leftmost_primary),
        *scoring.arguments(),
    )
