"""The first reads of a search -> divergence of the sample and insert sizes of each library.

MAPQ and the placement of mates depend on both. So the first batches are searched and kept until enough reads have been
observed; then they are aligned, with the estimates, before all later batches. The estimates depend on the reads alone,
not on how they are divided into batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import Batch, Context, Sample
from readmap.mapping.divergence import estimate_bases_per_difference, measure_divergence
from readmap.mapping.inserts import InsertSize, estimate_insert_sizes, fixed_insert_size
from readmap.mapping.pairs import measure_inserts
from readmap.mapping.windows import choose_windows
from readmap.reads.parsing import Reads, absent_mask
from readmap.run.sample_model import SampleModel

#: The numbers of reads that the divergence, and of pairs that the insert sizes are estimated from.
READS, PAIRS = 20_000, 100_000

Pending = TypeVar("Pending")


@dataclass(frozen=True)
class Observation:
    """What the reads of one batch contribute to the estimates. reads: their number, without absent mates. tallies:
    int64 [at most READS, ...], from measure_divergence, of the first reads. directions, sizes: uint8 and int32 [pairs],
    from measure_inserts. pair_ends: int64 [pairs], the number of reads up to the end of each pair."""

    reads: int
    tallies: NDArray[np.int64]
    directions: NDArray[np.uint8]
    sizes: NDArray[np.int32]
    pair_ends: NDArray[np.int64]


def observe(batch: Batch, context: Context) -> Observation:
    """Choose the windows of a searched batch as for a default sample; return its contribution, in host arrays."""
    choose_windows(DeviceList.of(batch.queries.slot_of), batch, replace(context, sample=Sample()))
    present = ~absent_mask(batch.reads, context.backend)
    count = int(np.count_nonzero(present))
    limit = READS if count == len(present) else 2 * READS  # so that READS of them are present
    tallies = measure_divergence(batch, limit, context)[present[:limit]]
    if not batch.reads.paired:
        return Observation(count, tallies, np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64))
    is_pair = present.reshape(-1, 2).all(axis=1)
    directions, sizes = measure_inserts(batch, context)
    pair_ends = np.cumsum(present, dtype=np.int64)[1::2]
    return Observation(count, tallies, directions[is_pair], sizes[is_pair], pair_ends[is_pair])


def have_pairs(observations: Sequence[Observation]) -> bool:
    return any(len(o.sizes) for o in observations)


def are_sufficient(observations: Sequence[Observation], insert_size: tuple[float, ...] | None) -> bool:
    """Return True if further reads would not change the estimates, unless these reads are single and pairs follow.
    insert_size: given by the user, or None to estimate it."""
    if sum(len(o.tallies) for o in observations) < READS:
        return False
    if insert_size is not None or not have_pairs(observations):
        return True
    return sum(o.reads for o in observations) - (int(_pair_ends(observations)[0]) - 2) >= 2 * PAIRS


def estimate_sample(observations: Sequence[Observation], insert_size: tuple[float, ...] | None) -> Sample:
    """Return divergence and insert sizes estimated from the first reads. insert_size: given by the user for FR pairs,
    or None to estimate it; raises UsageError if it is invalid."""
    sizes: tuple[InsertSize, ...] = ()
    if have_pairs(observations):
        sizes = fixed_insert_size(*insert_size) if insert_size else _estimate_sizes(observations)
    return Sample(estimate_bases_per_difference(np.concatenate([o.tallies for o in observations])[:READS]), sizes)


def _estimate_sizes(observations: Sequence[Observation]) -> tuple[InsertSize, ...]:
    """Return the insert sizes by orientation, from the pairs in the 2 * PAIRS reads that begin with the first pair."""
    ends = _pair_ends(observations)
    count = int(ends.searchsorted(ends[0] - 2 + 2 * PAIRS, "right"))
    directions, sizes = (
        np.concatenate(parts)[:count] for parts in zip(*((o.directions, o.sizes) for o in observations), strict=True)
    )
    return estimate_insert_sizes(directions, sizes)


def _pair_ends(observations: Sequence[Observation]) -> NDArray[np.int64]:
    """Return the number of reads up to the end of each pair, counted from the first batch."""
    before = np.cumsum([0, *(o.reads for o in observations)])
    return np.concatenate([o.pair_ends + start for o, start in zip(observations, before[:-1], strict=True)])


@dataclass
class _Library(Generic[Pending]):
    """The library that is being estimated: its observations and the batches that wait for the estimate. needs_pairs:
    only the insert sizes are unknown, so single reads need not wait."""

    name: str
    observations: list[Observation] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    needs_pairs: bool = False


class SampleEstimator(Generic[Pending]):
    """Estimates the sample model from the first batches, and returns these batches when they can be aligned.

    Batches arrive in the order of the reads: `start_library` before each batch; then, if `wants` it, `add` with what
    was observed. Both return the pending batches to align now, in order; `finish` returns the rest. Insert sizes
    of a library are estimated from its lanes up to the first lane of another library, the divergence from the first
    reads of the run. model: what was known before the first read, and what has been estimated since."""

    def __init__(
        self,
        model: SampleModel,
        libraries: Sequence[str],
        insert_size: tuple[float, ...] | None = None,
        pairs_may_come: bool = False,
    ) -> None:
        """libraries: names, by lane. insert_size: given, or None. pairs_may_come: after single reads too."""
        self.model, self._samples = model, model.samples
        self._libraries, self._insert_size, self._pairs_may_come = libraries, insert_size, pairs_may_come
        self._current: _Library[Pending] | None = None

    @property
    def is_complete(self) -> bool:
        return self._current is None and all(name in self._samples for name in self._libraries)

    def is_open(self, library: str) -> bool:
        """Return True if a batch of this library may still change the estimates, so that it must wait for its turn.

        Threads call this out of turn: the estimate that is in progress is set before the library is known."""
        return library not in self._samples or self._current is not None

    def sample_of(self, library: str) -> Sample:
        return self._samples[library]

    def start_library(self, library: str) -> list[Pending]:
        """Begin a batch of a library. If it ends another library, estimate that one and return its pending batches."""
        ready: list[Pending] = []
        if self._current and self._current.name != library:
            ready, self._current = self._estimate(self._current), None
        if library not in self._samples:
            known = self.model.bases_per_difference
            self._current = _Library(library, needs_pairs=known is not None)
            self._samples[library] = Sample() if known is None else Sample(known)
        return ready

    def wants(self, reads: Reads) -> bool:
        """Return True if a batch of the current library must be observed, or wait for such batches."""
        current = self._current
        return current is not None and (reads.paired or bool(current.pending) or not current.needs_pairs)

    def add(self, pending: Pending, observation: Observation) -> list[Pending]:
        """Keep a batch that was observed; return all pending batches if these reads suffice, else none."""
        assert self._current is not None
        self._current.observations.append(observation)
        self._current.pending.append(pending)
        sufficient = are_sufficient(self._current.observations, self._insert_size)
        return self._estimate(self._current) if sufficient else []

    def finish(self) -> list[Pending]:
        """Estimate the current library after the last read; return its pending batches, which can be aligned now."""
        return self._estimate(self._current) if self._current else []

    def _estimate(self, library: _Library[Pending]) -> list[Pending]:
        """Estimate a library, add it to the model and end it; return its pending batches. Without any, do nothing."""
        if not library.pending:
            return []
        sample = estimate_sample(library.observations, self._insert_size)
        known = self.model.bases_per_difference
        divergence = sample.bases_per_difference if known is None else known
        self._samples[library.name] = replace(sample, bases_per_difference=divergence)
        sizes: Mapping[str, tuple[InsertSize, ...] | None] = {library.name: None}
        self._current = None
        if have_pairs(library.observations):
            sizes = {library.name: sample.insert_sizes}
        elif self._pairs_may_come:
            self._current = _Library(library.name, library.observations, needs_pairs=True)
        self.model = replace(self.model, bases_per_difference=divergence, libraries={**self.model.libraries, **sizes})
        return library.pending
