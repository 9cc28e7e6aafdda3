"""Column blocks: the columns of a matrix divided among devices, and the scores that blocks pass to their neighbours.

All devices sweep as one wavefront. A step sweeps one slab of one block. Of D devices, each has k blocks of the C
columns and waits only for the first D - 1 steps: B slabs take k * B + D - 1 steps. A step takes the time of
r * C / (D * k) columns if groups sweep r strips each, and of LAG more columns for every group, because a strip starts
after the strip above. Example: two sequences of 30 Mbp on two devices that sweep 528 strips of 1,536 rows at once
make 37 slabs of 528 strips. Two blocks per device take 75 steps of 7.5 million columns and 106,000 more, which is
97.3 % of the peak of both devices; four blocks per device reach 96.6 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from readmap.backend import Array, Backend
from readmap.pairwise.grid import Slab, TileGrid, TileSizes, sweep_slab
from readmap.pairwise.matrix import CHUNK, LAG, BestCell, Cell, DPMatrix
from readmap.pairwise.sweep import Borders, SpecialLines, SweepResult, matrix_borders

#: Maximum number of blocks per device, and the factor by which a plan with more blocks may be slower than the best one:
#: more blocks balance pruning, which skips more of some columns than of others.
MAX_BLOCKS, SLACK = 8, 1.01


@dataclass(frozen=True)
class Plan:
    """Strips per thread group in a slab, and blocks per device."""

    strips: int
    blocks: int


def plan(matrix: DPMatrix, devices: int, max_strips: int) -> Plan:
    """Return the plan with most blocks whose time is within SLACK of the best. max_strips: maximum of Plan.strips."""
    if devices == 1:
        return Plan(max_strips, 1)
    groups, strips = matrix.backend.resident_warps, -(-matrix.rows // matrix.strip_rows)

    def time(plan: Plan) -> float:
        slabs = -(-strips // (groups * plan.strips))
        step = plan.strips * matrix.columns / (devices * plan.blocks) + LAG * groups
        return (plan.blocks * slabs + devices - 1) * step

    limit = min(max_strips, -(-strips // groups))
    plans = [Plan(each, blocks) for each in range(1, limit + 1) for blocks in range(1, MAX_BLOCKS + 1)]
    slowest = SLACK * min(map(time, plans))
    return max((each for each in plans if time(each) <= slowest), key=lambda each: (each.blocks, -time(each)))


def column_ranges(columns: int, unit: int, blocks: int) -> list[tuple[int, int]]:
    """Return [first, end) of at most `blocks` blocks of about the same size, in whole units."""
    units = -(-columns // unit)
    firsts = sorted({units * index // blocks * unit for index in range(blocks)})
    return list(zip(firsts, [*firsts[1:], columns], strict=True))


@dataclass(frozen=True)
class RightEdge:
    """The last column of a block in the rows of a slab, on the host: H starting at the row above, and E, both int32."""

    h: Array
    e: Array


@dataclass(frozen=True)
class SavedSlab:
    """A slab of one or all blocks on the host: its special lines, and H and F below it, of the own columns only."""

    slab: Slab
    row_h: Array
    row_f: Array


@dataclass(frozen=True)
class BlockResult:
    """The result of a block's slab; best: in rows and columns of the matrix; edge: None for the last block."""

    best: BestCell | None
    edge: RightEdge | None
    kept: SavedSlab | None


