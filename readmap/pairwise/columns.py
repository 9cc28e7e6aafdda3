"""Operations -> columns: an alignment with a letter or a gap of each sequence in every column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.pairwise.alignments import DELETED, INSERTED

GAP = ord("-")


@dataclass(frozen=True)
class AlignedColumns:
    """Columns of alignments that follow each other, uint8 [columns]: operations, and letters or gaps."""

    operations: NDArray[np.uint8]
    query: NDArray[np.uint8]
    target: NDArray[np.uint8]


def expand(operations: NDArray[np.uint32], query: NDArray[np.uint8], target: NDArray[np.uint8]) -> AlignedColumns:
    """The columns of operations as in PairAlignments; query, target: just the letters that they consume.

    It takes about five bytes a column, so that alignments of whole chromosomes are no matter.
    """
    each = np.repeat((operations & 15).astype(np.uint8), operations >> 4)
    return AlignedColumns(each, _spread(query, each != DELETED), _spread(target, each != INSERTED))


def _spread(letters: NDArray[np.uint8], places: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A line with the letters at their places, and gaps elsewhere."""
    line = np.full(len(places), GAP, np.uint8)
    line[places] = letters
    return line
