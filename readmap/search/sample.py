"""What the first reads tell of all: how far the sample is from the reference, and the insert sizes of its library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.index.device import DeviceIndex
from readmap.search.batch import Searched
from readmap.search.divergence import clean_bases, measure_divergence
from readmap.search.inserts import Inserts, InsertSize, estimate, given_insert_size, place_inserts
from readmap.search.pairs import measure_inserts

#: Reads that tell the divergence, and pairs that tell the insert sizes.
READS, PAIRS = 20_000, 100_000


@dataclass(frozen=True)
class Sample:
    """clean_bases: in which one difference from the reference is expected; inserts: none where there are no pairs."""

    clean_bases: int
    inserts: Inserts


@dataclass(frozen=True)
class Observed:
    """What the reads of a batch tell, as measure_divergence and measure_inserts have it."""

    paired: bool
    tallies: NDArray[np.int64]
    directions: NDArray[np.uint8]
    sizes: NDArray[np.int32]


def observe(searched: Searched, index: DeviceIndex, backend: Backend) -> Observed:
    """The pairs of single reads are none."""
    tallies = measure_divergence(searched, READS, index, backend)
    if not searched.reads.paired:
        return Observed(False, tallies, np.empty(0, np.uint8), np.empty(0, np.int32))
    told = measure_inserts(searched.windows, searched.placements, searched.queries, index, backend)
    return Observed(True, tallies, *told)


def enough(observed: Sequence[Observed], insert_size: tuple[float, float] | None) -> bool:
    """Whether further reads would tell no more."""
    reads, pairs = sum(len(o.tallies) for o in observed), sum(len(o.sizes) for o in observed)
    return reads >= READS and (pairs >= PAIRS or insert_size is not None or not observed[0].paired)


def learn(observed: Sequence[Observed], insert_size: tuple[float, float] | None, backend: Backend) -> Sample:
    """insert_size: mean and standard deviation of FR pairs, where a user tells them; UsageError where they are none."""
    sizes: tuple[InsertSize, ...] = ()
    if observed[0].paired:
        sizes = given_insert_size(*insert_size) if insert_size else _estimated(observed)
    return Sample(clean_bases(np.concatenate([o.tallies for o in observed])[:READS]), place_inserts(sizes, backend))


def _estimated(observed: Sequence[Observed]) -> tuple[InsertSize, ...]:
    directions, sizes = (
        np.concatenate(parts)[:PAIRS] for parts in zip(*((o.directions, o.sizes) for o in observed), strict=True)
    )
    return estimate(directions, sizes)
