"""List every diagonal that shares a seed with a read (Placements -> SeedMatches -> Candidates)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Kernel
from readmap.backend.compaction import ANY_FLAG, select_flagged
from readmap.backend.device_counts import Count, DeviceList, capacity_of
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch, Context
from readmap.mapping.diagonals import order_by_position
from readmap.mapping.parameters import dense_seed_bases
from readmap.mapping.seeds import seed_offsets

_FIND, _LIMIT = Kernel("mapping/matches", "find_matches"), Kernel("mapping/matches", "limit_matches")
_PLACED, _MARK = Kernel("mapping/matches", "mark_placed"), Kernel("mapping/matches", "mark_naming_matches")
_LIST, _ORDER = Kernel("mapping/matches", "list_diagonals"), Kernel("mapping/matches", "order_diagonals")
#: Bases between seeds when all placements are reported: any match of more than seed_bases + 1 bases is found.
STRIDE = 2
#: Device memory a match may need while diagonals are listed: a mark and its index, or the diagonal.
MATCH_BYTES = 16


class SeedMatches(Table, struct="mapping/matches.cuh:SeedMatches"):
    """All suffixes that start with a seed of a read, ordered by read, orientation and seed; `total` is their number."""

    total: Count


class Candidates(Table, struct="mapping/secondaries.cu:CandidateDiagonals"):
    """Diagonals named by seed matches, sorted by slot, orientation and position."""


def placed_reads(batch: Batch, context: Context) -> DeviceList:
    """Return the slots (indices in length order) of the reads that have a placement."""
    marks = context.backend.empty(batch.reads.count, np.uint8)
    batch.launch(_PLACED, len(marks), context, chosen=batch.placements.chosen, marks=marks)
    return DeviceList.of(select_flagged(marks, ANY_FLAG, context.backend))


def find_matches(
    slots: DeviceList, stride: int, batch: Batch, context: Context, fitting: int, max_matches: int | None = None
) -> SeedMatches:
    """Return the seed matches of the reads in `slots`; a read shorter than a seed gets no matches.

    stride: bases between seeds. fitting: number of matches that fit into memory; if there may be more, the host reads
    the count back. max_matches: slots 2i and 2i + 1 are mates, and a pair with a mate of more matches than this gets
    none.
    """
    backend, index, numbers = context.backend, context.index, slots.indices
    seed_bases = dense_seed_bases(index.suffix_count)
    offsets, seeds = seed_offsets(slots, seed_bases, stride, batch, context)
    found = capacity_of(seeds)
    ranks, counts = backend.empty(found, index.suffixes.dtype), backend.full(found, 0, np.int64)
    shared = {"seed_offsets": offsets, "counts": counts, "ranks": ranks, "seed_bases": seed_bases, "stride": stride}
    batch.launch(_FIND, slots.count, context, selected=numbers, **shared)
    if max_matches is not None:
        batch.launch(_LIMIT, slots.count, context, seed_offsets=offsets, counts=counts, max_matches=max_matches)
    ends, total = batch.device_counters.scan("matches", counts, slots, fitting, may_be_more=True)
    arrays = {"selected": numbers, "offsets": offsets, "ranks": ranks, "ends": ends}
    return SeedMatches(**arrays, total=total, read_count=len(numbers), seed_bases=seed_bases, stride=stride)


def parts_with_matches(batch: Batch, context: Context) -> Iterator[tuple[Batch, SeedMatches]]:
    """Yield (batch, seed matches of its placed reads), in parts whose matches fit into memory; no pair is split."""
    capacity = context.backend.scratch_bytes // MATCH_BYTES
    matches = find_matches(placed_reads(batch, context), STRIDE, batch, context, capacity)
    if capacity_of(matches.total) <= capacity:
        yield batch, matches
        return
    together = 2 if batch.reads.paired else 1
    by_slot, first = np.zeros(batch.queries.length_runs.count, np.int64), 0
    by_slot[context.backend.to_host(matches.selected)] = matches_per_read(matches, context)
    ends = np.cumsum(by_slot[context.backend.to_host(batch.queries.slot_of)].reshape(-1, together).sum(axis=1))
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + capacity, "right")), first + 1)
        part = batch.part(first * together, last * together, context)
        yield part, find_matches(placed_reads(part, context), STRIDE, part, context, capacity)
        first = last


def matches_per_read(matches: SeedMatches, context: Context) -> NDArray[np.int64]:
    """Return the number of matches of each selected read, int64 [selected] on the host."""
    ends, offsets = (context.backend.to_host(array) for array in (matches.ends, matches.offsets))
    counts: NDArray[np.int64] = np.diff(np.append(0, ends)[offsets])
    return counts


def list_candidates(matches: SeedMatches, batch: Batch, context: Context) -> Candidates:
    """Return the diagonals of all ungapped segments around seed matches that score enough to be listed."""
    backend, chunk_size = context.backend, context.backend.scratch_bytes // MATCH_BYTES
    naming = [
        (first, _one_match_per_segment(matches, first, chunk_size, batch, context))
        for first in range(0, capacity_of(matches.total), chunk_size)
    ]
    total, shift = sum(len(numbers) for _, numbers in naming), batch.queries.max_length
    unsorted, found = (Candidates.allocate(backend, diagonal_count=total) for _ in range(2))
    strands, positions = (backend.empty(total, np.uint64) for _ in range(2))
    end = 0
    for first, numbers in naming:
        start, end = end, end + len(numbers)
        listed = {"diagonals": unsorted.rows, "slots": unsorted.slots, "strands": strands, "positions": positions}
        parts = {name: array[start:end] for name, array in listed.items()}
        given = {"matches": matches, "naming": numbers, "first_match": first, "shift": shift}
        batch.launch(_LIST, len(numbers), context, **given, **parts)
    order = order_by_position(strands, positions, batch, context)
    given = {"order": order, "diagonals": unsorted.rows, "slots": unsorted.slots}
    backend.launch(_ORDER, total, **given, ordered=found.rows, ordered_slots=found.slots)
    return found


def _one_match_per_segment(matches: SeedMatches, first: int, chunk_size: int, batch: Batch, context: Context) -> Array:
    """Return the int32 offsets from match `first` of the first match of each segment, among `chunk_size` matches."""
    marks = context.backend.empty(min(chunk_size, capacity_of(matches.total) - first), np.uint8)
    batch.launch(_MARK, len(marks), context, matches=matches, first_match=first, marks=marks)
    return select_flagged(marks, ANY_FLAG, context.backend)
