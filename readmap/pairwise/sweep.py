"""Borders of a region of the matrix -> the borders beyond it, its best cell, and the way back through it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.pairwise.parameters import Mode, Scheme

STEP_ROWS, CHUNK = 4, 64  # of kernels/pairwise/traceback_cells.cuh and kernels/pairwise/wavefront.cuh

#: Columns that a strip is behind the one above it.
LAG = 200

#: What no alignment scores.
NO_SCORE = -(1 << 30)

#: More than any alignment scores.
NONE_BETTER = 0x7FFFFFFF

#: By how much the scores of a wave's cells may differ for 16 bits to hold them, beside what the base may lag behind.
SPAN = 11_000


class Score(IntEnum):
    """Which of a cell's three scores the way back is in, numbered as in kernels/pairwise/paths.cu."""

    IN_H = 0
    IN_E = 1
    IN_F = 2
    AT_BEGINNING = 3


class Cell(NamedTuple):
    """A cell of the matrix: row i and column j are letters of the query and the target, -1 in front of the first."""

    row: int
    column: int
    score: Score = Score.IN_H


class Best(NamedTuple):
    """The first of the best cells, and its score."""

    score: int
    row: int
    column: int

    def before(self, other: Best) -> bool:
        """Whether this one is to be told."""
        if self.score != other.score:
            return self.score > other.score
        return (self.row + self.column, -self.column) < (other.row + other.column, -other.column)


