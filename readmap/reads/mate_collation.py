"""Match mates in records of BAM -> chunks of reads with mates side by side; in the file they may be a window apart.

    record        0     1     2     3     4     5     6
    first, last   A1    B2    A2    A1    B1    C2    A2
    pairs               ......^     ..................^     A1 A2, A1 A2
                        ..................^                 B2 B1; C2 has no mate

The records of a name wait in a queue: a record is the mate of the record that has waited longest. So the k-th first of
a name is the mate of its k-th last, unless they are further apart than the window. The result depends on the order of
the records only, not on the pieces in which they are read.

A pair is placed where the later mate was. A single read is placed where it was. A read whose mate is missing is placed
where the window ended, before the record there.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation.declarations import constant
from readmap.reads import bam_records
from readmap.reads.alignment_chunks import ABSENT, AlignmentChunk
from readmap.reads.bam_records import SPAN_WORDS, BamRecords, KeptTags, ReadTexts, as_spans, as_words

PAIRED, FIRST_MATE, SECOND_MATE, SECONDARY, SUPPLEMENTARY = (
    constant("common/sam_flags.cuh", name)
    for name in ("PAIRED", "FIRST_MATE", "SECOND_MATE", "SECONDARY", "SUPPLEMENTARY")
)

WINDOW = 1_000_000  # maximum distance between mates in records, by default
NO_MATE = -1
FIRST, LAST = 1, 2  # first and last segment of a template, as SAM calls mates

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class MateCandidates:
    """Records that should have mates; all arrays are [candidates]."""

    ordinals: Integers  # record indices in the file, ascending unless sorted by hash
    hashes: NDArray[np.uint64]  # of name and read group, which mates have in common
    segments: NDArray[np.uint8]  # FIRST or LAST

    def __len__(self) -> int:
        return len(self.ordinals)

    def select(self, chosen: Integers | Mask) -> MateCandidates:
        return MateCandidates(*(getattr(self, one.name)[chosen] for one in fields(self)))

    def sorted_by_hash(self) -> MateCandidates:
        return self.select(np.argsort(self.hashes, kind="stable"))

    def split(self, hashes: NDArray[np.uint64]) -> tuple[MateCandidates, MateCandidates]:
        """Split candidates sorted by hash: return those with one of `hashes`, in file order, and the others."""
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
    neighbours = _adjacent_mates(candidates, window)
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
    return known[np.minimum(known.searchsorted(hashes), len(known) - 1)] == hashes  # type: ignore[no-any-return]


def match_by_key(candidates: MateCandidates, keys: Sequence[bytes], window: int) -> Integers:
    """Return the index, int64, of each candidate's mate with an equal key, name and read group, or NO_MATE."""
    mates = np.full(len(candidates), NO_MATE, np.int64)
    waiting: defaultdict[tuple[bytes, int], deque[int]] = defaultdict(deque)
    ordinals = candidates.ordinals.tolist()
    for candidate, (segment, key) in enumerate(zip(candidates.segments.tolist(), keys, strict=True)):
        partners = waiting[key, FIRST + LAST - segment]
        while partners and ordinals[partners[0]] + window < ordinals[candidate]:
            partners.popleft()
        if partners:
            mates[candidate] = partner = partners.popleft()
            mates[partner] = candidate
        else:
            waiting[key, segment].append(candidate)
    return mates


def _adjacent_mates(candidates: MateCandidates, window: int) -> Integers:
    """Return each index i at which candidates i and i + 1 seem to be mates, int64; pairs do not overlap."""
    if len(candidates) < 2:
        return np.empty(0, np.int64)
    alike = candidates.hashes[1:] == candidates.hashes[:-1]
    alike &= candidates.segments[1:] != candidates.segments[:-1]
    alike &= np.diff(candidates.ordinals) <= window
    # In a run A1 A2 A1 A2, the first and the third.
    indices = np.arange(len(alike))
    before = np.maximum.accumulate(np.where(alike, -1, indices))
    return np.flatnonzero(alike & ((indices - before) % 2 == 1))


@dataclass
class _WaitingBatch:
    """The reads of consecutive records from record `start` on."""

    start: int
    ordinals: Integers  # record indices, ascending
    texts: ReadTexts  # the same reads as text
    waiting: int  # reads that have not been delivered; decreases


#: Pairs and single reads to deliver, in order, as int64 [fragments] each: ordinals of the first mate or the single
#: read, and ordinals of the last mate, NO_MATE if single.
_Fragments = tuple[Integers, Integers]


