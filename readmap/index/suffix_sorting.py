"""Reference -> SuffixArray, sorted by kernels: first by the first bases, then by doubled ranks what ties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.sorting import sort_pairs
from readmap.errors import BackendError
from readmap.index.reference import DeviceReference

_CODES = Kernel("index/suffix_sorting", "count_codes", by_block=True)
_COUNT = Kernel("index/suffix_sorting", "count_batch", grouped=True)
_KEY = Kernel("index/suffix_sorting", "key_batch", grouped=True)
_SETTLE = Kernel("index/suffix_sorting", "settle", grouped=True)
_COUNT_TIED = Kernel("index/suffix_sorting", "count_tied")
_KEY_TIED = Kernel("index/suffix_sorting", "key_tied", grouped=True)
_SORT_SMALL = Kernel("index/suffix_sorting", "sort_small")


def _constant(name: str) -> int:
    return constant("index/suffix_sorting.cu", name)


_KEY_BASES, _REACH_BITS, _RUN = _constant("KEY_BASES"), _constant("REACH_BITS"), _constant("RUN")
_BATCH_CODES = _constant("BATCH_CODES")

#: Places of an item that counts codes: as many as keep a block of threads busy.
_SECTION = 1 << 16

#: A batch has this share of the suffixes, but no less than _LEAST_PAIRS where there are so many, and no more than
#: _MOST_PAIRS where memory does not matter.
_SHARE, _LEAST_PAIRS, _MOST_PAIRS = 20, 1 << 24, 1 << 30

#: Numbers, int64, that are kept of each run of slots at a time: counts of what ties in it, and where these end.
_RUN_COUNTS = 9

#: Bytes of device memory for what grows slower than the suffixes.
_FIXED_BYTES = 256 << 20


@dataclass(frozen=True)
class _Groups:
    """The suffixes as far as they are in order; see kernels/index/suffix_sorting.cu."""

    order: Array
    ranks: Array
    heads: Array
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
class _Batch:
    """The suffixes whose code is in [first_code, end_code), and the first of their slots."""

    first_code: int
    end_code: int
    first_slot: int


@dataclass(frozen=True)
class _Ties:
    """What ties in the slots [first, end), which begin and end with groups, in small groups or in larger ones."""

    first: int
    end: int
    small: int


@dataclass(frozen=True)
class SortPlan:
    """How the suffixes of a reference are sorted on a device.

    Attributes:
        length: of the reference, with barriers.
        dtype: uint32 or uint64, of places.
        codes: int64 [BATCH_CODES], the suffixes that begin with each code.
        pairs: the most suffixes that are sorted together.
        holds_order, holds_ranks: whether these are in the device's own memory.
    """

    length: int
    dtype: np.dtype[Any]
    codes: np.ndarray[Any, np.dtype[np.int64]]
    pairs: int
    holds_order: bool
    holds_ranks: bool

    @property
    def suffixes(self) -> int:
        """How many suffixes are sorted."""
        return int(self.codes.sum())

    @property
    def nbytes(self) -> int:
        """The bytes of memory that sorting takes, the order among them, wherever they are."""
        arrays = self.dtype.itemsize * (self.suffixes + self.length) + self.suffixes // 8
        return arrays + self.pairs * _pair_bytes(self.dtype) + _run_bytes(self.length)

    @property
    def host_bytes(self) -> int:
        """Those of a GPU's host: what the device does not hold."""
        return self.dtype.itemsize * ((not self.holds_order) * self.suffixes + (not self.holds_ranks) * self.length)


