"""The metrics of duplicates, as Picard's MarkDuplicates writes them: a row a library, and sizes of sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend.compilation.declarations import constant

_READS = ("UNPAIRED_READS", "PAIRED_READS", "OTHER_RECORDS", "UNMAPPED_READS")
_MARKED = ("UNPAIRED_DUPLICATES", "PAIR_DUPLICATES", "OPTICAL_DUPLICATES")
_AT = {name: constant("duplicates/fragment.cuh", name) for name in (*_READS, *_MARKED)}

#: The max_pairs times of the coverage for which the histogram tells what share of it would be new.
MAX_COVERAGE_MULTIPLE = 100

COLUMNS = [
    "LIBRARY",
    "UNPAIRED_READS_EXAMINED",
    "READ_PAIRS_EXAMINED",
    "SECONDARY_OR_SUPPLEMENTARY_RDS",
    "UNMAPPED_READS",
    "UNPAIRED_READ_DUPLICATES",
    "READ_PAIR_DUPLICATES",
    "READ_PAIR_OPTICAL_DUPLICATES",
    "PERCENT_DUPLICATION",
    "ESTIMATED_LIBRARY_SIZE",
]


@dataclass(frozen=True)
class LibraryMetrics:
    """Duplicates of a library; of pairs both reads are mapped, what else is mapped is unpaired.

    Attributes:
        name: LB of its read groups, or `Unknown Library`.
        unpaired, pairs: that were looked at; secondary_or_supplementary: records; unmapped: reads.
        unpaired_duplicates, pair_duplicates: of those; optical_duplicates: of the pairs that are duplicates.
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
        """Those that the kernels counted: of pairs, reads."""
        told = {key: int(counters[at]) for key, at in _AT.items()}
        return cls(
            name,
            told["UNPAIRED_READS"],
            told["PAIRED_READS"] // 2,
            told["OTHER_RECORDS"],
            told["UNMAPPED_READS"],
            told["UNPAIRED_DUPLICATES"],
            told["PAIR_DUPLICATES"],
            told["OPTICAL_DUPLICATES"],
        )

    @property
    def reads(self) -> int:
        """All mapped reads."""
        return self.unpaired + 2 * self.pairs

    @property
    def duplicates(self) -> int:
        """Mapped reads that are duplicates."""
        return self.unpaired_duplicates + 2 * self.pair_duplicates

    @property
    def share(self) -> float:
        """Of the mapped reads, those that are duplicates."""
        return self.duplicates / self.reads if self.reads else 0.0

    @property
    def size(self) -> int | None:
        """How many molecules the library has, estimated; None where no pair is a duplicate that is not optical."""
        return estimated_size(self.pairs - self.optical_duplicates, self.pairs - self.pair_duplicates)

    def as_row(self) -> list[str]:
        """The values of COLUMNS."""
        counts = (
            self.unpaired,
            self.pairs,
            self.secondary_or_supplementary,
            self.unmapped,
            self.unpaired_duplicates,
            self.pair_duplicates,
            self.optical_duplicates,
        )
        size = self.size
        return [self.name, *map(str, counts), _decimal(self.share), "" if size is None else str(size)]


@dataclass(frozen=True)
class SetSizes:
    """How many sets have which size: of all pairs, of those that are no optical duplicates, and of those that are.

    In the last a set counts with one more than its optical duplicates.
    """

    all_sets: dict[int, int]
    optical_sets: dict[int, int]
    non_optical_sets: dict[int, int]

    @classmethod
    def of(cls, sizes: NDArray[np.int64], optical: NDArray[np.int64], alone: int) -> SetSizes:
        """sizes: of the sets of several pairs; optical: the optical duplicates of each; alone: pairs in no such set."""
        single = np.ones(1, np.int64)
        return cls(
            _counted(sizes, {1: alone}),
            _counted(optical[optical > 0] + single, {}),
            _counted(sizes - optical, {1: alone}),
        )


def write_metrics(libraries: Sequence[LibraryMetrics], sizes: SetSizes, command_line: str) -> str:
    """The text of the metrics' file."""
    lines = ["## htsjdk.samtools.metrics.StringHeader", f"# {command_line}", ""]
    lines += ["## METRICS CLASS\tpicard.sam.DuplicationMetrics", "\t".join(COLUMNS)]
    lines += ["\t".join(library.as_row()) for library in libraries]
    lines += ["", "## HISTOGRAM\tjava.lang.Double", *_histogram(libraries, sizes), ""]
    return "\n".join([*lines, ""])


def _histogram(libraries: Sequence[LibraryMetrics], sizes: SetSizes) -> list[str]:
    """What more sequencing would bring of one library, and the sizes of sets."""
    columns: dict[str, dict[int, str]] = {}
    if len(libraries) == 1 and libraries[0].size:
        columns["CoverageMult"] = {times: _decimal(gain) for times, gain in coverage(libraries[0]).items()}
    for name in ("all_sets", "optical_sets", "non_optical_sets"):
        if told := getattr(sizes, name):
            columns[name] = {size: str(count) for size, count in told.items()}
    if not columns:
        return []
    first = "BIN" if "CoverageMult" in columns else "set_size"
    bins = sorted(set().union(*columns.values()))
    rows = ["\t".join([f"{number:.1f}", *(column.get(number, "0") for column in columns.values())]) for number in bins]
    return ["\t".join([first, *columns]), *rows]


def estimated_size(pairs: int, unique: int) -> int | None:
    """How many molecules a library has of which so many pairs are so many unique ones; None where all are.

    By Lander and Waterman: unique / size = 1 - exp(-pairs / size), solved in 40 halvings, as Picard does it.
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
    """By how many times the coverage is: how many times the unique pairs there would be."""
    size, unique = library.size, library.pairs - library.pair_duplicates
    if not size or not unique:
        return {}
    times = range(1, MAX_COVERAGE_MULTIPLE + 1)
    return {number: size * (1 - math.exp(-number * library.pairs / size)) / unique for number in times}


def _counted(sizes: NDArray[np.int64], more: dict[int, int]) -> dict[int, int]:
    """How often each size comes, which is not 0."""
    counts = np.bincount(sizes) if len(sizes) else np.zeros(1, np.int64)
    found = {int(size): int(counts[size]) for size in np.flatnonzero(counts) if size}
    for size, count in more.items():
        if count:
            found[size] = found.get(size, 0) + count
    return dict(sorted(found.items()))


def _decimal(value: float) -> str:
    """As Picard writes numbers: six decimals at max_pairs."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
