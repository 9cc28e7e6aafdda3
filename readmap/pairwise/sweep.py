"""Sweep a region of the matrix from its borders, and trace alignments back through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import row_dtype
from readmap.backend.tables import Table
from readmap.pairwise.matrix import CHUNK, TRACED_ROWS, BestCell, Cell, CellState, DPMatrix
from readmap.pairwise.parameters import NO_SCORE, Mode

#: A score above all alignments.
ABOVE_ANY_SCORE = 0x7FFFFFFF

_FILL_BUS = Kernel("pairwise/bus", "fill_bus")
_BEST_CELL_WORDS = row_dtype("pairwise/wavefront.cuh", "BestCell").itemsize // 4


@dataclass
class Borders:
    """The known scores above a region and left of it; a sweep replaces row_h and row_f by the scores below the region.

    row_h: int32 [columns], H of the row above, later of the region's last row. row_f: int32 [columns], F of the next
    row. left_h: int32 [rows + 1], H of the column before, from the row above. left_e: int32 [rows], E of column 0.
    """

    row_h: Array
    row_f: Array
    left_h: Array
    left_e: Array

    def rows(self, start: int, end: int) -> Borders:
        """Return the borders of rows [start, end), assuming that row_h and row_f belong to the row above them."""
        return Borders(self.row_h, self.row_f, self.left_h[start : end + 1], self.left_e[start:end])


@dataclass(frozen=True)
class SpecialLines:
    """Scores of regularly spaced rows and columns of a region, without its last row and column.

    rows_h, rows_f: int32 [special rows, columns], as row_h and row_f of Borders. columns_h: int32 [special columns,
    rows + 1], H starting at the row above. columns_e: int32 [special columns, rows].
    """

    rows_h: Array
    rows_f: Array
    columns_h: Array
    columns_e: Array


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep besides the borders.

    best: the best cell, in rows and columns of the region; None if no cell reaches the score to beat. skipped: number
    of chunks of columns that were pruned. lines: the special rows and columns.
    """

    best: BestCell | None
    skipped: int
    lines: SpecialLines


class _Region(Table, struct="pairwise/wavefront.cuh:Region"):
    """A region of the matrix."""


class _SharedState(Table, struct="pairwise/sweep.cuh:SharedState"):
    """The state that wavefronts share: strips started, the highest score, and whether to prune."""


def matrix_borders(matrix: DPMatrix, first: int = 0, end: int | None = None) -> Borders:
    """Return the borders of columns [first, end) of the whole matrix; no left borders if `first` is not 0."""

    def gaps(first: int, end: int) -> np.ndarray[Any, Any]:
        lengths = np.arange(first + 1, end + 1, dtype=np.int64)
        costs = matrix.scores.gap_open + matrix.scores.gap_extend * lengths
        return np.maximum(-costs, NO_SCORE).astype(np.int32)

    rows, backend, gap_first = matrix.rows, matrix.backend, matrix.scores.gap_first
    end = matrix.columns if end is None else end
    if matrix.mode is Mode.GLOBAL:
        across = gaps(first, end)
        row_h, row_f = backend.to_device(across), backend.to_device(across - np.int32(gap_first))
    else:
        row_h, row_f = backend.full(end - first, 0, np.int32), backend.full(end - first, -gap_first, np.int32)
    if first:
        return Borders(row_h, row_f, backend.empty(rows + 1, np.int32), backend.empty(rows, np.int32))
    if matrix.mode is Mode.LOCAL:
        left_h = backend.full(rows + 1, 0, np.int32)
    else:
        left_h = backend.to_device(np.concatenate([np.zeros(1, np.int32), gaps(0, rows)]))
    return Borders(row_h, row_f, left_h, backend.full(rows, NO_SCORE, np.int32))


