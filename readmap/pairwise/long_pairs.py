"""Two sequences of any length -> their alignment, in memory that grows with their lengths alone.

Sandes and de Melo, CUDAlign (2010), with the alignment itself, which they leave to the future.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.team import Team, await_all
from readmap.pairwise.alignments import DELETED, INSERTED, PairAlignments
from readmap.pairwise.checkpoint import Checkpoint, Resumed
from readmap.pairwise.column_blocks import ColumnBlock, column_ranges, joined, min_block_columns, plan
from readmap.pairwise.grid import TileGrid, TileSizes, choose_tile_sizes, sweep_slab
from readmap.pairwise.matrix import BestCell, Cell, CellState, DPMatrix
from readmap.pairwise.multi_device_sweep import MultiDeviceSweep
from readmap.pairwise.parameters import CompareSettings, Mode
from readmap.pairwise.sweep import trace_back

#: Bytes for special rows and columns on a device that shares the host's memory.
MEMORY = 1 << 30

#: Cells that a group of the device sweeps between two reports, about, and strips that it has in any case.
GROUP_CELLS, GROUP_STRIPS = 1 << 31, 4

Operations = np.ndarray[tuple[int], np.dtype[np.uint32]]


def align_long(
    matrices: Sequence[DPMatrix],
    settings: CompareSettings,
    team: Team,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PairAlignments:
    """The alignment of two sequences, on the host; matrices: the same on each of the team's devices.

    progress: hears of cells swept, and of all. Raises DataError where the checkpoint's folder holds another comparison.
    """
    matrix, keeps = matrices[0], not settings.score_only
    if not matrix.rows or not matrix.columns:
        best = _end_without_cells(matrix)
        return _alignments(matrix, best, Cell(best.row, best.column) if keeps else None, [])
    kept = None
    if settings.checkpoint:
        kept = team.submit(0, partial(Checkpoint, settings.checkpoint, matrix, keeps)).result()
        if known := kept.alignment():
            return known
    memory = settings.memory or min(team.map(_memory, team.backends))
    state = kept.load() if kept else None
    shares = _shares(matrices, team, keeps, memory, state)
    if kept and state:
        _resume(shares, team, kept, state)
    best = _best(shares, team, settings.pruning, progress, kept, state)
    parts: list[Operations] = []
    start = _start(shares, team, best, memory, parts) if keeps else None
    alignment = _alignments(matrix, best, start, parts)
    if kept:
        kept.finish(alignment)
    return alignment


def _memory(backend: Backend) -> int:
    """Bytes for special rows and columns of a device."""
    device = backend.memory()
    return device[0] // 4 if device else MEMORY


def _shares(
    matrices: Sequence[DPMatrix], team: Team, keeps: bool, memory: int, state: Resumed | None
) -> list[ColumnBlock]:
    """The shares of the matrix, of each device one after the other; memory: of a device."""
    matrix, devices = matrices[0], len(matrices)
    columns = -(-matrix.columns // devices)
    planned = plan(matrix, devices, max(GROUP_CELLS // (columns * matrix.strip), GROUP_STRIPS))
    count = devices * planned.shares
    steps = state.steps if state else _steps(matrix, planned.strips, count, keeps, memory * devices)
    unit = steps.column if keeps else min_block_columns(matrix)
    made = [
        team.submit(number % devices, partial(ColumnBlock.of, matrices[number % devices], first, end, steps, keeps))
        for number, (first, end) in enumerate(column_ranges(matrix.columns, unit, count))
    ]
    return await_all(made, made)


def _steps(matrix: DPMatrix, of_group: int, shares: int, keeps: bool, memory: int) -> TileSizes:
    """The steps of the whole matrix, with slabs of so many strips of a group; memory: of all devices."""
    strips = -(-matrix.rows // matrix.strip)
    slabs = -(-strips // (of_group * matrix.backend.resident_warps))
    slab = -(-strips // slabs) * matrix.strip
    if not keeps:
        return TileSizes(slab, slab, matrix.columns)
    steps = choose_tile_sizes(matrix, matrix.rows, matrix.columns, memory, slab)
    return (
        steps
        if shares == 1
        else steps.fitted(slab, -(-matrix.columns // shares), matrix.strip, min_block_columns(matrix))
    )


def _resume(shares: list[ColumnBlock], team: Team, kept: Checkpoint, state: Resumed) -> None:
    """Have the shares take over what is kept."""

    def all_do(work: Callable[[ColumnBlock], None]) -> None:
        done = [team.submit(number % len(team), partial(work, share)) for number, share in enumerate(shares)]
        await_all(done, done)

    for number in range(state.slabs):
        slab = kept.slab(number, state.steps)
        if shares[0].keeps:
            all_do(partial(ColumnBlock.resume, number=number, slab=slab))
    all_do(partial(ColumnBlock.resume_below, row_h=state.row_h, row_f=state.row_f))


def _best(
    shares: list[ColumnBlock],
    team: Team,
    pruning: bool,
    progress: Callable[[int, int], None],
    checkpoint: Checkpoint | None,
    state: Resumed | None,
) -> BestCell:
    """The end of the alignment; the shares' grids get their slabs."""
    matrix, steps = shares[0].matrix, shares[0].grid.steps
    first, swept, most = (state.first, state.slabs, state.most) if state else (BestCell(0, -1, -1), 0, 0)
    relay = MultiDeviceSweep(
        shares, team, pruning, checkpoint is not None, swept, most if matrix.mode is Mode.LOCAL else None
    )
    with closing(relay.slabs()) as slabs:
        for number, found in enumerate(slabs, swept):
            first = min([first, *(step.best for step in found if step.best)], key=BestCell.order)
            if checkpoint:
                # A tile's columns are those of all shares; of scores alone there are none.
                own = steps if shares[0].keeps else replace(steps, column=matrix.columns)
                kept = joined([step.kept for step in found if step.kept])
                checkpoint.save(number, own, kept, first.score, first)
            progress(min((number + 1) * steps.slab, matrix.rows) * matrix.columns, matrix.rows * matrix.columns)
    if matrix.mode is Mode.LOCAL:
        return first
    left = team.submit(0, lambda: matrix.backend.to_host(shares[0].grid.left_h[-1:])).result()
    rows = [team.submit(number % len(team), share.last_row).result() for number, share in enumerate(shares)]
    row = np.concatenate([left, *rows])
    end = matrix.columns if matrix.mode is Mode.GLOBAL else int(np.argmax(row))
    return BestCell(int(row[end]), matrix.rows - 1, end - 1)


