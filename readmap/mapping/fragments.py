"""Join the placements of two mates that both lie in repeats into fragments (Windows -> more Windows).

A mate in a repeat has more placements than windows, so the pair that fits the library best may be in neither list. Here
all placements of both mates are listed and combined, and the best fragments become windows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList, capacity_of, count_on_host
from readmap.backend.radix_sort import sort_pairs
from readmap.backend.tables import Table
from readmap.mapping.batch import MAX_WINDOWS, Batch, Context
from readmap.mapping.diagonals import new_diagonals
from readmap.mapping.extension import score_windows
from readmap.mapping.inserts import InsertSizeTable
from readmap.mapping.matches import SeedMatches, find_matches, matches_per_read
from readmap.mapping.windows import add_windows, choose_windows

_MARK, _MATES = Kernel("mapping/fragments", "mark_repeat_pairs"), Kernel("mapping/fragments", "mates_to_slots")
_JOIN = Kernel("mapping/fragments", "join_fragments")
_COUNT, _LIST = Kernel("mapping/fragments", "count_placements"), Kernel("mapping/fragments", "list_placements")

_END_BITS = constant("mapping/fragments.cu", "END_BITS")
#: Bases between seeds: a placement with few differences has a seed without a difference.
STRIDE = 8
#: Maximum of matches a read; above it the repeat is too large to distinguish its fragments.
MAX_MATCHES = 1 << 14
#: Device memory a match may need: a count, its prefix sum, and two keys with their losses.
MATCH_BYTES = 40
#: Phred of the remaining fragments of a pair whose placements are not joined.
NOT_JOINED = -1
#: Key that sorts after the keys of all reads.
NO_KEY = 2**64 - 1


class RepeatPlacements(Table, struct="mapping/fragments.cu:RepeatPlacements"):
    """Placements of reads, sorted by key; unused rows have the key NO_KEY."""


def join_mates(inserts: InsertSizeTable, batch: Batch, context: Context) -> Array:
    """Add windows of the best fragments to mates that both have more placements than windows, and choose among them.

    Returns int32 [pairs] on the device: phred of the probability of all fragments that got no windows, NOT_JOINED for
    pairs whose placements were not joined.
    """
    backend, count = context.backend, batch.reads.count // 2
    other_fragments, marks = backend.full(count, NOT_JOINED, np.int32), backend.empty(2 * count, np.uint8)
    batch.launch(_MARK, count, context, inserts=inserts, marks=marks)
    mates = batch.device_counters.select_flagged("joined", marks, 1)
    if capacity_of(mates.count):
        for part, matches in _parts(mates, batch, context):
            _join_parts(part, matches, other_fragments, inserts, batch, context)
    return other_fragments


def _parts(mates: DeviceList, batch: Batch, context: Context) -> Iterator[tuple[DeviceList, SeedMatches]]:
    """Yield (mates, their seed matches), split so that the matches of a part fit into memory; pairs stay whole."""
    backend = context.backend
    capacity = max(backend.scratch_bytes // MATCH_BYTES, 2 * MAX_MATCHES)
    matches = _find_matches(mates, capacity, batch, context)
    if capacity_of(matches.total) <= capacity:
        yield mates, matches
        return
    numbers, first = mates.indices[: count_on_host(mates.count, backend)], 0
    ends = np.cumsum(matches_per_read(matches, context)[: len(numbers)].reshape(-1, 2).sum(axis=1))
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + capacity, "right"))
        part = DeviceList.of(numbers[2 * first : 2 * last])
        yield part, _find_matches(part, capacity, batch, context)
        first = last


def _find_matches(mates: DeviceList, fitting: int, batch: Batch, context: Context) -> SeedMatches:
    """Return the seed matches of the mates (record indices); fitting: number of matches that fit into memory."""
    slots = context.backend.empty(len(mates.indices), np.int32)
    batch.launch(_MATES, mates.count, context, mates=mates.indices, slots=slots)
    return find_matches(replace(mates, indices=slots), STRIDE, batch, context, fitting, MAX_MATCHES)


def _join_parts(
    mates: DeviceList, matches: SeedMatches, phreds: Array, inserts: InsertSizeTable, batch: Batch, context: Context
) -> None:
    """Combine the placements of mates at `matches` into fragments; add the windows of the best ones, and choose.

    phreds: output, int32 [pairs of the batch], the phred of the remaining fragments of each pair.
    """
    slots, found = replace(mates, indices=matches.selected), new_diagonals(matches.read_count, context.backend)
    placements = _list_placements(matches, slots, batch, context)
    given = {"inserts": inserts, "mates": mates.indices, "found": found, "other_fragments": phreds}
    batch.launch(_JOIN, mates.count, context, **given, repeat_placements=placements)
    add_windows(slots, found, MAX_WINDOWS, batch, context)
    score_windows(slots, batch, context)
    choose_windows(slots, batch, context)


def _list_placements(matches: SeedMatches, slots: DeviceList, batch: Batch, context: Context) -> RepeatPlacements:
    """Return the placements at `matches` that score not much less than the best one of their read, sorted by key."""
    backend, capacity = context.backend, capacity_of(matches.total)
    counts = backend.full(capacity, 0, np.int64)
    batch.launch(_COUNT, matches.total, context, matches=matches, counts=counts)
    listed = DeviceList(counts, matches.total, f"{slots.key} matches")
    ends, count = batch.device_counters.scan("placements", counts, listed, capacity)
    total = capacity_of(count)
    keys, other_keys = backend.full(total, NO_KEY, np.uint64), backend.empty(total, np.uint64)
    losses, other_losses = (backend.empty(total, np.uint32) for _ in range(2))
    batch.launch(_LIST, matches.total, context, matches=matches, ends=ends, keys=keys, losses=losses)
    bits = _END_BITS + 1 + matches.read_count.bit_length()
    keys, losses = sort_pairs(keys, losses, other_keys, other_losses, bits, backend)
    return RepeatPlacements(keys=keys, losses=losses, placement_count=total)
