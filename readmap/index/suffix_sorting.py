"""Reference -> SuffixArray, sorted by kernels: first by the first bases, then by doubled ranks what ties.

Several devices sort the suffixes of some codes each, which have neighbouring slots, and each has the ranks of all
places. Before the first doubling they give each other the ranks so far, and after each step of a doubling those that it
has changed. Within a step a device knows newer ranks of its own suffixes than of another's. That does not matter:

- A step splits groups, in the right way, and leaves their slots to them. So suffixes of different groups compare alike
  by older and newer ranks.
- A step splits whole groups, no launch reads ranks while they change, and a device learns a whole step before the next
  one. So of two suffixes of one group it reads both ranks from before the split, by which they tie, or both from after
  it, by which they are in order; never one of each.
- A doubling begins when all devices have learnt the last one. So what ties then shares `depth` bases.

No two suffixes are equal in the order, since places decide last. So there is one order, for any number of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.sorting import sort_pairs
from readmap.backend.team import Team
from readmap.index.reference import DeviceReference
from readmap.index.sort_plan import RUN, SortBatch, SortPart, SortPlan

_COUNT = Kernel("index/suffix_sorting", "count_batch")
_KEY = Kernel("index/suffix_sorting", "key_batch")
_SETTLE = Kernel("index/suffix_sorting", "settle")
_COUNT_TIED = Kernel("index/suffix_sorting", "count_tied")
_KEY_TIED = Kernel("index/suffix_sorting", "key_tied")
_SORT_SMALL = Kernel("index/suffix_sorting", "sort_small")
_MERGE, _LEARN = Kernel("index/suffix_sorting", "merge_ranks"), Kernel("index/suffix_sorting", "learn_ranks")

_KEY_BASES, _REACH_BITS = (constant("index/suffix_sorting.cu", name) for name in ("KEY_BASES", "REACH_BITS"))

#: Ranks that come from another device at a time, to memory that is not planned for each of them.
_PIECE = 1 << 25

Item = TypeVar("Item")


@dataclass(frozen=True)
class _Groups:
    """A device's suffixes as far as they are in order; see kernels/index/suffix_sorting.cu."""

    order: Array
    ranks: Array
    heads: Array
    first_slot: int
    slot_count: int
    length: int


@dataclass(frozen=True)
class _Pairs:
    """Keys, uint64, with the place of a suffix each, and the slots that they will go to; twice, for the sort."""

    keys: Array
    places: Array
    slots: Array
    other_keys: Array
    other_places: Array

    @property
    def other_way_round(self) -> _Pairs:
        """With the keys and places that the sort has left in the others' memory."""
        return _Pairs(self.other_keys, self.other_places, self.slots, self.keys, self.places)

    def first(self, size: int) -> _Pairs:
        """So many of them."""
        return _Pairs(**{name: array[:size] for name, array in vars(self).items()})


@dataclass(frozen=True)
class _Sorted:
    """Pairs in the order of their keys; those whose `field` is below `least` tie with none."""

    keys: Array
    places: Array
    pairs: int
    field: int
    least: int


@dataclass(frozen=True)
class _Ties:
    """What ties in the slots [first, end), which begin and end with groups, in small groups or in larger ones."""

    first: int
    end: int
    small: int


@dataclass(frozen=True)
class _Settled:
    """Suffixes that have come into their groups in a step, all of these groups: their places, and their ranks where
    other devices are to learn them; in memory that is free until the device's next step."""

    places: Array
    ranks: Array


def sort_suffixes(
    references: Sequence[DeviceReference], plan: SortPlan, team: Team, report: Callable[[float], None]
) -> list[Array]:
    """The places of all suffixes that start at a base, in order: a part on each device, or in memory that it reaches.

    The order is over {barrier, A, C, G, T}; suffixes that a barrier makes equal stand in the order of their places.
    references: on each device. report: hears the share of the work that is done.
    """
    sorters, total, done = team.each(_Sorter, references, plan.parts, repeat(plan), team.backends), plan.suffixes, 0
    for settled in _steps(team, [sorter.sort_batches() for sorter in sorters]):
        done += _size(settled)
        report(done / total / 2)
    if len(sorters) > 1:
        _exchange(team, sorters)
    depth, tied = _KEY_BASES, total
    while tied:
        tied = 0
        for settled in _steps(team, [sorter.double(depth) for sorter in sorters]):
            tied += _size(settled)
            if len(sorters) > 1:
                team.each(_Sorter.learn, sorters, _from_others(settled))
        depth *= 2
        report(1 - tied / total / 2)
    return [sorter.groups.order for sorter in sorters]


