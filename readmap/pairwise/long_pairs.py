"""Align two sequences of any length in memory linear in their lengths.

The method is CUDAlign's (Sandes and de Melo 2010): a wavefront sweep that stores special rows and columns, followed by
a traceback through the tiles between them.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from readmap.backend import Backend
from readmap.backend.team import Team, await_all
from readmap.pairwise.alignments import DELETED, INSERTED, PairAlignments
from readmap.pairwise.checkpoint import Checkpoint, SavedState
from readmap.pairwise.column_blocks import ColumnBlock, column_ranges, join_slabs, min_block_columns, plan
from readmap.pairwise.grid import TileGrid, TileSizes, choose_tile_sizes, sweep_slab
from readmap.pairwise.matrix import BestCell, Cell, CellState, DPMatrix
from readmap.pairwise.multi_device_sweep import MultiDeviceSweep
from readmap.pairwise.parameters import CompareSettings, Mode
from readmap.pairwise.sweep import trace_back

#: Bytes for special rows and columns on a device that shares the memory of the host.
MEMORY = 1 << 30

#: Approximate number of cells that a thread group sweeps between two progress reports, and minimum number of strips.
GROUP_CELLS, MIN_GROUP_STRIPS = 1 << 31, 4

Operations = np.ndarray[tuple[int], np.dtype[np.uint32]]


def align_long(
    matrices: Sequence[DPMatrix],
    settings: CompareSettings,
    team: Team,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PairAlignments:
    """Align two sequences and return the alignment on the host.

    matrices: the same matrix on each device of the team. progress: called with the cells swept so far and their total.
    Raises DataError if the checkpoint belongs to another comparison.
    """
    matrix, keeps_lines = matrices[0], not settings.score_only
    if not matrix.rows or not matrix.columns:
        best = _end_without_cells(matrix)
        return _alignments(matrix, best, Cell(best.row, best.column) if keeps_lines else None, [])
    kept = None
    if settings.checkpoint:
        kept = team.submit(0, partial(Checkpoint, settings.checkpoint, matrix, keeps_lines)).result()
        if known := kept.alignment():
            return known
    memory = settings.memory or min(team.map(_memory, team.backends))
    state = kept.load() if kept else None
    blocks = _make_blocks(matrices, team, keeps_lines, memory, state)
    if kept and state:
        _resume(blocks, team, kept, state)
    best = _sweep_matrix(blocks, team, settings.pruning, progress, kept, state)
    parts: list[Operations] = []
    start = _trace_matrix(blocks, team, best, memory, parts) if keeps_lines else None
    alignment = _alignments(matrix, best, start, parts)
    if kept:
        kept.finish(alignment)
    return alignment


def _memory(backend: Backend) -> int:
    device = backend.memory()
    return device[0] // 4 if device else MEMORY


def _make_blocks(
    matrices: Sequence[DPMatrix], team: Team, keeps_lines: bool, memory: int, state: SavedState | None
) -> list[ColumnBlock]:
    """Return the matrix as column blocks, on the devices in turns; memory: bytes per device; state: to resume."""
    matrix, devices = matrices[0], len(matrices)
    columns = -(-matrix.columns // devices)
    planned = plan(matrix, devices, max(GROUP_CELLS // (columns * matrix.strip_rows), MIN_GROUP_STRIPS))
    count = devices * planned.blocks
    sizes = state.sizes if state else _choose_sizes(matrix, planned.strips, count, keeps_lines, memory * devices)
    unit = sizes.tile_columns if keeps_lines else min_block_columns(matrix)
    made = [
        team.submit(i % devices, partial(ColumnBlock.of, matrices[i % devices], first, end, sizes, keeps_lines))
        for i, (first, end) in enumerate(column_ranges(matrix.columns, unit, count))
    ]
    return await_all(made, made)


def _choose_sizes(matrix: DPMatrix, strips_per_group: int, blocks: int, keeps_lines: bool, memory: int) -> TileSizes:
    """Return the tile sizes of the matrix; strips_per_group: in a slab; memory: bytes of all devices together."""
    strips = -(-matrix.rows // matrix.strip_rows)
    slabs = -(-strips // (strips_per_group * matrix.backend.resident_warps))
    slab = -(-strips // slabs) * matrix.strip_rows
    if not keeps_lines:
        return TileSizes(slab, slab, matrix.columns)
    sizes = choose_tile_sizes(matrix, matrix.rows, matrix.columns, memory, slab)
    if blocks == 1:
        return sizes
    return sizes.enlarge(slab, -(-matrix.columns // blocks), matrix.strip_rows, min_block_columns(matrix))


def _resume(blocks: list[ColumnBlock], team: Team, checkpoint: Checkpoint, state: SavedState) -> None:
    """Load the slabs and the last row of a checkpoint into all blocks; state: the checkpoint's stored state."""

    def all_do(work: Callable[[ColumnBlock], None]) -> None:
        done = [team.submit(i % len(team), partial(work, block)) for i, block in enumerate(blocks)]
        await_all(done, done)

    for slab_index in range(state.slabs):
        slab = checkpoint.slab(slab_index, state.sizes)
        if blocks[0].keeps_lines:
            all_do(partial(ColumnBlock.resume, slab_index=slab_index, slab=slab))
    all_do(partial(ColumnBlock.resume_below, row_h=state.row_h, row_f=state.row_f))


