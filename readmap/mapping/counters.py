"""What the stages of a search count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from readmap.backend.compilation.declarations import constant
from readmap.mapping.parameters import REPETITIVE, DIVERGENT, ALT_HIDDEN, SPLIT, UNSEARCHED

MAPQS = 61  # 0 to 60

#: What entries are counted as.
TALLIES = constant("mapping/alignments.cuh", "TALLIES")
PROPER_TALLY, SUPPLEMENTARY_TALLY, SECONDARY_TALLY, UNMAPPED_TALLY = (
    constant("mapping/alignments.cuh", name)
    for name in ("PROPER_TALLY", "SUPPLEMENTARY_TALLY", "SECONDARY_TALLY", "UNMAPPED_TALLY")
)

#: What the reads of a pass are counted by, after why it takes them.
PASS_COUNTERS = {UNSEARCHED: "searched", REPETITIVE: "repetitive", DIVERGENT: "divergent", ALT_HIDDEN: "alt_hidden", SPLIT: "split"}


@dataclass
class Work:
    """What was done for the reads of a batch, or of a run: it says why a run was slow.

    Reads that were searched before the insert sizes were known count twice where they are searched again.

    Attributes:
        settled: reads that a few look-ups placed.
        beside: reads that were looked for beside such mates first; settled_beside: those that were placed there.
        searched: others, which were searched by seeds; crowded: those searched with more places of each seed; distant:
            with more seeds, before that or at once; shaded: with very many places, as ALT contigs have them; split: for
            the part that the best place leaves over.
        windows: places that reads were compared at.
        scored: banded alignments of which the score was computed; traced: those of which the path was.
        rescues: mates that were looked for where their partners expect them; rescued: those that have such a place.
        repeated: reads of batches that were searched again, since there was no room for what was found of them.
    """

    resolved: int = 0
    near_mates: int = 0
    resolved_near_mates: int = 0
    searched: int = 0
    repetitive: int = 0
    divergent: int = 0
    alt_hidden: int = 0
    split: int = 0
    windows: int = 0
    scored: int = 0
    traced: int = 0
    rescues: int = 0
    rescued: int = 0
    repeated: int = 0

    def take(self, counted: Mapping[str, int]) -> None:
        """Add what has been counted by name; other names are none of these."""
        for name in counted.keys() & vars(self).keys():
            setattr(self, name, getattr(self, name) + counted[name])

    def add(self, other: Work) -> None:
        """Add another batch's."""
        for one in fields(Work):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


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

    def take(self, tallies: Sequence[int]) -> None:
        """Add what the entries of a plan are counted as; tallies: how many as each."""
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
        """Add another batch's."""
        for one in fields(Counters):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
