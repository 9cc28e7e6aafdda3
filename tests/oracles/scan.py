"""Local alignment scores of encoded sequences, computed row by row with Gotoh's recurrence."""

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
    """Return the scores as a matrix of parasail, whose own matrices differ in B, J, X and Z."""
    letters = LETTERS.tobytes().decode()
    matrix = parasail.matrix_create(letters[:-1], 1, -1)  # * stands for anything else
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
        # A gap along the row opens at the best earlier column, which does not end with a gap itself.
        opened = np.maximum.accumulate(row + steps)[:-1] - costs.gap_open - steps[1:]
        row[1:] = np.maximum(row[1:], opened)
        highest = max(highest, int(row.max()))
    return highest


def scores_of(queries: list[Codes], subjects: list[Codes], costs: ScanScoring) -> NDArray[np.int32]:
    """Return all scores, int32 [queries, subjects]."""
    return np.array([[score_of(query, subject, costs) for subject in subjects] for query in queries], np.int32)
