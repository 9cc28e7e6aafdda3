"""Borders of a region of the matrix -> the borders beyond it, its best cell, and the way back through it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.pairwise.parameters import NO_SCORE, DeviceScheme, Mode, Scheme

#: Rows of a lane where the sources of all cells are kept, and where not: on a GPU, and on the CPU.
TRACED_ROWS = constant("pairwise/traceback_cells.cuh", "TRACED_ROWS")
GPU_ROWS, CPU_ROWS = (constant("pairwise/wavefront.cuh", name) for name in ("GPU_ROWS", "CPU_ROWS"))

#: Columns that a wavefront goes at a time.
CHUNK = constant("pairwise/wavefront.cuh", "CHUNK")

#: Columns that a strip is behind the one above it.
LAG = 200

#: More than any alignment scores.
NONE_BETTER = 0x7FFFFFFF

#: By how much scores of a wavefront's cells may differ for 16 bits to hold them, beside what the base may lag behind.
SPAN = 11_000


_FILL_BUS = Kernel("pairwise/bus", "fill_bus")
_FOUND_WORDS = row_dtype("pairwise/wavefront.cuh", "Found").itemsize // 4


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


class Best(NamedTuple):
    """The first of the best cells, and its score."""

    score: int
    row: int
    column: int

    def before(self, other: Best) -> bool:
        """Whether this one is to be reported."""
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
        return self.lanes * max(self._heights)

    @property
    def bits(self) -> int:
        """16 where scores of neighbouring cells differ so little, else 32."""
        return 16 if self._fits(self._wavefront_rows) else 32

    @property
    def lanes(self) -> int:
        """Lanes of a wavefront."""
        return self.backend.lanes * (self.backend.narrow_lanes if self.bits == 16 else 1)

    @property
    def _wavefront_rows(self) -> int:
        """Rows of a lane, if nothing asks for others."""
        return GPU_ROWS if self.backend.lanes > 1 else CPU_ROWS

    @property
    def _heights(self) -> dict[int, int]:
        """Rows that a lane may have: what a column takes them."""
        if self.backend.lanes == 1 or self.bits == 32:
            return {self._wavefront_rows: 1}
        return {height: cost for height, cost in self.scores.heights(self.mode).items() if self._fits(height)}

    def _fits(self, height: int) -> bool:
        """Whether 16 bits hold the scores of a wavefront with so many rows a lane."""
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
            strips, groups = -(-rows // (self.lanes * height)), self.backend.turns
            return (-(-strips // groups) * columns + LAG * min(strips, groups)) * costs[height]

        fitting = (n for n in costs if row_step >= rows or not row_step % (self.lanes * n))
        return min(fitting, key=time)

    def kernel(self, what: str, height: int) -> Kernel:
        """The sweep for this matrix's mode and scores, with so many rows a lane."""
        kind = "local" if self.mode is Mode.LOCAL else "whole"
        module, name = self.scores.module("sweep", self.mode), f"{what}_{kind}_{self.bits}_bits"
        if height not in (self._wavefront_rows, TRACED_ROWS):
            module = f"pairwise/sweep_{'9_to_15' if height < self._wavefront_rows else '17_to_24'}_rows"
            name += f"_{height}_rows"
        return Kernel(module, name, grouped=True, in_turns=True)


@dataclass
class Borders:
    """What is known above a region and left of it; a sweep leaves what is known below it in row_h and row_f.

    Attributes:
        row_h: int32 [columns], H of the row above, then of the region's last row.
        row_f: int32 [columns], F of the row below that one.
        left_h: int32 [rows + 1], H of the column before, from the row above on.
        left_e: int32 [rows].
    """

    row_h: Array
    row_f: Array
    left_h: Array
    left_e: Array

    def rows(self, begin: int, end: int) -> Borders:
        """The borders of a part of the rows, if row_h and row_f are of the row above it."""
        return Borders(self.row_h, self.row_f, self.left_h[begin : end + 1], self.left_e[begin:end])


@dataclass(frozen=True)
class SpecialLines:
    """Scores of every so many rows and columns of a region, the last ones apart.

    Attributes:
        rows_h, rows_f: int32 [kept, columns], as the borders' row_h and row_f.
        columns_h: int32 [kept, rows + 1], H from the row above on.
        columns_e: int32 [kept, rows].
    """

    rows_h: Array
    rows_f: Array
    columns_h: Array
    columns_e: Array


@dataclass(frozen=True)
class Swept:
    """What a sweep leaves beside the borders.

    Attributes:
        best: in the region's own rows and columns; None where no cell scores more than was asked for.
        skipped: chunks of columns that were not computed, of all.
        lines: the special rows and columns.
    """

    best: Best | None
    skipped: int
    lines: SpecialLines


