"""What the first reads show of all: how far the sample is from the reference, and the insert sizes of its library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.search.batch import Batch
from readmap.search.context import Context, Sample
from readmap.search.divergence import bases_per_variant, measure_divergence
from readmap.search.inserts import InsertSize, estimate, given_insert_size
from readmap.search.pairs import measure_inserts

#: Reads that show the divergence, and pairs that show the insert sizes.
READS, PAIRS = 20_000, 100_000


@dataclass(frozen=True)
class Observed:
    """What the reads of a batch show, as measure_divergence and measure_inserts have it."""

    paired: bool
    tallies: NDArray[np.int64]
    directions: NDArray[np.uint8]
    sizes: NDArray[np.int32]


def observe(batch: Batch, context: Context) -> Observed:
    """What a batch shows; single reads show no pairs."""
    tallies = measure_divergence(batch, READS, context)
    if not batch.reads.paired:
        return Observed(False, tallies, np.empty(0, np.uint8), np.empty(0, np.int32))
    return Observed(True, tallies, *measure_inserts(batch, context))


def enough(observed: Sequence[Observed], insert_size: tuple[float, float] | None) -> bool:
    """Whether further reads would show no more."""
    reads, pairs = sum(len(o.tallies) for o in observed), sum(len(o.sizes) for o in observed)
    return reads >= READS and (pairs >= PAIRS or insert_size is not None or not observed[0].paired)


def learn(observed: Sequence[Observed], insert_size: tuple[float, float] | None) -> Sample:
    """The sample that the first reads show.

    insert_size: mean and standard deviation of FR pairs, where a user gives them; UsageError where they are none.
    """
    sizes: tuple[InsertSize, ...] = ()
    if observed[0].paired:
        sizes = given_insert_size(*insert_size) if insert_size else _estimated(observed)
    return Sample(bases_per_variant(np.concatenate([o.tallies for o in observed])[:READS]), sizes)


def _estimated(observed: Sequence[Observed]) -> tuple[InsertSize, ...]:
    directions, sizes = (
        np.concatenate(parts)[:PAIRS] for parts in zip(*((o.directions, o.sizes) for o in observed), strict=True)
    )
    return estimate(directions, sizes)
