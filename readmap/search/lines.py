"""Placements -> Lines: what is told of each read: its place, the other parts of a split read, other places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.search.parameters import WINDOWS, Reporting, Scoring
from readmap.search.placement import Placements
from readmap.search.queries import Queries
from readmap.search.windows import Windows

_COUNT, _LIST = Kernel("lines", "count_lines"), Kernel("lines", "list_lines")

#: The roles of kernels/lines.cuh, by number.
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
        bands: uint8 [lines], the kind of band of an alignment with gaps, else 0.
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
    rooms: Array
    count: int

    @property
    def arguments(self) -> tuple[Array, ...]:
        """What kernels take as LINE_ARGUMENTS."""
        return self.offsets, self.slots, self.windows, self.roles, self.owners


def select_lines(
    placements: Placements, windows: Windows, queries: Queries, reporting: Reporting, scoring: Scoring, backend: Backend
) -> Lines:
    """The lines of all reads."""
    reads = len(queries.host_lengths)
    arguments = (
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
    )
    settings = (
        WINDOWS,
        reporting.most_places,
        reporting.most_mentions,
        reporting.mention_share,
        scoring.min_score,
        int(reporting.leftmost_primary),
        *scoring.arguments(),
    )
    counts = backend.empty(reads, np.int64)
    backend.launch(_COUNT, reads, *arguments, counts, *settings)
    ends, total = backend.ends(counts)
    offsets = backend.full(reads + 1, 0, np.int64)
    offsets[1:] = ends
    lines = Lines(
        offsets,
        backend.empty(total, np.int32),
        backend.empty(total, np.int64),
        backend.empty(total, np.uint8),
        backend.empty(total, np.int32),
        backend.empty(total, np.uint8),
        backend.empty(total, np.int32),
        backend.empty(total, np.uint8),
        backend.empty(total, np.int64),
        total,
    )
    results = (*lines.arguments[1:], lines.mapqs, lines.seconds, lines.bands, lines.rooms)
    backend.launch(_LIST, reads, *arguments, offsets, *results, *settings)
    return lines
