"""Sweep the column blocks of a matrix slab by slab on several devices; each block passes its right edge to the next."""

from collections.abc import Generator
from concurrent.futures import Future
from functools import partial
from threading import Lock

from readmap.backend.team import MAX_PENDING, Team, await_all, cancel
from readmap.pairwise.column_blocks import BlockResult, ColumnBlock


class _Stopped(Exception):
    """Another device has failed, or the user has interrupted."""


class MultiDeviceSweep:
    """The sweep of all column blocks, which are assigned to the devices in turns (block-cyclic).

    A step, one slab of one block, depends on the slab above in the same block and on the same slab in the block before.
    Each step may raise `highest`, the score to beat. Pruning therefore depends on timing, but the result does not.
    """

    def __init__(
        self, blocks: list[ColumnBlock], team: Team, prunes: bool, saves_slabs: bool, first: int, highest: int | None
    ) -> None:
        """Start at slab `first`; options as in ColumnBlock.sweep; highest: None to search no best cell."""
        self._blocks, self._team, self._first = blocks, team, first
        self._prunes, self._saves_slabs = prunes, saves_slabs
        self._highest, self._lock, self._stopped = highest, Lock(), False
        self._steps: dict[tuple[int, int], Future[BlockResult]] = {}

    def slabs(self) -> Generator[list[BlockResult], None, None]:
        """Yield the results of all blocks for each slab in turn; raise the error of the first step that fails."""
        devices, blocks, grid = len(self._team), len(self._blocks), self._blocks[0].grid
        end = -(-self._blocks[0].matrix.rows // grid.sizes.slab_rows)
        # A device sweeps its next block of a slab after each other device has swept a block.
        rounds = -(-blocks // devices)
        delay = -(-(devices - 1) // rounds)
        ahead = delay * rounds + MAX_PENDING if devices > 1 else 0
        try:
            for turn in range(self._first, end + ahead):
                for block in range(blocks):
                    slab = turn - delay * (block // devices)
                    if self._first <= slab < end:
                        self._submit(block, slab)
                if turn - ahead >= self._first:
                    yield self._take(turn - ahead)
        finally:
            self._stopped = True
            cancel(self._steps.values())

    def _submit(self, block: int, slab: int) -> None:
        """Queue a step on the device of its block."""
        step = partial(self._sweep, block, slab, self._steps.get((block - 1, slab)))
        self._steps[block, slab] = self._team.submit(block % len(self._team), step)

    def _sweep(self, block: int, slab: int, before: Future[BlockResult] | None) -> BlockResult:
        """Run a step in the thread of its device, after the step of the block before."""
        left = before.result().edge if before else None
        if self._stopped:
            raise _Stopped
        step = self._blocks[block].sweep(slab, left, self._highest, self._prunes, self._saves_slabs)
        with self._lock:
            if step.best and self._highest is not None:
                self._highest = max(self._highest, step.best.score)
        return step

    def _take(self, slab: int) -> list[BlockResult]:
        """Wait for a slab of all blocks; remove and return the results, in order of blocks."""
        keys = [(block, slab) for block in range(len(self._blocks))]
        steps = await_all([self._steps[key] for key in keys], self._steps.values())
        for key in keys:
            del self._steps[key]
        return steps
