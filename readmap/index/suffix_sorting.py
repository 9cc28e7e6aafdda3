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
_SHARE, _LEAST_PAIRS, _MOST_PAIRS = 16, 1 << 24, 1 << 30

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
    """Keys, uint64, with the place of a suffix each, and the slots that they will go to, rising."""

    keys: Array
    places: Array
    slots: Array


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
        return arrays + self.pairs * _pair_bytes(self.dtype)

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
    free, pairs = memory[0] - _FIXED_BYTES - total // 8 - length // 64, 0
    for order, ranks in ((True, True), (False, True), (False, False)):
        pairs = (free - dtype.itemsize * (order * total + ranks * length)) // _pair_bytes(dtype)
        if pairs >= least:
            return SortPlan(length, dtype, codes, min(pairs, max(least, _MOST_PAIRS)), order, ranks)
    raise BackendError(
        f"{backend.name} has too little memory to sort {total:,} suffixes: {memory[0]:,} bytes are free, "
        f"{memory[0] + (least - pairs) * _pair_bytes(dtype):,} are needed"
    )


def _pair_bytes(dtype: np.dtype[Any]) -> int:
    """Of a pair that is sorted: its key and its place twice, and its slot."""
    return 16 + 3 * dtype.itemsize


def sort_suffixes(
    reference: DeviceReference, plan: SortPlan, backend: Backend, report: Callable[[float], None]
) -> Array:
    """The places of all suffixes that start at a base, in order, on the device, or in memory that it reaches.

    The order is over {barrier, A, C, G, T}; suffixes that a barrier makes equal stand in the order of their places.
    report: hears the share of the work that is done.
    """
    total, length = plan.suffixes, plan.length
    groups = _Groups(
        (backend.empty if plan.holds_order else backend.host_array)(total, plan.dtype),
        backend.full(length, 0, plan.dtype) if plan.holds_ranks else _zeros(length, plan.dtype, backend),
        backend.full(-(-total // 32), 0, np.uint32),
        total,
        length,
    )
    for batch, size in _batches(plan):
        pairs = _batch_pairs(reference, batch, size, groups, backend)
        keys, places = sort_pairs(pairs.keys, pairs.places, 2 * _KEY_BASES + _REACH_BITS, backend)
        sorted_pairs = _Sorted(keys, places, size, (1 << _REACH_BITS) - 1, _KEY_BASES)
        _settle(sorted_pairs, pairs.slots, groups, backend)
        report((batch.first_slot + size) / total / 2)
    depth, tied = _KEY_BASES, total
    while tied:
        tied = _double(groups, depth, plan.pairs, backend)
        depth *= 2
        report(1 - tied / total / 2)
    return groups.order


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


def _batch_pairs(reference: DeviceReference, batch: _Batch, size: int, groups: _Groups, backend: Backend) -> _Pairs:
    """The suffixes of a batch, in the order of their places, with their first bases as keys."""
    runs = -(-groups.length // _RUN)
    counts = backend.empty(runs, np.int64)
    what = {"reference": reference, "batch": batch, "length": groups.length}
    backend.launch(_COUNT, runs, counts=counts, **what)
    ends, _ = backend.ends(counts)
    pairs = _empty_pairs(size, groups, backend)
    backend.launch(_KEY, runs, ends=ends, **vars(pairs), **what)
    return pairs


def _empty_pairs(size: int, groups: _Groups, backend: Backend) -> _Pairs:
    dtype = groups.order.dtype
    return _Pairs(backend.empty(size, np.uint64), backend.empty(size, dtype), backend.empty(size, dtype))


def _settle(pairs: _Sorted, slots: Array, groups: _Groups, backend: Backend) -> None:
    """Bring sorted pairs into the groups."""
    backend.launch(_SETTLE, -(-pairs.pairs // _RUN), sorted=pairs, slots=slots, groups=groups)


def _double(groups: _Groups, depth: int, most: int, backend: Backend) -> int:
    """Sort what ties by `depth` bases more, at most so many suffixes at a time; how many of them were tied."""
    tied = 0
    for first, end in _stretches(groups, most, backend):
        for small in (1, 0):
            tied += _double_ties(groups, _Ties(first, end, small), depth, backend)
    return tied


def _double_ties(groups: _Groups, ties: _Ties, depth: int, backend: Backend) -> int:
    """Sort some of them; how many these were."""
    slots, heads = _tied(groups, ties, backend)
    tied_ends, size = backend.ends(slots)
    group_ends, count = backend.ends(heads)
    if not size:
        return 0
    rank_bits = groups.slot_count.bit_length()
    pairs = _empty_pairs(size, groups, backend)
    ends = {"tied_ends": tied_ends, "group_ends": group_ends}
    what = {"groups": groups, "ties": ties, "depth": depth, "rank_bits": rank_bits}
    backend.launch(_KEY_TIED, len(slots), **what, **ends, **vars(pairs))
    if ties.small:
        keys, places = backend.empty(size, np.uint64), backend.empty(size, pairs.places.dtype)
        into = {"sorted_keys": keys, "sorted_places": places, "size": size, "rank_bits": rank_bits}
        backend.launch(_SORT_SMALL, size, keys=pairs.keys, places=pairs.places, **into)
    else:
        keys, places = sort_pairs(pairs.keys, pairs.places, rank_bits + (count - 1).bit_length(), backend)
    _settle(_Sorted(keys, places, size, (1 << rank_bits) - 1, 1), pairs.slots, groups, backend)
    return size


def _tied(groups: _Groups, ties: _Ties, backend: Backend) -> tuple[Array, Array]:
    """How many slots of each run tie, and how many groups they are; int64 [runs] each."""
    runs = -(-groups.slot_count // _RUN)
    slots, heads = backend.empty(runs, np.int64), backend.empty(runs, np.int64)
    backend.launch(_COUNT_TIED, runs, groups=groups, ties=ties, tied=slots, tied_groups=heads)
    return slots, heads


def _stretches(groups: _Groups, most: int, backend: Backend) -> Iterator[tuple[int, int]]:
    """All slots, in parts of whole groups that have at most so many tied ones; no group has more."""
    everything = (_Ties(0, groups.slot_count, small) for small in (0, 1))
    large, small = (backend.ends(_tied(groups, ties, backend)[0]) for ties in everything)
    first, tied = 0, large[1] + small[1]
    if tied > most:
        ends, done = backend.to_host(large[0]) + backend.to_host(small[0]), 0
        while tied - done > most:
            # The slot with which there would be too many, and its group's head. The slots of a run are counted from
            # its end: what stands in front of `first` is sorted meanwhile.
            run = int(np.searchsorted(ends, done + most, "right"))
            held = ends[run] - _tied_slots(groups, run, backend)[::-1].cumsum()[::-1]
            slot = run * _RUN + int(np.searchsorted(held, done + most, "right")) - 1
            place = int(backend.to_host(groups.order[slot : slot + 1])[0])
            end = int(backend.to_host(groups.ranks[place : place + 1])[0]) - 1
            done += most - (slot - end)
            yield first, end
            first = end
    yield first, groups.slot_count


def _tied_slots(groups: _Groups, run: int, backend: Backend) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each slot of a run ties."""
    words = backend.to_host(groups.heads[run * _RUN // 32 : (run + 1) * _RUN // 32 + 1])
    heads = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
    heads = np.append(heads[: groups.slot_count - run * _RUN], True)
    tied: np.ndarray[Any, np.dtype[np.bool_]] = ~(heads[:-1] & heads[1:])[:_RUN]
    return tied
