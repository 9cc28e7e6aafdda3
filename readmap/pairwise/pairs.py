"""Align pairs of any lengths: most in batches, long pairs one by one."""

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
    """Align query i with target i for every i, and return the alignments, on the device, in the order of the input."""
    limit = choose_cell_limit(queries, targets, backend)
    batch = align_batch(queries, targets, scores, mode, backend, score_only, limit)
    large = find_large_pairs(queries, targets, limit)
    if len(large) == 0:
        return batch
    codes = [[letters.codes[slice(*_range(letters, pair))] for letters in (queries, targets)] for pair in large]
    matrices = [DPMatrix(query, target, scores, mode, backend) for query, target in codes]
    found = [align_long([matrix], CompareSettings(scores, score_only), Team.of(backend)) for matrix in matrices]
    return _merged(batch, large, found, backend)


def _range(letters: DeviceSequences, index: int) -> tuple[int, int]:
    end = int(letters.lengths[: index + 1].sum())
    return end - int(letters.lengths[index]), end


def _merged(batch: PairAlignments, indices: Integers, found: list[PairAlignments], backend: Backend) -> PairAlignments:
    """Replace the empty alignments of a batch at `indices` (ascending) by those in `found`, which are on the host."""
    host, start = batch.to_host(backend), 0
    parts = []
    for index, own in zip(indices.tolist(), found, strict=True):
        parts += [host.part(start, index), own]
        start = index + 1
    merged = join_alignments([*parts, host.part(start, len(host))])
    return PairAlignments(**{name: backend.to_device(array) for name, array in vars(merged).items()})
