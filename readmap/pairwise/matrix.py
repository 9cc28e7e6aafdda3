"""The dynamic-programming matrix of two sequences, and how its rows are divided among wavefronts."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.pairwise.parameters import CPU_LANE_ROWS, GPU_LANE_ROWS, DeviceScheme, Mode, ScoringScheme

#: Rows per lane of kernels that store the traceback of all cells.
TRACED_ROWS = constant("pairwise/traceback_cells.cuh", "TRACED_ROWS")

#: Columns that a wavefront sweeps between two exchanges with its neighbours.
CHUNK = constant("pairwise/wavefront.cuh", "CHUNK")

#: Columns that a strip starts after the strip above.
LAG = 200

#: Maximum difference of the scores in a wavefront that fits in 16 bits, given the drift of the base.
SPAN = 11_000


class CellState(IntEnum):
    """The score of a cell (H, E or F) that the traceback is in."""

    H = constant("pairwise/traceback.cu", "STATE_H")
    E = constant("pairwise/traceback.cu", "STATE_E")
    F = constant("pairwise/traceback.cu", "STATE_F")
    AT_START = constant("pairwise/traceback.cu", "AT_START")


class Cell(NamedTuple):
    """A cell of the matrix: indices of the letters of the query and the target, -1 before the first letter."""

    row: int
    column: int
    state: CellState = CellState.H


class BestCell(NamedTuple):
    """A cell with the best score found, and that score."""

    score: int
    row: int
    column: int

    def sort_key(self) -> tuple[int, int, int]:
        """Return a key that orders better cells first, and among equal scores the first cell as in PairAlignments."""
        return -self.score, self.row + self.column, -self.column


@dataclass(frozen=True)
class DPMatrix:
    """The matrix of two sequences, uint8 codes, on a device. Rows are letters of the query, columns of the target."""

    query: Array
    target: Array
    scores: ScoringScheme
    mode: Mode
    backend: Backend

    @cached_property
    def scheme(self) -> DeviceScheme:
        return self.scores.to_device(self.backend)

    @property
    def rows(self) -> int:
        return len(self.query)

    @property
    def columns(self) -> int:
        return len(self.target)

    @property
    def strip_rows(self) -> int:
        """Maximum number of rows of a strip, the rows that one wavefront sweeps."""
        return self.lanes * max(self._sweep_costs)

    @property
    def bits(self) -> int:
        """Bits of a score in a wavefront: 16 if scores of its cells differ little enough, else 32."""
        return 16 if self._fits(self._wavefront_rows) else 32

    @property
    def lanes(self) -> int:
        return self.backend.warp_width * (self.backend.lanes_16bit if self.bits == 16 else 1)

    @property
    def _wavefront_rows(self) -> int:
        return GPU_LANE_ROWS if self.backend.warp_width > 1 else CPU_LANE_ROWS

    @property
    def _sweep_costs(self) -> dict[int, int]:
        """Rows per lane of the available kernels, each with the relative time of a column."""
        if self.backend.warp_width == 1 or self.bits == 32:
            return {self._wavefront_rows: 1}
        return {height: cost for height, cost in self.scores.sweep_costs(self.mode).items() if self._fits(height)}

    def _fits(self, height: int) -> bool:
        """Return True if 16 bits hold the scores of a wavefront with `height` rows per lane."""
        scores = self.scores
        width = self.backend.warp_width * self.backend.lanes_16bit
        reach = width * height + width + CHUNK
        highest, lowest = scores.highest + scores.gap_first, scores.lowest + scores.gap_first
        span = reach * (scores.highest + 2 * scores.gap_extend) + 4 * scores.gap_open - scores.lowest
        return span <= SPAN and lowest >= -128 and highest < 128

    def choose_lane_rows(self, rows: int, columns: int, row_step: int) -> int:
        """Return the rows per lane that sweep a region fastest; every row_step-th row must be the last of a strip."""
        costs = self._sweep_costs

        def time(height: int) -> int:
            strips, groups = -(-rows // (self.lanes * height)), self.backend.resident_warps
            return (-(-strips // groups) * columns + LAG * min(strips, groups)) * costs[height]

        fitting = (n for n in costs if row_step >= rows or not row_step % (self.lanes * n))
        return min(fitting, key=time)

    def kernel(self, what: str, height: int) -> Kernel:
        """Return kernel `what`, sweep or trace, for the mode and scores of this matrix, with `height` rows per lane."""
        kind = "local" if self.mode is Mode.LOCAL else "whole"
        module, name = self.scores.kernel_module("sweep", self.mode), f"{what}_{kind}_{self.bits}_bits"
        if height not in (self._wavefront_rows, TRACED_ROWS):
            module = f"pairwise/sweep_{'9_to_15' if height < self._wavefront_rows else '17_to_24'}_rows"
            name += f"_{height}_rows"
        return Kernel(module, name)
