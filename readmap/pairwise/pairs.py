"""Pairs of any lengths: batches, and the long ones one by one."""

from __future__ import annotations

import numpy as np

from readmap.backend import Backend
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.batches import align_batch, too_large, worthwhile_cells
from readmap.pairwise.letters import Integers, Letters
from readmap.pairwise.long_pairs import align_long
from readmap.pairwise.parameters import Mode, Scheme


def align_pairs(
    queries: Letters, targets: Letters, scores: Scheme, mode: Mode, backend: Backend, score_only: bool = False
) -> PairAlignments:
    """The alignment of query i with target i, as many queries as targets, in the order of the input."""
    limit = worthwhile_cells(queries, targets, backend)
    batch = align_batch(queries, targets, scores, mode, backend, score_only, limit)
    large = too_large(queries, targets, limit)
    if len(large) == 0:
        return batch
    codes = [[letters.codes[slice(*_range(letters, pair))] for letters in (queries, targets)] for pair in large]
    found = [align_long(query, target, scores, mode, backend, score_only) for query, target in codes]
    return _merged(batch, large, found, backend)


def _range(letters: Letters, number: int) -> tuple[int, int]:
    """The places where a sequence begins and ends."""
    end = int(letters.lengths[: number + 1].sum())
    return end - int(letters.lengths[number]), end


def _merged(batch: PairAlignments, numbers: Integers, found: list[PairAlignments], backend: Backend) -> PairAlignments:
    """The alignments of a batch, with those found in the places of the empty ones of these numbers, which ascend."""
    host, parts = batch.on_host(backend), [part.on_host(backend) for part in found]
    for number, part in zip(numbers, parts, strict=True):
        for name in ("scores", "query_starts", "query_ends", "target_starts", "target_ends"):
            getattr(host, name)[number] = getattr(part, name)[0]
    counts = np.diff(host.operation_ends, prepend=0)
    counts[numbers] = [len(part.operations) for part in parts]
    pieces, begin = [], 0
    for number, part in zip(numbers, parts, strict=True):
        end = int(host.operation_ends[number])
        pieces += [host.operations[begin:end], part.operations]
        begin = end
    operations = np.concatenate([*pieces, host.operations[begin:]])
    merged = PairAlignments(
        host.scores,
        host.query_starts,
        host.query_ends,
        host.target_starts,
        host.target_ends,
        np.cumsum(counts),
        operations,
    )
    return PairAlignments(**{name: backend.to_device(array) for name, array in vars(merged).items()})
