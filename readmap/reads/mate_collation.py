"""Records of BAM -> chunks of reads with mates side by side; in the file they may be a window apart.

A pair is placed where the later mate was. A single read is placed where it was. A read whose mate is missing is placed
where the window ended, before the record there.
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
from readmap.reads.bam_records import SPAN_WORDS, BamRecords, KeptTags, ReadTexts, as_spans, as_words
from readmap.reads.mate_matching import (
    FIRST,
    LAST,
    NO_CANDIDATES,
    NO_MATE,
    MateCandidates,
    is_among,
    match_by_hash,
    match_by_key,
)

PAIRED, FIRST_MATE, SECOND_MATE, SECONDARY, SUPPLEMENTARY = (
    constant("common/sam_flags.cuh", name)
    for name in ("PAIRED", "FIRST_MATE", "SECOND_MATE", "SECONDARY", "SUPPLEMENTARY")
)

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class _WaitingBatch:
    """The reads of consecutive records from record `start` on.

    ordinals: int64, record indices, ascending. texts: the same reads as text.
    waiting: number of reads that have not been delivered; decreases.
    """

    start: int
    ordinals: Integers
    texts: ReadTexts
    waiting: int


@dataclass(frozen=True)
class _OrderedFragments:
    """Pairs and single reads to deliver, in order.

    firsts: int64 [fragments], ordinals of the first mate or the single read.
    lasts: ordinals of the last mate; NO_MATE if single.
    """

    firsts: Integers
    lasts: Integers


class MateCollator:
    """Makes chunks of the records that are added in file order.

    Attributes:
        seen: records added. reads: primary records added.
        lost: reads whose mates are missing.
    """

    def __init__(
        self, kept: KeptTags, window: int, paired: bool, on_missing: Callable[[int, str], None], backend: Backend
    ) -> None:
        """window: maximum distance of mates in records. paired: match mates at all.

        on_missing: called with index and name of the first read that leaves the window without a mate.
        """
        self.seen = self.reads = self.lost = 0
        self._tags = kept
        self._window = window
        self._paired = paired
        self._on_missing = on_missing
        self._backend = backend
        self._waiting = NO_CANDIDATES
        self._batches: list[_WaitingBatch] = []

    def add(self, records: BamRecords, pool: BufferPool) -> AlignmentChunk | None:
        """Add records; return the reads that can be delivered now, or None."""
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
        mates = self._match(candidates, len(known))
        waiting = others.followed_by(candidates.select(mates == NO_MATE))
        is_outside = waiting.ordinals + self._window + 1 < end
        lost = np.sort(waiting.ordinals[is_outside])
        self._waiting = waiting.select(~is_outside).sorted_by_hash()
        fragments = self._fragments(candidates, mates, start + primary[~is_mate], lost)
        chunk = self._chunk(fragments, pool, buffer)
        self._drop_delivered()
        if chunk is None or chunk.buffer is not buffer:
            buffer.release()
        return chunk

    def rest(self, pool: BufferPool, chunk_bytes: int) -> Iterator[AlignmentChunk]:
        """Yield the reads without mates that are left after all records, about `chunk_bytes` at a time."""
        ordinals, self._waiting = np.sort(self._waiting.ordinals), NO_CANDIDATES
        self.lost += len(ordinals)
        lengths = np.empty(len(ordinals), np.int64)
        for batch, chosen, rows in self._locate(ordinals):
            lengths[chosen] = batch.texts.lengths[rows]
        pieces = np.cumsum(lengths) // chunk_bytes
        for piece in np.split(ordinals, np.flatnonzero(np.diff(pieces)) + 1):
            if chunk := self._chunk(_OrderedFragments(piece, np.full(len(piece), NO_MATE)), pool, None):
                yield chunk

    def _match(self, candidates: MateCandidates, known: int) -> Integers:
        """Return the index of each candidate's mate, or NO_MATE. known: how many were waiting before."""
        mates, unsure = match_by_hash(candidates, self._window)
        unsure |= self._have_false_mates(candidates, mates, known)
        if unsure.any():
            again = np.flatnonzero(unsure)
            found = match_by_key(candidates.select(again), self._keys(candidates.ordinals[again]), self._window)
            mates[again] = np.where(found == NO_MATE, NO_MATE, again[found])
        return mates

    def _have_false_mates(self, candidates: MateCandidates, mates: Integers, known: int) -> Mask:
        """Return the candidates whose hash occurs in a match with another name or read group."""
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

    def _keys(self, ordinals: Integers) -> list[bytes]:
        """Return name and read group of each read."""
        keys = [b""] * len(ordinals)
        for batch, chosen, rows in self._locate(ordinals):
            for index, key in zip(chosen.tolist(), batch.texts.select(rows).keys(), strict=True):
                keys[index] = key
        return keys

    def _fragments(
        self, candidates: MateCandidates, mates: Integers, singles: Integers, lost: Integers
    ) -> _OrderedFragments:
        """Return all fragments to deliver, in order. singles, lost: ordinals; lost reads have no mate in the window."""
        later = np.flatnonzero((mates != NO_MATE) & (mates < np.arange(len(mates))))
        is_first = candidates.segments[later] == FIRST
        firsts = candidates.ordinals[np.where(is_first, later, mates[later])]
        lasts = candidates.ordinals[np.where(is_first, mates[later], later)]
        if len(lost):
            self._on_missing(int(lost[0]), self._keys(lost[:1])[0].split(b"\0")[0].decode())
            self.lost += len(lost)
        # Odd: at a record. Even: before a record.
        positions = np.concatenate([2 * candidates.ordinals[later] + 1, 2 * singles + 1, 2 * (lost + self._window + 1)])
        firsts = np.concatenate([firsts, singles, lost])
        lasts = np.concatenate([lasts, np.full(len(singles) + len(lost), NO_MATE)])
        order = np.argsort(positions, kind="stable")
        return _OrderedFragments(firsts[order], lasts[order])

    def _chunk(
        self, fragments: _OrderedFragments, pool: BufferPool, last_buffer: Buffer | None
    ) -> AlignmentChunk | None:
        """Return the reads of the fragments, in `last_buffer`, the buffer of the last batch, if it has all of them."""
        count, has_mate = len(fragments.firsts), fragments.lasts != NO_MATE
        if not count:
            return None
        wanted = np.concatenate([fragments.firsts, fragments.lasts[has_mate]])
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
