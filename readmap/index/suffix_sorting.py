"""Reference -> SuffixArray by prefix doubling: sort by the first bases, then repeatedly by the ranks of the suffixes
that start after the known common prefix, whose length doubles each time.

With several devices, each device sorts the suffixes of consecutive codes, which have consecutive slots, and has the
ranks of all positions. Devices exchange ranks before the first doubling, and changed ranks after each step of a
doubling. Within a step, a device has newer ranks for its own suffixes than for others. This is harmless:

- A step splits groups correctly and within their slots. So suffixes of different groups compare the same by older and
  newer ranks.
- A step splits whole groups, no launch reads ranks while they change, and a device applies the other devices' updates
  of a step completely before its next step. So for two suffixes of one group it reads both ranks from before the split,
  by which they tie, or both from after the split, by which they are in order, and never a mixture.
- A doubling starts after all devices have applied all updates of the previous doubling. So suffixes that still tie
  share `depth` bases.

Ties at barriers are decided by position, so no two suffixes are equal, and the order is the same for any number of
devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs
from readmap.backend.tables import Table
from readmap.backend.team import Team
from readmap.index.reference import DeviceReference
from readmap.index.sort_plan import RUN, SortBatch, SortPart, SortPlan

_COUNT, _KEY = Kernel("index/suffix_sorting", "count_batch"), Kernel("index/suffix_sorting", "key_batch")
_COUNT_TIED, _KEY_TIED = Kernel("index/suffix_sorting", "count_tied"), Kernel("index/suffix_sorting", "key_tied")
_SORT_SMALL, _ASSIGN = Kernel("index/suffix_sorting", "sort_small"), Kernel("index/suffix_sorting", "assign_groups")
_MERGE, _APPLY = Kernel("index/suffix_sorting", "merge_ranks"), Kernel("index/suffix_sorting", "apply_ranks")

_KEY_BASES, _REACH_BITS = (constant("index/suffix_sorting.cu", name) for name in ("KEY_BASES", "REACH_BITS"))

#: Elements copied from another device at a time, to memory in the plan's fixed bytes.
_CHUNK = 1 << 25

Item = TypeVar("Item")


class _Groups(Table, struct="index/suffix_sorting.cu:Groups"):
    """The groups of a device's suffixes so far."""


@dataclass(frozen=True)
class _Pairs:
    """Keys, uint64, with suffix positions and the slots they will go to, and a second buffer of keys and positions."""

    keys: Array
    positions: Array
    slots: Array
    other_keys: Array
    other_positions: Array

    @property
    def swapped(self) -> _Pairs:
        """The pairs after a sort that left its result in the second buffer."""
        return _Pairs(self.other_keys, self.other_positions, self.slots, self.keys, self.positions)

    def first(self, size: int) -> _Pairs:
        """Return views of the first `size` pairs."""
        return _Pairs(**{name: array[:size] for name, array in vars(self).items()})


class _Sorted(Table, struct="index/suffix_sorting.cu:Sorted"):
    """Pairs sorted by key; a pair whose key has `key & field` below min_field ties with no other pair."""


@dataclass(frozen=True)
class _Ties:
    """Tied suffixes of the slots [first, end), which are whole groups; in small groups or in larger groups."""

    first: int
    end: int
    small: int


@dataclass(frozen=True)
class _RankUpdate:
    """Positions whose groups were assigned in a step, and their new ranks; valid until the device's next step."""

    positions: Array
    ranks: Array


def sort_suffixes(
    references: Sequence[DeviceReference], plan: SortPlan, team: Team, report: Callable[[float], None]
) -> list[Array]:
    """Sort the suffixes at A, C, G and T; return an array of positions per device. report: gets the completed share."""
    sorters, total, done = team.map(_Sorter, references, plan.parts, repeat(plan), team.backends), plan.suffixes, 0
    for updates in _steps(team, [sorter.sort_batches() for sorter in sorters]):
        done += _size(updates)
        report(done / total / 2)
    if len(sorters) > 1:
        _exchange(team, sorters)
    depth, tied = _KEY_BASES, total
    while tied:
        tied = 0
        for updates in _steps(team, [sorter.double_prefixes(depth) for sorter in sorters]):
            tied += _size(updates)
            if len(sorters) > 1:
                team.map(_Sorter.apply, sorters, _from_others(updates))
        depth *= 2
        report(1 - tied / total / 2)
    return [sorter.groups.order for sorter in sorters]


def _steps(team: Team, works: Sequence[Iterator[_RankUpdate]]) -> Iterator[list[_RankUpdate | None]]:
    """Yield the updates of each step by device; None for a device that has no steps left."""
    while any(updates := team.map(next, works, repeat(None))):
        yield updates


def _size(updates: Sequence[_RankUpdate | None]) -> int:
    return sum(len(each.positions) for each in updates if each)


