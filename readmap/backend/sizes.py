"""How many there are of what a device lists, where the host goes on before it knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bounded:
    """At most `most`; told: int64 [1] on the device, how many."""

    most: int
    told: Any


#: Items of a launch.
Count = int | Bounded


def most_of(count: Count) -> int:
    """For how many there is to be room."""
    return count.most if isinstance(count, Bounded) else count


def known(count: Count, backend: Any) -> int:
    """How many there are, for which the host waits where it does not know."""
    return int(backend.to_host(count.told)[0]) if isinstance(count, Bounded) else count


@dataclass(frozen=True)
class Listed:
    """Numbers of reads or others, int32 [most_of(count)], of which the first `count` are listed; key: what they are."""

    numbers: Any
    count: Count
    key: str = ""

    @classmethod
    def of(cls, numbers: Any) -> Listed:
        """All of an array."""
        return cls(numbers, len(numbers))
