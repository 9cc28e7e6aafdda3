"""What was counted of a lane, of several, or of a sample, and what follows from it.

Counts of flags are those of samtools flagstat, the others those of samtools stats where it has them.
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
        "PAIRED",
        "PROPER_PAIR",
        "UNMAPPED",
        "MATE_UNMAPPED",
        "FIRST_MATE",
        "SECOND_MATE",
        "SECONDARY",
        "FAILED_CHECKS",
        "DUPLICATE_RECORD",
        "SUPPLEMENTARY",
    )
)
_FLAGS = np.arange(FLAGS)
_PRIMARY = (_FLAGS & (SECONDARY | SUPPLEMENTARY)) == 0

#: Names of the adapters that kernels/qc/records.cu looks for.
ADAPTER_NAMES = ("Illumina universal", "Nextera", "small RNA 3'")

#: From this quality on a base counts as good.
GOOD = 30

#: Of the insert sizes of which samtools stats takes the mean: so many are not above.
BULK = 0.99


def flag_mask(flags: int, *, without: int = 0) -> NDArray[np.bool_]:
    """Of all flags, those that have some and lack others."""
    found: NDArray[np.bool_] = ((_FLAGS & flags) == flags) & ((_FLAGS & without) == 0)
    return found


@dataclass(frozen=True)
class Tally:
    """Counts, int64; a mate is 0, of first ones and single reads, or 1.

    Attributes:
        records: [mates, UNIT_COUNTERS], by enum UnitCounter of kernels/qc/counts.cuh. empty: [mates, FLAGS], records without
            letters. inserts: [orientations, INSERTS], records. qualities: [mates, CYCLES, QUALITIES]; bases: [mates,
            CYCLES, BASES]; mismatches: [mates, CYCLES]; adapters: [mates, ADAPTERS, CYCLES], where they begin.
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
        """Records by their flags, [FLAGS]."""
        return _over_mates(self._part("FLAG", FLAGS))

    @property
    def letters(self) -> Numbers:
        """Letters of records by their flags, [FLAGS]."""
        return _over_mates(self._part("FLAG_LETTERS", FLAGS))

    @property
    def all_records(self) -> int:
        """Secondary and supplementary ones too."""
        return int(self.flags.sum())

    def count(self, wanted: NDArray[np.bool_]) -> int:
        """Records of wanted flags, [FLAGS]."""
        return int(self.flags[wanted].sum())

    @property
    def reads(self) -> int:
        """Primary records."""
        return self.count(_PRIMARY)

    @property
    def bases_read(self) -> int:
        """Letters of the reads."""
        return int(self.letters[_PRIMARY].sum())

    @property
    def mapped(self) -> int:
        """Reads with a place."""
        return self.count(_PRIMARY & flag_mask(0, without=UNMAPPED))

    @property
    def paired(self) -> int:
        """Reads of pairs."""
        return self.count(_PRIMARY & flag_mask(PAIRED))

    @property
    def proper(self) -> int:
        """Mapped reads of proper pairs."""
        return self.count(_PRIMARY & flag_mask(PAIRED | PROPER, without=UNMAPPED))

    @property
    def duplicates(self) -> int:
        """Reads that are marked."""
        return self.count(_PRIMARY & flag_mask(DUPLICATE))

    @property
    def good_bases(self) -> int:
        """Of quality 30 and more."""
        return int(self.qualities[:, :, GOOD:].sum())

    @property
    def bases_with_quality(self) -> int:
        """Those of which the quality is known."""
        return int(self.qualities.sum())

    @property
    def gc(self) -> float:
        """The share of G and C among the bases that are known."""
        counted = self.bases.sum((0, 1))
        return share(int(counted[1] + counted[2]), int(counted[:4].sum()))

    @property
    def error_rate(self) -> float:
        """Differences to the reference, of the aligned bases."""
        return share(self.scalar("DIFFERENCES"), self.scalar("ALIGNED_BASES"))

    @property
    def with_adapter(self) -> int:
        """Reads in which an adapter begins; one with several counts for each."""
        return int(self.adapters.sum())

    def scalar(self, name: str) -> int:
        """One of the last numbers of enum UnitCounter."""
        return int(self.records[:, _at(name)].sum())

    @property
    def mapqs(self) -> Numbers:
        """Mapped reads that neither fail nor are duplicates, by MAPQ, [256]."""
        return _over_mates(self._part("MAPQ", 256))

    @property
    def gc_of_reads(self) -> Numbers:
        """Reads of each mate by their per cent of G and C, [mates, 101]."""
        return self._part("GC_SHARE", 101)

    @property
    def quality_of_reads(self) -> Numbers:
        """Reads of each mate by their mean quality, [mates, QUALITIES]."""
        return self._part("MEAN_QUALITY", QUALITIES)

    @property
    def pairs_by_insert(self) -> Numbers:
        """Pairs by orientation (inward, outward, other) and insert size, [3, INSERTS]: both records of a pair count."""
        return self.inserts // 2

    @property
    def median_insert(self) -> int:
        """Of the pairs that point inward, below the largest size that is counted; 0 where there are none."""
        counted = self.pairs_by_insert[0, : INSERTS - 1]
        total = int(counted.sum())
        return int(np.searchsorted(np.cumsum(counted), (total + 1) // 2)) if total else 0

    @property
    def insert_mean_and_deviation(self) -> tuple[float, float]:
        """Of the sizes of all pairs but the largest ones, as samtools stats takes them."""
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
        """Cycles that any read has, of those that are counted each."""
        reached = np.flatnonzero(self.bases.sum((0, 2)))
        return int(reached[-1]) + 1 if len(reached) else 0

    def quality_quantile(self, mate: int, quantile: float) -> Numbers:
        """By cycle: the least quality that so many bases do not exceed, [cycles]; -1 where there are no bases."""
        counted = np.cumsum(self.qualities[mate, : self.cycles], axis=1)
        wanted = np.ceil(counted[:, -1:] * quantile).clip(1)
        return np.where(counted[:, -1] > 0, (counted < wanted).sum(1), -1)

    def mean_quality(self, mate: int) -> NDArray[np.float64]:
        """By cycle, [cycles]; NaN where there are no bases."""
        counted = self.qualities[mate, : self.cycles]
        return _ratio(counted @ np.arange(QUALITIES), counted.sum(1))

    def base_shares(self, mate: int) -> NDArray[np.float64]:
        """A, C, G, T and others by cycle, [cycles, 5]; NaN where there are no bases."""
        counted = self.bases[mate, : self.cycles]
        return _ratio(counted, counted.sum(1, keepdims=True))

    def mismatch_shares(self, mate: int) -> NDArray[np.float64]:
        """By cycle, of the reads with MD that are not clipped there, [cycles]; NaN where there are none."""
        begun, ended = (self._part(name, CYCLES)[mate] for name in ("ALIGNED_START", "ALIGNED_END"))
        aligned = np.cumsum(begun - ended)[: self.cycles]
        return _ratio(self.mismatches[mate, : self.cycles], aligned)

    def adapter_shares(self) -> NDArray[np.float64]:
        """Of each adapter and by cycle: the share of the reads in which it has begun, [adapters, cycles]."""
        begun = np.cumsum(self.adapters.sum(0)[:, : self.cycles], axis=1)
        return _ratio(begun, np.int64(max(self.reads, 1)))

    @property
    def is_last_cycle_more(self) -> bool:
        """Whether the last cycle stands for others behind it."""
        return self.cycles == CYCLES

    def _part(self, name: str, size: int) -> Numbers:
        return self.records[:, _at(name) : _at(name) + size]


def _at(name: str) -> int:
    """Where a part of a unit's numbers begins, as enum UnitCounter of kernels/qc/counts.cuh has it."""
    return constant("qc/counts.cuh", name)


def share(part: float, whole: float) -> float:
    """A part of a whole; 0 of nothing."""
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
    """A read group, "" where records have none, its library, "" where it names none, and what was counted."""

    name: str
    library: str
    tally: Tally


@dataclass(frozen=True)
class Depths:
    """By how many fragments bases are covered, without unmapped, secondary, failed and duplicate records.

    Attributes:
        contigs: names and lengths. histogram: [DEPTHS], bases that are covered, by their depth; the last one stands for
            all above. covered: [contigs, COVERED]: the sum of depths, and bases of each of BREADTHS.
        lost: reads whose mates may cover the same bases twice, since they have no MC.
    """

    contigs: Sequence[tuple[str, int]]
    histogram: Numbers
    covered: Numbers
    missing_mc: int

    @property
    def length(self) -> int:
        """Of all contigs."""
        return sum(length for _, length in self.contigs)

    @property
    def mean(self) -> float:
        """The depth, over all bases."""
        return share(int(self.covered[:, 0].sum()), self.length)

    @property
    def breadths(self) -> dict[int, float]:
        """The share of all bases that reach a depth."""
        return {
            depth: share(int(self.covered[:, number].sum()), self.length) for number, depth in enumerate(BREADTHS, 1)
        }

    @property
    def all_depths(self) -> Numbers:
        """The histogram with the bases that are not covered."""
        found = self.histogram.copy()
        found[0] = self.length - int(found.sum())
        return found

    def of_contig(self, number: int) -> tuple[float, dict[int, float]]:
        """Its mean and its breadths."""
        length, row = self.contigs[number][1], self.covered[number]
        return share(int(row[0]), length), {depth: share(int(row[at]), length) for at, depth in enumerate(BREADTHS, 1)}


@dataclass(frozen=True)
class SampleTally:
    """A sample: its lanes, one at least, and its coverage, None where records are not sorted by coordinate."""

    name: str
    lanes: Sequence[LaneTally]
    depths: Depths | None

    @functools.cached_property
    def tally(self) -> Tally:
        """Of all lanes."""
        return _total([lane.tally for lane in self.lanes])

    @property
    def libraries(self) -> dict[str, Tally]:
        """Of the lanes of each library."""
        names = dict.fromkeys(lane.library for lane in self.lanes)
        return {name: _total([lane.tally for lane in self.lanes if lane.library == name]) for name in names}


def _total(tallies: Sequence[Tally]) -> Tally:
    return functools.reduce(Tally.__add__, tallies)
