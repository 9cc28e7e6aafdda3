"""What the scan of a database with a query finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.pairwise.alignments import PairAlignments


@dataclass(frozen=True)
class ScanHits:
    """The reported hits of a query, the best first; all arrays are on the host.

    Attributes:
        query: its number in its file, from 0.
        subjects: int64 [hits], their numbers in the database's file, from 0.
        reverse: bool [hits], whether the subject's reverse complement is aligned, which only nucleotides have.
        scores: int32 [hits].
        bit_scores, evalues: float64 [hits]; NaN where the costs have no statistical parameters.
        alignments: a pair a hit: the query as it was given, and the subject as it is aligned, which is its reverse
            complement where `reverse` is true. Equal letters are = whatever they score.
    """

    query: int
    subjects: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    scores: NDArray[np.int32]
    bit_scores: NDArray[np.float64]
    evalues: NDArray[np.float64]
    alignments: PairAlignments

    def __len__(self) -> int:
        return len(self.subjects)
