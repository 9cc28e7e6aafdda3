"""What the stages of a batch count and list on its device, of which the host hears once.

A device that does not tell at once goes on with sizes that the host does not know. What a stage lists there has room
for as many as batches before needed, and some more. Where that does not suffice nothing is listed, and the batch is to
be searched again.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import select_flagged_into, select_flagged, scan_flagged
from readmap.backend.device_counts import BoundedCount, Count, DeviceList
from readmap.mapping.counters import TALLIES

#: What kernels add up, and of how many kinds; the other numbers are sizes.
TOTALS = {"unresolved": 1, "resolved_near_mates": 1, "windows": 1, "rescued": 1, "replaced": 1, "tallies": TALLIES}

#: Numbers of sizes for which the device has room, of further ones the host hears at once; and of totals asked for.
NUMBERS, ASKED = 1024, 16

#: Room beyond what batches before needed: a part of that, and some. Batches of few reads need no more than some, or
#: what they need beyond it shows what others of their size do.
MORE, SOME, FEW_READS = 0.25, 4096, 8192

#: Where each of the totals begins, and where all end.
_BEGINS = dict(zip(TOTALS, np.cumsum([0, *TOTALS.values()]).tolist(), strict=False))
_ALL_TOTALS = sum(TOTALS.values())

_TELL = Kernel("common/inclusive_sum", "clamp_count")


class CapacityExceeded(Exception):
    """A stage found more than there was room for."""


@dataclass(frozen=True)
class CapacityEstimates:
    """For each read, what batches needed of what their stages list, by name: all threads' batches share it.

    are_used: whether there is room by these alone; else the host hears of every size at once.
    """

    known: dict[str, float] = field(default_factory=dict)
    are_used: bool = True

    def learn(self, name: str, reads: int, needed: int) -> None:
        """A batch needed so many, for which there was at least room for some."""
        shown = needed if reads >= FEW_READS else max(needed - SOME, 0)
        self.known[name] = max(self.known.get(name, 0.0), shown / reads)

    def room(self, name: str, reads: int) -> int | None:
        """For how many a batch is to have room; None where that is not known."""
        if not self.are_used or name not in self.known:
            return None
        return int((1 + MORE) * self.known[name] * reads) + SOME


@dataclass(frozen=True)
class Sizes:
    """What a stage lists, by kind.

    name: that it is counted by; keys: those of the rates. rooms: for how many there is room, None where the host is to
    hear of it at once. told, needed: int64 on the device, how many there are, none without room for all, and how many
    are needed.
    """

    name: str
    keys: list[str]
    rooms: list[int] | None
    told: Array = None
    needed: Array = None

    def bounded(self, unit: int = 1) -> list[Count]:
        """How many there are of each kind, in units."""
        rooms = self.rooms or []
        return [BoundedCount(room // unit, self.told[kind : kind + 1]) for kind, room in enumerate(rooms)]

    def lacking(self, needed: Sequence[int]) -> list[str]:
        """The keys of the kinds for which there is no room."""
        return [key for key, room, count in zip(self.keys, self.rooms or [], needed, strict=True) if count > room]


@functools.cache
def _unknown(name: str) -> Sizes:
    """Of what the host is to hear at once."""
    return Sizes(name, [], None)


class DeviceCounters:
    """The numbers of a batch."""

    def __init__(self, reads: int, backend: Backend, capacity_estimates: CapacityEstimates | None) -> None:
        """rates: None where the host hears of every size at once, and nothing is learnt."""
        self._reads, self._backend = reads, backend
        self._rates = None if backend.host_sees_counts else rates
        self._uses: Counter[str] = Counter()
        self._clear()

    def _clear(self) -> None:
        sizes = NUMBERS if self._rates else 0
        self._numbers, self._taken = self._backend.full(_ALL_TOTALS + sizes + ASKED, 0, np.int64), _ALL_TOTALS
        self._counted: Counter[str] = Counter()
        self._bounded: list[tuple[Sizes, int]] = []  # and where their `needed` begin

    def total(self, name: str) -> Array:
        """One of TOTALS, uint64, to which kernels add."""
        begin = _BEGINS[name]
        return self._numbers.view(np.uint64)[begin : begin + TOTALS[name]]

    def sizes(self, name: str, of: DeviceList, most: Sequence[int], unit: int = 1) -> Sizes:
        """Of what is listed for those listed; most: of each kind; unit: rooms are multiples of it."""
        return self._sizes(name, f"{of.key} {name}", most, unit, of.count)

    def _sizes(
        self,
        name: str,
        key: str,
        most: Sequence[int],
        unit: int = 1,
        owners: Count | None = None,
        may_be_more: bool = False,
    ) -> Sizes:
        """owners: how many there are of what these belong to; where the host knows that, it hears of these at once.

        may_be_more: whether there may be more than `most`: it does where batches before make that likely, too.
        """
        if not self._rates:
            return _unknown(name)
        self._uses[key] += 1
        keys = [f"{key} {self._uses[key]} {kind}" for kind in range(len(most))]
        known = [self._rates.room(one, self._reads) for one in keys]
        rooms = [
            -(-min(room, at_most) // unit) * unit for room, at_most in zip(known, most, strict=True) if room is not None
        ]
        if may_be_more and any(room >= at_most for room, at_most in zip(rooms, most, strict=False)):
            owners = 0
        begin, middle, end = (self._taken + times * len(most) for times in range(3))
        if isinstance(owners, int) or len(rooms) < len(most) or end > _ALL_TOTALS + NUMBERS:
            return replace(_unknown(name), keys=keys)
        self._taken = end
        sizes = Sizes(name, keys, rooms, self._numbers[begin:middle], self._numbers[middle:end])
        self._bounded.append((sizes, middle))
        return sizes

    def know(self, sizes: Sizes, needed: Sequence[int]) -> None:
        """How many of each kind are needed."""
        self._counted[sizes.name] += sum(needed)
        if self._rates:
            for key, count in zip(sizes.keys, needed, strict=True):
                self._rates.learn(key, self._reads, count)

    def select_flagged(
        self, name: str, marks: Array, mask: int, number: int = 0, *, apart: str = "", beside: DeviceList | None = None
    ) -> DeviceList:
        """The numbers of the marks that have a bit of the mask, as backend.marks has it.

        apart: what tells it from other lists of the name. beside: of what there is none either without room for all.
        """
        sizes, backend = self._sizes(name, name + apart, [len(marks)]), self._backend
        if sizes.rooms is None:
            numbers = select_flagged(marks, mask, backend, number)
            self.know(sizes, [len(numbers)])
            return DeviceList(numbers, len(numbers), *sizes.keys)
        ends, numbers = scan_flagged(marks, mask, backend), backend.empty(sizes.rooms[0], np.int32)
        owners = beside.count.device_count if beside and isinstance(beside.count, BoundedCount) else sizes.told
        self._tell(ends, sizes.told, sizes.needed, owners, sizes.rooms[0])
        select_flagged_into(numbers, marks, mask, ends, backend, number)
        return DeviceList(numbers, sizes.bounded()[0], sizes.keys[0])

    def ends(
        self, name: str, counts: Array, of: DeviceList, most: int, *, may_be_more: bool = False
    ) -> tuple[Array, Count]:
        """The inclusive prefix sum of int64 counts, and their total; without room for all, none are listed.

        may_be_more: than `most`, which have memory at once: where that is likely, the host hears of the total.
        """
        sizes = self._sizes(name, f"{of.key} {name}", [most], 1, of.count, may_be_more)
        ends = self._backend.inclusive_sum(counts)
        if sizes.rooms is None or not isinstance(of.count, BoundedCount):
            total = self._backend.total(ends)
            self.know(sizes, [total])
            return ends, total
        self._tell(ends, sizes.told, sizes.needed, of.count.device_count, sizes.rooms[0])
        return ends, sizes.bounded()[0]

    def _tell(self, ends: Array, told: Array, needed: Array, owners: Array, room: int) -> None:
        given = {"ends": ends, "count": told, "needed": needed, "owner_count": owners}
        self._backend.launch(_TELL, 1, **given, size=len(ends), capacity=room)

    def read_back(self, *sums: tuple[Array, int]) -> tuple[Counter[str], list[int], list[int]]:
        """What was counted, by name, the tallies, and the last of some prefix sums; now it is counted anew.

        sums: as Backend.row_ends has them.
        Raises CapacityExceeded where a stage had no room for all that it found.
        """
        backend, counted, begin = self._backend, self._counted, self._taken
        for ends, rows in sums:
            first, self._taken = self._taken, self._taken + rows
            backend.copy_row_ends(ends, self._numbers[first : self._taken])
        numbers = backend.to_host(self._numbers[: self._taken]).tolist()
        totals = numbers[begin:]
        for name, begin in _BEGINS.items():
            counted[name] += numbers[begin]
        found = [(sizes, numbers[place : place + len(sizes.keys)]) for sizes, place in self._bounded]
        if lacking := [key for sizes, needed in found for key in sizes.lacking(needed)]:
            raise CapacityExceeded(", ".join(lacking))  # what stages behind these found, says nothing
        for sizes, needed in found:
            self.know(sizes, needed)
        self._clear()
        begin = _BEGINS["tallies"]
        return counted, numbers[begin : begin + TALLIES], totals
