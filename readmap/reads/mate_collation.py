"""Records of alignments -> chunks of reads: mates side by side, however far apart they were within the window.

A pair stands where the later of its mates was. What is single stands where it was, but what has waited for a mate in
vain stands where the window left it behind, in front of the record there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation.declarations import constant
from readmap.reads import bam_records
from readmap.reads.alignment_chunks import ABSENT, AlignmentChunk
from readmap.reads.bam_records import PLACE_WORDS, KeptTags, Records, Texts, as_places, as_words
from readmap.reads.mate_matching import FIRST, LAST, NO_MATE, NOBODY, Members, match, same_hashes, settle

PAIRED, FIRST_MATE, SECOND_MATE, SECONDARY, SUPPLEMENTARY = (
    constant("common/sam_flags.cuh", name) for name in ("PAIRED", "FIRST_MATE", "SECOND_MATE", "SECONDARY", "SUPPLEMENTARY")
)

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class _Part:
    """Reads of a part of the file that begins with record `begin`: their numbers, int64, ascending, and their texts.

    waiting: how many of them have not been given; not frozen, as these become fewer.
    """

    begin: int
    ordinals: Integers
    texts: Texts
    waiting: int


@dataclass(frozen=True)
class _Units:
    """What is given next, in order: int64 [units], the numbers of single reads, and of the first and the last of pairs.

    lasts: NO_MATE of single reads.
    """

    firsts: Integers
    lasts: Integers


class MateCollator:
    """Makes chunks of the records that it is given, one part of the file after the other.

    Attributes:
        seen: records so far; reads: of these, the primary ones.
        lost: reads whose mates have not been found.
    """

    def __init__(
        self, kept: KeptTags, window: int, paired: bool, leave: Callable[[int, str], None], backend: Backend
    ) -> None:
        """window: records between which mates are looked for. paired: whether they are looked for at all.

        leave: called with the number and the name of a read that the window leaves behind, before it is given.
        """
        self.seen = self.reads = self.lost = 0
        self._tags = kept
        self._window = window
        self._paired = paired
        self._leave = leave
        self._backend = backend
        self._waiting = NOBODY
        self._parts: list[_Part] = []

    def take(self, records: Records, pool: BufferPool) -> AlignmentChunk | None:
        """The reads that are to be given now that these records are known; None where there are none."""
        begin, end = self.seen, self.seen + len(records)
        primary = np.flatnonzero((records.flags & (SECONDARY | SUPPLEMENTARY)) == 0)
        self.seen, self.reads = end, self.reads + len(primary)
        flags = records.flags[primary]
        sides = (np.where(flags & FIRST_MATE, FIRST, 0) + np.where(flags & SECOND_MATE, LAST, 0)).astype(np.uint8)
        is_mate = ((flags & PAIRED) > 0) & ((sides == FIRST) | (sides == LAST)) & self._paired
        new = Members(begin + primary[is_mate], records.hashes[primary[is_mate]], sides[is_mate])
        known, others = self._waiting.split(new.hashes)
        members = known.before(new)
        buffer = pool.take(int(records.lengths.sum()))
        texts = bam.write_reads(records, primary, self._tags, buffer.data, self._backend)
        self._parts.append(_Part(begin, begin + primary, texts, len(primary)))
        mates = self._mates(members, len(known))
        waiting = others.before(members.at(mates == NO_MATE))
        is_left = waiting.ordinals + self._window + 1 < end
        left = np.sort(waiting.ordinals[is_left])
        self._waiting = waiting.at(~is_left).by_hash()
        chunk = self._chunk(self._units(members, mates, begin + primary[~is_mate], left), pool, buffer)
        self._keep_waiting()
        if chunk is None or chunk.buffer is not buffer:
            buffer.release()
        return chunk

    def rest(self, pool: BufferPool, chunk_bytes: int) -> Iterator[AlignmentChunk]:
        """The reads that wait for their mates in vain, once there are no more records; so many bytes at a time."""
        ordinals, self._waiting = np.sort(self._waiting.ordinals), NOBODY
        self.lost += len(ordinals)
        lengths = np.empty(len(ordinals), np.int64)
        for part, chosen, rows in self._located(ordinals):
            lengths[chosen] = part.texts.lengths[rows]
        pieces = np.cumsum(lengths) // chunk_bytes
        for piece in np.split(ordinals, np.flatnonzero(np.diff(pieces)) + 1):
            if chunk := self._chunk(_Units(piece, np.full(len(piece), NO_MATE)), pool, None):
                yield chunk

    def _mates(self, members: Members, known: int) -> Integers:
        """The index of the mate of each, NO_MATE for none; known: how many have waited already."""
        mates, unsure = match(members, self._window)
        unsure |= self._are_false(members, mates, known)
        if unsure.any():
            again = np.flatnonzero(unsure)
            found = settle(members.at(again), self._keys(members.ordinals[again]), self._window)
            mates[again] = np.where(found == NO_MATE, NO_MATE, again[found])
        return mates

    def _are_false(self, members: Members, mates: Integers, known: int) -> Mask:
        """Of which members the hashes are those of mates that have not the same name and read group."""
        later = np.flatnonzero((mates != NO_MATE) & (mates < np.arange(len(mates))))
        own, is_new = self._parts[-1], later >= known
        # Two that have waited together are no mates.
        same = np.zeros(len(later), np.bool_)
        fresh, news = np.flatnonzero(is_new), later[is_new]
        seconds = own.ordinals.searchsorted(members.ordinals[news])
        for part, chosen, rows in self._located(members.ordinals[mates[news]]):
            same[fresh[chosen]] = bam.compare_mates(part.texts, rows, own.texts, seconds[chosen], self._backend)
        if same.all():
            return np.zeros(len(members), np.bool_)
        return same_hashes(members.hashes, members.hashes[later[~same]])

    def _keys(self, ordinals: Integers) -> list[bytes]:
        """What mates have in common, of each."""
        keys = [b""] * len(ordinals)
        for part, chosen, rows in self._located(ordinals):
            for index, key in zip(chosen.tolist(), part.texts.at(rows).keys(), strict=True):
                keys[index] = key
        return keys

    def _units(self, members: Members, mates: Integers, singles: Integers, left: Integers) -> _Units:
        """All that is to be given, in order; left: what the window has left behind."""
        later = np.flatnonzero((mates != NO_MATE) & (mates < np.arange(len(mates))))
        is_first = members.sides[later] == FIRST
        firsts = members.ordinals[np.where(is_first, later, mates[later])]
        lasts = members.ordinals[np.where(is_first, mates[later], later)]
        if len(left):
            self._leave(int(left[0]), self._keys(left[:1])[0].split(b"\0")[0].decode())
            self.lost += len(left)
        # Where each stands: at a record, or in front of one.
        stands = np.concatenate([2 * members.ordinals[later] + 1, 2 * singles + 1, 2 * (left + self._window + 1)])
        firsts = np.concatenate([firsts, singles, left])
        lasts = np.concatenate([lasts, np.full(len(singles) + len(left), NO_MATE)])
        order = np.argsort(stands, kind="stable")
        return _Units(firsts[order], lasts[order])

    def _chunk(self, units: _Units, pool: BufferPool, own: Buffer | None) -> AlignmentChunk | None:
        """The reads of units; in `own`, which holds the texts of the last part, where no others are among them."""
        count, has_mate = len(units.firsts), units.lasts != NO_MATE
        if not count:
            return None
        wanted = np.concatenate([units.firsts, units.lasts[has_mate]])
        words = np.empty((len(wanted), PLACE_WORDS), np.int64)
        located = list(self._located(wanted))
        if own is not None and all(part is self._parts[-1] for part, *_ in located):
            buffer, filled = own, int(self._parts[-1].texts.lengths.sum())
            for part, chosen, rows in located:
                words[chosen] = as_words(part.texts.places)[rows]
        else:
            buffer, filled = pool.take(sum(int(part.texts.lengths[rows].sum()) for part, _, rows in located)), 0
            for part, chosen, rows in located:
                copied = part.texts.at(rows).copied(buffer.data, filled, self._backend)
                filled += int(copied.lengths.sum())
                words[chosen] = as_words(copied.places)
        for part, chosen, _ in located:
            part.waiting -= len(chosen)
        paired = bool(has_mate.any())
        if paired:
            slots = np.repeat(as_words(ABSENT), 2 * count, axis=0)
            slots[::2] = words[:count]
            slots[1::2][has_mate] = words[count:]
            words = slots
        return AlignmentChunk(buffer.data[:filled], as_places(words), paired, buffer)

    def _keep_waiting(self) -> None:
        """Have the texts kept of what waits, and no others."""
        own = self._parts.pop()
        self._parts = [part for part in self._parts if part.waiting]
        if own.waiting:
            ordinals = np.sort(self._waiting.ordinals[self._waiting.ordinals >= own.begin])
            texts = own.texts.at(own.ordinals.searchsorted(ordinals))
            room = np.empty(int(texts.lengths.sum()), np.uint8)
            self._parts.append(_Part(own.begin, ordinals, texts.copied(room, 0, self._backend), len(ordinals)))

    def _located(self, ordinals: Integers) -> Iterator[tuple[_Part, Integers, Integers]]:
        """The parts that hold reads: the part, indices of those that it holds, and their rows in it."""
        numbers = np.array([part.begin for part in self._parts]).searchsorted(ordinals, "right") - 1
        for number, part in enumerate(self._parts):
            chosen = np.flatnonzero(numbers == number)
            if len(chosen):
                yield part, chosen, part.ordinals.searchsorted(ordinals[chosen])
