"""Reads on a device with windows that tests make up: the input of the stages after the window search."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from examples import Read, below, context_of, fasta_reads, fastq, random_bases, reads_of
from oracles.alignment import canonical, clean
from oracles.placements import NO_DEFICIT, PHRED_ONE_OF_THREE, SPREAD, End, overlaps_by_half

from readmap.backend import Array
from readmap.mapping.batch import MAX_WINDOWS, WINDOW, WINDOW_WORDS, Batch
from readmap.mapping.parameters import Scoring


@dataclass(frozen=True)
class Window:
    """A window, and the phred by which it explains the read worse than the best one; positions in the oriented read."""

    diagonal: int
    orientation: int
    score: int
    ungapped: int
    start: int
    end: int
    cover_start: int
    cover_end: int
    low: int
    high: int
    band: int
    deficit: int
    alternate: int = 0

    @property
    def gapped(self) -> bool:
        return self.score != self.ungapped

    def span(self, length: int) -> range:
        """The bases of the read, in orientation 0, that it places."""
        begin, end = (self.cover_start, self.cover_end) if self.gapped else (self.start, self.end)
        return range(length - end, length - begin) if self.orientation else range(begin, end)

    def surely_scores(self, length: int, scoring: Scoring) -> int:
        """Without bonuses for ends; which ones an alignment with gaps reaches is not known."""
        ends = 2 if self.gapped else (self.start == 0) + (self.end == length)
        return self.score - ends * scoring.clip_penalty

    def is_elsewhere(self, other: Window, length: int) -> bool:
        """Whether it places the same part of the read at another place beyond doubt."""
        apart = abs(self.diagonal - other.diagonal) > SPREAD and not self.gapped
        return apart and overlaps_by_half(self.span(length), other.span(length))


@dataclass(frozen=True)
class Mate:
    """A read: its windows, the rank of the chosen one, and whether orientation 0 is its reverse complement."""

    windows: Sequence[Window]
    chosen: int
    length: int
    flipped: bool
    contigs: Sequence[int]  # of each window

    def end(self, i: int) -> End:
        reverse = bool(self.windows[i].orientation) != self.flipped
        return self.windows[i].diagonal + (self.length if reverse else 0), reverse


@dataclass(frozen=True)
class World:
    """Reads on a device, with windows that tests made up; mates are adjacent."""

    batch: Batch
    mates: list[Mate]


class Bench:
    """Contigs on a device, and reads with any windows."""

    def __init__(self, contigs: Sequence[str], name: str) -> None:
        self.contigs = contigs
        self.context = context_of(contigs, name, 2)
        self.backend = self.context.backend
        self.starts = self.context.index.host.contig_starts.tolist()

    def contig_of(self, window: Window) -> int:
        place = window.diagonal + window.start
        return max(number for number, start in enumerate(self.starts[:-1]) if start <= place)

    def world(
        self,
        reads: Sequence[str],
        windows: Sequence[Sequence[Window]],
        chosen: Sequence[int],
        mapqs: Sequence[int] | None = None,
        unexamined: Sequence[int] | None = None,
        variants: Sequence[int] | None = None,
        qualities: Sequence[str] | None = None,
        crowded: Sequence[int] | None = None,
    ) -> World:
        """All by read."""
        count, host = len(reads), self.backend.to_host
        records = [Read("r", *fields) for fields in zip(reads, qualities or [None] * count, strict=True)]
        text, lines = (fastq(records), 4) if qualities else (fasta_reads(records), 2)
        batch = Batch.of(reads_of(text, self.backend, lines), self.context)
        slots = host(batch.queries.slot_of)
        rows = np.zeros((count, MAX_WINDOWS), WINDOW)
        deficits = np.full((count, MAX_WINDOWS), -1, np.int16)
        mates = []
        for read, (slot, own) in enumerate(zip(slots, windows, strict=True)):
            for rank, window in enumerate(own):
                rows[slot, rank] = tuple(getattr(window, name) for name in WINDOW.names)
                deficits[slot, rank] = window.deficit
            flipped = canonical(reads[read]) != clean(reads[read])
            mates.append(Mate(own, chosen[read], len(reads[read]), flipped, [self.contig_of(w) for w in own]))

        def by_slot(values: Sequence[int], dtype: Any) -> Array:
            held = np.zeros(count, dtype)
            held[slots] = values
            return self.backend.to_device(held)

        batch.windows.rows = self.backend.to_device(rows.view(np.int64).reshape(-1, WINDOW_WORDS))
        batch.windows.counts = by_slot([len(own) for own in windows], np.int32)
        batch.windows.unexamined_prefixes = by_slot(unexamined or [0] * count, np.int32)
        batch.windows.dropped_scores = by_slot(crowded or [0] * count, np.int32)
        batch.placements.chosen = by_slot(chosen, np.int32)
        batch.placements.mapqs = by_slot(mapqs or [60] * count, np.uint8)
        batch.placements.deficits = self.backend.to_device(deficits.reshape(-1))
        batch.placements.variant_phreds = by_slot(variants or [PHRED_ONE_OF_THREE] * count, np.uint8)
        return World(batch, mates)

    def by_read(self, world: World, array: Array) -> list[int]:
        values: list[int] = self.backend.to_host(array)[self.backend.to_host(world.batch.queries.slot_of)].tolist()
        return values

    def draw_window(self, generator: random.Random, length: int, near: int | None = None) -> Window:
        """With gaps or without, over an end of its contig too, or some hundred bases from a place."""
        contig = below(generator, len(self.contigs))
        size = len(self.contigs[contig])
        begin = below(generator, length)
        end = begin + 1 + below(generator, length - begin)
        place = self.starts[contig] + below(generator, size)
        if near is not None:
            place = min(max(near + below(generator, 800) - 400, 0), self.starts[-1] - 2)
        score = 20 + 5 * below(generator, length // 5 - 1)
        ungapped = score - (10 if below(generator, 3) == 0 else 0)
        cover = below(generator, begin + 1), end + below(generator, length - end + 1)
        low, high = -below(generator, 30), below(generator, 30)
        deficit = (0, below(generator, 40), below(generator, 200), NO_DEFICIT)[below(generator, 4)]
        band = 1 + below(generator, 4)
        return Window(place - begin, below(generator, 2), score, ungapped, begin, end, *cover, low, high, band, deficit)


def draw_pairs(bench: Bench, generator: random.Random, count: int, plain: bool = False) -> dict[str, list[Any]]:
    """Return arguments of Bench.world: pairs of reads with up to MAX_WINDOWS distinct windows, some near the mate's.

    plain: fewer windows than a read has room for, without gaps, and far from each other.
    """
    drawn: dict[str, list[Any]] = {name: [] for name in ("reads", "windows", "chosen", "unexamined", "variants")}
    for number in range(2 * count):
        length = 20 + below(generator, 130)
        before = drawn["windows"][-1] if number % 2 else []
        windows: list[Window] = []
        for _ in range((0, 1, 2, 3, 8, 8 if plain else MAX_WINDOWS)[below(generator, 6)]):
            anchor = before[below(generator, len(before))] if before and below(generator, 4) else None
            window = bench.draw_window(generator, length, anchor and anchor.diagonal)
            if plain:
                window = dataclasses.replace(window, ungapped=window.score)
            reach = SPREAD if plain else 0
            taken = [w for w in windows if plain or w.orientation == window.orientation]
            windows += [] if any(abs(w.diagonal - window.diagonal) <= reach for w in taken) else [window]
        best = below(generator, len(windows)) if windows else -1
        if windows:
            windows[best] = dataclasses.replace(windows[best], deficit=0)
        unexamined = below(generator, length) if not plain and below(generator, 4) == 0 else 0
        values = random_bases(generator, length), windows, best, unexamined, PHRED_ONE_OF_THREE + below(generator, 30)
        for own, value in zip(drawn.values(), values, strict=True):
            own.append(value)
    return drawn


def window_at(bench: Bench, read: str, contig: int, start: int, reverse: bool = False) -> Window:
    """Return the window of a whole read, as sequenced or reversed."""
    length, orientation = len(read), int(reverse != (canonical(read) != clean(read)))
    return Window(bench.starts[contig] + start, orientation, length, length, 0, length, 0, length, 0, 0, 0, 0)