def _start(shares: list[ColumnBlock], team: Team, end: BestCell, memory: int, parts: list[Operations]) -> Cell:
    """The first cell beyond the matrix, or that at the alignment's beginning, on the way back, from share to share.

    parts: gets the operations of the way, each part's from its end on.
    """
    cell = Cell(end.row, end.column)
    for number, share in reversed(list(enumerate(shares))):
        walk = partial(_walk, share.matrix, share.grid, cell, memory, parts)
        cell = team.submit(number % len(team), walk).result()
    return cell


def _walk(matrix: DPMatrix, grid: TileGrid, cell: Cell, memory: int, parts: list[Operations]) -> Cell:
    """The first cell beyond the grid's region on the way back from `cell`, or that at the alignment's beginning.

    parts: gets the operations of the way, each part's from its end on.
    """
    while cell.state != CellState.AT_BEGINNING and cell.row >= grid.origin.row and cell.column >= grid.origin.column:
        first, borders = grid.tile(cell, matrix.backend)
        rows, columns = len(borders.left_e), len(borders.row_h)
        steps = choose_tile_sizes(matrix, rows, columns, memory, rows)
        if rows <= steps.row and columns <= steps.column:
            cell, operations = trace_back(matrix, first, cell, borders)
            parts.append(operations)
            continue
        inner = TileGrid(first, steps, borders.left_h, borders.left_e)
        inner.slabs.append(sweep_slab(matrix, inner, borders, 0))
        cell = _walk(matrix, inner, cell, memory, parts)
    return cell


def _end_without_cells(matrix: DPMatrix) -> BestCell:
    """The end where one sequence is empty: the other stands against a gap, if it has to be in the alignment."""
    rows = 0 if matrix.mode is Mode.LOCAL else matrix.rows
    columns = matrix.columns if matrix.mode is Mode.GLOBAL else 0
    gap = rows + columns
    cost = matrix.scores.gap_open + gap * matrix.scores.gap_extend if gap else 0
    return BestCell(-cost, rows - 1, columns - 1)


def _alignments(matrix: DPMatrix, end: BestCell, start: Cell | None, parts: list[Operations]) -> PairAlignments:
    """One alignment. start: where the way back ends, before the first cell; parts: its operations from the end on."""

    def one(value: int) -> NDArray[np.int64]:
        return np.array([value], np.int64)

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
        np.array([end.score], np.int32),
        one(query_start),
        one(end.row + 1),
        one(target_start),
        one(end.column + 1),
        one(len(operations)),
        operations,
    )


def _joined(parts: list[Operations]) -> Operations:
    """The operations of all parts in the order of the sequences, equal neighbours as one."""
    backwards = np.concatenate([*parts, np.empty(0, np.uint32)])[::-1]
    kinds, lengths = backwards & 15, (backwards >> 4).astype(np.int64)
    begins = np.flatnonzero(np.diff(kinds, prepend=255))
    sums = np.add.reduceat(lengths, begins) if len(begins) else lengths
    return (sums << 4 | kinds[begins]).astype(np.uint32)
