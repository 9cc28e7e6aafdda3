"""What a comparison is to find."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.errors import UsageError

#: Where scores end, since kernels hold them in 32 bits; -SCORES_END is no score (NO_SCORE of kernels/sweep.cuh).
SCORES_END = 1 << 30


class Mode(StrEnum):
    """Which parts of two sequences are aligned, numbered as in kernels/comparison.cuh.

    Local: any part of the query with any part of the target. Global: all of both. Semi-global: all of the query with
    any part of the target.
    """

    LOCAL = "local"
    GLOBAL = "global"
    SEMIGLOBAL = "semiglobal"

    @property
    def number(self) -> int:
        """What the kernels call it."""
        return list(Mode).index(self)


@dataclass(frozen=True)
class Scores:
    """The scores of a comparison, by default those of CUDAlign (Sandes and de Melo, 2010); penalties are positive.

    A gap of k letters costs gap_open + k * gap_extend; with gap_open 0 gaps are linear. A letter other than A, C, G and
    T matches none.
    """

    match: int = 1
    mismatch: int = 3
    gap_open: int = 3
    gap_extend: int = 2

    def __post_init__(self) -> None:
        lowest = {"match": 1, "mismatch": 0, "gap_open": 0, "gap_extend": 1}
        for name, least in lowest.items():
            if not least <= getattr(self, name) <= 1000:
                raise UsageError(f"{name.replace('_', ' ')} is {getattr(self, name)}, expected {least} to 1000")

    @classmethod
    def of_first_gap(cls, match: int, mismatch: int, gap_first: int, gap_extend: int) -> Scores:
        """Those of a gap whose first letter costs gap_first, and each further one gap_extend."""
        if gap_first < gap_extend:
            raise UsageError(
                f"the first letter of a gap costs {gap_first}, expected {gap_extend} or more, as a further one"
            )
        return cls(match, mismatch, gap_first - gap_extend, gap_extend)

    def expect_room(self, queries: NDArray[np.int64], targets: NDArray[np.int64], mode: Mode) -> None:
        """Raise UsageError where scores of a query with its target may not fit; queries, targets: their lengths."""
        # The highest is that of equal letters alone, and none is below that of two gaps.
        highest = self.match * np.minimum(queries, targets)
        gaps = {Mode.LOCAL: 0 * queries, Mode.GLOBAL: queries + targets, Mode.SEMIGLOBAL: queries}[mode]
        most = np.maximum(highest, 2 * self.gap_open + self.gap_extend * gaps)
        for number in np.flatnonzero(most >= SCORES_END)[:1]:
            raise UsageError(
                f"scores of {queries[number]:,} letters with {targets[number]:,} may reach {most[number]:,}, expected "
                f"less than {SCORES_END:,}: choose smaller scores and penalties"
            )

    def arguments(self) -> tuple[int, ...]:
        """In the order of COMPARISON_ARGUMENTS of kernels/comparison.cuh."""
        return self.match, self.mismatch, self.gap_open, self.gap_extend


@dataclass(frozen=True)
class Settings:
    """How two long sequences are compared; nothing but `scores` and `score_only` changes what comes out.

    score_only: the score and where it ends, without the alignment.
    pruning: whether parts of the matrix that cannot reach the best score are left out.
    memory: bytes for special rows and columns, from which the alignment is traced back; None for a quarter of what a
        GPU has free, or 1 GiB on the CPU: with 1 GiB a tenth of the matrix of two 5 Mbp sequences is computed again.
    checkpoint: a folder from which an interrupted comparison goes on; None keeps nothing.
    """

    scores: Scores = Scores()
    score_only: bool = False
    pruning: bool = True
    memory: int | None = None
    checkpoint: Path | None = None
