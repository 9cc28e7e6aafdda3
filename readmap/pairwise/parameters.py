"""Scoring schemes, alignment modes and settings of comparisons."""

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

#: A score below all alignments, and the limit of scores, which kernels compute in 32 bits.
NO_SCORE = constant("pairwise/wavefront.cuh", "NO_SCORE")
SCORE_LIMIT = -NO_SCORE

#: Default rows per lane of a wavefront on a GPU and on the CPU.
GPU_LANE_ROWS, CPU_LANE_ROWS = (constant("pairwise/wavefront.cuh", name) for name in ("GPU_LANE_ROWS", "CPU_LANE_ROWS"))

#: Number of codes of a substitution matrix, and the last code, which is not a letter.
CODES, NO_CODE = (constant("pairwise/schemes.cuh", name) for name in ("CODES", "NO_CODE"))

#: Upper limit of the score of two letters, and of the costs of a mismatch and of the parts of a gap.
MAX_SCORE = 1000


class Mode(StrEnum):
    """Which parts of two sequences are aligned.

    LOCAL: any part of both sequences. GLOBAL: both as a whole. SEMIGLOBAL: the whole query, any part of the target.
    """

    LOCAL = "local"
    GLOBAL = "global"
    SEMIGLOBAL = "semiglobal"

    @property
    def code(self) -> int:
        """The code of the mode in the kernels."""
        return constant("pairwise/recurrence.cuh", self.name)


@dataclass(frozen=True)
class DeviceScheme:
    """A scoring scheme as the kernels take it; matrix: int32 [32, 32] on the device, for SubstitutionScores."""

    highest: int
    lowest: int
    gap_open: int
    gap_extend: int
    matrix: Array | None = None


class ScoringScheme(ABC):
    """Scores of letters and gaps; k letters cost gap_open + k * gap_extend; codes from letter_count on match none."""

    gap_open: int
    gap_extend: int
    letter_count: int

    @property
    @abstractmethod
    def highest(self) -> int:
        """Upper bound of the score of two letters, at least 0."""

    @property
    @abstractmethod
    def lowest(self) -> int:
        """Lower bound of the score of two letters, at most 0."""

    @property
    def gap_first(self) -> int:
        """Cost of the first letter of a gap."""
        return self.gap_open + self.gap_extend

    def to_device(self, backend: Backend) -> DeviceScheme:
        """Return the scheme as the kernels of `backend` take it."""
        return DeviceScheme(self.highest, self.lowest, self.gap_open, self.gap_extend)

    @abstractmethod
    def sweep_costs(self, mode: Mode) -> dict[int, int]:
        """Return the rows per lane for which a GPU has 16-bit sweep kernels, each with the time of a column."""

    @abstractmethod
    def kernel_module(self, name: str, mode: Mode) -> str:
        """Return the kernel module `name` for this scheme; ValueError if the module lacks the mode."""

    def check_score_range(self, queries: NDArray[np.int64], targets: NDArray[np.int64], mode: Mode) -> None:
        """Raise UsageError if scores of queries with targets of these lengths, int64 [pairs], may exceed 32 bits."""
        highest = self.highest * np.minimum(queries, targets)
        gaps = {Mode.LOCAL: 0 * queries, Mode.GLOBAL: queries + targets, Mode.SEMIGLOBAL: queries}[mode]
        bound = np.maximum(highest, 2 * self.gap_open + self.gap_extend * gaps)
        for i in np.flatnonzero(bound >= SCORE_LIMIT)[:1]:
            reached = f"scores of {queries[i]:,} letters with {targets[i]:,} may reach {bound[i]:,}"
            raise UsageError(f"{reached}, expected less than {SCORE_LIMIT:,}: choose smaller scores and penalties")

    def _check_limits(self, **minimums: int) -> None:
        """Raise UsageError if a field named in `minimums` is below its minimum or above MAX_SCORE."""
        for name, minimum in minimums.items():
            if not minimum <= getattr(self, name) <= MAX_SCORE:
                what = f"{name.replace('_', ' ')} is {getattr(self, name)}"
                raise UsageError(f"{what}, expected {minimum} to {MAX_SCORE}")