def sweep(
    matrix: DPMatrix,
    origin: Cell,
    borders: Borders,
    row_step: int,
    column_step: int,
    best: Array | None = None,
    prunes: bool = False,
) -> SweepResult:
    """Sweep the region that starts at `origin` and is as large as its borders.

    row_step: distance of special rows, a multiple of a strip's rows. column_step: distance of special columns, at least
    a chunk plus the lanes of a wavefront. best: int32 [1], the highest score so far, which is raised; None to search no
    best cell. prunes: skip parts that cannot reach it.
    """
    backend = matrix.backend
    rows, columns = len(borders.left_e), len(borders.row_h)
    lane_rows = matrix.choose_lane_rows(rows, columns, row_step)
    region = _region(matrix, origin, borders, backend.empty(0, np.uint16), row_step, column_step)
    strips = -(-rows // (matrix.lanes * lane_rows))
    found, skipped = _launch(matrix, matrix.kernel("sweep", lane_rows), strips, region, best, prunes)
    if best is None:
        return SweepResult(None, 0, region.lines)
    cells = backend.to_host(found)
    ends = [BestCell(*map(int, cell)) for cell in cells[cells[:, 0] == cells[:, 0].max()] if cell[0] > 0]
    first = min(ends, key=BestCell.sort_key, default=None)
    return SweepResult(first, int(backend.to_host(skipped).sum()), region.lines)


def trace_back(
    matrix: DPMatrix, origin: Cell, end: Cell, borders: Borders
) -> tuple[Cell, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
    """Trace back from `end`, the region's last cell; return the first cell outside or the start, and the operations."""
    backend, lanes = matrix.backend, matrix.lanes
    rows, columns = end.row - origin.row + 1, end.column - origin.column + 1
    strips = -(-rows // (lanes * TRACED_ROWS))
    cells = backend.empty(strips * (columns + lanes) * lanes, np.uint16)
    region = _region(matrix, origin, borders, cells, rows, columns + lanes + CHUNK)
    _launch(matrix, matrix.kernel("trace", TRACED_ROWS), strips, region, None, False)
    position = backend.to_device(np.array([[rows - 1, columns - 1, end.state, 0]], np.int32))
    operations = backend.empty(rows + columns, np.uint32)
    inputs = {"query": region.query, "target": region.target, "cells": cells, "columns": columns}
    kernel, letters = Kernel("pairwise/traceback", f"walk_{matrix.bits}_bits"), matrix.scores.letter_count
    backend.launch(kernel, 1, **inputs, position=position, operations=operations, letters=letters)
    row, column, state, count = map(int, backend.to_host(position)[0])
    return Cell(origin.row + row, origin.column + column, CellState(state)), backend.to_host(operations[:count])


def _region(matrix: DPMatrix, origin: Cell, borders: Borders, cells: Array, row_step: int, column_step: int) -> _Region:
    """Return the region with these borders, memory for special lines and bus, and `cells`, memory for the traceback."""
    empty, rows, columns = matrix.backend.empty, len(borders.left_e), len(borders.row_h)
    kept_rows, kept_columns = (rows - 1) // row_step, (columns - 1) // column_step
    shapes = (kept_rows, columns), (kept_rows, columns), (kept_columns, rows + 1), (kept_columns, rows)
    sizes = {"rows": rows, "columns": columns, "row_step": row_step, "column_step": column_step}
    return _Region(
        query=matrix.query[origin.row : origin.row + rows],
        target=matrix.target[origin.column : origin.column + columns],
        bus=empty(columns, np.uint64),
        borders=borders,
        cells=cells,
        lines=SpecialLines(*(empty(shape, np.int32) for shape in shapes)),
        rows_below=matrix.rows - origin.row - rows,
        columns_right=matrix.columns - origin.column - columns,
        blank_left=matrix.mode is Mode.LOCAL and origin.column == 0,
        **sizes,
    )


def _launch(
    matrix: DPMatrix, kernel: Kernel, strips: int, region: _Region, best: Array | None, prunes: bool
) -> tuple[Array, Array]:
    """Sweep a region by `kernel`, updating its borders and `best`; return best cells and skipped chunks by strip."""
    backend = matrix.backend
    found, skipped = backend.empty((strips, _BEST_CELL_WORDS), np.int32), backend.empty(strips, np.uint64)
    backend.launch(_FILL_BUS, region.columns, borders=region.borders, bus=region.bus)
    highest = backend.full(1, ABOVE_ANY_SCORE, np.int32) if best is None else best
    shared = _SharedState.allocate(backend, best=highest, prunes=prunes, fill={"counter": 0})
    inputs = {"region": region, "scheme": matrix.scheme, "shared": shared}
    backend.launch(kernel, strips, **inputs, found=found, skipped=skipped)
    return found, skipped
