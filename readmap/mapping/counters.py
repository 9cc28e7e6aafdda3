"""Counters of a search: what was done for the reads, and what was reported of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from readmap.backend.compilation.declarations import constant
from readmap.mapping.parameters import ALT_HIDDEN, DIVERGENT, REPETITIVE, SPLIT, UNSEARCHED

#: Number of MAPQ values, 0 to 60.
MAPQS = 61
#: Values of Alignments.tallies.
TALLIES = constant("mapping/alignments.cuh", "TALLIES")
PROPER_TALLY, SUPPLEMENTARY_TALLY, SECONDARY_TALLY, UNMAPPED_TALLY = (
    constant("mapping/alignments.cuh", name)
    for name in ("PROPER_TALLY", "SUPPLEMENTARY_TALLY", "SECONDARY_TALLY", "UNMAPPED_TALLY")
)
#: The counter of WorkCounters for the reads of a search pass, by the reason for the pass.
PASS_COUNTERS = {
    UNSEARCHED: "searched",
    REPETITIVE: "repetitive",
    DIVERGENT: "divergent",
    ALT_HIDDEN: "alt_hidden",
    SPLIT: "split",
}


@dataclass
class WorkCounters:
    """Amount of work done for a batch or a run; shows why a run was slow. A read searched twice counts twice."""

    resolved: int = 0  # reads placed by partition seeds
    near_mates: int = 0  # reads searched near their mates before a seed search
    resolved_near_mates: int = 0  # reads placed there
    searched: int = 0  # reads searched by seeds; the next four: reads of later search passes
    repetitive: int = 0
    divergent: int = 0
    alt_hidden: int = 0
    split: int = 0
    windows: int = 0  # candidate placements compared with reads
    scored: int = 0  # banded alignments scored
    traced: int = 0  # banded alignments with a traceback
    rescues: int = 0  # mates searched near their placed mate
    rescued: int = 0  # mates placed there
    repeated: int = 0  # reads of batches searched again because a list exceeded its capacity

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add counts by name; ignore names that are not fields of this class."""
        for name in counts.keys() & vars(self).keys():
            setattr(self, name, getattr(self, name) + counts[name])

    def add(self, other: WorkCounters) -> None:
        for one in fields(WorkCounters):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class Counters:
    """Counts of reads and records of a batch; a run has the sum of its batches."""

    reads: int = 0  # records read
    singles: int = 0  # reads without a mate
    replaced: int = 0  # ambiguous letters other than N, which are written as N
    primary: int = 0  # primary records, one per read
    mapped: int = 0  # mapped reads
    properly_paired: int = 0  # reads in proper pairs
    supplementary: int = 0
    secondary: int = 0
    too_short: int = 0  # reads too short to reach the minimum score without any difference
    mapqs: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(MAPQS, np.int64))

    def add_tallies(self, tallies: Sequence[int]) -> None:
        """Add the records of a batch; tallies: number of entries with each value of Alignments.tallies, [TALLIES]."""
        counts = np.array(tallies, np.int64)
        proper = counts[PROPER_TALLY : PROPER_TALLY + MAPQS]
        mapqs = counts[:MAPQS] + proper
        self.mapqs = self.mapqs + mapqs
        self.mapped += int(mapqs.sum())
        self.primary += int(mapqs.sum() + counts[UNMAPPED_TALLY])
        self.properly_paired += int(proper.sum())
        self.supplementary += int(counts[SUPPLEMENTARY_TALLY])
        self.secondary += int(counts[SECONDARY_TALLY])

    def add(self, other: Counters) -> None:
        for one in fields(Counters):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
