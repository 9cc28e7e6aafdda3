"""What a comparison is to find."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.errors import UsageError

#: Where scores end, since kernels hold them in 32 bits; -SCORES_END is no score (NO_SCORE of pairwise/sweep.cuh).
SCORES_END = 1 << 30

#: The most that two letters score, or that a mismatch or the parts of a gap cost.
MOST = 1000


class Mode(StrEnum):
    """Which parts of two sequences are aligned, numbered as in kernels/pairwise/comparison.cuh.

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


class Scheme(ABC):
    """What alignments score: two letters, and a gap of k, which costs gap_open + k * gap_extend.

    Attributes:
        no_letter: the code from which on codes are no letters, which match none, not even themselves.
    """

    gap_open: int
    gap_extend: int
    no_letter: int

    @property
    @abstractmethod
    def highest(self) -> int:
        """No two letters score more; 0 or more."""

    @property
    @abstractmethod
    def lowest(self) -> int:
        """No two letters score less; 0 or less."""

    @property
    def first_gap(self) -> int:
        """What the first letter of a gap costs."""
        return self.gap_open + self.gap_extend

    @property
    def limits(self) -> tuple[int, ...]:
        """In the order of LIMIT_ARGUMENTS of kernels/pairwise/comparison.cuh."""
        return self.highest, self.lowest, self.gap_open, self.gap_extend

    @abstractmethod
    def arguments(self, backend: Backend) -> tuple[Any, ...]:
        """In the order of SCHEME_ARGUMENTS of the kernels for such scores."""

    @abstractmethod
    def heights(self, mode: Mode) -> dict[int, int]:
        """Rows of a lane for which there are 16-bit sweeps on a GPU: what a column takes them."""

    @abstractmethod
    def module(self, name: str, mode: Mode) -> str:
        """The module of the kernels for such scores, of the one for nucleotides; ValueError if it lacks the mode."""

    def expect_room(self, queries: NDArray[np.int64], targets: NDArray[np.int64], mode: Mode) -> None:
        """Raise UsageError where scores of a query with its target may not fit; queries, targets: their lengths."""
        # The highest is that of the best letters alone, and none is below that of two gaps.
        highest = self.highest * np.minimum(queries, targets)
        gaps = {Mode.LOCAL: 0 * queries, Mode.GLOBAL: queries + targets, Mode.SEMIGLOBAL: queries}[mode]
        most = np.maximum(highest, 2 * self.gap_open + self.gap_extend * gaps)
        for number in np.flatnonzero(most >= SCORES_END)[:1]:
            raise UsageError(
                f"scores of {queries[number]:,} letters with {targets[number]:,} may reach {most[number]:,}, expected "
                f"less than {SCORES_END:,}: choose smaller scores and penalties"
            )

    def _expect_within(self, **lowest: int) -> None:
        for name, least in lowest.items():
            if not least <= getattr(self, name) <= MOST:
                raise UsageError(f"{name.replace('_', ' ')} is {getattr(self, name)}, expected {least} to {MOST}")


@dataclass(frozen=True)
class Scores(Scheme):
    """The scores of a comparison, by default those of CUDAlign (Sandes and de Melo, 2010); penalties are positive.

    A gap of k letters costs gap_open + k * gap_extend; with gap_open 0 gaps are linear. A letter other than A, C, G and
    T matches none.
    """

    match: int = 1
    mismatch: int = 3
    gap_open: int = 3
    gap_extend: int = 2

    no_letter = 4

    def __post_init__(self) -> None:
        self._expect_within(match=1, mismatch=0, gap_open=0, gap_extend=1)

    @classmethod
    def of_first_gap(cls, match: int, mismatch: int, gap_first: int, gap_extend: int) -> Scores:
        """Those of a gap whose first letter costs gap_first, and each further one gap_extend."""
        if gap_first < gap_extend:
            raise UsageError(
                f"the first letter of a gap costs {gap_first}, expected {gap_extend} or more, as a further one"
            )
        return cls(match, mismatch, gap_first - gap_extend, gap_extend)

    @property
    def highest(self) -> int:
        """A match."""
        return self.match

    @property
    def lowest(self) -> int:
        """A mismatch."""
        return -self.mismatch

    def arguments(self, backend: Backend) -> tuple[Any, ...]:
        """The limits say it all."""
        return self.limits

    def heights(self, mode: Mode) -> dict[int, int]:
        """Those of sweep_17_to_24_rows.cu, sweep.cu and sweep_9_to_15_rows.cu: nanoseconds on an H200."""
        tall = {24: 180, 22: 170, 21: 164, 20: 157, 19: 152, 18: 140, 17: 135} if mode is Mode.LOCAL else {}
        return tall | {16: 125, 15: 116, 13: 107, 11: 91, 9: 76}

    def module(self, name: str, mode: Mode) -> str:
        """The one for nucleotides."""
        return f"pairwise/{name}"


@dataclass(frozen=True, eq=False)
class Substitution(Scheme):
    """The scores of a matrix, for local alignments.

    scores: int32 [32, 32], of a letter of the query and one of the target, by their codes; up to 1000, and any number
        below. The last code is no letter, and what it would score does not matter.
    """

    scores: NDArray[np.int32]
    gap_open: int
    gap_extend: int

    no_letter = 31

    def __post_init__(self) -> None:
        self._expect_within(gap_open=0, gap_extend=1)
        if self.scores.shape != (32, 32):
            raise UsageError(f"the shape of a matrix is {self.scores.shape}, expected (32, 32)")
        if self.highest > MOST:
            raise UsageError(f"the highest score of a matrix is {self.highest}, expected {MOST} at most")

    def __repr__(self) -> str:
        """All of it, where NumPy's would leave out most."""
        return f"Substitution({self.scores.tolist()}, {self.gap_open}, {self.gap_extend})"

    @cached_property
    def matrix(self) -> NDArray[np.int32]:
        """int32 [32, 32], the scores as kernels take them: not so low that two gaps would not be better anyway."""
        least = -2 * self.first_gap - 1
        matrix = np.maximum(self.scores, least).astype(np.int32, order="C")
        matrix[self.no_letter], matrix[:, self.no_letter] = least, least
        return matrix

    @property
    def highest(self) -> int:
        """Of the matrix."""
        return max(int(self.scores[: self.no_letter, : self.no_letter].max()), 0)

    @property
    def lowest(self) -> int:
        """Of the matrix as kernels take it."""
        return int(self.matrix.min())

    def arguments(self, backend: Backend) -> tuple[Any, ...]:
        """The matrix on the device, and the limits."""
        return backend.to_device(self.matrix), *self.limits

    def heights(self, mode: Mode) -> dict[int, int]:
        """That of kernels/pairwise/substitution_sweep.cu."""
        return {16: 1}

    def module(self, name: str, mode: Mode) -> str:
        """The one of like name."""
        if mode is not Mode.LOCAL:
            raise ValueError(f"mode is {mode}, expected local, with a matrix")
        return f"pairwise/substitution_{name}"


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