class MateCollator:
    """Makes chunks of the records that are added in file order."""

    def __init__(
        self, kept: KeptTags, window: int, paired: bool, on_missing: Callable[[int, str], None], backend: Backend
    ) -> None:
        """window: maximum distance of mates in records. on_missing: called with index and name of the first lost."""
        self.seen = self.reads = self.lost = 0  # records, primary records, and reads without their mates
        self._tags, self._window, self._paired = kept, window, paired
        self._on_missing, self._backend, self._waiting = on_missing, backend, NO_CANDIDATES
        self._batches: list[_WaitingBatch] = []

    def add(self, records: BamRecords, pool: BufferPool) -> AlignmentChunk | None:
        """Add the next records; return the reads that can be delivered now, in a buffer of the pool, or None."""
        start, end = self.seen, self.seen + len(records)
        primary = np.flatnonzero((records.flags & (SECONDARY | SUPPLEMENTARY)) == 0)
        self.seen, self.reads = end, self.reads + len(primary)
        flags = records.flags[primary]
        segments = (np.where(flags & FIRST_MATE, FIRST, 0) + np.where(flags & SECOND_MATE, LAST, 0)).astype(np.uint8)
        is_mate = ((flags & PAIRED) > 0) & ((segments == FIRST) | (segments == LAST)) & self._paired
        new = MateCandidates(start + primary[is_mate], records.hashes[primary[is_mate]], segments[is_mate])
        known, others = self._waiting.split(new.hashes)
        candidates = known.followed_by(new)
        buffer = pool.take(int(records.lengths.sum()))
        texts = bam_records.write_reads(records, primary, self._tags, buffer.data, self._backend)
        self._batches.append(_WaitingBatch(start, start + primary, texts, len(primary)))
        mates = self._match_mates(candidates, len(known))
        waiting = others.followed_by(candidates.select(mates == NO_MATE))
        is_outside = waiting.ordinals + self._window + 1 < end
        lost = np.sort(waiting.ordinals[is_outside])
        self._waiting = waiting.select(~is_outside).sorted_by_hash()
        fragments = self._ordered_fragments(candidates, mates, start + primary[~is_mate], lost)
        chunk = self._make_chunk(fragments, pool, buffer)
        self._drop_delivered()
        if chunk is None or chunk.buffer is not buffer:
            buffer.release()
        return chunk

    def remaining_chunks(self, pool: BufferPool, chunk_bytes: int) -> Iterator[AlignmentChunk]:
        """Yield the reads without mates that are left at the end, about `chunk_bytes` at a time; count them as lost."""
        ordinals, self._waiting = np.sort(self._waiting.ordinals), NO_CANDIDATES
        self.lost += len(ordinals)
        lengths = np.empty(len(ordinals), np.int64)
        for batch, chosen, rows in self._locate(ordinals):
            lengths[chosen] = batch.texts.lengths[rows]
        pieces = np.cumsum(lengths) // chunk_bytes
        for piece in np.split(ordinals, np.flatnonzero(np.diff(pieces)) + 1):
            if chunk := self._make_chunk((piece, np.full(len(piece), NO_MATE)), pool, None):
                yield chunk

    def _match_mates(self, candidates: MateCandidates, known: int) -> Integers:
        """Return the index of each candidate's mate, or NO_MATE; the first `known` candidates were waiting before."""
        mates, unsure = match_by_hash(candidates, self._window)
        unsure |= self._have_false_mates(candidates, mates, known)
        if unsure.any():
            again = np.flatnonzero(unsure)
            found = match_by_key(candidates.select(again), self._mate_keys(candidates.ordinals[again]), self._window)
            mates[again] = np.where(found == NO_MATE, NO_MATE, again[found])
        return mates

    def _have_false_mates(self, candidates: MateCandidates, mates: Integers, known: int) -> Mask:
        """Return a mask of the candidates whose hash occurs in a match of different names or read groups."""
        later = np.flatnonzero((mates != NO_MATE) & (mates < np.arange(len(mates))))
        last, is_new = self._batches[-1], later >= known
        # Two candidates that were both waiting before are not mates.
        same = np.zeros(len(later), np.bool_)
        indices, new = np.flatnonzero(is_new), later[is_new]
        new_rows = last.ordinals.searchsorted(candidates.ordinals[new])
        for batch, chosen, rows in self._locate(candidates.ordinals[mates[new]]):
            same[indices[chosen]] = bam_records.compare_mates(
                batch.texts, rows, last.texts, new_rows[chosen], self._backend
            )
        if same.all():
            return np.zeros(len(candidates), np.bool_)
        return is_among(candidates.hashes, candidates.hashes[later[~same]])

    def _mate_keys(self, ordinals: Integers) -> list[bytes]:
        """Return name and read group of the reads with these record indices."""
        keys = [b""] * len(ordinals)
        for batch, chosen, rows in self._locate(ordinals):
            for index, key in zip(chosen.tolist(), batch.texts.select(rows).keys(), strict=True):
                keys[index] = key
        return keys

    def _ordered_fragments(
        self, candidates: MateCandidates, mates: Integers, singles: Integers, lost: Integers
    ) -> _Fragments:
        """Return pairs, singles and lost reads in order of delivery; count and report lost reads, without mates."""
        later = np.flatnonzero((mates != NO_MATE) & (mates < np.arange(len(mates))))
        is_first = candidates.segments[later] == FIRST
        firsts = candidates.ordinals[np.where(is_first, later, mates[later])]
        lasts = candidates.ordinals[np.where(is_first, mates[later], later)]
        if len(lost):
            self._on_missing(int(lost[0]), self._mate_keys(lost[:1])[0].split(b"\0")[0].decode())
            self.lost += len(lost)
        # Odd: at a record. Even: before a record.
        positions = np.concatenate([2 * candidates.ordinals[later] + 1, 2 * singles + 1, 2 * (lost + self._window + 1)])
        firsts = np.concatenate([firsts, singles, lost])
        lasts = np.concatenate([lasts, np.full(len(singles) + len(lost), NO_MATE)])
        order = np.argsort(positions, kind="stable")
        return firsts[order], lasts[order]

    def _make_chunk(self, fragments: _Fragments, pool: BufferPool, last_buffer: Buffer | None) -> AlignmentChunk | None:
        """Return the fragments' reads as a chunk, or None; they stay in the last batch's buffer if all are there."""
        firsts, lasts = fragments
        count, has_mate = len(firsts), lasts != NO_MATE
        if not count:
            return None
        wanted = np.concatenate([firsts, lasts[has_mate]])
        words = np.empty((len(wanted), SPAN_WORDS), np.int64)
        located = list(self._locate(wanted))
        if last_buffer is not None and all(batch is self._batches[-1] for batch, *_ in located):
            buffer, filled = last_buffer, int(self._batches[-1].texts.lengths.sum())
            for batch, chosen, rows in located:
                words[chosen] = as_words(batch.texts.spans)[rows]
        else:
            buffer, filled = pool.take(sum(int(batch.texts.lengths[rows].sum()) for batch, _, rows in located)), 0
            for batch, chosen, rows in located:
                copied = batch.texts.select(rows).copy_into(buffer.data, filled, self._backend)
                filled += int(copied.lengths.sum())
                words[chosen] = as_words(copied.spans)
        for batch, chosen, _ in located:
            batch.waiting -= len(chosen)
        paired = bool(has_mate.any())
        if paired:
            slots = np.repeat(as_words(ABSENT), 2 * count, axis=0)
            slots[::2] = words[:count]
            slots[1::2][has_mate] = words[count:]
            words = slots
        return AlignmentChunk(buffer.data[:filled], as_spans(words), paired, buffer)

    def _drop_delivered(self) -> None:
        """Keep only the texts of waiting reads; copy the texts of the last batch out of its buffer."""
        last = self._batches.pop()
        self._batches = [batch for batch in self._batches if batch.waiting]
        if last.waiting:
            ordinals = np.sort(self._waiting.ordinals[self._waiting.ordinals >= last.start])
            texts = last.texts.select(last.ordinals.searchsorted(ordinals))
            target = np.empty(int(texts.lengths.sum()), np.uint8)
            copied = texts.copy_into(target, 0, self._backend)
            self._batches.append(_WaitingBatch(last.start, ordinals, copied, len(ordinals)))

    def _locate(self, ordinals: Integers) -> Iterator[tuple[_WaitingBatch, Integers, Integers]]:
        """Yield each batch that has some of the reads, their indices in `ordinals`, and their rows in the batch."""
        numbers = np.array([batch.start for batch in self._batches]).searchsorted(ordinals, "right") - 1
        for number, batch in enumerate(self._batches):
            chosen = np.flatnonzero(numbers == number)
            if len(chosen):
                yield batch, chosen, batch.ordinals.searchsorted(ordinals[chosen])
