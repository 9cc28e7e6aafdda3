"""How the suffixes of a reference are sorted: what each device sorts, in which memory, and how many at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.team import Team
from readmap.errors import BackendError
from readmap.index.reference import DeviceReference

_CODES = Kernel("index/suffix_sorting", "count_codes")
_BATCH_CODES, RUN = (constant("index/suffix_sorting.cu", name) for name in ("BATCH_CODES", "RUN"))

#: Places of an item that counts codes: as many as keep a block of threads busy.
_SECTION = 1 << 16

#: A batch has this share of a device's suffixes, but no less than _MIN_PAIRS where there are so many, and no more
#: than _MAX_PAIRS where memory does not matter.
_SHARE, _MIN_PAIRS, _MAX_PAIRS = 20, 1 << 24, 1 << 30

#: Numbers, int64, that are kept of each run of slots at a time: counts of what ties in it, and where these end.
_RUN_COUNTS = 9

#: Bytes of device memory for what grows slower than the suffixes, pieces of another device's arrays among them.
_FIXED_BYTES = 640 << 20

#: Whether order, and whether ranks, are in the device's own memory: the fastest way first.
_WAYS = ((True, True), (False, True), (False, False))

Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class SortBatch:
    """The suffixes whose code is in [first_code, end_code), the first of their slots on the device, and their count."""

    first_code: int
    end_code: int
    first_slot: int
    suffixes: int


@dataclass(frozen=True)
class SortPart:
    """What a device sorts.

    Attributes:
        first_code: of its suffixes.
        codes: int64, the suffixes that begin with each code from the first one on.
        first_slot: of the whole order, the first one of theirs.
        pairs: the most suffixes that are sorted together.
        holds_order, holds_ranks: whether their order, and the ranks of all places, are in the device's own memory.
    """

    first_code: int
    codes: Counts
    first_slot: int
    pairs: int
    holds_order: bool
    holds_ranks: bool

    @property
    def suffixes(self) -> int:
        """How many suffixes it sorts."""
        return int(self.codes.sum())

    def batches(self) -> Iterator[SortBatch]:
        """Codes that follow each other and have no more suffixes together than are sorted together."""
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
    """How the suffixes of a reference are sorted.

    Attributes:
        length: of the reference, with barriers.
        dtype: uint32 or uint64, of places.
        parts: in the order of their slots, one for each of the first devices.
    """

    length: int
    dtype: np.dtype[Any]
    parts: tuple[SortPart, ...]

    @property
    def suffixes(self) -> int:
        """How many suffixes are sorted."""
        return sum(part.suffixes for part in self.parts)

    @property
    def nbytes(self) -> int:
        """The bytes of memory that sorting takes, the order among them, wherever they are."""
        return sum(_bytes(part, self.length, self.dtype) for part in self.parts)

    @property
    def host_bytes(self) -> int:
        """Those of a GPU's host: what the devices do not hold."""
        order = sum(part.suffixes for part in self.parts if not part.holds_order)
        return self.dtype.itemsize * (order + self.length * sum(not part.holds_ranks for part in self.parts))


def plan_sort(reference: DeviceReference, length: int, dtype: Any, team: Team) -> SortPlan:
    """How suffixes are sorted there, by the first device alone where another one has too little memory for its part.

    reference: on the first device. Raises BackendError where that has too little memory for any way.
    """
    counts, dtype = team.first.full(_BATCH_CODES, 0, np.uint64), np.dtype(dtype)
    sections = -(-length // _SECTION)
    team.first.launch(_CODES, sections, reference=reference, counts=counts, length=length, section_size=_SECTION)
    codes = team.first.to_host(counts).astype(np.int64)
    parts = _divide(codes, len(team.backends))
    memories = team.each(lambda backend, _: backend.memory(), team.backends, parts)
    if len(parts) > 1:
        fitting = [_fit(part, length, dtype, memory, _WAYS[:1]) for part, memory in zip(parts, memories, strict=True)]
        shared = tuple(part for part in fitting if part)
        if len(shared) == len(parts):
            return SortPlan(length, dtype, shared)
    (whole,), memory = _divide(codes, 1), memories[0]
    part = _fit(whole, length, dtype, memory, _WAYS)
    if part is None:
        needed = _bytes(whole, length, dtype, _WAYS[-1]) + _FIXED_BYTES
        raise BackendError(
            f"{team.first.name} has too little memory to sort {whole.suffixes:,} suffixes: {memory[0]:,} bytes are "
            f"free, {needed:,} are needed"
        )
    return SortPlan(length, dtype, (part,))


def _divide(codes: Counts, devices: int) -> list[SortPart]:
    """Neighbouring codes for each device, about as many suffixes each, but for devices that would have none.

    They have the fewest pairs that are sorted together, and all is in the devices' memory.
    """
    slots = np.concatenate(([0], codes.cumsum()))
    cuts = [int(np.abs(devices * slots - device * slots[-1]).argmin()) for device in range(devices)]
    bounds = itertools.pairwise([*cuts, len(codes)])
    shares = [(first, end) for first, end in bounds if slots[first] < slots[end]] or [(0, len(codes))]
    parts = []
    for first, end in shares:
        total = int(slots[end] - slots[first])
        least = max(total // _SHARE, min(total, _MIN_PAIRS), int(codes[first:end].max()))
        parts.append(SortPart(first, codes[first:end], int(slots[first]), least, True, True))
    return parts


def _fit(
    part: SortPart, length: int, dtype: np.dtype[Any], memory: tuple[int, int] | None, ways: Sequence[tuple[bool, bool]]
) -> SortPart | None:
    """The same in the first way that the device has room for, with as many pairs as fit; None if there is no room."""
    if memory is None:
        return part
    for way in ways:
        free = memory[0] - _FIXED_BYTES - _bytes(part, length, dtype, way)
        if free >= 0:
            pairs = part.pairs + free // _pair_bytes(dtype)
            return replace(
                part,
                pairs=min(pairs, max(part.pairs, _MAX_PAIRS), part.suffixes),
                holds_order=way[0],
                holds_ranks=way[1],
            )
    return None


def _bytes(part: SortPart, length: int, dtype: np.dtype[Any], held: tuple[bool, bool] = (True, True)) -> int:
    """What a device takes to sort a part, with order, and with ranks, where these are held."""
    order, ranks = held
    arrays = dtype.itemsize * (order * part.suffixes + ranks * length) + part.suffixes // 8
    return arrays + part.pairs * _pair_bytes(dtype) + _RUN_COUNTS * 8 * -(-length // RUN)


def _pair_bytes(dtype: np.dtype[Any]) -> int:
    """Of a pair that is sorted: its key and its place twice, and its slot."""
    return 16 + 3 * dtype.itemsize
