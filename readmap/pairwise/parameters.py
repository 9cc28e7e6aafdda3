"""What a comparison is to find."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError

#: What no alignment scores, and where scores end, since kernels hold them in 32 bits.
NO_SCORE = constant("pairwise/wavefront.cuh", "NO_SCORE")
SCORE_LIMIT = -NO_SCORE

#: Rows of a lane on a GPU and on the CPU, where a sweep does not ask for others.
GPU_ROWS, CPU_ROWS = (constant("pairwise/wavefront.cuh", name) for name in ("GPU_ROWS", "CPU_ROWS"))

#: Codes of a substitution matrix's letters are below CODES; the last one is no letter.
CODES, NO_CODE = (constant("pairwise/substitution.cuh", name) for name in ("CODES", "NO_CODE"))

#: The most that two letters score, or that a mismatch or the parts of a gap cost.
MAX_SCORE = 1000


class Mode(StrEnum):
    """Which parts of two sequences are aligned.

    Local: any part of the query with any part of the target. Global: all of both. Semi-global: all of the query with
    any part of the target.
    """

    LOCAL = "local"
    GLOBAL = "global"
    SEMIGLOBAL = "semiglobal"

    @property
    def code(self) -> int:
        """The number by which kernels know the mode."""
        return constant("pairwise/comparison.cuh", self.name)


@dataclass(frozen=True)
class DeviceScheme:
    """A scheme as kernels take it; matrix: of a SubstitutionScores, int32 [32, 32] on the device."""

    highest: int
    lowest: int
    gap_open: int
    gap_extend: int
    matrix: Array | None = None


class ScoringScheme(ABC):
    """What alignments score: two letters, and a gap of k, which costs gap_open + k * gap_extend.

    Attributes:
        letter_count: the code from which on codes are no letters, which match none, not even themselves.
    """

    gap_open: int
    gap_extend: int
    letter_count: int

    @property
    @abstractmethod
    def highest(self) -> int:
        """No two letters score more; 0 or more."""

    @property
    @abstractmethod
    def lowest(self) -> int:
        """No two letters score less; 0 or less."""

    @property
    def gap_first(self) -> int:
        """What the first letter of a gap costs."""
        return self.gap_open + self.gap_extend

    def to_device(self, backend: Backend) -> DeviceScheme:
        """The scheme as kernels of this backend take it."""
        return DeviceScheme(self.highest, self.lowest, self.gap_open, self.gap_extend)

    @abstractmethod
    def sweep_costs(self, mode: Mode) -> dict[int, int]:
        """Rows of a lane for which there are 16-bit sweeps on a GPU: what a column takes them."""

    @abstractmethod
    def kernel_module(self, name: str, mode: Mode) -> str:
        """The module of the kernels of that name for such scores; ValueError if it lacks the mode."""

    def check_score_range(self, queries: NDArray[np.int64], targets: NDArray[np.int64], mode: Mode) -> None:
        """Raise UsageError where scores of a query with its target may not fit; queries, targets: their lengths."""
        # The highest is that of the best letters alone, and none is below that of two gaps.
        highest = self.highest * np.minimum(queries, targets)
        gaps = {Mode.LOCAL: 0 * queries, Mode.GLOBAL: queries + targets, Mode.SEMIGLOBAL: queries}[mode]
        most = np.maximum(highest, 2 * self.gap_open + self.gap_extend * gaps)
        for number in np.flatnonzero(most >= SCORE_LIMIT)[:1]:
            raise UsageError(
                f"scores of {queries[number]:,} letters with {targets[number]:,} may reach {most[number]:,}, expected "
                f"less than {SCORE_LIMIT:,}: choose smaller scores and penalties"
            )

    def _expect_within(self, **lowest: int) -> None:
        for name, least in lowest.items():
            if not least <= getattr(self, name) <= MAX_SCORE:
                raise UsageError(f"{name.replace('_', ' ')} is {getattr(self, name)}, expected {least} to {MAX_SCORE}")


@dataclass(frozen=True)
class MatchScores(ScoringScheme):
    """The scores of a comparison, by default those of CUDAlign (Sandes and de Melo, 2010); penalties are positive.

    A gap of k letters costs gap_open + k * gap_extend; with gap_open 0 gaps are linear. A letter other than A, C, G and
    T matches none.
    """

    match: int = 1
    mismatch: int = 3
    gap_open: int = 3
    gap_extend: int = 2

    letter_count = constant("pairwise/identity.cuh", "NO_NUCLEOTIDE")

    def __post_init__(self) -> None:
        self._expect_within(match=1, mismatch=0, gap_open=0, gap_extend=1)

    @classmethod
    def from_gap_first(cls, match: int, mismatch: int, gap_first: int, gap_extend: int) -> MatchScores:
        """Scores with a gap whose first letter costs gap_first, and each further one gap_extend."""
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

    def sweep_costs(self, mode: Mode) -> dict[int, int]:
        """Rows of sweep_17_to_24_rows.cu, sweep_identity.cu and sweep_9_to_15_rows.cu: nanoseconds on an H200."""
        most = {24: 180, 22: 170, 21: 164, 20: 157, 19: 152, 18: 140, 17: 135} if mode is Mode.LOCAL else {}
        return most | {GPU_ROWS: 125, 15: 116, 13: 107, 11: 91, 9: 76}

    def kernel_module(self, name: str, mode: Mode) -> str:
        """The module for nucleotides."""
        return f"pairwise/{name}_identity"


@dataclass(frozen=True, eq=False)
class SubstitutionScores(ScoringScheme):
    """The scores of a matrix, for local alignments.

    scores: int32 [32, 32], of a letter of the query and one of the target, by their codes; up to 1000, and any number
        below. The last code is no letter, and what it would score does not matter.
    """

    scores: NDArray[np.int32]
    gap_open: int
    gap_extend: int

    letter_count = NO_CODE

    def __post_init__(self) -> None:
        self._expect_within(gap_open=0, gap_extend=1)
        if self.scores.shape != (CODES, CODES):
            raise UsageError(f"the shape of a matrix is {self.scores.shape}, expected {(CODES, CODES)}")
        if self.highest > MAX_SCORE:
            raise UsageError(f"the highest score of a matrix is {self.highest}, expected {MAX_SCORE} at most")

    def __repr__(self) -> str:
        """All of it, where NumPy's would leave out most."""
        return f"SubstitutionScores({self.scores.tolist()}, {self.gap_open}, {self.gap_extend})"

    @cached_property
    def matrix(self) -> NDArray[np.int32]:
        """int32 [32, 32], the scores as kernels take them: not so low that two gaps would not be better anyway."""
        least = -2 * self.gap_first - 1
        matrix = np.maximum(self.scores, least).astype(np.int32, order="C")
        matrix[self.letter_count], matrix[:, self.letter_count] = least, least
        return matrix

    @property
    def highest(self) -> int:
        """The highest score of two letters, or 0."""
        return max(int(self.scores[: self.letter_count, : self.letter_count].max()), 0)

    @property
    def lowest(self) -> int:
        """The lowest score of the matrix as kernels take it."""
        return int(self.matrix.min())

    def to_device(self, backend: Backend) -> DeviceScheme:
        """The scheme with its matrix on the device."""
        return replace(super().to_device(backend), matrix=backend.to_device(self.matrix))

    def sweep_costs(self, mode: Mode) -> dict[int, int]:
        """Rows of sweep_substitution.cu, which has no others."""
        return {GPU_ROWS: 1}

    def kernel_module(self, name: str, mode: Mode) -> str:
        """The module for a matrix."""
        if mode is not Mode.LOCAL:
            raise ValueError(f"mode is {mode}, expected local, with a matrix")
        return f"pairwise/{name}_substitution"


@dataclass(frozen=True)
class CompareSettings:
    """How two long sequences are compared; nothing but `scores` and `score_only` changes what comes out.

    score_only: the score and where it ends, without the alignment.
    pruning: whether parts of the matrix that cannot reach the best score are left out.
    memory: bytes for special rows and columns, from which the alignment is traced back; None for a quarter of what a
        GPU has free, or 1 GiB on the CPU: with 1 GiB a tenth of the matrix of two 5 Mbp sequences is computed again.
    checkpoint: a folder from which an interrupted comparison goes on; None keeps nothing.
    """

    scores: ScoringScheme = MatchScores()
    score_only: bool = False
    pruning: bool = True
    memory: int | None = None
    checkpoint: Path | None = None
