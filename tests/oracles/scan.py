"""The score of the best local alignment of two sequences of codes, a row of Gotoh's matrices at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import parasail
from numpy.typing import NDArray

from readmap.database.letters import LETTERS
from readmap.database.parameters import ScanScoring

Codes = NDArray[np.uint8]


def parasail_matrix(costs: ScanScoring) -> Any:
    """The same scores for parasail, whose own matrices differ in B, J, X and Z."""
    letters = LETTERS.tobytes().decode()
    matrix = parasail.matrix_create(letters[:-1], 1, -1)  # what is no letter is *
    for i, j in itertools.product(range(len(letters)), repeat=2):
        matrix[i, j] = int(costs.matrix.scores[i, j])
    return matrix


def score_of(query: Codes, subject: Codes, costs: ScanScoring) -> int:
    matrix = costs.matrix.scores.astype(np.int64)
    steps = np.arange(len(subject) + 1) * costs.gap_extend
    row, down, highest = np.zeros(len(subject) + 1, np.int64), np.full(len(subject) + 1, -(10**12)), 0
    for code in query:
        down = np.maximum(row - costs.gap_open, down) - costs.gap_extend
        diagonal = np.concatenate([[0], row[:-1] + matrix[code, subject]])
        row = np.maximum(np.maximum(diagonal, down), 0)
        # A gap along the row from the best place to open one before: which ends with a gap itself is none.
        opened = np.maximum.accumulate(row + steps)[:-1] - costs.gap_open - steps[1:]
        row[1:] = np.maximum(row[1:], opened)
        highest = max(highest, int(row.max()))
    return highest


def scores_of(queries: list[Codes], subjects: list[Codes], costs: ScanScoring) -> NDArray[np.int32]:
    """int32 [queries, subjects]."""
    return np.array([[score_of(query, subject, costs) for subject in subjects] for query in queries], np.int32)
