"""Shares of a matrix, swept slab by slab: each hands its edge to the next one, which goes on from there."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock

from readmap.backend.team import MAX_PENDING, Team, await_all, cancel
from readmap.pairwise.column_blocks import BlockResult, ColumnBlock


class _Stopped(Exception):
    """Another device has failed, or the user has interrupted."""


class MultiDeviceSweep:
    """The sweep of all shares, of which the devices have one after the other in turns.

    What a step finds does not depend on the others but by what it takes from them: those of the slab above in the same
    share, and of the same slab in the share before. highest: the score that shares have to beat, which each of them
    raises, so that what is pruned depends on how far they are, and the result does not; None where none is looked for.
    """

    def __init__(
        self, shares: Sequence[ColumnBlock], team: Team, prunes: bool, copies: bool, first: int, highest: int | None
    ) -> None:
        """first: the number of the first slab to sweep. prunes, copies: as of ColumnBlock.sweep."""
        self._shares, self._team, self._prunes, self._copies, self._first = shares, team, prunes, copies, first
        self._highest, self._lock, self._stopped = highest, Lock(), False
        self._steps: dict[tuple[int, int], Future[BlockResult]] = {}

    def slabs(self) -> Generator[list[BlockResult], None, None]:
        """What all shares have found in a slab, one after the other from the first one to sweep.

        Raises what the first step raises that fails; others end with the slab that they are at.
        """
        devices, shares, grid = len(self._team), len(self._shares), self._shares[0].grid
        end = -(-self._shares[0].matrix.rows // grid.steps.slab)
        # A device comes to its next share of a slab when the others have had theirs.
        rounds = -(-shares // devices)
        delay = -(-(devices - 1) // rounds)
        ahead = delay * rounds + MAX_PENDING if devices > 1 else 0
        try:
            for turn in range(self._first, end + ahead):
                for share in range(shares):
                    number = turn - delay * (share // devices)
                    if self._first <= number < end:
                        self._begin(share, number)
                if turn - ahead >= self._first:
                    yield self._take(turn - ahead)
        finally:
            self._stopped = True
            cancel(self._steps.values())

    def _begin(self, share: int, number: int) -> None:
        step = partial(self._sweep, share, number, self._steps.get((share - 1, number)))
        self._steps[share, number] = self._team.submit(share % len(self._team), step)

    def _sweep(self, share: int, number: int, before: Future[BlockResult] | None) -> BlockResult:
        left = before.result().edge if before else None
        if self._stopped:
            raise _Stopped
        step = self._shares[share].sweep(number, left, self._highest, self._prunes, self._copies)
        with self._lock:
            if step.best and self._highest is not None:
                self._highest = max(self._highest, step.best.score)
        return step

    def _take(self, number: int) -> list[BlockResult]:
        """The steps of a slab, once they are done, of which no others follow."""
        places = [(share, number) for share in range(len(self._shares))]
        steps = await_all([self._steps[place] for place in places], self._steps.values())
        for place in places:
            del self._steps[place]
        return steps
