"""Placements -> Matches -> Crowd: all that shares a seed with a read, as diagonals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search.batch import Searched
from readmap.search.diagonals import DIAGONAL
from readmap.search.parameters import Scoring, dense_seed
from readmap.search.placement import Placements

_FIND = Kernel("search/matches", "find_matches")
_COUNT, _LIST = Kernel("search/matches", "count_diagonals"), Kernel("search/matches", "list_diagonals")

#: Bases between seeds: whatever shares a base more than a seed is found.
STRIDE = 2

#: Memory that a match may take: a count and its sum, while diagonals are listed.
MATCH_BYTES = 16


@dataclass(frozen=True)
class Matches:
    """All suffixes that begin with a seed, by read, orientation and seed.

    Attributes:
        selected: int32 [selected], the slots of the reads that have a place.
        offsets: int64 [selected + 1], where each read's seeds begin.
        ranks: suffix type [seeds], the first suffix that begins with a seed.
        ends: int64 [seeds], matches up to and with each seed's.
        total: matches in all.
        seed_bases: of every seed.
    """

    selected: Array
    offsets: Array
    ranks: Array
    ends: Array
    total: int
    seed_bases: int


@dataclass(frozen=True)
class Crowd:
    """All diagonals that matches tell, ordered by slot, orientation and place.

    Attributes:
        rows: int64 [diagonals, 4]; on the host `rows.view(DIAGONAL)` names the fields.
        slots: int32 [diagonals].
    """

    rows: Array
    slots: Array


def find_matches(queries: Queries, placements: Placements, index: DeviceIndex, backend: Backend) -> Matches:
    """Those of the reads that have a place."""
    seed_bases, lengths = dense_seed(index.suffix_count), queries.host_lengths
    chosen = np.flatnonzero((backend.to_host(placements.chosen) >= 0) & (lengths >= seed_bases))
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(2 * ((lengths[chosen] - seed_bases) // STRIDE + 1), dtype=np.int64, out=offsets[1:])
    selected, device_offsets = backend.to_device(chosen.astype(np.int32)), backend.to_device(offsets)
    ranks = backend.empty(int(offsets[-1]), index.suffixes.dtype)
    counts = backend.empty(len(ranks), np.int64)
    backend.launch(
        _FIND,
        2 * len(chosen),
        *queries.arguments,
        selected,
        device_offsets,
        *index.reference,
        index.suffixes,
        index.prefix_table,
        ranks,
        counts,
        index.suffix_count,
        index.table_bases,
        seed_bases,
        STRIDE,
    )
    return Matches(selected, device_offsets, ranks, *backend.ends(counts), seed_bases)


def with_matches(searched: Searched, index: DeviceIndex, backend: Backend) -> Iterator[tuple[Searched, Matches]]:
    """The batch with its matches, in parts of which those fit into memory; a read, or a pair, is not divided."""
    matches = find_matches(searched.queries, searched.placements, index, backend)
    most = backend.scratch_bytes // MATCH_BYTES
    if matches.total <= most:
        yield searched, matches
        return
    together = 2 if searched.reads.paired else 1
    ends = np.cumsum(_by_record(matches, searched.queries, backend).reshape(-1, together).sum(axis=1))
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, "right")), first + 1)
        part = searched.part(first * together, last * together, backend)
        yield part, find_matches(part.queries, part.placements, index, backend)
        first = last


def _by_record(matches: Matches, queries: Queries, backend: Backend) -> Any:
    """Matches of each record, int64 on the host."""
    ends, offsets = backend.to_host(matches.ends), backend.to_host(matches.offsets)
    by_slot = np.zeros(len(queries.host_lengths), np.int64)
    by_slot[backend.to_host(matches.selected)] = np.diff(ends[offsets[1:] - 1], prepend=0)
    return by_slot[backend.to_host(queries.slot_of)]


def list_diagonals(matches: Matches, queries: Queries, index: DeviceIndex, scoring: Scoring, backend: Backend) -> Crowd:
    """The diagonals that matches tell."""
    most = backend.scratch_bytes // MATCH_BYTES
    pieces = [
        _piece(matches, first, min(most, matches.total - first), queries, index, scoring, backend)
        for first in range(0, matches.total, most)
    ]
    if not pieces:
        return Crowd(backend.empty((0, 4), np.int64), backend.empty(0, np.int32))
    rows, slots = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    fields = rows.view(DIAGONAL).reshape(-1)
    # They come by slot and orientation.
    order = np.lexsort((fields["diagonal"], 2 * slots.astype(np.int64) + fields["orientation"]))
    return Crowd(backend.to_device(rows[order]), backend.to_device(slots[order]))


def _piece(
    matches: Matches, first: int, count: int, queries: Queries, index: DeviceIndex, scoring: Scoring, backend: Backend
) -> tuple[Any, Any]:
    """Rows and slots of the diagonals that the matches [first, first + count) tell, on the host."""
    arguments = (
        *queries.arguments,
        queries.hashes,
        matches.selected,
        matches.offsets,
        *index.reference,
        index.suffixes,
        matches.ranks,
        matches.ends,
        len(matches.selected),
        first,
        matches.seed_bases,
        STRIDE,
    )
    settings = (scoring.min_score, *scoring.arguments())
    told = backend.empty(count, np.int64)
    backend.launch(_COUNT, count, *arguments, told, *settings)
    ends, total = backend.ends(told)
    rows, slots = backend.empty((total, 4), np.int64), backend.empty(total, np.int32)
    backend.launch(_LIST, count, *arguments, ends, rows, slots, *settings)
    return backend.to_host(rows), backend.to_host(slots)
