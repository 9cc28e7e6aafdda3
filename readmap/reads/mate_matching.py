"""Match mates: a first and a last record of one name, within a window of records.

    record        0     1     2     3     4     5     6
    first, last   A1    B2    A2    A1    B1    C2    A2
    pairs               ......^     ..................^     A1 A2, A1 A2
                        ..................^                 B2 B1; C2 has no mate

The records of a name wait in a queue: a record is the mate of the record that has waited longest. So the k-th first of
a name is the mate of its k-th last, unless they are further apart than the window. The result depends on the order of
the records only, not on the pieces in which they are read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

#: Maximum distance between mates in records, by default.
WINDOW = 1_000_000

NO_MATE = -1

#: First and last segment of a template, as SAM calls mates.
FIRST, LAST = 1, 2

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class MateCandidates:
    """Records that should have mates.

    Attributes:
        ordinals: int64 [candidates], record indices in the file, ascending unless sorted by hash.
        hashes: uint64 [candidates], of name and read group, which mates have in common.
        segments: uint8 [candidates], FIRST or LAST.
    """

    ordinals: Integers
    hashes: NDArray[np.uint64]
    segments: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ordinals)

    def select(self, chosen: Integers | Mask) -> MateCandidates:
        """Return the chosen candidates."""
        return MateCandidates(*(getattr(self, one.name)[chosen] for one in fields(self)))

    def sorted_by_hash(self) -> MateCandidates:
        """Return the candidates sorted by hash, stably."""
        return self.select(np.argsort(self.hashes, kind="stable"))

    def split(self, hashes: NDArray[np.uint64]) -> tuple[MateCandidates, MateCandidates]:
        """Return the candidates that have one of the hashes, in file order, and the others; self is sorted by hash."""
        wanted = np.unique(hashes) if len(self) else hashes[:0]
        starts = self.hashes.searchsorted(wanted)
        counts = self.hashes.searchsorted(wanted, "right") - starts
        present = np.flatnonzero(counts)
        starts, counts = starts[present], counts[present]
        chosen = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        others = np.ones(len(self), np.bool_)
        others[chosen] = False
        return self.select(chosen[np.argsort(self.ordinals[chosen])]), self.select(others)

    def followed_by(self, others: MateCandidates) -> MateCandidates:
        """Return these candidates and then the others."""
        columns = ([getattr(self, one.name), getattr(others, one.name)] for one in fields(self))
        return MateCandidates(*map(np.concatenate, columns))


NO_CANDIDATES = MateCandidates(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint8))


def match_by_hash(candidates: MateCandidates, window: int) -> tuple[Integers, Mask]:
    """Match candidates by their hashes.

    Returns int64 [candidates], the index of each candidate's mate or NO_MATE; and a mask of the candidates to be
    matched by `match_by_key`, because the window separates some records of their name.
    """
    mates = np.full(len(candidates), NO_MATE, np.int64)
    unsure = np.zeros(len(candidates), np.bool_)
    left = np.ones(len(candidates), np.bool_)
    neighbours = _neighbours(candidates, window)
    left[neighbours] = left[neighbours + 1] = False
    if left.any():
        # Neighbours may not be mates if other candidates have the same name.
        contested = is_among(candidates.hashes[neighbours], candidates.hashes[left])
        both = neighbours[contested]
        left[both] = left[both + 1] = True
        neighbours = neighbours[~contested]
    mates[neighbours], mates[neighbours + 1] = neighbours + 1, neighbours
    rest = np.flatnonzero(left)
    order = rest[np.argsort(candidates.hashes[rest], kind="stable")]
    segments, hashes = candidates.segments[order], candidates.hashes[order]
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(order)])
    sizes = np.diff(starts, append=len(order))
    names = np.repeat(np.arange(len(starts)), sizes)
    ranks = np.empty(len(order), np.int64)
    for segment in (FIRST, LAST):
        before = np.cumsum(segments == segment)
        of_name = (before - (segments == segment))[starts]
        ranks[segments == segment] = (before - np.repeat(of_name, sizes))[segments == segment]
    keys = names * (len(order) + 1) + ranks  # ascending among the firsts, and among the lasts
    firsts, lasts = order[segments == FIRST], order[segments == LAST]
    found = keys[segments == LAST].searchsorted(keys[segments == FIRST])
    is_mate = found < len(lasts)
    is_mate[is_mate] = keys[segments == LAST][found[is_mate]] == keys[segments == FIRST][is_mate]
    firsts, lasts = firsts[is_mate], lasts[found[is_mate]]
    mates[firsts], mates[lasts] = lasts, firsts
    separated = np.abs(candidates.ordinals[firsts] - candidates.ordinals[lasts]) > window
    mates[firsts[separated]] = mates[lasts[separated]] = NO_MATE
    if separated.any():
        several = names[np.isin(order, firsts[separated])]
        unsure[order[np.isin(names, several[sizes[several] > 2])]] = True
    return mates, unsure


def is_among(hashes: NDArray[np.uint64], others: NDArray[np.uint64]) -> Mask:
    """Return which hashes are among `others`, at least one hash. Faster than np.isin for few others."""
    known = np.sort(others)
    found: Mask = known[np.minimum(known.searchsorted(hashes), len(known) - 1)] == hashes
    return found


def match_by_key(candidates: MateCandidates, keys: Sequence[bytes], window: int) -> Integers:
    """Return the index of each candidate's mate or NO_MATE, int64, record by record. keys: name and read group."""
    mates = np.full(len(candidates), NO_MATE, np.int64)
    waiting: defaultdict[tuple[bytes, int], deque[int]] = defaultdict(deque)
    ordinals, segments = candidates.ordinals.tolist(), candidates.segments.tolist()
    for candidate, (ordinal, segment, key) in enumerate(zip(ordinals, segments, keys, strict=True)):
        partners = waiting[key, FIRST + LAST - segment]
        while partners and ordinals[partners[0]] + window < ordinal:
            partners.popleft()
        if not partners:
            waiting[key, segment].append(candidate)
            continue
        partner = partners.popleft()
        mates[candidate], mates[partner] = partner, candidate
    return mates


def _neighbours(candidates: MateCandidates, window: int) -> Integers:
    """Return the candidates whose next candidate seems to be their mate; no candidate is in two such pairs."""
    if len(candidates) < 2:
        return np.empty(0, np.int64)
    alike = candidates.hashes[1:] == candidates.hashes[:-1]
    alike &= candidates.segments[1:] != candidates.segments[:-1]
    alike &= np.diff(candidates.ordinals) <= window
    # In a run A1 A2 A1 A2, the first and the third.
    indices = np.arange(len(alike))
    before = np.maximum.accumulate(np.where(alike, -1, indices))
    return np.flatnonzero(alike & ((indices - before) % 2 == 1))
