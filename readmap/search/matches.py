"""Placements -> SeedMatches -> Candidates: all that shares a seed with a read, as diagonals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Kernel
from readmap.reads.queries import Queries
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.diagonals import DIAGONAL, DIAGONAL_WORDS
from readmap.search.parameters import dense_seed
from readmap.search.seeds import seed_offsets

_FIND, _LIMIT = Kernel("search/matches", "find_matches"), Kernel("search/matches", "limit_matches")
_COUNT, _LIST = Kernel("search/matches", "count_diagonals"), Kernel("search/matches", "list_diagonals")

#: Bases between seeds where whatever shares a base more than a seed is to be found.
STRIDE = 2

#: Memory that a match may take: a count and its sum, while diagonals are listed.
MATCH_BYTES = 16


@dataclass(frozen=True)
class SeedMatches:
    """All suffixes that begin with a seed, by read, orientation and seed.

    Attributes:
        selected: int32 [selected], the slots of the reads.
        offsets: int64 [selected + 1], where each read's seeds begin.
        ranks: suffix type [seeds], the first suffix that begins with a seed.
        ends: int64 [seeds], matches up to and with each seed's.
        total: matches in all.
        read_count: how many reads there are.
        seed_bases: of every seed; stride: bases between them.
    """

    selected: Array
    offsets: Array
    ranks: Array
    ends: Array
    total: int
    read_count: int
    seed_bases: int
    stride: int


@dataclass(frozen=True)
class Candidates:
    """All diagonals that matches name, ordered by slot, orientation and place.

    Attributes:
        rows: int64 [diagonals, DIAGONAL_WORDS]; on the host `rows.view(DIAGONAL)` names the fields.
        slots: int32 [diagonals].
    """

    rows: Array
    slots: Array

    @property
    def diagonal_count(self) -> int:
        """How many there are."""
        return len(self.slots)


def placed_reads(batch: Batch, context: Context) -> Array:
    """The slots of the reads that have a place, int32."""
    backend = context.backend
    return backend.to_device(np.flatnonzero(backend.to_host(batch.placements.chosen) >= 0).astype(np.int32))


def find_matches(slots: Array, stride: int, batch: Batch, context: Context, most: int | None = None) -> SeedMatches:
    """Those of the slots, int32; a read that is shorter than a seed has none.

    stride: bases between seeds. most: slots 2p and 2p + 1 are mates, and where one has more than that, both get none.
    """
    backend, index = context.backend, context.index
    seed_bases = dense_seed(index.suffix_count)
    offsets, seeds = seed_offsets(slots, seed_bases, stride, batch, context)
    ranks, counts = backend.empty(seeds, index.suffixes.dtype), backend.empty(seeds, np.int64)
    shared = {"seed_offsets": offsets, "counts": counts}
    batch.launch(
        _FIND,
        2 * len(slots),
        context,
        selected=slots,
        ranks=ranks,
        seed_bases=seed_bases,
        stride=stride,
        **shared,
    )
    if most is not None:
        batch.launch(_LIMIT, len(slots) // 2, context, most=most, **shared)
    return SeedMatches(slots, offsets, ranks, *backend.ends(counts), len(slots), seed_bases, stride)


def parts_with_matches(batch: Batch, context: Context) -> Iterator[tuple[Batch, SeedMatches]]:
    """The batch with its matches, in parts of which those fit into memory; a read, or a pair, is not divided."""
    matches = find_matches(placed_reads(batch, context), STRIDE, batch, context)
    most = context.backend.scratch_bytes // MATCH_BYTES
    if matches.total <= most:
        yield batch, matches
        return
    together = 2 if batch.reads.paired else 1
    ends = np.cumsum(_by_record(matches, batch.queries, context).reshape(-1, together).sum(axis=1))
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, "right")), first + 1)
        part = batch.part(first * together, last * together, context)
        yield part, find_matches(placed_reads(part, context), STRIDE, part, context)
        first = last


def _by_record(matches: SeedMatches, queries: Queries, context: Context) -> Any:
    """Matches of each record, int64 on the host."""
    to_host = context.backend.to_host
    by_slot = np.zeros(queries.steps.count, np.int64)
    by_slot[to_host(matches.selected)] = by_read(matches, context)
    return by_slot[to_host(queries.slot_of)]


def by_read(matches: SeedMatches, context: Context) -> NDArray[np.int64]:
    """Matches of each of the reads, int64 [selected]."""
    ends, offsets = (context.backend.to_host(array) for array in (matches.ends, matches.offsets))
    counts: NDArray[np.int64] = np.diff(np.append(0, ends)[offsets])
    return counts


def list_candidates(matches: SeedMatches, batch: Batch, context: Context) -> Candidates:
    """The diagonals that matches name."""
    backend, total = context.backend, matches.total
    most = backend.scratch_bytes // MATCH_BYTES
    stretches = [
        _list_stretch(matches, first, min(most, total - first), batch, context) for first in range(0, total, most)
    ]
    if not stretches:
        return Candidates(backend.empty((0, DIAGONAL_WORDS), np.int64), backend.empty(0, np.int32))
    rows, slots = (np.concatenate(arrays) for arrays in zip(*stretches, strict=True))
    fields = rows.view(DIAGONAL).reshape(-1)
    # They come by slot and orientation.
    order = np.lexsort((fields["diagonal"], 2 * slots.astype(np.int64) + fields["orientation"]))
    return Candidates(backend.to_device(rows[order]), backend.to_device(slots[order]))


def _list_stretch(
    matches: SeedMatches, first: int, count: int, batch: Batch, context: Context
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows and slots of the diagonals that the matches [first, first + count) name, on the host."""
    backend = context.backend
    shared = {"matches": matches, "first_match": first}
    counts = backend.empty(count, np.int64)
    batch.launch(_COUNT, count, context, counts=counts, **shared)
    ends, total = backend.ends(counts)
    rows, slots = backend.empty((total, DIAGONAL_WORDS), np.int64), backend.empty(total, np.int32)
    batch.launch(_LIST, count, context, ends=ends, diagonals=rows, slots=slots, **shared)
    return backend.to_host(rows), backend.to_host(slots)
