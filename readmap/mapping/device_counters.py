"""Device-side counters and list sizes of a batch, read back by the host once per batch.

A GPU's kernels are launched before the host knows how many elements the kernels before them listed. Each list therefore
has a capacity, estimated from earlier batches plus some headroom. If more elements are found than a list can hold, the
list stays empty, and the batch is searched again with sizes that the host reads back at once.
"""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import scan_flagged, select_flagged, select_flagged_into
from readmap.backend.device_counts import BoundedCount, Count, DeviceList
from readmap.mapping.counters import TALLIES

#: Totals that kernels add to, and the number of counters of each.
TOTALS = {"unresolved": 1, "resolved_near_mates": 1, "windows": 1, "rescued": 1, "replaced": 1, "tallies": TALLIES}
#: Device counters of a batch: for list sizes (the host reads further sizes back at once), and for sums read back last.
SIZE_COUNTERS, SUM_COUNTERS = 1024, 16
#: Headroom above the largest use seen per read: a fraction and a number of elements. A batch with fewer reads than
#: SMALL_BATCH fits into the constant headroom, so only its use beyond MIN_HEADROOM enters the estimate.
HEADROOM, MIN_HEADROOM, SMALL_BATCH = 0.25, 4096, 8192
#: Index of the first counter of each total, and the number of counters of all totals.
_STARTS = dict(zip(TOTALS, np.cumsum([0, *TOTALS.values()]).tolist(), strict=False))
_ALL_TOTALS = sum(TOTALS.values())

_CLAMP = Kernel("common/inclusive_sum", "clamp_count")


class CapacityExceeded(Exception):
    """A stage found more elements than the capacity of its list."""


@dataclass(frozen=True)
class CapacityEstimates:
    """Largest number of elements per read that batches needed, by list; shared by the threads of a device."""

    per_read: dict[str, float] = field(default_factory=dict)
    is_enabled: bool = True  # False: the host reads every size back at once, and uses are recorded

    def record_use(self, name: str, reads: int, needed: int) -> None:
        """Record that a batch of `reads` reads needed `needed` elements of a list."""
        counted = needed if reads >= SMALL_BATCH else max(needed - MIN_HEADROOM, 0)
        self.per_read[name] = max(self.per_read.get(name, 0.0), counted / reads)

    def capacity(self, name: str, reads: int) -> int | None:
        """Return the capacity of the list `name` for a batch of `reads` reads, or None if no batch has measured it."""
        if not self.is_enabled or name not in self.per_read:
            return None
        return int((1 + HEADROOM) * self.per_read[name] * reads) + MIN_HEADROOM


