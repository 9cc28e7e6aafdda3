"""The columns of a matrix shared among devices: what each has of them, and what goes from one to the next.

Devices sweep as one wavefront, of which a step is a slab of a share. Of D devices each has k shares of the C columns,
and has to wait for the first D - 1 steps alone: B slabs take k * B + D - 1 steps. A step takes the time of
r * C / (D * k) columns, where groups sweep r strips each, and of LAG columns more for every group, since a strip is
behind the one above it. Two sequences of 30 Mbp on two devices that sweep 528 strips of 1,536 rows at once make 37
slabs of so many strips. With two shares a device they take 75 steps of 7.5 million columns and 106,000 more, which is
97.3 % of what both devices can do; with four shares, 96.6 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from readmap.backend import Array, Backend
from readmap.pairwise.grid import Slab, TileGrid, TileSizes, sweep_slab
from readmap.pairwise.matrix import CHUNK, LAG, BestCell, Cell, DPMatrix
from readmap.pairwise.sweep import Borders, SpecialLines, SweepResult, matrix_borders

#: Shares of a device at most, and how much longer than the best plan more of them may take: pruning leaves out more of
#: some columns than of others.
MAX_BLOCKS, SLACK = 8, 1.01


@dataclass(frozen=True)
class Plan:
    """Strips of a group in a slab, and shares of a device."""

    strips: int
    shares: int


def plan(matrix: DPMatrix, devices: int, most_strips: int) -> Plan:
    """How several devices are done soonest; most_strips: of a group in a slab."""
    if devices == 1:
        return Plan(most_strips, 1)
    groups, strips = matrix.backend.resident_warps, -(-matrix.rows // matrix.strip)

    def time(plan: Plan) -> float:
        slabs = -(-strips // (groups * plan.strips))
        step = plan.strips * matrix.columns / (devices * plan.shares) + LAG * groups
        return (plan.shares * slabs + devices - 1) * step

    most = min(most_strips, -(-strips // groups))
    plans = [Plan(each, shares) for each in range(1, most + 1) for shares in range(1, MAX_BLOCKS + 1)]
    least = SLACK * min(map(time, plans))
    return max((each for each in plans if time(each) <= least), key=lambda each: (each.shares, -time(each)))


def column_ranges(columns: int, unit: int, shares: int) -> list[tuple[int, int]]:
    """First columns and ends of so many shares, or fewer, of whole units and of about the same size."""
    units = -(-columns // unit)
    firsts = sorted({units * number // shares * unit for number in range(shares)})
    return list(zip(firsts, [*firsts[1:], columns], strict=True))


@dataclass(frozen=True)
class RightEdge:
    """A share's last column in a slab's rows, on the host: H from the row above on, and E, both int32."""

    h: Array
    e: Array


@dataclass(frozen=True)
class SavedSlab:
    """A slab of a share, or of all, on the host: its lines, and the rows below it, all of own columns alone."""

    slab: Slab
    row_h: Array
    row_f: Array


@dataclass(frozen=True)
class BlockResult:
    """What a slab of a share has: its best cell, by the matrix's rows and columns, and the rest as asked.

    edge: None where no columns follow. kept: None where nothing is to be kept.
    """

    best: BestCell | None
    edge: RightEdge | None
    kept: SavedSlab | None


@dataclass
class ColumnBlock:
    """Some columns of a matrix on a device, and one more where others follow, whose border these are to have.

    Attributes:
        matrix: all of it, on the device.
        first, end: the columns.
        borders, grid: of these and of the one more; left of later shares than the first they are filled slab by slab.
        keeps: whether the grid gets the slabs.
    """

    matrix: DPMatrix
    first: int
    end: int
    borders: Borders
    grid: TileGrid
    keeps: bool

    @classmethod
    def of(cls, matrix: DPMatrix, first: int, end: int, steps: TileSizes, keeps: bool) -> ColumnBlock:
        """A share of which nothing is swept. keeps: else no special lines are, but that of the last column."""
        borders = matrix_borders(matrix, first, min(end + 1, matrix.columns))
        own = steps if keeps else replace(steps, column=end - first)
        return cls(matrix, first, end, borders, TileGrid(Cell(0, first), own, borders.left_h, borders.left_e), keeps)

    def sweep(
        self, number: int, left: RightEdge | None, highest: int | None, prunes: bool, copies: bool
    ) -> BlockResult:
        """Sweep a slab. left: its border, if there are columns there. highest: the score to beat, where one is looked
        for. copies: whether what is kept is wanted on the host.
        """
        backend, begin = self.matrix.backend, number * self.grid.steps.slab
        if left:
            self._take_left(begin, left)
        best = None if highest is None else backend.to_device(np.array([highest], np.int32))
        slab = sweep_slab(self.matrix, self.grid, self.borders, number, best, prunes)
        lines, found, edge, kept = slab.swept.lines, slab.swept.best, None, None
        if found:
            found = found._replace(row=begin + found.row, column=self.first + found.column)
        if self.end < self.matrix.columns:
            edge = RightEdge(backend.to_host(lines.columns_h[-1]), backend.to_host(lines.columns_e[-1]))
        if copies:
            # Of an array that the next slab overwrites.
            below = (backend.to_host(row) for row in (self.borders.row_h, self.borders.row_f))
            rows = (row[: self.end - self.first].copy() for row in below)
            kept = SavedSlab(_on_host(slab, self.end - self.first, backend) if self.keeps else empty_slab(), *rows)
        if self.keeps:
            self.grid.slabs.append(slab)
        return BlockResult(found, edge, kept)

    def _take_left(self, begin: int, left: RightEdge) -> None:
        backend, end = self.matrix.backend, begin + len(left.e)
        backend.copy_into(self.borders.left_h[begin : end + 1], backend.to_device(left.h))
        backend.copy_into(self.borders.left_e[begin:end], backend.to_device(left.e))

    def resume(self, number: int, slab: Slab) -> None:
        """Take over a slab of the whole matrix, from the host, that was kept."""
        step, to_device = self.grid.steps.column, self.matrix.backend.to_device
        columns, lines = slice(self.first, self.first + len(self.borders.row_h)), slab.swept.lines
        before = self.first // step
        if before:
            edge = RightEdge(lines.columns_h[before - 1], lines.columns_e[before - 1])
            self._take_left(number * self.grid.steps.slab, edge)
        across = slice(before, before + (len(self.borders.row_h) - 1) // step)
        own = SpecialLines(
            *(to_device(rows[:, columns]) for rows in (lines.rows_h, lines.rows_f)),
            *(to_device(kept[across]) for kept in (lines.columns_h, lines.columns_e)),
        )
        above_h, above_f = (to_device(row[columns]) for row in (slab.above_h, slab.above_f))
        self.grid.slabs.append(Slab(above_h, above_f, SweepResult(None, 0, own)))

    def resume_below(self, row_h: Array, row_f: Array) -> None:
        """Take over the rows, from the host, below the last slab that was kept."""
        backend, columns = self.matrix.backend, slice(self.first, self.first + len(self.borders.row_h))
        backend.copy_into(self.borders.row_h, backend.to_device(row_h[columns]))
        backend.copy_into(self.borders.row_f, backend.to_device(row_f[columns]))

    def last_row(self) -> Array:
        """H of the lowest row that is swept, in own columns, on the host."""
        return self.matrix.backend.to_host(self.borders.row_h)[: self.end - self.first]


def min_block_columns(matrix: DPMatrix) -> int:
    """Columns that a share has at least: what a special column has to be apart, in whole chunks."""
    return -(-(CHUNK + matrix.lanes) // CHUNK) * CHUNK


def joined(parts: Sequence[SavedSlab]) -> SavedSlab:
    """What all shares of a slab have kept, from the first column on."""
    if len(parts) == 1:
        return parts[0]
    slabs = [part.slab for part in parts]
    lines = [slab.swept.lines for slab in slabs]

    def of(arrays: Sequence[Array], axis: int = -1) -> Array:
        return np.concatenate(arrays, axis)

    swept = SpecialLines(
        of([each.rows_h for each in lines]),
        of([each.rows_f for each in lines]),
        of([each.columns_h for each in lines], 0),
        of([each.columns_e for each in lines], 0),
    )
    whole = Slab(
        of([each.above_h for each in slabs]), of([each.above_f for each in slabs]), SweepResult(None, 0, swept)
    )
    return SavedSlab(whole, of([part.row_h for part in parts]), of([part.row_f for part in parts]))


def _on_host(slab: Slab, columns: int, backend: Backend) -> Slab:
    """A slab's first columns on the host."""
    lines, host = slab.swept.lines, backend.to_host
    own = SpecialLines(
        *(host(rows)[:, :columns] for rows in (lines.rows_h, lines.rows_f)),
        *(host(kept) for kept in (lines.columns_h, lines.columns_e)),
    )
    return Slab(host(slab.above_h)[:columns], host(slab.above_f)[:columns], SweepResult(None, 0, own))


def empty_slab() -> Slab:
    """A slab of which nothing is kept."""
    none = np.empty((0, 0), np.int32)
    return Slab(none, none, SweepResult(None, 0, SpecialLines(none, none, none, none)))