@dataclass(frozen=True)
class Matrix:
    """Two sequences on a device, and how they are compared.

    Attributes:
        query, target: uint8, codes as in Letters; rows and columns of the matrix.
        scores, mode: of the alignments.
        backend: the device.
    """

    query: Array
    target: Array
    scores: Scheme
    mode: Mode
    backend: Backend

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
        """Rows that a wave sweeps at most."""
        return self.lanes * max(self._heights)

    @property
    def bits(self) -> int:
        """16 where scores of neighbouring cells differ so little, else 32."""
        return 16 if self._fits(self._wave_rows) else 32

    @property
    def lanes(self) -> int:
        """Of a wave."""
        return self.backend.lanes * (self.backend.narrow_lanes if self.bits == 16 else 1)

    @property
    def _wave_rows(self) -> int:
        """Of a lane, WAVE_ROWS of kernels/pairwise/wavefront.cuh."""
        return 16 if self.backend.lanes > 1 else 32

    @property
    def _heights(self) -> dict[int, int]:
        """Rows that a lane may have: what a column takes them."""
        if self.backend.lanes == 1 or self.bits == 32:
            return {self._wave_rows: 1}
        return {height: cost for height, cost in self.scores.heights(self.mode).items() if self._fits(height)}

    def _fits(self, height: int) -> bool:
        """Whether 16 bits hold the scores of a wave with so many rows a lane."""
        scores = self.scores
        width = self.backend.lanes * self.backend.narrow_lanes
        reach = width * height + width + CHUNK
        highest, lowest = scores.highest + scores.first_gap, scores.lowest + scores.first_gap
        span = reach * (scores.highest + 2 * scores.gap_extend) + 4 * scores.gap_open - scores.lowest
        return span <= SPAN and lowest >= -128 and highest < 128

    def height(self, rows: int, columns: int, row_step: int) -> int:
        """Rows of a lane with which a region is swept in the least time, where groups sweep strip after strip.

        row_step: of the rows that are kept, which have to be the last ones of strips.
        """
        costs = self._heights

        def time(height: int) -> int:
            strips, turns = -(-rows // (self.lanes * height)), self.backend.turns
            return (-(-strips // turns) * columns + LAG * min(strips, turns)) * costs[height]

        fitting = (n for n in costs if row_step >= rows or not row_step % (self.lanes * n))
        return min(fitting, key=time)

    def kernel(self, what: str, height: int) -> Kernel:
        """The sweep for this matrix's mode and scores, with so many rows a lane."""
        kind = "local" if self.mode is Mode.LOCAL else "whole"
        usual = height in (self._wave_rows, STEP_ROWS)
        module = "sweep" if usual else "sweep_9_to_15_rows" if height < self._wave_rows else "sweep_17_to_24_rows"
        name = f"{what}_{kind}_{self.bits}_bits" + ("" if usual else f"_{height}_rows")
        return Kernel(self.scores.module(module, self.mode), name, grouped=True, in_turns=True)


@dataclass(frozen=True)
class Borders:
    """What is known above a region and left of it.

    Attributes:
        row_h: int32 [columns], H of the row above; a sweep leaves that of the region's last row there.
        row_f: int32 [columns], F of the row below that one.
        left_h: int32 [rows + 1], H of the column before, from the row above on.
        left_e: int32 [rows].
    """

    row_h: Array
    row_f: Array
    left_h: Array
    left_e: Array

    def rows(self, begin: int, end: int) -> Borders:
        """Those of a part of the rows, if row_h and row_f are of the row above it."""
        return Borders(self.row_h, self.row_f, self.left_h[begin : end + 1], self.left_e[begin:end])


@dataclass(frozen=True)
class Swept:
    """What a sweep leaves beside the borders.

    Attributes:
        best: in the region's own rows and columns; None where no cell scores more than was asked for.
        skipped: chunks of columns that were not computed, of all.
        rows_h, rows_f: int32 [kept, columns], as the borders', of every so many rows, the last one apart.
        columns_h: int32 [kept, rows + 1], H of every so many columns, the last one apart, from the row above on.
        columns_e: int32 [kept, rows].
    """

    best: Best | None
    skipped: int
    rows_h: Array
    rows_f: Array
    columns_h: Array
    columns_e: Array


def outer_borders(matrix: Matrix) -> Borders:
    """The borders of the whole matrix: what gaps in front of a sequence cost, or nothing."""

    def gaps(count: int) -> np.ndarray[Any, Any]:
        lengths = np.arange(1, count + 1, dtype=np.int64)
        costs = matrix.scores.gap_open + matrix.scores.gap_extend * lengths
        return np.maximum(-costs, NO_SCORE).astype(np.int32)

    rows, columns, backend, first_gap = matrix.rows, matrix.columns, matrix.backend, matrix.scores.first_gap
    if matrix.mode is Mode.GLOBAL:
        row_h, row_f = backend.to_device(gaps(columns)), backend.to_device(gaps(columns) - np.int32(first_gap))
    else:
        row_h, row_f = backend.full(columns, 0, np.int32), backend.full(columns, -first_gap, np.int32)
    if matrix.mode is Mode.LOCAL:
        left_h = backend.full(rows + 1, 0, np.int32)
    else:
        left_h = backend.to_device(np.concatenate([np.zeros(1, np.int32), gaps(rows)]))
    return Borders(row_h, row_f, left_h, backend.full(rows, NO_SCORE, np.int32))


def sweep(
    matrix: Matrix,
    origin: Cell,
    borders: Borders,
    row_step: int,
    column_step: int,
    best: Array | None = None,
    prunes: bool = False,
) -> Swept:
    """Sweep the rows and columns from `origin` on of which there are borders.

    row_step: a multiple of the strip's rows. column_step: no less than a chunk and a wave's lanes. best: int32 [1], the
    highest score found so far, which is raised; without it none is looked for. prunes: parts that cannot reach it are
    left out.
    """
    empty, rows, columns = matrix.backend.empty, len(borders.left_e), len(borders.row_h)
    kept_rows, kept_columns = (rows - 1) // row_step, (columns - 1) // column_step
    swept = Swept(
        None,
        0,
        empty((kept_rows, columns), np.int32),
        empty((kept_rows, columns), np.int32),
        empty((kept_columns, rows + 1), np.int32),
        empty((kept_columns, rows), np.int32),
    )
    steps = empty(0, np.uint16)
    found, skipped = _launch(matrix, "sweep", origin, borders, swept, steps, best, row_step, column_step, prunes)
    if best is None:
        return swept
    strips = matrix.backend.to_host(found)
    ends = [Best(*map(int, strip)) for strip in strips[strips[:, 0] == strips[:, 0].max()] if strip[0] > 0]
    first = min(ends, key=lambda cell: (cell.row + cell.column, -cell.column), default=None)
    return replace(swept, best=first, skipped=int(matrix.backend.to_host(skipped).sum()))


def walk_back(
    matrix: Matrix, origin: Cell, end: Cell, borders: Borders
) -> tuple[Cell, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
    """The way back from `end` to the first cell beyond the region, or at the beginning of the alignment.

    Its operations come from the end on. The borders are those of the region up to `end`.
    """
    backend = matrix.backend
    rows, columns = end.row - origin.row + 1, end.column - origin.column + 1
    lanes = matrix.lanes
    steps = backend.empty(-(-rows // (lanes * STEP_ROWS)) * (columns + lanes) * lanes, np.uint16)
    none = backend.empty((0, rows + 1), np.int32)
    swept = Swept(None, 0, none, none, none, none)
    _launch(matrix, "step", origin, borders, swept, steps, None, rows, columns + lanes + CHUNK, False)
    cell = backend.to_device(np.array([rows - 1, columns - 1, end.score, 0], np.int32))
    operations = backend.empty(rows + columns, np.uint32)
    sequences = matrix.query[origin.row :], matrix.target[origin.column :]
    walk = Kernel("pairwise/paths", f"walk_{matrix.bits}_bits", grouped=True)
    backend.launch(walk, 1, *sequences, steps, cell, operations, columns, matrix.scores.no_letter)
    row, column, score, count = map(int, backend.to_host(cell))
    return Cell(origin.row + row, origin.column + column, Score(score)), backend.to_host(operations[:count])


def _launch(
    matrix: Matrix,
    what: str,
    origin: Cell,
    borders: Borders,
    swept: Swept,
    steps: Array,
    best: Array | None,
    row_step: int,
    column_step: int,
    prunes: bool,
) -> tuple[Array, Array]:
    backend = matrix.backend
    rows, columns = len(borders.left_e), len(borders.row_h)
    height = STEP_ROWS if len(steps) else matrix.height(rows, columns, row_step)
    strip = matrix.lanes * height
    strips = -(-rows // strip)
    found, skipped = backend.empty((strips, 3), np.int32), backend.empty(strips, np.uint64)
    bus = backend.empty(columns, np.uint64)
    backend.launch(Kernel("pairwise/bus", "board"), columns, borders.row_h, borders.row_f, bus)
    backend.launch(
        matrix.kernel(what, height),
        strips,
        matrix.query[origin.row :],
        matrix.target[origin.column :],
        bus,
        borders.row_h,
        borders.row_f,
        borders.left_h,
        borders.left_e,
        swept.rows_h,
        swept.rows_f,
        swept.columns_h,
        swept.columns_e,
        steps,
        backend.full(1, 0, np.int32),
        backend.full(1, NONE_BETTER, np.int32) if best is None else best,
        found,
        skipped,
        rows,
        columns,
        -(-row_step // strip),
        column_step,
        matrix.rows - origin.row - rows,
        int(matrix.mode is Mode.LOCAL and origin.column == 0),
        int(prunes),
        *matrix.scores.arguments(backend),
    )
    return found, skipped