@dataclass(frozen=True)
class MatchScores(ScoringScheme):
    """Scores of a match, a mismatch and gaps of nucleotides; penalties are positive.

    The defaults are CUDAlign's (Sandes and de Melo, 2010). gap_open 0: linear costs. Only A, C, G and T match.
    """

    match: int = 1
    mismatch: int = 3
    gap_open: int = 3
    gap_extend: int = 2

    letter_count = constant("pairwise/schemes.cuh", "NOT_NUCLEOTIDE")

    def __post_init__(self) -> None:
        self._check_limits(match=1, mismatch=0, gap_open=0, gap_extend=1)

    @classmethod
    def from_gap_first(cls, match: int, mismatch: int, gap_first: int, gap_extend: int) -> MatchScores:
        """Return scores from the costs of the first and of each further letter of a gap."""
        if gap_first < gap_extend:
            expected = f"expected at least {gap_extend}, the cost of a further letter"
            raise UsageError(f"the first letter of a gap costs {gap_first}, {expected}")
        return cls(match, mismatch, gap_first - gap_extend, gap_extend)

    @property
    def highest(self) -> int:
        return self.match

    @property
    def lowest(self) -> int:
        return -self.mismatch

    def sweep_costs(self, mode: Mode) -> dict[int, int]:
        """Return nanoseconds per column on an H100 by rows per lane, as measured for the sweep_* kernels."""
        costs = {24: 180, 22: 170, 21: 164, 20: 157, 19: 152, 18: 140, 17: 135} if mode is Mode.LOCAL else {}
        return costs | {GPU_LANE_ROWS: 125, 15: 116, 13: 107, 11: 91, 9: 76}

    def kernel_module(self, name: str, mode: Mode) -> str:
        return f"pairwise/{name}_identity"


@dataclass(frozen=True, eq=False)
class SubstitutionScores(ScoringScheme):
    """Scores of a substitution matrix and gaps, for local alignments.

    scores: int32 [32, 32], of a letter of the query (row) and of the target (column) by their codes, at most 1000. The
    last code is not a letter; its scores are ignored.
    """

    scores: NDArray[np.int32]
    gap_open: int
    gap_extend: int

    letter_count = NO_CODE

    def __post_init__(self) -> None:
        self._check_limits(gap_open=0, gap_extend=1)
        if self.scores.shape != (CODES, CODES):
            raise UsageError(f"the shape of a matrix is {self.scores.shape}, expected {(CODES, CODES)}")
        if self.highest > MAX_SCORE:
            raise UsageError(f"the highest score of a matrix is {self.highest}, expected at most {MAX_SCORE}")

    def __repr__(self) -> str:
        """Return all scores, which NumPy would abbreviate; checkpoints hash this text."""
        return f"SubstitutionScores({self.scores.tolist()}, {self.gap_open}, {self.gap_extend})"

    @cached_property
    def matrix(self) -> NDArray[np.int32]:
        """The scores, int32 [32, 32], raised to just below two gaps, which changes no alignment and avoids overflow."""
        lowest = -2 * self.gap_first - 1
        matrix = np.maximum(self.scores, lowest).astype(np.int32, order="C")
        matrix[self.letter_count], matrix[:, self.letter_count] = lowest, lowest
        return matrix

    @property
    def highest(self) -> int:
        return max(int(self.scores[: self.letter_count, : self.letter_count].max()), 0)

    @property
    def lowest(self) -> int:
        """The lowest score of `matrix`."""
        return int(self.matrix.min())

    def to_device(self, backend: Backend) -> DeviceScheme:
        return replace(super().to_device(backend), matrix=backend.to_device(self.matrix))

    def sweep_costs(self, mode: Mode) -> dict[int, int]:
        """Return the only number of rows per lane of sweep_substitution.cu."""
        return {GPU_LANE_ROWS: 1}

    def kernel_module(self, name: str, mode: Mode) -> str:
        if mode is not Mode.LOCAL:
            raise ValueError(f"mode is {mode}, expected local for a substitution matrix")
        return f"pairwise/{name}_substitution"


@dataclass(frozen=True)
class CompareSettings:
    """How two long sequences are compared. Only `scores` and `score_only` change the result.

    score_only: compute the score and the end of the alignment, but not the alignment. pruning: skip parts of the matrix
    that cannot reach the best score. memory: bytes for the special rows and columns from which the traceback recomputes
    tiles. None: a quarter of the free memory of a GPU, or 1 GiB on the CPU. With 1 GiB, 10 % of the matrix of two 5 Mbp
    sequences is recomputed. checkpoint: folder from which an interrupted comparison resumes; None: no checkpoint.
    """

    scores: ScoringScheme = MatchScores()
    score_only: bool = False
    pruning: bool = True
    memory: int | None = None
    checkpoint: Path | None = None