@dataclass
class ColumnBlock:
    """Some columns of a matrix on a device, plus one column of the next block, whose left border is computed here.

    matrix: the whole matrix, on the device. first, end: the columns [first, end). borders, grid: include the additional
    column. The left borders of all blocks but the first are filled slab by slab. keeps_lines: keep the special lines.
    """

    matrix: DPMatrix
    first: int
    end: int
    borders: Borders
    grid: TileGrid
    keeps_lines: bool

    @classmethod
    def of(cls, matrix: DPMatrix, first: int, end: int, sizes: TileSizes, keeps_lines: bool) -> ColumnBlock:
        """Return an unswept block. Without keeps_lines, only the last column of the block is a special line."""
        borders = matrix_borders(matrix, first, min(end + 1, matrix.columns))
        own = sizes if keeps_lines else replace(sizes, tile_columns=end - first)
        grid = TileGrid(Cell(0, first), own, borders.left_h, borders.left_e)
        return cls(matrix, first, end, borders, grid, keeps_lines)

    def sweep(
        self, slab_index: int, left: RightEdge | None, highest: int | None, prunes: bool, saves_slab: bool
    ) -> BlockResult:
        """Sweep a slab after the slab above it, and add its special lines to the grid if they are kept.

        left: right edge of the block before. highest: score to beat; None: no search. saves_slab: return a host copy.
        """
        backend, start = self.matrix.backend, slab_index * self.grid.sizes.slab_rows
        if left:
            self._take_left(start, left)
        best = None if highest is None else backend.to_device(np.array([highest], np.int32))
        slab = sweep_slab(self.matrix, self.grid, self.borders, slab_index, best, prunes)
        lines, found, edge, kept = slab.swept.lines, slab.swept.best, None, None
        if found:
            found = found._replace(row=start + found.row, column=self.first + found.column)
        if self.end < self.matrix.columns:
            edge = RightEdge(backend.to_host(lines.columns_h[-1]), backend.to_host(lines.columns_e[-1]))
        if saves_slab:
            # Copies, because the next slab overwrites these rows.
            below = (backend.to_host(row) for row in (self.borders.row_h, self.borders.row_f))
            rows = (row[: self.end - self.first].copy() for row in below)
            saved = _on_host(slab, self.end - self.first, backend) if self.keeps_lines else empty_slab()
            kept = SavedSlab(saved, *rows)
        if self.keeps_lines:
            self.grid.slabs.append(slab)
        return BlockResult(found, edge, kept)

    def _take_left(self, start: int, left: RightEdge) -> None:
        """Copy the right edge of the block before into the left border, from row `start` on."""
        backend, end = self.matrix.backend, start + len(left.e)
        backend.copy_into(self.borders.left_h[start : end + 1], backend.to_device(left.h))
        backend.copy_into(self.borders.left_e[start:end], backend.to_device(left.e))

    def resume(self, slab_index: int, slab: Slab) -> None:
        """Add own columns of a checkpoint's slab (whole matrix, on the host) to the grid, and set the left border."""
        step, to_device = self.grid.sizes.tile_columns, self.matrix.backend.to_device
        columns, lines = slice(self.first, self.first + len(self.borders.row_h)), slab.swept.lines
        before = self.first // step
        if before:
            edge = RightEdge(lines.columns_h[before - 1], lines.columns_e[before - 1])
            self._take_left(slab_index * self.grid.sizes.slab_rows, edge)
        across = slice(before, before + (len(self.borders.row_h) - 1) // step)
        own = SpecialLines(
            *(to_device(rows[:, columns]) for rows in (lines.rows_h, lines.rows_f)),
            *(to_device(kept[across]) for kept in (lines.columns_h, lines.columns_e)),
        )
        above_h, above_f = (to_device(row[columns]) for row in (slab.above_h, slab.above_f))
        self.grid.slabs.append(Slab(above_h, above_f, SweepResult(None, 0, own)))

    def resume_below(self, row_h: Array, row_f: Array) -> None:
        """Set the row above the next slab from the checkpoint's row_h and row_f, int32 [matrix.columns] on the host."""
        backend, columns = self.matrix.backend, slice(self.first, self.first + len(self.borders.row_h))
        backend.copy_into(self.borders.row_h, backend.to_device(row_h[columns]))
        backend.copy_into(self.borders.row_f, backend.to_device(row_f[columns]))

    def last_row(self) -> Array:
        """Return H of the lowest swept row, in the own columns, on the host."""
        return self.matrix.backend.to_host(self.borders.row_h)[: self.end - self.first]


def min_block_columns(matrix: DPMatrix) -> int:
    """Return the minimum number of columns of a block: the distance of special columns, in whole chunks."""
    return -(-(CHUNK + matrix.lanes) // CHUNK) * CHUNK


def join_slabs(parts: Sequence[SavedSlab]) -> SavedSlab:
    """Concatenate the parts of a slab, one per block in order of columns, to a slab of the whole matrix."""
    if len(parts) == 1:
        return parts[0]

    def join(owners: Sequence[object], name: str) -> Array:
        return np.concatenate([getattr(owner, name) for owner in owners], 0 if name.startswith("columns") else -1)

    slabs = [part.slab for part in parts]
    lines = [slab.swept.lines for slab in slabs]
    swept = SweepResult(None, 0, SpecialLines(*(join(lines, name) for name in vars(lines[0]))))
    whole = Slab(join(slabs, "above_h"), join(slabs, "above_f"), swept)
    return SavedSlab(whole, join(parts, "row_h"), join(parts, "row_f"))


def _on_host(slab: Slab, columns: int, backend: Backend) -> Slab:
    """Return a copy of the first `columns` columns of a slab on the host."""
    lines, host = slab.swept.lines, backend.to_host
    own = SpecialLines(
        *(host(rows)[:, :columns] for rows in (lines.rows_h, lines.rows_f)),
        *(host(kept) for kept in (lines.columns_h, lines.columns_e)),
    )
    return Slab(host(slab.above_h)[:columns], host(slab.above_f)[:columns], SweepResult(None, 0, own))


def empty_slab() -> Slab:
    none = np.empty((0, 0), np.int32)
    return Slab(none, none, SweepResult(None, 0, SpecialLines(none, none, none, none)))