@dataclass(frozen=True)
class _Region:
    """A region of the matrix, as kernels take it."""

    query: Array
    target: Array
    bus: Array
    borders: Borders
    lines: SpecialLines
    cells: Array
    rows: int
    columns: int
    row_step: int
    column_step: int
    rows_below: int
    blank_left: bool


@dataclass(frozen=True)
class _Meeting:
    """What wavefronts share: strips begun, the highest score, and whether they skip what cannot reach it."""

    counter: Array
    best: Array
    prunes: bool


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

    row_step: a multiple of the strip's rows. column_step: no less than a chunk and a wavefront's lanes. best: int32
    [1], the highest score found so far, which is raised; without it none is looked for. prunes: parts that cannot
    reach it are left out.
    """
    backend = matrix.backend
    rows, columns = len(borders.left_e), len(borders.row_h)
    cells = backend.empty(0, np.uint16)
    region = _region(matrix, origin, borders, cells, row_step, column_step)
    kernel, strip = matrix.kernel("sweep", height := matrix.height(rows, columns, row_step)), matrix.lanes * height
    found, skipped = _launch(matrix, kernel, -(-rows // strip), region, best, prunes)
    if best is None:
        return Swept(None, 0, region.lines)
    strips = backend.to_host(found)
    ends = [Best(*map(int, strip)) for strip in strips[strips[:, 0] == strips[:, 0].max()] if strip[0] > 0]
    first = min(ends, key=lambda cell: (cell.row + cell.column, -cell.column), default=None)
    return Swept(first, int(backend.to_host(skipped).sum()), region.lines)


def walk_back(
    matrix: Matrix, origin: Cell, end: Cell, borders: Borders
) -> tuple[Cell, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
    """The way back from `end` to the first cell beyond the region, or at the beginning of the alignment.

    Its operations come from the end on. The borders are those of the region up to `end`.
    """
    backend, lanes = matrix.backend, matrix.lanes
    rows, columns = end.row - origin.row + 1, end.column - origin.column + 1
    strips = -(-rows // (lanes * TRACED_ROWS))
    cells = backend.empty(strips * (columns + lanes) * lanes, np.uint16)
    region = _region(matrix, origin, borders, cells, rows, columns + lanes + CHUNK)
    _launch(matrix, matrix.kernel("trace", TRACED_ROWS), strips, region, None, False)
    position = backend.to_device(np.array([[rows - 1, columns - 1, end.state, 0]], np.int32))
    operations = backend.empty(rows + columns, np.uint32)
    backend.launch(
        Kernel("pairwise/paths", f"walk_{matrix.bits}_bits", grouped=True),
        1,
        query=region.query,
        target=region.target,
        cells=cells,
        position=position,
        operations=operations,
        columns=columns,
        letters=matrix.scores.no_letter,
    )
    row, column, state, count = map(int, backend.to_host(position)[0])
    return Cell(origin.row + row, origin.column + column, CellState(state)), backend.to_host(operations[:count])


def _region(matrix: Matrix, origin: Cell, borders: Borders, cells: Array, row_step: int, column_step: int) -> _Region:
    """The region from `origin` on that has these borders; its bus and its special rows and columns are yet to fill."""
    empty, rows, columns = matrix.backend.empty, len(borders.left_e), len(borders.row_h)
    kept_rows, kept_columns = (rows - 1) // row_step, (columns - 1) // column_step
    lines = SpecialLines(
        empty((kept_rows, columns), np.int32),
        empty((kept_rows, columns), np.int32),
        empty((kept_columns, rows + 1), np.int32),
        empty((kept_columns, rows), np.int32),
    )
    return _Region(
        matrix.query[origin.row : origin.row + rows],
        matrix.target[origin.column : origin.column + columns],
        empty(columns, np.uint64),
        borders,
        lines,
        cells,
        rows,
        columns,
        row_step,
        column_step,
        matrix.rows - origin.row - rows,
        matrix.mode is Mode.LOCAL and origin.column == 0,
    )


def _launch(
    matrix: Matrix, kernel: Kernel, strips: int, region: _Region, best: Array | None, prunes: bool
) -> tuple[Array, Array]:
    """The first best cell of each strip, and how many chunks of each were skipped."""
    backend = matrix.backend
    found, skipped = backend.empty((strips, _FOUND_WORDS), np.int32), backend.empty(strips, np.uint64)
    backend.launch(_FILL_BUS, region.columns, borders=region.borders, bus=region.bus)
    highest = backend.full(1, NONE_BETTER, np.int32) if best is None else best
    backend.launch(
        kernel,
        strips,
        region=region,
        scheme=matrix.scheme,
        meeting=_Meeting(backend.full(1, 0, np.int32), highest, prunes),
        found=found,
        skipped=skipped,
    )
    return found, skipped
