"""Estimate the insert sizes of a library, one distribution for each direction of the mates (FR, RF, FF, RR)."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.compilation.declarations import constant
from readmap.backend.tables import Table
from readmap.errors import UsageError

#: Relative directions of mates, by their index in kernels/mapping/pairs.cuh.
DIRECTIONS = tuple(sorted(("FF", "FR", "RF", "RR"), key=lambda name: constant("mapping/pairs.cuh", name)))
#: Direction of a pair with a mate whose placement is not confident.
UNCERTAIN = constant("mapping/pairs.cuh", "UNCERTAIN")
#: Minimum number of pairs, and minimum share of all confidently placed pairs, to accept a direction. bwa mem
#: (mem_pestat) has the same limits and the same quartile rule. Mates placed by chance are mostly too far apart to
#: count.
MIN_PAIRS = 10
MIN_SHARE = 0.05
#: Longer fragments are neither measured nor expected.
MAX_INSERT_SIZE = constant("mapping/pairs.cuh", "MAX_INSERT_SIZE")
#: Maximum interquartile range. Random pairs have uniform sizes, with a range of MAX_INSERT_SIZE / 2; above half of that
#: the sizes belong to no library, whose standard deviation would exceed 1,850.
MAX_QUARTILE_RANGE = MAX_INSERT_SIZE // 4
#: Interquartile ranges beyond the quartiles: of sizes that are kept, and of proper pairs (bwa mem's constants).
OUTLIER_BOUND, MAPPING_BOUND = 2.0, 3.0
#: Standard deviations from the mean within which a pair is proper, as in bwa mem.
MAX_DEVIATIONS = 4.0
#: Maximum penalty in phred, at the edge of a distribution.
MAX_SIZE_PENALTY = 60


@dataclass(frozen=True)
class InsertSize:
    """Distribution of insert sizes for one relative direction of the mates.

    The insert size is the distance between the 5' ends of the mates, in bases.

    Attributes
    ----------
    direction : str
        FF, FR, RF or RR.
    mean, deviation : float
        Mean and standard deviation, in bases.
    low, high : int
        Smallest and largest size of a proper pair, inclusive.
    """

    direction: str
    mean: float
    deviation: float
    low: int
    high: int


class InsertSizeTable(Table, struct="mapping/pairs.cuh:InsertSizeTable"):
    """Insert-size distributions of a library on a device; `sizes` has no directions that the library lacks."""

    sizes: tuple[InsertSize, ...]


def insert_size_table(sizes: Sequence[InsertSize], backend: Backend) -> InsertSizeTable:
    """Copy the distributions to the device, with the penalty of each insert size between `low` and `high`."""
    lows, highs = np.ones(len(DIRECTIONS), np.int64), np.zeros(len(DIRECTIONS), np.int64)
    offsets = np.zeros(len(DIRECTIONS), np.int64)
    penalties: list[int] = []
    for size in sizes:
        direction = DIRECTIONS.index(size.direction)
        lows[direction], highs[direction], offsets[direction] = size.low, size.high, len(penalties)
        penalties += _penalties(size)
    arrays: dict[str, NDArray[Any]] = {"penalties": np.array(penalties or [0], np.uint8)}
    arrays |= {"lows": lows, "highs": highs, "offsets": offsets}
    return InsertSizeTable(sizes=tuple(sizes), **{name: backend.to_device(array) for name, array in arrays.items()})


@functools.cache
def _penalties(size: InsertSize) -> list[int]:
    """Return the penalty of each size from low to high; cached, since all batches use the same ones."""
    return [_penalty(bases, size) for bases in range(size.low, size.high + 1)]


def _penalty(bases: int, size: InsertSize) -> int:
    """Return the phred of the probability that a fragment is at least this far from the mean."""
    chance = math.erfc(abs(bases - size.mean) / max(size.deviation, 1.0) / math.sqrt(2))
    return min(round(-10 * math.log10(chance)), MAX_SIZE_PENALTY) if chance else MAX_SIZE_PENALTY


def fixed_insert_size(
    mean: float, deviation: float | None = None, maximum: float | None = None, minimum: float | None = None
) -> tuple[InsertSize, ...]:
    """Return the insert sizes of FR pairs that a user set, as bwa mem's -I; raise UsageError if they are invalid.

    deviation: None for a tenth of the mean. maximum, minimum: None for four deviations above and below the mean.
    """
    deviation = mean / 10 if deviation is None else deviation
    if not (0 < mean <= 100_000 and 0 < deviation <= 100_000):
        raise UsageError(f"insert size {mean:g},{deviation:g}: expected a mean and a standard deviation of 1 to 100000")
    low, high = _within(
        mean - MAX_DEVIATIONS * deviation if minimum is None else minimum,
        mean + MAX_DEVIATIONS * deviation if maximum is None else maximum,
    )
    if not low <= mean <= high:
        raise UsageError(f"insert sizes of {low:,} to {high:,}: expected the mean, {mean:g}, between them")
    return (InsertSize("FR", mean, deviation, low, high),)


def estimate_insert_sizes(directions: NDArray[np.uint8], sizes: NDArray[np.int32]) -> tuple[InsertSize, ...]:
    """Return the distributions of the directions with enough pairs; outliers are removed by quartiles as in bwa mem.

    directions: uint8 [pairs], index into DIRECTIONS or a value of enum NoDirection. sizes: int32 [pairs], in bases.
    """
    found = [np.sort(sizes[directions == direction]) for direction in range(len(DIRECTIONS))]
    min_pairs = max(MIN_PAIRS, MIN_SHARE * int(np.count_nonzero(directions != UNCERTAIN)))
    enough = [(name, values) for name, values in zip(DIRECTIONS, found, strict=True) if len(values) >= min_pairs]
    return tuple(size for name, values in enough if (size := _distribution(name, values)))


def _distribution(direction: str, values: NDArray[Any]) -> InsertSize | None:
    """Return the distribution of ascending sizes without outliers, or None if they spread too far for a library."""
    first, third = (int(values[int(share * len(values) + 0.499)]) for share in (0.25, 0.75))
    spread = third - first
    if spread > MAX_QUARTILE_RANGE:
        return None
    low, high = _within(first - OUTLIER_BOUND * spread, third + OUTLIER_BOUND * spread)
    kept = values[(values >= low) & (values <= high)]
    if not len(kept):  # mates that start at the same base have size 0
        return None
    mean, deviation = float(kept.mean()), float(kept.std())
    low, high = _within(
        min(first - MAPPING_BOUND * spread, mean - MAX_DEVIATIONS * deviation),
        max(third + MAPPING_BOUND * spread, mean + MAX_DEVIATIONS * deviation),
    )
    return InsertSize(direction, mean, deviation, low, min(high, MAX_INSERT_SIZE))


def _within(low: float, high: float) -> tuple[int, int]:
    return max(int(low + 0.499), 1), int(high + 0.499)
