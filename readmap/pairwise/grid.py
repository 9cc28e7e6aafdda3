"""The special rows and columns of a region, from which any part of the region can be recomputed.

Special rows and columns form a grid of tiles. From the borders of a tile, its cells can be recomputed exactly, so the
traceback through a tile is the traceback through the whole matrix, for any amount of memory. No scores from the other
end of the matrix and no crossing points are needed. Tiles off the alignment path are never recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from readmap.backend import Array, Backend
from readmap.pairwise.matrix import Cell, DPMatrix
from readmap.pairwise.sweep import Borders, SweepResult, sweep

#: Maximum number of tiles along each side of a region; more would hardly save any recomputation.
MAX_TILES = 256

#: Side of a tile whose traceback is stored (four bits a cell), and the number of thread groups that may share a tile.
TRACED_TILE, MAX_SHARING_GROUPS = 2048, 8


@dataclass(frozen=True)
class TileSizes:
    """Rows of a slab, and rows and columns of a tile; the last slab and tiles of a region may be smaller."""

    slab_rows: int
    tile_rows: int
    tile_columns: int

    def enlarge(self, slab_rows: int, block_columns: int, strip_rows: int, min_columns: int) -> TileSizes:
        """Return tiles at least as large that divide a slab and a block evenly; strip_rows: factor of their rows."""
        down, across = max(slab_rows // self.tile_rows, 1), max(block_columns // self.tile_columns, 1)
        tile_rows = -(-max(slab_rows // down, self.tile_rows) // strip_rows) * strip_rows
        return TileSizes(down * tile_rows, tile_rows, max(-(-block_columns // across), min_columns))


def choose_tile_sizes(matrix: DPMatrix, rows: int, columns: int, memory: int, slab_rows: int) -> TileSizes:
    """Return the smallest tiles of a region whose borders, 8 bytes a cell, fit in `memory` bytes.

    A slab, the rows swept by one launch, is one or more whole rows of tiles, and has at least `slab_rows` rows.
    """
    strip = matrix.strip_rows
    traced = TRACED_TILE * min(matrix.backend.concurrent_warps, MAX_SHARING_GROUPS)
    step = max(16 * rows * columns // memory, max(rows, columns) // MAX_TILES, traced)
    row = -(-step // strip) * strip
    return TileSizes(-(-slab_rows // row) * row, row, step)


@dataclass(frozen=True)
class Slab:
    """Some rows of a region after their sweep: H of the row above, F of the first row, and the special lines inside."""

    above_h: Array
    above_f: Array
    swept: SweepResult


@dataclass
class TileGrid:
    """The special rows and columns of a region, which grow by one slab per sweep; left_h, left_e: as in Borders."""

    origin: Cell
    sizes: TileSizes
    left_h: Array
    left_e: Array
    slabs: list[Slab] = field(default_factory=list)

    def tile(self, cell: Cell, backend: Backend) -> tuple[Cell, Borders]:
        """Return the first cell of the tile that contains `cell`, and the borders of the tile's part up to `cell`."""
        sizes, origin = self.sizes, self.origin
        slab_index, row = divmod(cell.row - origin.row, sizes.slab_rows)
        above, left = row // sizes.tile_rows, (cell.column - origin.column) // sizes.tile_columns
        top = above * sizes.tile_rows
        first = Cell(origin.row + slab_index * sizes.slab_rows + top, origin.column + left * sizes.tile_columns)
        height, width = cell.row - first.row + 1, cell.column - first.column + 1
        slab = self.slabs[slab_index]
        lines = slab.swept.lines
        row_h, row_f, left_h, left_e = slab.above_h, slab.above_f, self.left_h, self.left_e
        start = first.row - origin.row
        if above:
            row_h, row_f = lines.rows_h[above - 1], lines.rows_f[above - 1]
        if left:
            left_h, left_e, start = lines.columns_h[left - 1], lines.columns_e[left - 1], top
        across = slice(left * sizes.tile_columns, left * sizes.tile_columns + width)
        # Copies, because a sweep overwrites its row.
        own_h, own_f = backend.copy(row_h[across]), backend.copy(row_f[across])
        return first, Borders(own_h, own_f, left_h[start : start + height + 1], left_e[start : start + height])


def sweep_slab(
    matrix: DPMatrix, grid: TileGrid, borders: Borders, slab_index: int, best: Array | None = None, prunes: bool = False
) -> Slab:
    """Sweep a slab of `grid` after the slabs above; update `borders` and `best`. Return it; the caller appends it."""
    rows, slab_rows = len(borders.left_e), grid.sizes.slab_rows
    start = slab_index * slab_rows
    part = borders.rows(start, min(start + slab_rows, rows))
    above = matrix.backend.copy(borders.row_h), matrix.backend.copy(borders.row_f)
    first = Cell(grid.origin.row + start, grid.origin.column)
    return Slab(*above, sweep(matrix, first, part, grid.sizes.tile_rows, grid.sizes.tile_columns, best, prunes))
