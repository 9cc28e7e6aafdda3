"""Plan of the suffix sort: the part and the memory of each device, and the number of suffixes sorted at a time."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.team import Team
from readmap.errors import BackendError
from readmap.formats.wording import format_bytes
from readmap.index.reference import DeviceReference

_CODES = Kernel("index/suffix_sorting", "count_codes")
_BATCH_CODES, RUN = (constant("index/suffix_sorting.cu", name) for name in ("BATCH_CODES", "RUN"))

#: Positions of an item that counts codes: enough to keep a thread block busy.
_SECTION = 1 << 16

#: A batch has at least 1/_SHARE of a device's suffixes and at least _MIN_PAIRS (or all), and at most _MAX_PAIRS even if
#: memory allows more.
_SHARE, _MIN_PAIRS, _MAX_PAIRS = 20, 1 << 24, 1 << 30

#: Maximum number of int64 counters per run of slots that exist at a time: counts of tied slots and groups, and their
#: sums.
_RUN_COUNTS = 9

#: Device memory for everything that grows more slowly than the suffixes, such as chunks of other devices' arrays.
_FIXED_BYTES = 640 << 20

#: Whether `order` and `ranks` are in device memory, instead of host memory; the fastest choice first.
_WAYS = ((True, True), (False, True), (False, False))

Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class SortBatch:
    """The suffixes with a code in [first_code, end_code): their first slot on the device and their count."""

    first_code: int
    end_code: int
    first_slot: int
    suffixes: int


@dataclass(frozen=True)
class SortPart:
    """A device's part of the sort.

    first_code: smallest code of its suffixes. codes: int64, the number of suffixes with each code, starting at
    first_code. first_slot: its first slot in the whole suffix array. pairs: maximum number of suffixes sorted together.
    holds_order, holds_ranks: whether its order, and the ranks of all positions, are in device memory.
    """

    first_code: int
    codes: Counts
    first_slot: int
    pairs: int
    holds_order: bool
    holds_ranks: bool

    @property
    def suffixes(self) -> int:
        return int(self.codes.sum())

    def batches(self) -> Iterator[SortBatch]:
        """Yield batches of consecutive codes, each with at most `pairs` suffixes unless it has a single code."""
        first, slot, size = 0, 0, 0
        for code, count in enumerate(self.codes.tolist()):
            if size and size + count > self.pairs:
                yield SortBatch(self.first_code + first, self.first_code + code, slot, size)
                first, slot, size = code, slot + size, 0
            size += count
        if size:
            yield SortBatch(self.first_code + first, self.first_code + len(self.codes), slot, size)


@dataclass(frozen=True)
class SortPlan:
    """The plan of a suffix sort; length: positions with barriers; dtype: type of positions; parts: in slot order."""

    length: int
    dtype: np.dtype[Any]
    parts: tuple[SortPart, ...]

    @property
    def suffixes(self) -> int:
        return sum(part.suffixes for part in self.parts)

    @property
    def nbytes(self) -> int:
        """The bytes of memory the sort takes, including the result, on devices and host."""
        return sum(_bytes(part, self.length, self.dtype) for part in self.parts)

    @property
    def host_bytes(self) -> int:
        """The bytes of host memory the sort takes: arrays that do not fit into device memory."""
        order = sum(part.suffixes for part in self.parts if not part.holds_order)
        return self.dtype.itemsize * (order + self.length * sum(not part.holds_ranks for part in self.parts))


def plan_sort(reference: DeviceReference, length: int, dtype: Any, team: Team) -> SortPlan:
    """Plan the sort on all devices, or on the first alone; BackendError if even the first has too little memory."""
    counts, dtype = team.first.full(_BATCH_CODES, 0, np.uint64), np.dtype(dtype)
    sections = -(-length // _SECTION)
    team.first.launch(_CODES, sections, reference=reference, counts=counts, length=length, section_size=_SECTION)
    codes = team.first.to_host(counts).astype(np.int64)
    parts = _divide(codes, len(team.backends))
    memories = team.map(lambda backend, _: backend.memory(), team.backends, parts)
    if len(parts) > 1:
        fitting = [_fit(part, length, dtype, memory, _WAYS[:1]) for part, memory in zip(parts, memories, strict=True)]
        shared = tuple(part for part in fitting if part)
        if len(shared) == len(parts):
            return SortPlan(length, dtype, shared)
    (whole,), memory = _divide(codes, 1), memories[0]
    part = _fit(whole, length, dtype, memory, _WAYS)
    if part is None:
        needed = _bytes(whole, length, dtype, _WAYS[-1]) + _FIXED_BYTES
        sizes = f"{format_bytes(memory[0])} are free, {format_bytes(needed)} are needed"
        raise BackendError(f"{team.first.name} has too little memory to sort {whole.suffixes:,} suffixes: {sizes}")
    return SortPlan(length, dtype, (part,))


def _divide(codes: Counts, devices: int) -> list[SortPart]:
    """Split the codes into ranges of similar numbers of suffixes, one per device, with the minimum number of pairs."""
    slots = np.concatenate(([0], codes.cumsum()))
    cuts = [int(np.abs(devices * slots - device * slots[-1]).argmin()) for device in range(devices)]
    bounds = itertools.pairwise([*cuts, len(codes)])
    shares = [(first, end) for first, end in bounds if slots[first] < slots[end]] or [(0, len(codes))]
    parts = []
    for first, end in shares:
        total = int(slots[end] - slots[first])
        pairs = max(total // _SHARE, min(total, _MIN_PAIRS), int(codes[first:end].max()))
        parts.append(SortPart(first, codes[first:end], int(slots[first]), pairs, True, True))
    return parts


def _fit(
    part: SortPart, length: int, dtype: np.dtype[Any], memory: tuple[int, int] | None, ways: Sequence[tuple[bool, bool]]
) -> SortPart | None:
    """Return the part with the first (holds_order, holds_ranks) of `ways` that fits in memory, or None if none does."""
    if memory is None:
        return part
    for way in ways:
        free = memory[0] - _FIXED_BYTES - _bytes(part, length, dtype, way)
        if free >= 0:
            pairs = min(part.pairs + free // _pair_bytes(dtype), max(part.pairs, _MAX_PAIRS), part.suffixes)
            return replace(part, pairs=pairs, holds_order=way[0], holds_ranks=way[1])
    return None


def _bytes(part: SortPart, length: int, dtype: np.dtype[Any], way: tuple[bool, bool] = (True, True)) -> int:
    """Return the bytes of device memory to sort a part; way: whether `order` and `ranks` are in device memory."""
    order, ranks = way
    arrays = dtype.itemsize * (order * part.suffixes + ranks * length) + part.suffixes // 8
    return arrays + part.pairs * _pair_bytes(dtype) + _RUN_COUNTS * 8 * -(-length // RUN)


def _pair_bytes(dtype: np.dtype[Any]) -> int:
    """Return the bytes of a pair: key and position, twice, and slot."""
    return 16 + 3 * dtype.itemsize
