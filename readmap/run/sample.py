"""What the first reads show of all: how far the sample is from the reference, and the insert sizes of its library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context, Sample
from readmap.mapping.divergence import estimate_bases_per_difference, measure_divergence
from readmap.mapping.inserts import InsertSize, estimate, given_insert_size
from readmap.mapping.pairs import measure_inserts
from readmap.mapping.placement import choose_windows
from readmap.reads.parsing import absent_mask

#: Reads that show the divergence, and pairs that show the insert sizes.
READS, PAIRS = 20_000, 100_000


@dataclass(frozen=True)
class Observed:
    """What the reads of a batch show, as measure_divergence and measure_inserts have it.

    Attributes:
        reads: how many there are; tallies: of the first of them.
        directions, sizes: of pairs; pair_ends: int64 [pairs], reads up to and with each.
    """

    reads: int
    tallies: NDArray[np.int64]
    directions: NDArray[np.uint8]
    sizes: NDArray[np.int32]
    pair_ends: NDArray[np.int64]


def observe(batch: Batch, context: Context) -> Observed:
    """What a batch shows, of which all reads have been searched; single reads show no pairs."""
    choose_windows(DeviceList.of(batch.queries.slot_of), batch, replace(context, sample=Sample()))
    present = ~absent_mask(batch.reads, context.backend)
    count = int(np.count_nonzero(present))
    most = READS if count == len(present) else 2 * READS  # so that as many are present
    tallies = measure_divergence(batch, most, context)[present[:most]]
    if not batch.reads.paired:
        return Observed(count, tallies, np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64))
    is_pair = present.reshape(-1, 2).all(axis=1)
    directions, sizes = measure_inserts(batch, context)
    pair_ends = np.cumsum(present, dtype=np.int64)[1::2]
    return Observed(count, tallies, directions[is_pair], sizes[is_pair], pair_ends[is_pair])


def have_pairs(observed: Sequence[Observed]) -> bool:
    """Whether there were pairs."""
    return any(len(o.sizes) for o in observed)


def enough(observed: Sequence[Observed], insert_size: tuple[float, ...] | None) -> bool:
    """Whether further reads would show no more, but for pairs where there were none."""
    if sum(len(o.tallies) for o in observed) < READS:
        return False
    if insert_size is not None or not have_pairs(observed):
        return True
    return sum(o.reads for o in observed) - (int(_pair_ends(observed)[0]) - 2) >= 2 * PAIRS


def learn(observed: Sequence[Observed], insert_size: tuple[float, ...] | None) -> Sample:
    """The sample that the first reads show.

    insert_size: of FR pairs, where a user gives it; UsageError where it is none.
    """
    sizes: tuple[InsertSize, ...] = ()
    if have_pairs(observed):
        sizes = given_insert_size(*insert_size) if insert_size else _estimated(observed)
    return Sample(estimate_bases_per_difference(np.concatenate([o.tallies for o in observed])[:READS]), sizes)


def _estimated(observed: Sequence[Observed]) -> tuple[InsertSize, ...]:
    """From the pairs among the first reads, from the first pair on, that would make so many pairs."""
    ends = _pair_ends(observed)
    count = int(ends.searchsorted(ends[0] - 2 + 2 * PAIRS, "right"))
    directions, sizes = (
        np.concatenate(parts)[:count] for parts in zip(*((o.directions, o.sizes) for o in observed), strict=True)
    )
    return estimate(directions, sizes)


def _pair_ends(observed: Sequence[Observed]) -> NDArray[np.int64]:
    """Reads up to and with each pair, those of the batches before it among them."""
    before = np.cumsum([0, *(o.reads for o in observed)])
    return np.concatenate([o.pair_ends + begin for o, begin in zip(observed, before[:-1], strict=True)])
