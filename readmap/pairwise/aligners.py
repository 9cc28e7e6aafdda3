"""Sequences of files -> PairAlignments on the host, by the aligner of many pairs or that of one long pair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.team import Team
from readmap.pairwise import long_pairs, pairs
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.device_sequences import sequences_from_letters
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import Mode, ScoringScheme, CompareSettings
from readmap.reads.sequences import Sequences

#: Hears of the cells of the matrix that are done, and of all there are.
Progress = Callable[[int, int], None]


def align_batch(
    queries: Sequences, targets: Sequences, scores: ScoringScheme, mode: Mode, backend: Backend, score_only: bool
) -> PairAlignments:
    """The alignment of query i with target i, for all of them."""
    rows, columns = (sequences_from_letters(side.letters, side.offsets, backend) for side in (queries, targets))
    return pairs.align_pairs(rows, columns, scores, mode, backend, score_only).to_host(backend)


def align_long(
    query: NDArray[np.uint8], target: NDArray[np.uint8], settings: CompareSettings, team: Team, progress: Progress
) -> PairAlignments:
    """The local alignment of one query with one target."""

    def matrix(backend: Backend) -> DPMatrix:
        return DPMatrix(_codes(query, backend), _codes(target, backend), settings.scores, Mode.LOCAL, backend)

    return long_pairs.align_long(team.each(matrix, team.backends), settings, team, progress)


def _codes(letters: NDArray[np.uint8], backend: Backend) -> Array:
    return sequences_from_letters(letters, np.array([0, len(letters)]), backend).codes[: len(letters)]
