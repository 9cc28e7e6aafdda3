"""What the stages of a search count."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

MAPQS = 61  # 0 to 60


@dataclass
class Counters:
    """Counts of a batch, to which its stages add; those of batches add up to a run's.

    Attributes:
        reads: records read; singles: of these, those that have no mate.
        replaced: ambiguous letters of reads other than N, written as N.
        primary: primary records, one a read; mapped: reads with a place.
        properly_paired: reads that make a fragment of the library with their mates.
        supplementary, secondary: alignments beside the primary ones.
        too_short: reads that cannot reach the minimum score even without a difference.
        mapqs: int64 [61], mapped reads by MAPQ.
    """

    reads: int = 0
    singles: int = 0
    replaced: int = 0
    primary: int = 0
    mapped: int = 0
    properly_paired: int = 0
    supplementary: int = 0
    secondary: int = 0
    too_short: int = 0
    mapqs: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(MAPQS, np.int64))

    def add(self, other: Counters) -> None:
        """Add another batch's."""
        for one in fields(Counters):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
