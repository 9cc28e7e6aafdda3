"""Duplication metrics in Picard's format: one row per library, and a histogram of set sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend.compilation.declarations import constant
from readmap.formats.wording import format_percent
from readmap.qc.page import ReportTable

_READS = ("UNPAIRED_READS", "PAIRED_READS", "OTHER_RECORDS", "UNMAPPED_READS")
_MARKED = ("UNPAIRED_DUPLICATES", "PAIR_DUPLICATES", "OPTICAL_DUPLICATES")
#: Counters of a library, in the order of the fields of LibraryMetrics.
_COUNTERS = [constant("duplicates/fragment.cuh", name) for name in (*_READS, *_MARKED)]

#: The histogram projects the yield of up to this multiple of the sequencing.
MAX_COVERAGE_MULTIPLE = 100

COLUMNS = [
    *("LIBRARY", "UNPAIRED_READS_EXAMINED", "READ_PAIRS_EXAMINED", "SECONDARY_OR_SUPPLEMENTARY_RDS", "UNMAPPED_READS"),
    *("UNPAIRED_READ_DUPLICATES", "READ_PAIR_DUPLICATES", "READ_PAIR_OPTICAL_DUPLICATES"),
    *("PERCENT_DUPLICATION", "ESTIMATED_LIBRARY_SIZE"),
]

_TABLE_COLUMNS = (
    *("Library", "Pairs", "Duplicate pairs", "Optical"),
    *("Other reads", "Duplicates of these", "Share", "Library size"),
)


@dataclass(frozen=True)
class LibraryMetrics:
    """Duplication metrics of a library; the names in parentheses are Picard's.

    Attributes
    ----------
    name : str
        LB of the read groups, or "Unknown Library" (LIBRARY).
    unpaired, pairs : int
        Mapped reads without a mapped mate, and pairs with both reads mapped (UNPAIRED_READS_EXAMINED,
        READ_PAIRS_EXAMINED).
    secondary_or_supplementary : int
        Records (SECONDARY_OR_SUPPLEMENTARY_RDS).
    unmapped : int
        Reads (UNMAPPED_READS).
    unpaired_duplicates, pair_duplicates : int
        Duplicates among `unpaired` and `pairs` (UNPAIRED_READ_DUPLICATES, READ_PAIR_DUPLICATES).
    optical_duplicates : int
        Optical duplicates among `pair_duplicates` (READ_PAIR_OPTICAL_DUPLICATES).
    """

    name: str
    unpaired: int
    pairs: int
    secondary_or_supplementary: int
    unmapped: int
    unpaired_duplicates: int
    pair_duplicates: int
    optical_duplicates: int

    @classmethod
    def of(cls, name: str, counters: NDArray[np.int64]) -> LibraryMetrics:
        """Return the metrics from the kernels' counters, which count the reads of pairs."""
        unpaired, paired, *others = (int(counters[index]) for index in _COUNTERS)
        return cls(name, unpaired, paired // 2, *others)

    @property
    def reads(self) -> int:
        """Mapped reads."""
        return self.unpaired + 2 * self.pairs

    @property
    def duplicates(self) -> int:
        """Mapped reads that are duplicates."""
        return self.unpaired_duplicates + 2 * self.pair_duplicates

    @property
    def share(self) -> float:
        """The share of mapped reads that are duplicates (PERCENT_DUPLICATION, a fraction)."""
        return self.duplicates / self.reads if self.reads else 0.0

    @property
    def size(self) -> int | None:
        """Estimated number of molecules (ESTIMATED_LIBRARY_SIZE); None if no pair is a non-optical duplicate."""
        return estimated_size(self.pairs - self.optical_duplicates, self.pairs - self.pair_duplicates)

    def as_row(self) -> list[str]:
        """Return the values of COLUMNS as text."""
        _, *counts = astuple(self)
        size = self.size
        return [self.name, *map(str, counts), _decimal(self.share), "" if size is None else str(size)]


@dataclass(frozen=True)
class SetSizes:
    """Histograms of set sizes: all pairs, non-optical duplicates only, and optical duplicates plus one."""

    all_sets: dict[int, int]
    optical_sets: dict[int, int]
    non_optical_sets: dict[int, int]

    @classmethod
    def of(cls, sizes: NDArray[np.int64], optical: NDArray[np.int64], alone: int) -> SetSizes:
        """Count sizes of sets of several pairs, each with its optical duplicates; alone: pairs without duplicates."""
        return cls(_counted(sizes, alone), _counted(optical[optical > 0] + 1, 0), _counted(sizes - optical, alone))


def write_metrics(libraries: Sequence[LibraryMetrics], sizes: SetSizes, command_line: str) -> str:
    """Return the text of the metrics file: a row per library, and the histogram of set sizes."""
    lines = ["## htsjdk.samtools.metrics.StringHeader", f"# {command_line}", ""]
    lines += ["## METRICS CLASS\tpicard.sam.DuplicationMetrics", "\t".join(COLUMNS)]
    lines += ["\t".join(library.as_row()) for library in libraries]
    lines += ["", "## HISTOGRAM\tjava.lang.Double", *_histogram(libraries, sizes), ""]
    return "\n".join([*lines, ""])


def _histogram(libraries: Sequence[LibraryMetrics], sizes: SetSizes) -> list[str]:
    """Return the lines of the projected yield, if there is one library, and of the set sizes."""
    columns: dict[str, dict[int, str]] = {}
    if len(libraries) == 1 and libraries[0].size:
        columns["CoverageMult"] = {times: _decimal(gain) for times, gain in coverage(libraries[0]).items()}
    for name in ("all_sets", "optical_sets", "non_optical_sets"):
        if counts := getattr(sizes, name):
            columns[name] = {size: str(count) for size, count in counts.items()}
    if not columns:
        return []
    first = "BIN" if "CoverageMult" in columns else "set_size"
    bins = sorted(set().union(*columns.values()))
    rows = ["\t".join([f"{number:.1f}", *(column.get(number, "0") for column in columns.values())]) for number in bins]
    return ["\t".join([first, *columns]), *rows]


def estimated_size(pairs: int, unique: int) -> int | None:
    """Estimate the number of molecules of a library from its pairs and unique pairs; None if all are unique.

    Solves Lander and Waterman's unique / size = 1 - exp(-pairs / size) by 40 bisections, like Picard.
    """
    if pairs <= 0 or pairs <= unique:
        return None

    def excess(size: float) -> float:
        return unique / size - 1 + math.exp(-pairs / size)

    low, high = 1.0, 100.0
    while excess(high * unique) > 0:
        high *= 10
    for _ in range(40):
        middle = (low + high) / 2
        found = excess(middle * unique)
        if found == 0:
            break
        low, high = (middle, high) if found > 0 else (low, middle)
    return int(unique * (low + high) / 2)


def coverage(library: LibraryMetrics) -> dict[int, float]:
    """Return the expected unique pairs relative to the present ones, by multiple of the sequencing; {} if unknown."""
    size, unique = library.size, library.pairs - library.pair_duplicates
    if not size or not unique:
        return {}
    times = range(1, MAX_COVERAGE_MULTIPLE + 1)
    return {number: size * (1 - math.exp(-number * library.pairs / size)) / unique for number in times}


def _counted(sizes: NDArray[np.int64], alone: int) -> dict[int, int]:
    """Return the number of sets of each size above 0, in order of size, with `alone` more sets of size 1."""
    counts = np.bincount(sizes, minlength=2)
    counts[1] += alone
    return {int(size): int(counts[size]) for size in np.flatnonzero(counts) if size}


def _decimal(value: float) -> str:
    """Format a number like Picard: at most six decimals."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def duplicates_table(libraries: Sequence[LibraryMetrics]) -> ReportTable:
    """Return the duplicates table of the HTML report, one row per library."""
    rows = []
    for one in libraries:
        counts = (one.pairs, one.pair_duplicates, one.optical_duplicates, one.unpaired, one.unpaired_duplicates)
        size = f"{one.size:,}" if one.size else "unknown"
        rows.append((one.name, *(f"{count:,}" for count in counts), format_percent(one.share), size))
    return ReportTable("Duplicates", "By library", _TABLE_COLUMNS, rows)