def plan_sort(reference: DeviceReference, length: int, dtype: Any, backend: Backend) -> SortPlan:
    """How suffixes are sorted there; raises BackendError where the device has too little memory for any way."""
    counts = backend.full(_BATCH_CODES, 0, np.uint64)
    sections = -(-length // _SECTION)
    backend.launch(_CODES, sections, reference=reference, counts=counts, length=length, section_size=_SECTION)
    codes, dtype = backend.to_host(counts).astype(np.int64), np.dtype(dtype)
    total = int(codes.sum())
    least = max(total // _SHARE, min(total, _LEAST_PAIRS), int(codes.max()))
    memory = backend.memory()
    if memory is None:
        return SortPlan(length, dtype, codes, least, True, True)
    free, pairs = memory[0] - _FIXED_BYTES - total // 8 - _run_bytes(length), 0
    for order, ranks in ((True, True), (False, True), (False, False)):
        pairs = (free - dtype.itemsize * (order * total + ranks * length)) // _pair_bytes(dtype)
        if pairs >= least:
            return SortPlan(length, dtype, codes, min(pairs, max(least, _MOST_PAIRS), total), order, ranks)
    raise BackendError(
        f"{backend.name} has too little memory to sort {total:,} suffixes: {memory[0]:,} bytes are free, "
        f"{memory[0] + (least - pairs) * _pair_bytes(dtype):,} are needed"
    )


def _pair_bytes(dtype: np.dtype[Any]) -> int:
    """Of a pair that is sorted: its key and its place twice, and its slot."""
    return 16 + 3 * dtype.itemsize


def _run_bytes(length: int) -> int:
    """Of what is counted in the runs of so many slots."""
    return _RUN_COUNTS * 8 * -(-length // _RUN)


def sort_suffixes(
    reference: DeviceReference, plan: SortPlan, backend: Backend, report: Callable[[float], None]
) -> Array:
    """The places of all suffixes that start at a base, in order, on the device, or in memory that it reaches.

    The order is over {barrier, A, C, G, T}; suffixes that a barrier makes equal stand in the order of their places.
    report: hears the share of the work that is done.
    """
    sorter, total = _Sorter(plan, backend), plan.suffixes
    for batch, size in _batches(plan):
        sorter.sort_batch(reference, batch, size)
        report((batch.first_slot + size) / total / 2)
    depth, tied = _KEY_BASES, total
    while tied:
        tied = sorter.double(depth)
        depth *= 2
        report(1 - tied / total / 2)
    return sorter.groups.order


class _Sorter:
    """The groups so far, and the memory in which pairs are sorted."""

    def __init__(self, plan: SortPlan, backend: Backend) -> None:
        total, length, dtype = plan.suffixes, plan.length, plan.dtype
        self.backend = backend
        self.groups = _Groups(
            (backend.empty if plan.holds_order else backend.host_array)(total, dtype),
            backend.full(length, 0, dtype) if plan.holds_ranks else _zeros(length, dtype, backend),
            backend.full(-(-total // 32), 0, np.uint32),
            total,
            length,
        )
        self._pairs = _Pairs(*(backend.empty(plan.pairs, each) for each in (np.uint64, dtype, dtype, np.uint64, dtype)))

    def sort_batch(self, reference: DeviceReference, batch: _Batch, size: int) -> None:
        """Sort the suffixes of a batch, so many, by their first bases."""
        runs, backend, pairs = -(-self.groups.length // _RUN), self.backend, self._pairs.first(size)
        counts = backend.empty(runs, np.int64)
        what = {"reference": reference, "batch": batch, "length": self.groups.length}
        backend.launch(_COUNT, runs, counts=counts, **what)
        ends = backend.prefix_sums(counts)
        backend.launch(_KEY, runs, ends=ends, keys=pairs.keys, places=pairs.places, slots=pairs.slots, **what)
        self._settle(pairs.slots, *self._by_digits(pairs, 2 * _KEY_BASES + _REACH_BITS), _REACH_BITS, _KEY_BASES)

    def double(self, depth: int) -> int:
        """Sort what ties by `depth` bases more; how many suffixes were tied."""
        tied = 0
        for first, end in self._stretches():
            for small in (1, 0):
                tied += self._double_ties(_Ties(first, end, small), depth)
        return tied

    def _double_ties(self, ties: _Ties, depth: int) -> int:
        """Sort some of them; how many these were."""
        (tied_ends, size), (group_ends, count) = map(self.backend.ends, self._count(ties))
        if not size:
            return 0
        pairs, rank_bits = self._pairs.first(size), self.groups.slot_count.bit_length()
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
        self._settle(pairs.slots, *found, rank_bits, 1)
        return size

    def _by_digits(self, pairs: _Pairs, bits: int) -> tuple[Array, Array]:
        """The keys, of so many bits, in order, and their places."""
        keys, places, other_keys, other_places = pairs.keys, pairs.places, pairs.other_keys, pairs.other_places
        return sort_pairs(keys, places, other_keys, other_places, bits, self.backend)

    def _in_place(self, pairs: _Pairs, rank_bits: int) -> tuple[Array, Array]:
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
        return pairs.other_keys, pairs.other_places

    def _settle(self, slots: Array, keys: Array, places: Array, field_bits: int, least: int) -> None:
        """Bring sorted pairs into the groups; those whose low bits are below `least` tie with none."""
        found = _Sorted(keys, places, len(keys), (1 << field_bits) - 1, least)
        self.backend.launch(_SETTLE, -(-len(keys) // _RUN), sorted=found, slots=slots, groups=self.groups)

    def _count(self, ties: _Ties) -> tuple[Array, Array]:
        """How many slots of each run tie, and how many groups they are; int64 [runs] each."""
        runs = -(-self.groups.slot_count // _RUN)
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
                slot = run * _RUN + int(np.searchsorted(held, done + most, "right")) - 1
                place = int(backend.to_host(groups.order[slot : slot + 1])[0])
                end = int(backend.to_host(groups.ranks[place : place + 1])[0]) - 1
                done += most - (slot - end)
                yield first, end
                first = end
        yield first, groups.slot_count

    def _tied_slots(self, run: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each slot of a run ties."""
        words = self.backend.to_host(self.groups.heads[run * _RUN // 32 : (run + 1) * _RUN // 32 + 1])
        heads = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        heads = np.append(heads[: self.groups.slot_count - run * _RUN], True)
        tied: np.ndarray[Any, np.dtype[np.bool_]] = ~(heads[:-1] & heads[1:])[:_RUN]
        return tied


def _zeros(length: int, dtype: Any, backend: Backend) -> Array:
    array = backend.host_array(length, dtype)
    array.fill(0)
    return array


def _batches(plan: SortPlan) -> Iterator[tuple[_Batch, int]]:
    """Codes that follow each other and have no more suffixes together than are sorted together, and how many."""
    first, slot, size = 0, 0, 0
    for code, count in enumerate(plan.codes.tolist()):
        if size and size + count > plan.pairs:
            yield _Batch(first, code, slot), size
            first, slot, size = code, slot + size, 0
        size += count
    if size:
        yield _Batch(first, len(plan.codes), slot), size
