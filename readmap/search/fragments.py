"""Windows of two mates in repeats -> further ones: all their places are joined to the fragments that they make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.marks import list_marked
from readmap.backend.sizes import Listed
from readmap.backend.sorting import sort_pairs
from readmap.search.batch import WINDOWS, Batch
from readmap.search.context import Context
from readmap.search.diagonals import Diagonals
from readmap.search.extension import score_windows
from readmap.search.inserts import Inserts
from readmap.search.matches import SeedMatches, by_read, find_matches
from readmap.search.placement import choose_windows
from readmap.search.windows import add_diagonals

_DOUBTFUL, _MATES = Kernel("search/fragments", "find_doubtful"), Kernel("search/fragments", "list_mates")
_JOIN = Kernel("search/fragments", "join_places", grouped=True)
_COUNT, _LIST = Kernel("search/fragments", "count_places"), Kernel("search/fragments", "list_places")

_END_BITS = constant("search/fragments.cu", "END_BITS")

#: Bases between seeds: a place with few differences has a seed without one.
STRIDE = 8

#: Of a read; those with more lie in repeats of which no fragment could be told from the others, and are not joined.
MOST_MATCHES = 1 << 14

#: Memory that a match may take: a count, its sum, and two keys with what is lost.
MATCH_BYTES = 40

#: Of a pair whose places are not joined.
APART = -1


@dataclass(frozen=True)
class Places:
    """Where reads lie, in the order of their keys.

    Attributes:
        keys: uint64 [places], a read, its strand and its fragment's end; see kernels/search/fragments.cu.
        losses: uint32 [places], phred by which its best place explains the read better.
        place_count: how many there are.
    """

    keys: Array
    losses: Array
    place_count: int


def join_mates(inserts: Inserts, batch: Batch, context: Context) -> Array:
    """Give windows to the best fragments of mates that both have more places than windows.

    Returns int32 [pairs]: phred of all fragments that got none, APART where places are not joined.
    """
    backend, count = context.backend, batch.reads.count // 2
    rests, doubtful = backend.full(count, APART, np.int32), backend.empty(count, np.uint8)
    batch.launch(_DOUBTFUL, count, context, inserts=inserts, doubtful=doubtful)
    pairs = list_marked(doubtful, 1, backend)
    if not len(pairs):
        return rests
    slots = backend.empty(2 * len(pairs), np.int32)
    batch.launch(_MATES, len(slots), context, pairs=pairs, slots=slots)
    for first, last, matches in _parts(slots, batch, context):
        _join(pairs[first:last], matches, rests, inserts, batch, context)
    return rests


def _parts(slots: Array, batch: Batch, context: Context) -> Iterator[tuple[int, int, SeedMatches]]:
    """The first and last of pairs whose matches fit into memory together, and these.

    slots: of both mates, int32 [2 * pairs].
    """
    matches = find_matches(slots, STRIDE, batch, context, MOST_MATCHES)
    most, pairs = max(context.backend.scratch_bytes // MATCH_BYTES, 2 * MOST_MATCHES), len(slots) // 2
    if matches.total <= most:
        yield 0, pairs, matches
        return
    ends, first = np.cumsum(by_read(matches, context).reshape(-1, 2).sum(axis=1)), 0
    while first < pairs:
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + most, "right"))
        yield first, last, find_matches(slots[2 * first : 2 * last], STRIDE, batch, context, MOST_MATCHES)
        first = last


def _join(
    pairs: Array,
    matches: SeedMatches,
    rests: Array,
    inserts: Inserts,
    batch: Batch,
    context: Context,
) -> None:
    """Join the places of pairs that matches of their mates name."""
    backend, held = context.backend, Listed.of(matches.selected)
    places = _list_places(matches, batch, context)
    found = Diagonals.empty(matches.read_count, backend)
    batch.launch(
        _JOIN,
        len(pairs),
        context,
        inserts=inserts,
        places=places,
        pairs=pairs,
        found=found,
        rests=rests,
    )
    add_diagonals(held, found, WINDOWS, batch, context)
    score_windows(held, batch, context)
    choose_windows(held, batch, context)


def _list_places(matches: SeedMatches, batch: Batch, context: Context) -> Places:
    """Those that lose little."""
    backend = context.backend
    counts = backend.empty(matches.total, np.int64)
    batch.launch(_COUNT, matches.total, context, matches=matches, counts=counts)
    ends, total = backend.ends(counts)
    keys, other_keys = (backend.empty(total, np.uint64) for _ in range(2))
    losses, other_losses = (backend.empty(total, np.uint32) for _ in range(2))
    batch.launch(_LIST, matches.total, context, matches=matches, ends=ends, keys=keys, losses=losses)
    bits = _END_BITS + 1 + matches.read_count.bit_length()
    return Places(*sort_pairs(keys, losses, other_keys, other_losses, bits, backend), total)
