"""Insert sizes: how long a library's fragments are, in each of the directions that mates may have."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError

#: By their numbers in kernels/search/pairs.cuh.
DIRECTIONS = tuple(sorted(("FF", "FR", "RF", "RR"), key=lambda name: constant("mapping/pairs.cuh", name)))

#: What measure_inserts says of a pair that shows no direction, since a mate is not placed for sure.
UNSURE = constant("mapping/pairs.cuh", "UNSURE")

#: A direction has fewer pairs by accident: bwa mem's limits, and its quartile rule below (its mem_pestat). The share is
#: of all pairs whose mates are placed for sure: those that chance has placed are mostly too far apart for a fragment.
LEAST_PAIRS = 10
LEAST_SHARE = 0.05

#: Longer fragments are not looked at, and not expected.
LONGEST = constant("mapping/pairs.cuh", "LONGEST_INSERT")

#: Chance makes fragments of all sizes alike, so that the middle half of them spans half of what is looked at. Where it
#: spans more than half of that, the sizes are those of no library: its standard deviation would be above 1,850.
MOST_SPREAD = LONGEST // 4
OUTLIER, MAPPING = 2.0, 3.0
MOST_DEVIATIONS = 4.0

#: Of a size at the very edge of a distribution; more in phred would be no size of the library.
RAREST = 60


@dataclass(frozen=True)
class InsertSize:
    """The sizes of one direction: low to high, inclusive, in bases from one 5' end to the other."""

    direction: str
    mean: float
    deviation: float
    low: int
    high: int


@dataclass(frozen=True)
class Inserts:
    """The sizes of a library on a device; `sizes` lacks the directions that it does not have.

    lows, highs, offsets, penalties: struct Inserts of kernels/mapping/pairs.cuh: int64 by direction, and uint8 phreds.
    """

    sizes: tuple[InsertSize, ...]
    lows: Array
    highs: Array
    offsets: Array
    penalties: Array


def to_device(sizes: Sequence[InsertSize], backend: Backend) -> Inserts:
    """The distributions where kernels read them."""
    lows, highs = np.ones(len(DIRECTIONS), np.int64), np.zeros(len(DIRECTIONS), np.int64)
    offsets = np.zeros(len(DIRECTIONS), np.int64)
    penalties: list[int] = []
    for size in sizes:
        direction = DIRECTIONS.index(size.direction)
        lows[direction], highs[direction], offsets[direction] = size.low, size.high, len(penalties)
        penalties += _penalties(size)
    arrays = (lows, highs, offsets, np.array(penalties or [0], np.uint8))
    return Inserts(tuple(sizes), *(backend.to_device(array) for array in arrays))


@functools.cache
def _penalties(size: InsertSize) -> list[int]:
    """Of each of its sizes; they are the same for all batches."""
    return [_penalty(bases, size) for bases in range(size.low, size.high + 1)]


def _penalty(bases: int, size: InsertSize) -> int:
    """Phred of the chance that a fragment is at least so far from the mean."""
    chance = math.erfc(abs(bases - size.mean) / max(size.deviation, 1.0) / math.sqrt(2))
    return min(round(-10 * math.log10(chance)), RAREST) if chance else RAREST


def given_insert_size(
    mean: float, deviation: float | None = None, most: float | None = None, least: float | None = None
) -> tuple[InsertSize, ...]:
    """What a user says of FR pairs; UsageError where that is no distribution.

    deviation: None for a tenth of the mean; most, least: None for four deviations beside it; all as in bwa mem's -I.
    """
    deviation = mean / 10 if deviation is None else deviation
    if not (0 < mean <= 100_000 and 0 < deviation <= 100_000):
        raise UsageError(f"insert size {mean:g},{deviation:g}: expected a mean and a standard deviation of 1 to 100000")
    low, high = _within(
        mean - MOST_DEVIATIONS * deviation if least is None else least,
        mean + MOST_DEVIATIONS * deviation if most is None else most,
    )
    if not low <= mean <= high:
        raise UsageError(f"insert sizes of {low:,} to {high:,}: expected the mean, {mean:g}, between them")
    return (InsertSize("FR", mean, deviation, low, high),)


def estimate(directions: NDArray[np.uint8], sizes: NDArray[np.int32]) -> tuple[InsertSize, ...]:
    """The distributions that pairs show.

    directions: of each pair, a number of DIRECTIONS or of enum NoDirection; sizes: in bases, of those with a direction.
    Outliers are found by quartiles, as bwa mem does.
    """
    found = [np.sort(sizes[directions == direction]) for direction in range(len(DIRECTIONS))]
    least = max(LEAST_PAIRS, LEAST_SHARE * int(np.count_nonzero(directions != UNSURE)))
    enough = [(name, values) for name, values in zip(DIRECTIONS, found, strict=True) if len(values) >= least]
    return tuple(size for name, values in enough if (size := _distribution(name, values)))


def _distribution(direction: str, values: NDArray[Any]) -> InsertSize | None:
    """The distribution of sizes in order; None where they do not gather."""
    first, third = (int(values[int(share * len(values) + 0.499)]) for share in (0.25, 0.75))
    spread = third - first
    if spread > MOST_SPREAD:
        return None
    low, high = _within(first - OUTLIER * spread, third + OUTLIER * spread)
    kept = values[(values >= low) & (values <= high)]
    if not len(kept):  # mates that lie on each other have no size
        return None
    mean, deviation = float(kept.mean()), float(kept.std())
    low, high = _within(
        min(first - MAPPING * spread, mean - MOST_DEVIATIONS * deviation),
        max(third + MAPPING * spread, mean + MOST_DEVIATIONS * deviation),
    )
    return InsertSize(direction, mean, deviation, low, min(high, LONGEST))


def _within(low: float, high: float) -> tuple[int, int]:
    return max(int(low + 0.499), 1), int(high + 0.499)
