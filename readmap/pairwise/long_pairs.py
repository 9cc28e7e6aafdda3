"""Two sequences of any length -> their alignment, in memory that grows with their lengths alone.

Sandes and de Melo, CUDAlign (2010), with the alignment itself, which they leave to the future.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from readmap.backend import Array, Backend
from readmap.pairwise.alignments import DELETED, INSERTED, PairAlignments
from readmap.pairwise.checkpoint import Checkpoint, Resumed
from readmap.pairwise.grid import Grid, Steps, steps_within, sweep_slabs
from readmap.pairwise.matrix import Best, Cell, CellState, Matrix
from readmap.pairwise.parameters import Mode, Settings
from readmap.pairwise.sweep import Borders, outer_borders, walk_back

#: Bytes for special rows and columns on a device that shares the host's memory.
MEMORY = 1 << 30

#: Cells that a group of the device sweeps between two reports, about, and strips that it has in any case.
GROUP_CELLS, GROUP_STRIPS = 1 << 31, 4

Operations = np.ndarray[tuple[int], np.dtype[np.uint32]]


def align_long(
    query: Array,
    target: Array,
    settings: Settings,
    mode: Mode,
    backend: Backend,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PairAlignments:
    """The alignment of two sequences, uint8 codes on the device, as in Letters.

    progress: hears of cells swept, and of all. Raises DataError where the checkpoint's folder holds another comparison.
    """
    score_only = settings.score_only
    matrix = Matrix(query, target, settings.scores, mode, backend)
    if not matrix.rows or not matrix.columns:
        best = _end_without_cells(matrix)
        return _alignments(matrix, best, None if score_only else Cell(best.row, best.column), [])
    kept = Checkpoint(settings.checkpoint, matrix, not score_only) if settings.checkpoint else None
    if kept and (known := kept.alignment()):
        return known
    borders, state = outer_borders(matrix), kept.load() if kept else None
    device = backend.memory()
    memory = settings.memory or (device[0] // 4 if device else MEMORY)
    steps = state.steps if state else _steps(matrix, score_only, memory)
    grid = Grid(Cell(0, 0), steps, borders.left_h, borders.left_e)
    best = _best(matrix, grid, borders, settings.pruning, progress, kept, state)
    parts: list[Operations] = []
    start = None if score_only else _walk(matrix, grid, Cell(best.row, best.column), memory, parts)
    alignment = _alignments(matrix, best, start, parts)
    if kept:
        kept.finish(alignment)
    return alignment


def _steps(matrix: Matrix, score_only: bool, memory: int) -> Steps:
    """The steps of the whole matrix."""
    of_group = max(GROUP_CELLS // (matrix.columns * matrix.strip), GROUP_STRIPS)
    strips = -(-matrix.rows // matrix.strip)
    slabs = -(-strips // (of_group * matrix.backend.resident_groups))
    slab = -(-strips // slabs) * matrix.strip
    if score_only:
        return Steps(slab, slab, matrix.columns)
    return steps_within(matrix, matrix.rows, matrix.columns, memory, slab)


def _best(
    matrix: Matrix,
    grid: Grid,
    borders: Borders,
    pruning: bool,
    progress: Callable[[int, int], None],
    checkpoint: Checkpoint | None,
    state: Resumed | None,
) -> Best:
    """The end of the alignment; the grid gets its slabs."""
    backend, first = matrix.backend, Best(0, -1, -1)
    most = backend.full(1, 0, np.int32) if matrix.mode is Mode.LOCAL else None
    if state:
        grid.slabs.extend(state.slabs)
        first, borders = state.first, replace(borders, row_h=state.row_h, row_f=state.row_f)
        most = backend.to_device(np.array([state.most], np.int32)) if most is not None else None
    for slab in sweep_slabs(matrix, grid, borders, most, pruning):
        if slab.swept.best:
            found = slab.swept.best._replace(row=slab.swept.best.row + len(grid.slabs) * grid.steps.slab)
            first = min(first, found, key=Best.order)
        grid.slabs.append(slab)
        if checkpoint:
            checkpoint.save(grid, borders, int(backend.to_host(most)[0]) if most is not None else 0, first)
        progress(min(len(grid.slabs) * grid.steps.slab, matrix.rows) * matrix.columns, matrix.rows * matrix.columns)
    if matrix.mode is Mode.LOCAL:
        return first
    row = np.concatenate([backend.to_host(grid.left_h[-1:]), backend.to_host(borders.row_h)])
    end = matrix.columns if matrix.mode is Mode.GLOBAL else int(np.argmax(row))
    return Best(int(row[end]), matrix.rows - 1, end - 1)


def _walk(matrix: Matrix, grid: Grid, cell: Cell, memory: int, parts: list[Operations]) -> Cell:
    """The first cell beyond the grid's region on the way back from `cell`, or that at the alignment's beginning.

    parts: gets the operations of the way, each part's from its end on.
    """
    while cell.state != CellState.AT_BEGINNING and cell.row >= grid.origin.row and cell.column >= grid.origin.column:
        first, borders = grid.tile(cell, matrix.backend)
        rows, columns = len(borders.left_e), len(borders.row_h)
        steps = steps_within(matrix, rows, columns, memory, rows)
        if rows <= steps.row and columns <= steps.column:
            cell, operations = walk_back(matrix, first, cell, borders)
            parts.append(operations)
            continue
        inner = Grid(first, steps, borders.left_h, borders.left_e)
        inner.slabs.extend(sweep_slabs(matrix, inner, borders))
        cell = _walk(matrix, inner, cell, memory, parts)
    return cell


def _end_without_cells(matrix: Matrix) -> Best:
    """The end where one sequence is empty: the other stands against a gap, if it has to be in the alignment."""
    rows = 0 if matrix.mode is Mode.LOCAL else matrix.rows
    columns = matrix.columns if matrix.mode is Mode.GLOBAL else 0
    gap = rows + columns
    cost = matrix.scores.gap_open + gap * matrix.scores.gap_extend if gap else 0
    return Best(-cost, rows - 1, columns - 1)


def _alignments(matrix: Matrix, end: Best, start: Cell | None, parts: list[Operations]) -> PairAlignments:
    """One alignment. start: where the way back ends, before the first cell; parts: its operations from the end on."""
    to_device = matrix.backend.to_device

    def one(value: int) -> Array:
        return to_device(np.array([value], np.int64))

    query_start, target_start = -1, -1
    if start:
        whole = matrix.mode is not Mode.LOCAL
        insertions = start.row + 1 if whole else 0
        deletions = start.column + 1 if matrix.mode is Mode.GLOBAL else 0
        query_start, target_start = start.row + 1 - insertions, start.column + 1 - deletions
        gaps = [(insertions, INSERTED), (deletions, DELETED)]
        parts = [*parts, *(np.array([length << 4 | kind], np.uint32) for length, kind in gaps if length)]
    operations = _joined(parts)
    return PairAlignments(
        to_device(np.array([end.score], np.int32)),
        one(query_start),
        one(end.row + 1),
        one(target_start),
        one(end.column + 1),
        one(len(operations)),
        to_device(operations),
    )


def _joined(parts: list[Operations]) -> Operations:
    """The operations of all parts in the order of the sequences, equal neighbours as one."""
    backwards = np.concatenate([*parts, np.empty(0, np.uint32)])[::-1]
    kinds, lengths = backwards & 15, (backwards >> 4).astype(np.int64)
    begins = np.flatnonzero(np.diff(kinds, prepend=255))
    sums = np.add.reduceat(lengths, begins) if len(begins) else lengths
    return (sums << 4 | kinds[begins]).astype(np.uint32)
