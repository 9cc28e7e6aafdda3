"""A region swept in slabs: the special rows and columns from which any part of it can be computed again.

Special rows and columns are a grid of tiles. Whoever knows a tile's borders knows its cells as the whole matrix has
them, so the way back through it is that of the whole matrix, whatever the memory: it needs no score from the other end
and no crossing points. Tiles that the way back does not come to are never looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from readmap.backend import Array, Backend
from readmap.pairwise.matrix import Cell, DPMatrix
from readmap.pairwise.sweep import Borders, SweepResult, sweep

#: Tiles of a region, along each side, at most: more of them would hardly spare any computing.
MAX_TILES = 256

#: The side of a tile of which each cell's source is kept, four bits; several groups of the device share a larger one.
TRACED_TILE, MAX_SHARING_GROUPS = 2048, 8


@dataclass(frozen=True)
class TileSizes:
    """Rows of a slab, and rows and columns of a tile; the last ones of a region may fall short."""

    slab: int
    row: int
    column: int

    def fitted(self, slab: int, share: int, strip: int, least: int) -> TileSizes:
        """TileSizes for slabs of so many rows and shares of so many columns, which tiles divide evenly: larger tiles.

        Slabs of a device that waits for others are no larger than tiles ask for. least: columns of a tile.
        """
        above, across = max(slab // self.row, 1), max(share // self.column, 1)
        row = -(-max(slab // above, self.row) // strip) * strip
        return TileSizes(above * row, row, max(-(-share // across), least))


def choose_tile_sizes(matrix: DPMatrix, rows: int, columns: int, memory: int, slab: int) -> TileSizes:
    """Tiles as small as `memory`, in bytes, can hold the borders of; slabs of at least so many rows.

    A border takes eight bytes a cell, so that all of them are 16 * rows * columns / step.
    """
    strip = matrix.strip
    traced = TRACED_TILE * min(matrix.backend.concurrent_warps, MAX_SHARING_GROUPS)
    step = max(16 * rows * columns // memory, max(rows, columns) // MAX_TILES, traced)
    row = -(-step // strip) * strip
    return TileSizes(-(-slab // row) * row, row, step)


@dataclass(frozen=True)
class Slab:
    """Some rows of a region, after their sweep: H of the row above them, F of their first row, and what is inside."""

    above_h: Array
    above_f: Array
    swept: SweepResult


@dataclass
class TileGrid:
    """The special rows and columns of a region, which grows by slabs as they are swept.

    Attributes:
        origin: the region's first cell.
        steps: of slabs and tiles.
        left_h, left_e: int32, left of the region, as in Borders.
        slabs: from the first row on.
    """

    origin: Cell
    steps: TileSizes
    left_h: Array
    left_e: Array
    slabs: list[Slab] = field(default_factory=list)

    def tile(self, cell: Cell, backend: Backend) -> tuple[Cell, Borders]:
        """The first cell of the tile that holds this one, and the borders of its part up to this one."""
        steps, origin = self.steps, self.origin
        number, row = divmod(cell.row - origin.row, steps.slab)
        above, left = row // steps.row, (cell.column - origin.column) // steps.column
        top = above * steps.row
        first = Cell(origin.row + number * steps.slab + top, origin.column + left * steps.column)
        height, width = cell.row - first.row + 1, cell.column - first.column + 1
        slab = self.slabs[number]
        lines = slab.swept.lines
        row_h, row_f = slab.above_h, slab.above_f
        if above:
            row_h, row_f = lines.rows_h[above - 1], lines.rows_f[above - 1]
        if left:
            left_h, left_e = lines.columns_h[left - 1][top:], lines.columns_e[left - 1][top:]
        else:
            left_h, left_e = self.left_h[first.row - origin.row :], self.left_e[first.row - origin.row :]
        across = slice(left * steps.column, left * steps.column + width)
        # A sweep writes to its row.
        own_h, own_f = backend.copy(row_h[across]), backend.copy(row_f[across])
        return first, Borders(own_h, own_f, left_h[: height + 1], left_e[:height])


def sweep_slab(
    matrix: DPMatrix, grid: TileGrid, borders: Borders, number: int, best: Array | None = None, prunes: bool = False
) -> Slab:
    """A slab of a region, by its number, once those before it are swept; it is the caller's to keep."""
    rows, slab = len(borders.left_e), grid.steps.slab
    begin = number * slab
    part = borders.rows(begin, min(begin + slab, rows))
    above = matrix.backend.copy(borders.row_h), matrix.backend.copy(borders.row_f)
    first = Cell(grid.origin.row + begin, grid.origin.column)
    return Slab(*above, sweep(matrix, first, part, grid.steps.row, grid.steps.column, best, prunes))
