"""Element counts that may be known only on the device, and lists of indices with such a count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BoundedCount:
    """A count that is at most `capacity`; device_count: int64 [1] on the device."""

    capacity: int
    device_count: Any


Count = int | BoundedCount  # the number of items of a launch, known to the host or only to the device


def capacity_of(count: Count) -> int:
    return count.capacity if isinstance(count, BoundedCount) else count


def count_on_host(count: Count, backend: Any) -> int:
    return int(backend.to_host(count.device_count)[0]) if isinstance(count, BoundedCount) else count


@dataclass(frozen=True)
class DeviceList:
    """Indices of reads or other elements, int32 [capacity], the first `count` valid; key: the name of the list."""

    indices: Any
    count: Count
    key: str = ""

    @classmethod
    def of(cls, indices: Any) -> DeviceList:
        """Wrap an array whose elements are all valid."""
        return cls(indices, len(indices))