@dataclass(frozen=True)
class Reservation:
    """Capacities and device counters of the lists of a stage, by kind of element."""

    name: str  # counter that the sizes are added to
    keys: list[str]  # names of the lists in CapacityEstimates
    capacities: list[int] | None  # elements of each list; None if the host reads the sizes back at once
    counts: Array = None  # int64 [kinds] on the device, elements of each list, 0 if its capacity is exceeded
    needed: Array = None  # int64 [kinds] on the device, elements found

    def bounded_counts(self, unit: int = 1) -> list[Count]:
        """Return the number of elements of each kind, in multiples of `unit`."""
        capacities = self.capacities or []
        return [BoundedCount(one // unit, self.counts[kind : kind + 1]) for kind, one in enumerate(capacities)]

    def exceeded(self, needed: Sequence[int]) -> list[str]:
        """Return the keys of the lists whose capacity is less than `needed`."""
        pairs = zip(self.keys, self.capacities or [], needed, strict=True)
        return [key for key, capacity, count in pairs if count > capacity]


@functools.cache
def _unreserved(name: str) -> Reservation:
    return Reservation(name, [], None)


class DeviceCounters:
    """The counters and reservations of one batch."""

    def __init__(self, reads: int, backend: Backend, estimates: CapacityEstimates | None) -> None:
        """estimates: None if the host shall read every size back at once and record nothing."""
        self._reads, self._backend = reads, backend
        self._estimates = None if backend.host_sees_counts else estimates
        self._uses: Counter[str] = Counter()
        self._reset()

    def _reset(self) -> None:
        """Allocate new counters of 0, and forget all reservations."""
        sizes = SIZE_COUNTERS if self._estimates else 0
        self._numbers = self._backend.full(_ALL_TOTALS + sizes + SUM_COUNTERS, 0, np.int64)
        self._taken = _ALL_TOTALS
        self._counted: Counter[str] = Counter()
        self._reserved: list[tuple[Reservation, int]] = []  # with the index of the first element of `needed`

    def total(self, name: str) -> Array:
        """Return the counters of a total, uint64 on the device, for kernels to add to."""
        start = _STARTS[name]
        return self._numbers.view(np.uint64)[start : start + TOTALS[name]]

    def reserve(self, name: str, items: DeviceList, max_counts: Sequence[int], unit: int = 1) -> Reservation:
        """Reserve a list for each kind of element that kernels find for `items`, with a capacity from earlier batches.

        name: counter of all elements. max_counts: upper bounds by kind. unit: capacities are rounded up to multiples.
        """
        return self._reserve(name, f"{items.key} {name}", max_counts, unit, items.count)

    def _reserve(
        self,
        name: str,
        key: str,
        max_counts: Sequence[int],
        unit: int = 1,
        items: Count | None = None,
        may_be_more: bool = False,
    ) -> Reservation:
        """Reserve lists, or return a reservation without capacities if the host shall read their sizes back at once.

        The host does so if `items`, the number of items that produce elements, is known to it or None is estimated for
        `key`, the list's name in the estimates, or if an estimate reaches max_counts and `may_be_more`.
        """
        if not self._estimates:
            return _unreserved(name)
        self._uses[key] += 1
        keys = [f"{key} {self._uses[key]} {kind}" for kind in range(len(max_counts))]
        known = [self._estimates.capacity(one, self._reads) for one in keys]
        capacities = [
            -(-min(one, most) // unit) * unit for one, most in zip(known, max_counts, strict=True) if one is not None
        ]
        if may_be_more and any(one >= most for one, most in zip(capacities, max_counts, strict=False)):
            items = 0
        start, middle, end = (self._taken + times * len(max_counts) for times in range(3))
        if isinstance(items, int) or len(capacities) < len(max_counts) or end > _ALL_TOTALS + SIZE_COUNTERS:
            return replace(_unreserved(name), keys=keys)
        self._taken = end
        reserved = Reservation(name, keys, capacities, self._numbers[start:middle], self._numbers[middle:end])
        self._reserved.append((reserved, middle))
        return reserved

    def record_use(self, reserved: Reservation, needed: Sequence[int]) -> None:
        """Add the sizes of the reserved lists, by kind, to their counter, and record them for later batches."""
        self._counted[reserved.name] += sum(needed)
        if self._estimates:
            for key, count in zip(reserved.keys, needed, strict=True):
                self._estimates.record_use(key, self._reads, count)

    def select_flagged(
        self,
        name: str,
        flags: Array,
        mask: int,
        first_index: int = 0,
        *,
        variant: str = "",
        required_by: DeviceList | None = None,
    ) -> DeviceList:
        """Return the list of first_index plus the index of each uint8 flag that has a bit of the mask, ascending.

        name: counter that the size is added to. variant: distinguishes the estimates of lists with the same name.
        required_by: a list that is emptied too if the new list exceeds its capacity.
        """
        reserved, backend = self._reserve(name, name + variant, [len(flags)]), self._backend
        if reserved.capacities is None:
            numbers = select_flagged(flags, mask, backend, first_index)
            self.record_use(reserved, [len(numbers)])
            return DeviceList(numbers, len(numbers), *reserved.keys)
        capacity = reserved.capacities[0]
        ends, numbers = scan_flagged(flags, mask, backend), backend.empty(capacity, np.int32)
        other = required_by.count if required_by else None
        owner_count = other.device_count if isinstance(other, BoundedCount) else reserved.counts
        self._clamp(ends, reserved, owner_count)
        select_flagged_into(numbers, flags, mask, ends, backend, first_index)
        return DeviceList(numbers, reserved.bounded_counts()[0], reserved.keys[0])

    def scan(
        self, name: str, counts: Array, items: DeviceList, max_total: int, *, may_be_more: bool = False
    ) -> tuple[Array, Count]:
        """Return the inclusive prefix sum of int64 counts, and their total; set both it and the size of `items` to 0 on
        the device if it exceeds its capacity. name: counter that the total is added to.

        may_be_more: the total may exceed max_total, the number of elements that fit into memory; if that is likely, the
        host reads it back at once.
        """
        reserved = self._reserve(name, f"{items.key} {name}", [max_total], 1, items.count, may_be_more)
        ends = self._backend.inclusive_sum(counts)
        if reserved.capacities is None or not isinstance(items.count, BoundedCount):
            total = self._backend.total(ends)
            self.record_use(reserved, [total])
            return ends, total
        self._clamp(ends, reserved, items.count.device_count)
        return ends, reserved.bounded_counts()[0]

    def _clamp(self, ends: Array, reserved: Reservation, owner_count: Array) -> None:
        """Store the last of `ends` as the size of a list, or set it and owner_count to 0 if it exceeds the capacity."""
        assert reserved.capacities is not None
        arrays = {"ends": ends, "count": reserved.counts, "needed": reserved.needed, "owner_count": owner_count}
        self._backend.launch(_CLAMP, 1, **arrays, size=len(ends), capacity=reserved.capacities[0])

    def read_back(self, *sums: tuple[Array, int]) -> tuple[Counter[str], list[int], list[int]]:
        """Return the counts by name, the tallies and the row ends of `sums`, and reset all counters.

        sums: (prefix sums, rows), as Backend.row_ends takes them. Raises CapacityExceeded if a list was too small.
        """
        backend, counted, first_sum = self._backend, self._counted, self._taken
        for ends, rows in sums:
            first, self._taken = self._taken, self._taken + rows
            backend.copy_row_ends(ends, self._numbers[first : self._taken])
        numbers = backend.to_host(self._numbers[: self._taken]).tolist()
        for name, start in _STARTS.items():
            counted[name] += numbers[start]
        found = [(reserved, numbers[start : start + len(reserved.keys)]) for reserved, start in self._reserved]
        if exceeded := [key for reserved, needed in found for key in reserved.exceeded(needed)]:
            raise CapacityExceeded(", ".join(exceeded))  # the sizes of later lists are meaningless
        for reserved, needed in found:
            self.record_use(reserved, needed)
        self._reset()
        start = _STARTS["tallies"]
        return counted, numbers[start : start + TALLIES], numbers[first_sum:]
