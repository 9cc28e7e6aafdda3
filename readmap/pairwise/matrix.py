"""Two sequences on a device -> the matrix of their cells, and how its rows are divided among wavefronts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.pairwise.parameters import CPU_ROWS, GPU_ROWS, DeviceScheme, Mode, ScoringScheme

#: Rows of a lane where the sources of all cells are kept.
TRACED_ROWS = constant("pairwise/traceback_cells.cuh", "TRACED_ROWS")

#: Columns that a wavefront goes at a time.
CHUNK = constant("pairwise/wavefront.cuh", "CHUNK")

#: Columns that a strip is behind the one above it.
LAG = 200

#: By how much scores of a wavefront's cells may differ for 16 bits to hold them, beside what the base may lag behind.
SPAN = 11_000


class CellState(IntEnum):
    """Which of a cell's three scores the way back is in."""

    H = constant("pairwise/paths.cu", "STATE_H")
    E = constant("pairwise/paths.cu", "STATE_E")
    F = constant("pairwise/paths.cu", "STATE_F")
    AT_BEGINNING = constant("pairwise/paths.cu", "AT_BEGINNING")


class Cell(NamedTuple):
    """A cell of the matrix: row i and column j are letters of the query and the target, -1 in front of the first."""

    row: int
    column: int
    state: CellState = CellState.H


class BestCell(NamedTuple):
    """The first of the best cells, and its score."""

    score: int
    row: int
    column: int

    def order(self) -> tuple[int, int, int]:
        """Less for a better one, and for the one before of those that score the same."""
        return -self.score, self.row + self.column, -self.column


@dataclass(frozen=True)
class DPMatrix:
    """Two sequences on a device, and how they are compared.

    Attributes:
        query, target: uint8, codes as in Letters; rows and columns of the matrix.
        scores, mode: of the alignments.
        backend: the device.
    """

    query: Array
    target: Array
    scores: ScoringScheme
    mode: Mode
    backend: Backend

    @cached_property
    def scheme(self) -> DeviceScheme:
        """The scores as kernels take them."""
        return self.scores.to_device(self.backend)

    @property
    def rows(self) -> int:
        """Letters of the query."""
        return len(self.query)

    @property
    def columns(self) -> int:
        """Letters of the target."""
        return len(self.target)

    @property
    def strip(self) -> int:
        """Rows that a wavefront sweeps at most."""
        return self.lanes * max(self._sweep_costs)

    @property
    def bits(self) -> int:
        """16 where scores of neighbouring cells differ so little, else 32."""
        return 16 if self._fits(self._wavefront_rows) else 32

    @property
    def lanes(self) -> int:
        """Lanes of a wavefront."""
        return self.backend.warp_width * (self.backend.lanes_16bit if self.bits == 16 else 1)

    @property
    def _wavefront_rows(self) -> int:
        """Rows of a lane, if nothing asks for others."""
        return GPU_ROWS if self.backend.warp_width > 1 else CPU_ROWS

    @property
    def _sweep_costs(self) -> dict[int, int]:
        """Rows that a lane may have: what a column takes them."""
        if self.backend.warp_width == 1 or self.bits == 32:
            return {self._wavefront_rows: 1}
        return {height: cost for height, cost in self.scores.sweep_costs(self.mode).items() if self._fits(height)}

    def _fits(self, height: int) -> bool:
        """Whether 16 bits hold the scores of a wavefront with so many rows a lane."""
        scores = self.scores
        width = self.backend.warp_width * self.backend.lanes_16bit
        reach = width * height + width + CHUNK
        highest, lowest = scores.highest + scores.gap_first, scores.lowest + scores.gap_first
        span = reach * (scores.highest + 2 * scores.gap_extend) + 4 * scores.gap_open - scores.lowest
        return span <= SPAN and lowest >= -128 and highest < 128

    def height(self, rows: int, columns: int, row_step: int) -> int:
        """Rows of a lane with which a region is swept in the least time, where groups sweep strip after strip.

        row_step: of the rows that are kept, which have to be the last ones of strips.
        """
        costs = self._sweep_costs

        def time(height: int) -> int:
            strips, groups = -(-rows // (self.lanes * height)), self.backend.resident_warps
            return (-(-strips // groups) * columns + LAG * min(strips, groups)) * costs[height]

        fitting = (n for n in costs if row_step >= rows or not row_step % (self.lanes * n))
        return min(fitting, key=time)

    def kernel(self, what: str, height: int) -> Kernel:
        """The sweep for this matrix's mode and scores, with so many rows a lane."""
        kind = "local" if self.mode is Mode.LOCAL else "whole"
        module, name = self.scores.kernel_module("sweep", self.mode), f"{what}_{kind}_{self.bits}_bits"
        if height not in (self._wavefront_rows, TRACED_ROWS):
            module = f"pairwise/sweep_{'9_to_15' if height < self._wavefront_rows else '17_to_24'}_rows"
            name += f"_{height}_rows"
        return Kernel(module, name)
