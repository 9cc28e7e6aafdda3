"""What a scan is to find."""

from __future__ import annotations

from dataclasses import dataclass

from readmap.errors import UsageError
from readmap.scan.matrices import Matrix

#: Where costs of gaps end.
COSTS_END = 1001


@dataclass(frozen=True)
class Costs:
    """How a query and a subject are scored: a gap of k letters costs gap_open + k * gap_extend, as BLAST's does."""

    matrix: Matrix
    gap_open: int
    gap_extend: int

    def __post_init__(self) -> None:
        for name, least in {"gap_open": 0, "gap_extend": 1}.items():
            if not least <= getattr(self, name) < COSTS_END:
                found = getattr(self, name)
                raise UsageError(f"{name.replace('_', ' ')} is {found}, expected {least} to {COSTS_END - 1}")
