"""Windows of two mates in repeats -> further ones: all their places are joined to the fragments that they make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.sizes import Listed, known, most_of
from readmap.backend.sorting import sort_pairs
from readmap.mapping.batch import WINDOWS, Batch
from readmap.mapping.context import Context
from readmap.mapping.diagonals import Diagonals
from readmap.mapping.extension import score_windows
from readmap.mapping.inserts import Inserts
from readmap.mapping.matches import SeedMatches, by_read, find_matches
from readmap.mapping.placement import choose_windows
from readmap.mapping.windows import add_diagonals

_DOUBTFUL, _MATES = Kernel("mapping/fragments", "find_doubtful"), Kernel("mapping/fragments", "list_mates")
_JOIN = Kernel("mapping/fragments", "join_places", grouped=True)
_COUNT, _LIST = Kernel("mapping/fragments", "count_places"), Kernel("mapping/fragments", "list_places")

_END_BITS = constant("mapping/fragments.cu", "END_BITS")

#: Bases between seeds: a place with few differences has a seed without one.
STRIDE = 8

#: Of a read; those with more lie in repeats of which no fragment could be told from the others, and are not joined.
MOST_MATCHES = 1 << 14

#: Memory that a match may take: a count, its sum, and two keys with what is lost.
MATCH_BYTES = 40

#: Of a pair whose places are not joined.
APART = -1

#: Behind those of all reads.
NO_KEY = 2**64 - 1


@dataclass(frozen=True)
class Places:
    """Where reads lie, in the order of their keys.

    Attributes:
        keys: uint64 [places], a read, its strand and its fragment's end; see kernels/search/fragments.cu. Where there
            is room for more, NO_KEY.
        losses: uint32 [places], phred by which its best place explains the read better.
        place_count: for how many there is room.
    """

    keys: Array
    losses: Array
    place_count: int


def join_mates(inserts: Inserts, batch: Batch, context: Context) -> Array:
    """Give windows to the best fragments of mates that both have more places than windows.

    Returns int32 [pairs]: phred of all fragments that got none, APART where places are not joined.
    """
    backend, count = context.backend, batch.reads.count // 2
    rests, doubtful = backend.full(count, APART, np.int32), backend.empty(2 * count, np.uint8)
    batch.launch(_DOUBTFUL, count, context, inserts=inserts, doubtful=doubtful)
    mates = batch.ledger.list_marked("joined", doubtful, 1)
    if most_of(mates.count):
        for part, matches in _parts(mates, batch, context):
            _join(part, matches, rests, inserts, batch, context)
    return rests


def _parts(mates: Listed, batch: Batch, context: Context) -> Iterator[tuple[Listed, SeedMatches]]:
    """The mates in parts whose matches fit into memory together, and these.

    mates: records, every second the mate of that before it.
    """
    backend = context.backend
    most = max(backend.scratch_bytes // MATCH_BYTES, 2 * MOST_MATCHES)
    matches = _matches(mates, most, batch, context)
    if most_of(matches.total) <= most:
        yield mates, matches
        return
    numbers, first = mates.numbers[: known(mates.count, backend)], 0
    ends = np.cumsum(by_read(matches, context)[: len(numbers)].reshape(-1, 2).sum(axis=1))
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + most, "right"))
        part = Listed.of(numbers[2 * first : 2 * last])
        yield part, _matches(part, most, batch, context)
        first = last


def _matches(mates: Listed, fitting: int, batch: Batch, context: Context) -> SeedMatches:
    """The matches of mates, for so many of which there is memory."""
    slots = context.backend.empty(len(mates.numbers), np.int32)
    batch.launch(_MATES, mates.count, context, mates=mates.numbers, slots=slots)
    return find_matches(replace(mates, numbers=slots), STRIDE, batch, context, fitting, MOST_MATCHES)


def _join(
    mates: Listed,
    matches: SeedMatches,
    rests: Array,
    inserts: Inserts,
    batch: Batch,
    context: Context,
) -> None:
    """Join the places of pairs that matches of their mates name."""
    slots, found = replace(mates, numbers=matches.selected), Diagonals.empty(matches.read_count, context.backend)
    places = _list_places(matches, slots, batch, context)
    given = {"inserts": inserts, "places": places, "mates": mates.numbers, "found": found, "rests": rests}
    batch.launch(_JOIN, mates.count, context, **given)
    add_diagonals(slots, found, WINDOWS, batch, context)
    score_windows(slots, batch, context)
    choose_windows(slots, batch, context)


def _list_places(matches: SeedMatches, slots: Listed, batch: Batch, context: Context) -> Places:
    """Those of the slots that lose little."""
    backend, most = context.backend, most_of(matches.total)
    counts = backend.full(most, 0, np.int64)
    batch.launch(_COUNT, matches.total, context, matches=matches, counts=counts)
    listed = Listed(counts, matches.total, f"{slots.key} matches")
    ends, count = batch.ledger.ends("places", counts, listed, most)
    total = most_of(count)
    keys, other_keys = backend.full(total, NO_KEY, np.uint64), backend.empty(total, np.uint64)
    losses, other_losses = (backend.empty(total, np.uint32) for _ in range(2))
    batch.launch(_LIST, matches.total, context, matches=matches, ends=ends, keys=keys, losses=losses)
    bits = _END_BITS + 1 + matches.read_count.bit_length()
    return Places(*sort_pairs(keys, losses, other_keys, other_losses, bits, backend), total)