def _steps(team: Team, works: Sequence[Iterator[_Settled]]) -> Iterator[list[_Settled | None]]:
    """What each device settles in each step, None where it has no step left."""
    while any(settled := team.each(next, works, repeat(None))):
        yield settled


def _size(settled: Sequence[_Settled | None]) -> int:
    return sum(len(each.places) for each in settled if each)


def _exchange(team: Team, sorters: Sequence[_Sorter]) -> None:
    """Give all devices the ranks of all places, each of which one of them knows so far.

    Each of them gathers those of a section, and then takes the other sections from the others, so that nothing is read
    while it is written.
    """
    length, ranks = sorters[0].groups.length, [sorter.groups.ranks for sorter in sorters]
    bounds = [length * i // len(sorters) for i in range(len(sorters) + 1)]
    sections = list(map(slice, bounds, bounds[1:]))
    team.each(_Sorter.merge, sorters, sections, _from_others(ranks))
    team.each(_Sorter.take, sorters, _from_others(list(zip(sections, ranks, strict=True))))


def _from_others(items: Sequence[Item]) -> list[list[Item]]:
    """Of each device the other devices' items, those of the next one first, so that no two begin with the same."""
    return [[*items[i + 1 :], *items[:i]] for i in range(len(items))]


class _Sorter:
    """A device's groups so far, and the memory in which pairs are sorted."""

    def __init__(self, reference: DeviceReference, part: SortPart, plan: SortPlan, backend: Backend) -> None:
        total, length, dtype = part.suffixes, plan.length, plan.dtype
        self.backend = backend
        self._reference, self._part, self._rank_bits = reference, part, plan.suffixes.bit_length()
        self._is_one_of_several = len(plan.parts) > 1
        self.groups = _Groups(
            (backend.empty if part.holds_order else backend.host_array)(total, dtype),
            backend.full(length, 0, dtype) if part.holds_ranks else _zeros(length, dtype, backend),
            backend.full(-(-total // 32), 0, np.uint32),
            part.first_slot,
            total,
            length,
        )
        self._pairs = _Pairs(*(backend.empty(part.pairs, each) for each in (np.uint64, dtype, dtype, np.uint64, dtype)))

    def sort_batches(self) -> Iterator[_Settled]:
        """Sort the suffixes by their first bases, a batch a step."""
        for batch in self._part.batches():
            yield self._sort_batch(batch)

    def _sort_batch(self, batch: SortBatch) -> _Settled:
        runs, backend, pairs = -(-self.groups.length // RUN), self.backend, self._pairs.first(batch.suffixes)
        counts = backend.empty(runs, np.int64)
        what = {"reference": self._reference, "batch": batch, "length": self.groups.length}
        backend.launch(_COUNT, runs, counts=counts, **what)
        ends = backend.prefix_sums(counts)
        backend.launch(_KEY, runs, ends=ends, keys=pairs.keys, places=pairs.places, slots=pairs.slots, **what)
        return self._settle(self._by_digits(pairs, 2 * _KEY_BASES + _REACH_BITS), _REACH_BITS, _KEY_BASES, tells=False)

    def double(self, depth: int) -> Iterator[_Settled]:
        """Sort what ties by `depth` bases more, some of it a step."""
        for first, end in self._stretches():
            for small in (1, 0):
                if settled := self._double_ties(_Ties(first, end, small), depth):
                    yield settled

    def _double_ties(self, ties: _Ties, depth: int) -> _Settled | None:
        """Sort some of them; None where there are none."""
        (tied_ends, size), (group_ends, count) = map(self.backend.ends, self._count(ties))
        if not size:
            return None
        pairs, rank_bits = self._pairs.first(size), self._rank_bits
        self.backend.launch(
            _KEY_TIED,
            len(tied_ends),
            groups=self.groups,
            ties=ties,
            tied_ends=tied_ends,
            group_ends=group_ends,
            keys=pairs.keys,
            places=pairs.places,
            slots=pairs.slots,
            depth=depth,
            rank_bits=rank_bits,
        )
        if ties.small:
            found = self._in_place(pairs, rank_bits)
        else:
            found = self._by_digits(pairs, rank_bits + (count - 1).bit_length())
        return self._settle(found, rank_bits, 1, tells=self._is_one_of_several)

    def merge(self, section: slice, others: Sequence[Array]) -> None:
        """Take the ranks of a section's places from the devices that know them."""
        for ranks in others:
            for piece in _pieces(section.start, section.stop):
                self._merge(self.groups.ranks[piece], self.backend.copy(ranks[piece]))

    def take(self, others: Sequence[tuple[slice, Array]]) -> None:
        """Take sections of the ranks from the devices that have all of them."""
        for section, ranks in others:
            self.backend.put(self.groups.ranks[section], ranks[section])

    def learn(self, others: Sequence[_Settled | None]) -> None:
        """Take the ranks of what other devices have settled."""
        for settled in filter(None, others):
            for piece in _pieces(0, len(settled.places)):
                self._learn(*(self.backend.copy(array[piece]) for array in (settled.places, settled.ranks)))

    # What a piece is copied to is let go of before the next one is.

    def _merge(self, own: Array, other: Array) -> None:
        self.backend.launch(_MERGE, len(own), other=other, ranks=own)

    def _learn(self, places: Array, ranks: Array) -> None:
        self.backend.launch(_LEARN, len(places), places=places, ranks=ranks, groups=self.groups)

    def _by_digits(self, pairs: _Pairs, bits: int) -> _Pairs:
        """The keys, of so many bits, in order, and their places."""
        keys, _ = sort_pairs(pairs.keys, pairs.places, pairs.other_keys, pairs.other_places, bits, self.backend)
        return pairs if keys is pairs.keys else pairs.other_way_round

    def _in_place(self, pairs: _Pairs, rank_bits: int) -> _Pairs:
        """The same of small groups, whose numbers stand above so many bits and rise."""
        self.backend.launch(
            _SORT_SMALL,
            len(pairs.keys),
            keys=pairs.keys,
            places=pairs.places,
            sorted_keys=pairs.other_keys,
            sorted_places=pairs.other_places,
            size=len(pairs.keys),
            rank_bits=rank_bits,
        )
        return pairs.other_way_round

    def _settle(self, pairs: _Pairs, field_bits: int, least: int, *, tells: bool) -> _Settled:
        """Bring sorted pairs into the groups; those whose low bits are below `least` tie with none."""
        keys, places, told = pairs.keys, pairs.places, pairs.other_places
        found = _Sorted(keys, places, len(keys), (1 << field_bits) - 1, least)
        what = {"sorted": found, "slots": pairs.slots, "groups": self.groups, "told": told, "tells": tells}
        self.backend.launch(_SETTLE, -(-len(keys) // RUN), **what)
        return _Settled(places, told)

    def _count(self, ties: _Ties) -> tuple[Array, Array]:
        """How many slots of each run tie, and how many groups they are; int64 [runs] each."""
        runs = -(-self.groups.slot_count // RUN)
        slots, heads = self.backend.empty(runs, np.int64), self.backend.empty(runs, np.int64)
        self.backend.launch(_COUNT_TIED, runs, groups=self.groups, ties=ties, tied=slots, tied_groups=heads)
        return slots, heads

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """All slots, in parts of whole groups, as many tied ones as are sorted together; no group has more."""
        groups, backend, most = self.groups, self.backend, len(self._pairs.keys)
        everything = (_Ties(0, groups.slot_count, small) for small in (0, 1))
        large, small = (backend.ends(self._count(ties)[0]) for ties in everything)
        first, tied = 0, large[1] + small[1]
        if tied > most:
            ends, done = backend.to_host(large[0]) + backend.to_host(small[0]), 0
            while tied - done > most:
                # The slot with which there would be too many, and its group's head. The slots of a run are counted
                # from its end: what stands in front of `first` is sorted meanwhile.
                run = int(np.searchsorted(ends, done + most, "right"))
                held = ends[run] - self._tied_slots(run)[::-1].cumsum()[::-1]
                slot = run * RUN + int(np.searchsorted(held, done + most, "right")) - 1
                place = int(backend.to_host(groups.order[slot : slot + 1])[0])
                end = int(backend.to_host(groups.ranks[place : place + 1])[0]) - 1 - groups.first_slot
                done += most - (slot - end)
                yield first, end
                first = end
        yield first, groups.slot_count

    def _tied_slots(self, run: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each slot of a run ties."""
        words = self.backend.to_host(self.groups.heads[run * RUN // 32 : (run + 1) * RUN // 32 + 1])
        heads = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        heads = np.append(heads[: self.groups.slot_count - run * RUN], True)
        tied: np.ndarray[Any, np.dtype[np.bool_]] = ~(heads[:-1] & heads[1:])[:RUN]
        return tied


def _pieces(begin: int, end: int) -> Iterator[slice]:
    """Of what is in [begin, end), that which comes from another device together, in order."""
    return (slice(start, min(start + _PIECE, end)) for start in range(begin, end, _PIECE))


def _zeros(length: int, dtype: Any, backend: Backend) -> Array:
    array = backend.host_array(length, dtype)
    array.fill(0)
    return array
