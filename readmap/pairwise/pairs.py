"""Pairs of any lengths: batches, and the long ones one by one."""

from __future__ import annotations

from readmap.backend import Backend
from readmap.backend.team import Team
from readmap.pairwise.alignments import PairAlignments, join_alignments
from readmap.pairwise.batches import align_batch, choose_cell_limit, find_large_pairs
from readmap.pairwise.device_sequences import DeviceSequences, Integers
from readmap.pairwise.long_pairs import align_long
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import CompareSettings, Mode, ScoringScheme


def align_pairs(
    queries: DeviceSequences,
    targets: DeviceSequences,
    scores: ScoringScheme,
    mode: Mode,
    backend: Backend,
    score_only: bool = False,
) -> PairAlignments:
    """The alignment of query i with target i, as many queries as targets, in the order of the input."""
    limit = choose_cell_limit(queries, targets, backend)
    batch = align_batch(queries, targets, scores, mode, backend, score_only, limit)
    large = find_large_pairs(queries, targets, limit)
    if len(large) == 0:
        return batch
    codes = [[letters.codes[slice(*_range(letters, pair))] for letters in (queries, targets)] for pair in large]
    matrices = [DPMatrix(query, target, scores, mode, backend) for query, target in codes]
    found = [align_long([matrix], CompareSettings(scores, score_only), Team.of(backend)) for matrix in matrices]
    return _merged(batch, large, found, backend)


def _range(letters: DeviceSequences, number: int) -> tuple[int, int]:
    """The places where a sequence begins and ends."""
    end = int(letters.lengths[: number + 1].sum())
    return end - int(letters.lengths[number]), end


def _merged(batch: PairAlignments, numbers: Integers, found: list[PairAlignments], backend: Backend) -> PairAlignments:
    """The alignments of a batch, with those found in the places of the empty ones of these numbers, which ascend.

    found: on the host.
    """
    host, begin = batch.to_host(backend), 0
    parts = []
    for number, own in zip(numbers.tolist(), found, strict=True):
        parts += [host.part(begin, number), own]
        begin = number + 1
    merged = join_alignments([*parts, host.part(begin, len(host))])
    return PairAlignments(**{name: backend.to_device(array) for name, array in vars(merged).items()})
