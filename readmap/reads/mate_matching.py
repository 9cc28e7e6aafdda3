"""Which records are mates: those of one name, a first and a last, within a window of records.

    record        0     1     2     3     4     5     6
    first, last   A1    B2    A2    A1    B1    C2    A2
    pairs               ......^     ..................^     A1 A2, A1 A2
                        ..................^                 B2 B1; C2 has no mate

The records of a name wait in a row: one is the mate of that which has waited longest. So the k-th first of a name is
the mate of its k-th last, unless the window parts them. What is found depends on the order of the records alone, not on
the pieces in which they come.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

#: Records between which mates are looked for.
WINDOW = 1_000_000

NO_MATE = -1

FIRST, LAST = 1, 2

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Members:
    """Records that are to have mates, in their order.

    Attributes:
        ordinals: int64 [members], ascending but where they are ordered by hash, their numbers in the file.
        hashes: uint64 [members], of what mates have in common.
        sides: uint8 [members], FIRST or LAST.
    """

    ordinals: Integers
    hashes: NDArray[np.uint64]
    sides: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ordinals)

    def at(self, chosen: Integers | Mask) -> Members:
        """Those alone."""
        return Members(*(getattr(self, one.name)[chosen] for one in fields(self)))

    def by_hash(self) -> Members:
        """The same ordered by hash, those of one hash as they were."""
        return self.at(np.argsort(self.hashes, kind="stable"))

    def split(self, hashes: NDArray[np.uint64]) -> tuple[Members, Members]:
        """Those that have one of the hashes, in the order of the file, and the others; self is ordered by hash."""
        wanted = np.unique(hashes) if len(self) else hashes[:0]
        begins = self.hashes.searchsorted(wanted)
        counts = self.hashes.searchsorted(wanted, "right") - begins
        held = np.flatnonzero(counts)
        begins, counts = begins[held], counts[held]
        chosen = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        others = np.ones(len(self), np.bool_)
        others[chosen] = False
        return self.at(chosen[np.argsort(self.ordinals[chosen])]), self.at(others)

    def before(self, others: Members) -> Members:
        """These, and the others behind them."""
        return Members(*(np.concatenate([getattr(self, one.name), getattr(others, one.name)]) for one in fields(self)))


NOBODY = Members(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint8))


def match(members: Members, window: int) -> tuple[Integers, Mask]:
    """The index of the mate of each by their hashes, int64, NO_MATE for none; and whose mates `settle` is to find.

    That is where the window parts some of a name.
    """
    mates = np.full(len(members), NO_MATE, np.int64)
    unsure = np.zeros(len(members), np.bool_)
    left = np.ones(len(members), np.bool_)
    neighbours = _neighbours(members, window)
    left[neighbours] = left[neighbours + 1] = False
    if left.any():
        # Of names that others have too, neighbours may be none.
        contested = same_hashes(members.hashes[neighbours], members.hashes[left])
        both = neighbours[contested]
        left[both] = left[both + 1] = True
        neighbours = neighbours[~contested]
    mates[neighbours], mates[neighbours + 1] = neighbours + 1, neighbours
    rest = np.flatnonzero(left)
    order = rest[np.argsort(members.hashes[rest], kind="stable")]
    sides, hashes = members.sides[order], members.hashes[order]
    begins = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(order)])
    sizes = np.diff(begins, append=len(order))
    names = np.repeat(np.arange(len(begins)), sizes)
    ranks = np.empty(len(order), np.int64)
    for side in (FIRST, LAST):
        before = np.cumsum(sides == side)
        of_name = (before - (sides == side))[begins]
        ranks[sides == side] = (before - np.repeat(of_name, sizes))[sides == side]
    places = names * (len(order) + 1) + ranks  # ascending on either side
    firsts, lasts = order[sides == FIRST], order[sides == LAST]
    found = places[sides == LAST].searchsorted(places[sides == FIRST])
    is_mate = found < len(lasts)
    is_mate[is_mate] = places[sides == LAST][found[is_mate]] == places[sides == FIRST][is_mate]
    firsts, lasts = firsts[is_mate], lasts[found[is_mate]]
    mates[firsts], mates[lasts] = lasts, firsts
    parted = np.abs(members.ordinals[firsts] - members.ordinals[lasts]) > window
    mates[firsts[parted]] = mates[lasts[parted]] = NO_MATE
    if parted.any():
        several = names[np.isin(order, firsts[parted])]
        unsure[order[np.isin(names, several[sizes[several] > 2])]] = True
    return mates, unsure


def same_hashes(hashes: NDArray[np.uint64], others: NDArray[np.uint64]) -> Mask:
    """Which of the hashes are among the others, of which there is at least one; made for few others."""
    known = np.sort(others)
    found: Mask = known[np.minimum(known.searchsorted(hashes), len(known) - 1)] == hashes
    return found


def settle(members: Members, keys: Sequence[bytes], window: int) -> Integers:
    """The index of the mate of each, by what mates have in common, one record after the other."""
    mates = np.full(len(members), NO_MATE, np.int64)
    waiting: defaultdict[tuple[bytes, int], deque[int]] = defaultdict(deque)
    ordinals, sides = members.ordinals.tolist(), members.sides.tolist()
    for member, (ordinal, side, key) in enumerate(zip(ordinals, sides, keys, strict=True)):
        partners = waiting[key, FIRST + LAST - side]
        while partners and ordinals[partners[0]] + window < ordinal:
            partners.popleft()
        if not partners:
            waiting[key, side].append(member)
            continue
        partner = partners.popleft()
        mates[member], mates[partner] = partner, member
    return mates


def _neighbours(members: Members, window: int) -> Integers:
    """Members whose mates seem to follow them at once; none of two such."""
    if len(members) < 2:
        return np.empty(0, np.int64)
    alike = (members.hashes[1:] == members.hashes[:-1]) & (members.sides[1:] != members.sides[:-1])
    alike &= np.diff(members.ordinals) <= window
    # Of A1 A2 A1 A2 the first and the third.
    indices = np.arange(len(alike))
    before = np.maximum.accumulate(np.where(alike, -1, indices))
    return np.flatnonzero(alike & ((indices - before) % 2 == 1))
