"""Element counts that may be known only on the device, and lists of indices with such a count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BoundedCount:
    """A count on the device that is at most `most`; told: int64 [1] on the device."""

    most: int
    told: Any


#: The number of items of a launch, known to the host or only to the device.
Count = int | BoundedCount


def capacity_of(count: Count) -> int:
    """Return the capacity needed for `count` elements."""
    return count.most if isinstance(count, BoundedCount) else count


def known(count: Count, backend: Any) -> int:
    """Return the count; a count on the device is copied to the host, which waits for it."""
    return int(backend.to_host(count.device_count)[0]) if isinstance(count, BoundedCount) else count


@dataclass(frozen=True)
class DeviceList:
    """Indices of reads or other elements, int32 [capacity], the first `count` valid; key: the name of their kind."""

    numbers: Any
    count: Count
    key: str = ""

    @classmethod
    def of(cls, numbers: Any) -> DeviceList:
        """Wrap an array of which all elements are valid."""
        return cls(numbers, len(numbers))