def _sweep_matrix(
    blocks: list[ColumnBlock],
    team: Team,
    pruning: bool,
    progress: Callable[[int, int], None],
    checkpoint: Checkpoint | None,
    state: SavedState | None,
) -> BestCell:
    """Sweep the matrix, fill the grids of the blocks, save slabs in the checkpoint; return the end of the alignment."""
    matrix, sizes = blocks[0].matrix, blocks[0].grid.sizes
    best, swept, best_score = (state.best_cell, state.slabs, state.best_score) if state else (BestCell(0, -1, -1), 0, 0)
    highest = best_score if matrix.mode is Mode.LOCAL else None
    pipeline = MultiDeviceSweep(blocks, team, pruning, checkpoint is not None, swept, highest)
    with closing(pipeline.slabs()) as slabs:
        for slab_index, found in enumerate(slabs, swept):
            best = min([best, *(step.best for step in found if step.best)], key=BestCell.sort_key)
            if checkpoint:
                # Without special lines there is one tile, as wide as the matrix.
                own = sizes if blocks[0].keeps_lines else replace(sizes, tile_columns=matrix.columns)
                kept = join_slabs([step.kept for step in found if step.kept])
                checkpoint.save(slab_index, own, kept, best.score, best)
            done = min((slab_index + 1) * sizes.slab_rows, matrix.rows)
            progress(done * matrix.columns, matrix.rows * matrix.columns)
    if matrix.mode is Mode.LOCAL:
        return best
    left = team.submit(0, lambda: matrix.backend.to_host(blocks[0].grid.left_h[-1:])).result()
    rows = [team.submit(i % len(team), block.last_row).result() for i, block in enumerate(blocks)]
    row = np.concatenate([left, *rows])
    end = matrix.columns if matrix.mode is Mode.GLOBAL else int(np.argmax(row))
    return BestCell(int(row[end]), matrix.rows - 1, end - 1)


def _trace_matrix(blocks: list[ColumnBlock], team: Team, end: BestCell, memory: int, parts: list[Operations]) -> Cell:
    """Trace back from `end`; append operations to `parts`; return the start, or the first cell outside the matrix."""
    cell = Cell(end.row, end.column)
    for i, block in reversed(list(enumerate(blocks))):
        walk = partial(_trace_grid, block.matrix, block.grid, cell, memory, parts)
        cell = team.submit(i % len(team), walk).result()
    return cell


def _trace_grid(matrix: DPMatrix, grid: TileGrid, cell: Cell, memory: int, parts: list[Operations]) -> Cell:
    """Trace back from `cell` in a grid, sweeping large tiles again; append to `parts`; return as _trace_matrix does."""
    while cell.state != CellState.AT_START and cell.row >= grid.origin.row and cell.column >= grid.origin.column:
        first, borders = grid.tile(cell, matrix.backend)
        rows, columns = len(borders.left_e), len(borders.row_h)
        sizes = choose_tile_sizes(matrix, rows, columns, memory, rows)
        if rows <= sizes.tile_rows and columns <= sizes.tile_columns:
            cell, operations = trace_back(matrix, first, cell, borders)
            parts.append(operations)
            continue
        inner = TileGrid(first, sizes, borders.left_h, borders.left_e)
        inner.slabs.append(sweep_slab(matrix, inner, borders, 0))
        cell = _trace_grid(matrix, inner, cell, memory, parts)
    return cell


def _end_without_cells(matrix: DPMatrix) -> BestCell:
    """Return the end of an alignment with an empty sequence: a gap over the other sequence, or nothing."""
    rows = 0 if matrix.mode is Mode.LOCAL else matrix.rows
    columns = matrix.columns if matrix.mode is Mode.GLOBAL else 0
    gap = rows + columns
    cost = matrix.scores.gap_open + gap * matrix.scores.gap_extend if gap else 0
    return BestCell(-cost, rows - 1, columns - 1)


def _alignments(matrix: DPMatrix, end: BestCell, start: Cell | None, parts: list[Operations]) -> PairAlignments:
    """Return one alignment; parts: operations from the end on.

    start: first cell before the alignment, or before which the mode adds gaps; None if only the score was computed.
    """
    query_start, target_start = -1, -1
    if start:
        whole = matrix.mode is not Mode.LOCAL
        insertions = start.row + 1 if whole else 0
        deletions = start.column + 1 if matrix.mode is Mode.GLOBAL else 0
        query_start, target_start = start.row + 1 - insertions, start.column + 1 - deletions
        gaps = [(insertions, INSERTED), (deletions, DELETED)]
        parts = [*parts, *(np.array([length << 4 | kind], np.uint32) for length, kind in gaps if length)]
    operations = _join_operations(parts)
    values = (query_start, end.row + 1, target_start, end.column + 1, len(operations))
    arrays = (np.array([value], np.int64) for value in values)
    return PairAlignments(*[np.array([end.score], np.int32), *arrays, operations])


def _join_operations(parts: list[Operations]) -> Operations:
    """Return the operations of `parts`, which run backwards, in forward order; equal neighbours are merged."""
    backwards = np.concatenate([*parts, np.empty(0, np.uint32)])[::-1]
    kinds, lengths = backwards & 15, (backwards >> 4).astype(np.int64)
    starts = np.flatnonzero(np.diff(kinds, prepend=255))
    sums = np.add.reduceat(lengths, starts) if len(starts) else lengths
    return (sums << 4 | kinds[starts]).astype(np.uint32)