def _exchange(team: Team, sorters: Sequence[_Sorter]) -> None:
    """Copy to each device the ranks of the other devices' suffixes. Reads no array while it is written."""
    length, ranks = sorters[0].groups.length, [sorter.groups.ranks for sorter in sorters]
    bounds = [length * i // len(sorters) for i in range(len(sorters) + 1)]
    sections = list(map(slice, bounds, bounds[1:]))
    team.map(_Sorter.merge, sorters, sections, _from_others(ranks))
    team.map(_Sorter.take, sorters, _from_others(list(zip(sections, ranks, strict=True))))


def _from_others(items: Sequence[Item]) -> list[list[Item]]:
    """Return for each device the other devices' items, starting with the next device, so that all starts differ."""
    return [[*items[i + 1 :], *items[:i]] for i in range(len(items))]


class _Sorter:
    """A device's groups, and the memory in which pairs are sorted."""

    def __init__(self, reference: DeviceReference, part: SortPart, plan: SortPlan, backend: Backend) -> None:
        total, length, dtype = part.suffixes, plan.length, plan.dtype
        self.backend = backend
        self._reference, self._part, self._rank_bits = reference, part, plan.suffixes.bit_length()
        self._is_one_of_several = len(plan.parts) > 1
        self.groups = _Groups(
            order=(backend.empty if part.holds_order else backend.host_array)(total, dtype),
            ranks=backend.full(length, 0, dtype) if part.holds_ranks else _zeros(length, dtype, backend),
            heads=backend.full(-(-total // 32), 0, np.uint32),
            first_slot=part.first_slot,
            slot_count=total,
            length=length,
        )
        self._pairs = _Pairs(*(backend.empty(part.pairs, each) for each in (np.uint64, dtype, dtype, np.uint64, dtype)))

    def sort_batches(self) -> Iterator[_RankUpdate]:
        """Sort the suffixes by their first KEY_BASES bases, one batch per step; yield the update of each step."""
        for batch in self._part.batches():
            yield self._sort_batch(batch)

    def _sort_batch(self, batch: SortBatch) -> _RankUpdate:
        """Sort suffixes by their first KEY_BASES bases, and store them in their slots; return their positions."""
        runs, backend, pairs = -(-self.groups.length // RUN), self.backend, self._pairs.first(batch.suffixes)
        counts = backend.empty(runs, np.int64)
        what = {"reference": self._reference, "batch": batch, "length": self.groups.length}
        backend.launch(_COUNT, runs, counts=counts, **what)
        ends = backend.inclusive_sum(counts)
        backend.launch(_KEY, runs, ends=ends, keys=pairs.keys, positions=pairs.positions, slots=pairs.slots, **what)
        found = self._radix_sort(pairs, 2 * _KEY_BASES + _REACH_BITS)
        return self._assign_groups(found, _REACH_BITS, _KEY_BASES, store_ranks=False)

    def double_prefixes(self, depth: int) -> Iterator[_RankUpdate]:
        """Sort tied suffixes, which share `depth` bases, by the next `depth` bases; yield the update of each step."""
        for first, end in self._tied_ranges():
            for small in (1, 0):
                if updates := self._sort_ties(_Ties(first, end, small), depth):
                    yield updates

    def _sort_ties(self, ties: _Ties, depth: int) -> _RankUpdate | None:
        """Sort the suffixes of `ties` by the next `depth` bases; return their new ranks, or None if nothing ties."""
        (tied_ends, size), (group_ends, count) = map(self.backend.inclusive_sum_with_total, self._count(ties))
        if not size:
            return None
        pairs, rank_bits = self._pairs.first(size), self._rank_bits
        inputs = {"groups": self.groups, "ties": ties, "tied_ends": tied_ends, "group_ends": group_ends}
        inputs |= {"depth": depth, "rank_bits": rank_bits}
        outputs = {"keys": pairs.keys, "positions": pairs.positions, "slots": pairs.slots}
        self.backend.launch(_KEY_TIED, len(tied_ends), **inputs, **outputs)
        if ties.small:
            found = self._sort_small_groups(pairs, rank_bits)
        else:
            found = self._radix_sort(pairs, rank_bits + (count - 1).bit_length())
        return self._assign_groups(found, rank_bits, 1, store_ranks=self._is_one_of_several)

    def merge(self, section: slice, others: Sequence[Array]) -> None:
        """Collect the ranks of other devices' suffixes in a section of this device's ranks."""
        for ranks in others:
            for part in _chunks(section.start, section.stop):
                self._merge_chunk(self.groups.ranks[part], self.backend.copy(ranks[part]))

    def take(self, others: Sequence[tuple[slice, Array]]) -> None:
        """Copy sections of the ranks from the devices that have collected them."""
        for section, ranks in others:
            self.backend.copy_into(self.groups.ranks[section], ranks[section])

    def apply(self, others: Sequence[_RankUpdate | None]) -> None:
        """Store the new ranks of other devices' suffixes in this device's ranks."""
        for updates in filter(None, others):
            for part in _chunks(0, len(updates.positions)):
                self._apply_chunk(*(self.backend.copy(array[part]) for array in (updates.positions, updates.ranks)))

    # Methods of their own, so that a chunk's memory is freed before the next chunk is copied.
    def _merge_chunk(self, own: Array, other: Array) -> None:
        self.backend.launch(_MERGE, len(own), other=other, ranks=own)

    def _apply_chunk(self, positions: Array, ranks: Array) -> None:
        self.backend.launch(_APPLY, len(positions), positions=positions, ranks=ranks, groups=self.groups)

    def _radix_sort(self, pairs: _Pairs, bits: int) -> _Pairs:
        """Return the pairs sorted by their keys, which have `bits` bits."""
        keys, _ = sort_pairs(pairs.keys, pairs.positions, pairs.other_keys, pairs.other_positions, bits, self.backend)
        return pairs if keys is pairs.keys else pairs.swapped

    def _sort_small_groups(self, pairs: _Pairs, rank_bits: int) -> _Pairs:
        """Return the pairs of small groups sorted; the group index is in the bits above rank_bits and ascends."""
        size = len(pairs.keys)
        inputs = {"keys": pairs.keys, "positions": pairs.positions, "size": size, "rank_bits": rank_bits}
        outputs = {"sorted_keys": pairs.other_keys, "sorted_positions": pairs.other_positions}
        self.backend.launch(_SORT_SMALL, size, **inputs, **outputs)
        return pairs.swapped

    def _assign_groups(self, pairs: _Pairs, field_bits: int, min_field: int, *, store_ranks: bool) -> _RankUpdate:
        """Store sorted pairs in their slots, split groups; return positions and, if store_ranks, their new ranks."""
        keys, positions, new_ranks = pairs.keys, pairs.positions, pairs.other_positions
        field = (1 << field_bits) - 1
        found = _Sorted(keys=keys, positions=positions, pairs=len(keys), field=field, min_field=min_field)
        what = {"sorted": found, "slots": pairs.slots, "groups": self.groups, "new_ranks": new_ranks}
        self.backend.launch(_ASSIGN, -(-len(keys) // RUN), **what, store_ranks=store_ranks)
        return _RankUpdate(positions, new_ranks)

    def _count(self, ties: _Ties) -> tuple[Array, Array]:
        """Return the numbers of tied slots and of their groups in each run of RUN slots, int64 [runs] each."""
        runs = -(-self.groups.slot_count // RUN)
        slots, heads = self.backend.empty(runs, np.int64), self.backend.empty(runs, np.int64)
        self.backend.launch(_COUNT_TIED, runs, groups=self.groups, ties=ties, tied=slots, tied_groups=heads)
        return slots, heads

    def _tied_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of whole groups that cover all slots; the tied slots of a range fit into the pairs' memory."""
        groups, backend, max_tied = self.groups, self.backend, len(self._pairs.keys)
        everything = (_Ties(0, groups.slot_count, small) for small in (0, 1))
        large, small = (backend.inclusive_sum_with_total(self._count(ties)[0]) for ties in everything)
        first, tied = 0, large[1] + small[1]
        if tied > max_tied:
            ends, done = backend.to_host(large[0]) + backend.to_host(small[0]), 0
            while tied - done > max_tied:
                # The slot at which the range would be too large, and the head of its group. Slots of a run are counted
                # from its end, because slots before `first` are already being sorted.
                run = int(np.searchsorted(ends, done + max_tied, "right"))
                remaining = ends[run] - self._tied_slots(run)[::-1].cumsum()[::-1]
                slot = run * RUN + int(np.searchsorted(remaining, done + max_tied, "right")) - 1
                position = int(backend.to_host(groups.order[slot : slot + 1])[0])
                end = int(backend.to_host(groups.ranks[position : position + 1])[0]) - 1 - groups.first_slot
                done += max_tied - (slot - end)
                yield first, end
                first = end
        yield first, groups.slot_count

    def _tied_slots(self, run: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return whether each slot of a run is in a group of several suffixes, bool [RUN], fewer in the last run."""
        words = self.backend.to_host(self.groups.heads[run * RUN // 32 : (run + 1) * RUN // 32 + 1])
        heads = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        heads = np.append(heads[: self.groups.slot_count - run * RUN], True)
        tied: np.ndarray[Any, np.dtype[np.bool_]] = ~(heads[:-1] & heads[1:])[:RUN]
        return tied


def _chunks(start: int, end: int) -> Iterator[slice]:
    """Return slices of at most _CHUNK elements that cover [start, end)."""
    return (slice(i, min(i + _CHUNK, end)) for i in range(start, end, _CHUNK))


def _zeros(length: int, dtype: Any, backend: Backend) -> Array:
    array = backend.host_array(length, dtype)
    array.fill(0)
    return array
