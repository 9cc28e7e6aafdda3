"""Counts of a lane, several lanes or a sample, and the metrics derived from them.

Counts by flag equal samtools flagstat; other counts equal samtools stats where it has them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend.compilation.declarations import constant
from readmap.qc.counts import CYCLES, FLAGS, INSERTS, QUALITIES
from readmap.qc.coverage import BREADTHS

Numbers = NDArray[np.int64]

PAIRED, PROPER, UNMAPPED, MATE_UNMAPPED, FIRST, SECOND, SECONDARY, FAILED, DUPLICATE, SUPPLEMENTARY = (
    constant("common/sam_flags.cuh", name)
    for name in (
        *("PAIRED", "PROPER_PAIR", "UNMAPPED", "MATE_UNMAPPED", "FIRST_MATE", "SECOND_MATE"),
        *("SECONDARY", "QC_FAILED", "DUPLICATE_RECORD", "SUPPLEMENTARY"),
    )
)
_FLAGS = np.arange(FLAGS)
_PRIMARY = (_FLAGS & (SECONDARY | SUPPLEMENTARY)) == 0

#: The adapters that kernels/qc/records.cu searches.
ADAPTER_NAMES = ("Illumina universal", "Nextera", "small RNA 3'")

#: Minimum quality of a good base (Q30).
GOOD = 30

#: Share of the pairs from which samtools stats computes the mean insert size: the largest sizes are left out.
BULK = 0.99


def flag_mask(flags: int, *, without: int = 0) -> NDArray[np.bool_]:
    """Return which of all flag values, bool [FLAGS], have all bits of `flags` and none of `without`."""
    found: NDArray[np.bool_] = ((_FLAGS & flags) == flags) & ((_FLAGS & without) == 0)
    return found


@dataclass(frozen=True)
class Tally:
    """Counts, int64; mate 0: first mates and single reads, mate 1: second mates.

    records: [mates, UNIT_COUNTERS], enum UnitCounter of kernels/qc/counts.cuh. empty: [mates, FLAGS], records without
    bases. inserts: [orientations, INSERTS], records. qualities: [mates, CYCLES, QUALITIES]; bases: [mates, CYCLES,
    BASES]; mismatches: [mates, CYCLES]; adapters: [mates, ADAPTERS, CYCLES], reads by the adapter's first cycle.
    """

    records: Numbers
    empty: Numbers
    inserts: Numbers
    qualities: Numbers
    bases: Numbers
    mismatches: Numbers
    adapters: Numbers

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def flags(self) -> Numbers:
        """Number of records by flags, [FLAGS]."""
        return _over_mates(self._part("FLAG", FLAGS))

    @property
    def letters(self) -> Numbers:
        """Number of bases of records by flags, [FLAGS]."""
        return _over_mates(self._part("FLAG_LETTERS", FLAGS))

    @property
    def all_records(self) -> int:
        """Number of records, including secondary and supplementary records."""
        return int(self.flags.sum())

    def count(self, mask: NDArray[np.bool_]) -> int:
        """Return the number of records whose flags are in the mask, bool [FLAGS]."""
        return int(self.flags[mask].sum())

    @property
    def reads(self) -> int:
        """Number of primary records."""
        return self.count(_PRIMARY)

    @property
    def bases_read(self) -> int:
        """Number of bases of primary records."""
        return int(self.letters[_PRIMARY].sum())

    @property
    def mapped(self) -> int:
        return self.count(_PRIMARY & flag_mask(0, without=UNMAPPED))

    @property
    def paired(self) -> int:
        return self.count(_PRIMARY & flag_mask(PAIRED))

    @property
    def proper(self) -> int:
        """Number of mapped reads of proper pairs."""
        return self.count(_PRIMARY & flag_mask(PAIRED | PROPER, without=UNMAPPED))

    @property
    def duplicates(self) -> int:
        return self.count(_PRIMARY & flag_mask(DUPLICATE))

    @property
    def good_bases(self) -> int:
        """Number of bases with quality 30 or more."""
        return int(self.qualities[:, :, GOOD:].sum())

    @property
    def bases_with_quality(self) -> int:
        return int(self.qualities.sum())

    @property
    def gc(self) -> float:
        """Share of G and C among the known bases."""
        counted = self.bases.sum((0, 1))
        return share(int(counted[1] + counted[2]), int(counted[:4].sum()))

    @property
    def error_rate(self) -> float:
        return share(self.scalar("DIFFERENCES"), self.scalar("ALIGNED_BASES"))

    @property
    def with_adapter(self) -> int:
        """Number of reads with an adapter; a read with several adapters counts for each."""
        return int(self.adapters.sum())

    def scalar(self, name: str) -> int:
        """Return a single counter of enum UnitCounter."""
        return int(self._part(name, 1).sum())

    @property
    def mapqs(self) -> Numbers:
        """Number of mapped reads by MAPQ, without failed and duplicate reads, [256]."""
        return _over_mates(self._part("MAPQ", 256))

    @property
    def gc_of_reads(self) -> Numbers:
        """Number of reads of each mate by percentage of G and C, [mates, 101]."""
        return self._part("GC_SHARE", 101)

    @property
    def quality_of_reads(self) -> Numbers:
        """Number of reads of each mate by mean quality, [mates, QUALITIES]."""
        return self._part("MEAN_QUALITY", QUALITIES)

    @property
    def pairs_by_insert(self) -> Numbers:
        """Number of pairs by orientation (inward, outward, other) and size, [3, INSERTS]; both mates were counted."""
        return self.inserts // 2

    @property
    def median_insert(self) -> int:
        """Median insert size of inward pairs, without the last bin; 0 without pairs."""
        counted = self.pairs_by_insert[0, : INSERTS - 1]
        total = int(counted.sum())
        return int(np.searchsorted(np.cumsum(counted), (total + 1) // 2)) if total else 0

    @property
    def insert_mean_and_deviation(self) -> tuple[float, float]:
        """Mean and standard deviation of the insert size as in samtools stats: the largest sizes are left out."""
        counted = self.pairs_by_insert.sum(0)
        total = int(counted.sum())
        if not total:
            return 0.0, 0.0
        sums = np.cumsum(counted)
        above = np.flatnonzero(sums / total > BULK)
        end = int(above[0]) + 1 if len(above) else int(np.flatnonzero(counted)[-1]) + 1
        kept, sizes = counted[:end], np.arange(end)
        pairs = int(kept.sum())
        mean = float((kept * sizes).sum()) / pairs
        return mean, math.sqrt(float((kept[1:] * (sizes[1:] - mean) ** 2).sum()) / pairs)

    @functools.cached_property
    def cycles(self) -> int:
        """Number of cycles of the longest read, at most CYCLES."""
        reached = np.flatnonzero(self.bases.sum((0, 2)))
        return int(reached[-1]) + 1 if len(reached) else 0

    def quality_quantile(self, mate: int, quantile: float) -> Numbers:
        """Return the quantile of the qualities in each cycle, [cycles]; -1 without bases."""
        counted = np.cumsum(self.qualities[mate, : self.cycles], axis=1)
        wanted = np.ceil(counted[:, -1:] * quantile).clip(1)
        return np.where(counted[:, -1] > 0, (counted < wanted).sum(1), -1)

    def mean_quality(self, mate: int) -> NDArray[np.float64]:
        """Return the mean quality of each cycle, [cycles]; NaN without bases."""
        counted = self.qualities[mate, : self.cycles]
        return _ratio(counted @ np.arange(QUALITIES), counted.sum(1))

    def base_shares(self, mate: int) -> NDArray[np.float64]:
        """Return the shares of A, C, G, T and others in each cycle, [cycles, 5]; NaN without bases."""
        counted = self.bases[mate, : self.cycles]
        return _ratio(counted, counted.sum(1, keepdims=True))

    def mismatch_shares(self, mate: int) -> NDArray[np.float64]:
        """Return the share of mismatches by cycle among unclipped reads with MD, [cycles]; NaN without reads."""
        started, ended = (self._part(name, CYCLES)[mate] for name in ("ALIGNED_START", "ALIGNED_END"))
        aligned = np.cumsum(started - ended)[: self.cycles]
        return _ratio(self.mismatches[mate, : self.cycles], aligned)

    def adapter_shares(self) -> NDArray[np.float64]:
        """Return for each adapter and cycle the share of reads in which the adapter has started, [adapters, cycles]."""
        started = np.cumsum(self.adapters.sum(0)[:, : self.cycles], axis=1)
        return _ratio(started, np.int64(max(self.reads, 1)))

    @property
    def is_last_cycle_more(self) -> bool:
        """Whether the last cycle stands for later cycles too."""
        return self.cycles == CYCLES

    def _part(self, name: str, size: int) -> Numbers:
        first = constant("qc/counts.cuh", name)
        return self.records[:, first : first + size]


def share(part: float, whole: float) -> float:
    """Return part / whole, or 0 if `whole` is 0."""
    return part / whole if whole else 0.0


def _over_mates(counts: Numbers) -> Numbers:
    total: Numbers = counts.sum(0)
    return total


def _ratio(parts: NDArray[Any], wholes: Any) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.divide(parts, wholes, dtype=np.float64)
        return found


@dataclass(frozen=True)
class LaneTally:
    """The counts of a read group; name, library: "" if missing."""

    name: str
    library: str
    tally: Tally


@dataclass(frozen=True)
class Depths:
    """Depth of coverage by fragments, without unmapped, secondary, failed and duplicate records.

    contigs: names and lengths. histogram: [DEPTHS], covered bases by depth; the last bin stands for all greater depths.
    covered: [contigs, COVERED]: sum of depths, then bases that reach each of BREADTHS. missing_mc: reads without MC,
    whose overlap with the mate counts twice.
    """

    contigs: Sequence[tuple[str, int]]
    histogram: Numbers
    covered: Numbers
    missing_mc: int

    @property
    def length(self) -> int:
        return sum(length for _, length in self.contigs)

    @property
    def mean(self) -> float:
        """Mean depth over all bases."""
        return share(int(self.covered[:, 0].sum()), self.length)

    @property
    def breadths(self) -> dict[int, float]:
        """Share of all bases that reach each depth of BREADTHS."""
        return self._breadths(self.covered.sum(0), self.length)

    @property
    def all_depths(self) -> Numbers:
        """The histogram including the bases that are not covered."""
        found = self.histogram.copy()
        found[0] = self.length - int(found.sum())
        return found

    def of_contig(self, number: int) -> tuple[float, dict[int, float]]:
        """Return the mean depth and the breadths of a contig."""
        length, row = self.contigs[number][1], self.covered[number]
        return share(int(row[0]), length), self._breadths(row, length)

    @staticmethod
    def _breadths(row: Numbers, length: int) -> dict[int, float]:
        return {depth: share(int(row[at]), length) for at, depth in enumerate(BREADTHS, 1)}


@dataclass(frozen=True)
class SampleTally:
    """A sample: its lanes, at least one, and its coverage; None if records are not sorted by coordinate."""

    name: str
    lanes: Sequence[LaneTally]
    depths: Depths | None

    @functools.cached_property
    def tally(self) -> Tally:
        return functools.reduce(Tally.__add__, (lane.tally for lane in self.lanes))

    @property
    def libraries(self) -> dict[str, Tally]:
        """The summed counts of the lanes of each library, by its name."""
        found: dict[str, Tally] = {}
        for lane in self.lanes:
            found[lane.library] = found[lane.library] + lane.tally if lane.library in found else lane.tally
        return found
