"""Reads with windows that tests make up, on a device: what the stages behind the search for windows are given."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from examples import Read, below, context_of, fasta_reads, fastq, random_bases, reads_of
from oracles.alignment import canonical, clean
from oracles.pairs import NO_DEFICIT, THIRD, Mate, Sizes, Window

from readmap.backend import Array
from readmap.search.batch import WINDOW, WINDOW_WORDS, WINDOWS, Batch
from readmap.search.inserts import DIRECTIONS, InsertSize, to_device


@dataclass(frozen=True)
class World:
    """Pairs of reads on a device, with windows that tests made up."""

    batch: Batch
    mates: list[Mate]


class Bench:
    """Contigs on a device, and the stages of pairs for any windows."""

    def __init__(self, contigs: Sequence[str], name: str) -> None:
        self.contigs = contigs
        self.context = context_of(contigs, name, 2)
        self.backend = self.context.backend
        self.starts = self.context.index.host.contig_starts.tolist()

    def contig_of(self, window: Window) -> int:
        place = window.diagonal + window.begin
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
    ) -> World:
        """All by read; mates are neighbours."""
        count, host = len(reads), self.backend.to_host
        records = [Read("", *fields) for fields in zip(reads, qualities or [None] * count, strict=True)]
        text, lines = (fastq(records), 4) if qualities else (fasta_reads(records), 2)
        batch = Batch.of(reads_of(text, self.backend, lines), self.context)
        slots, hashes = host(batch.queries.slot_of), host(batch.queries.hashes)
        unexamined, variants = unexamined or [0] * count, variants or [THIRD] * count
        rows = np.zeros((count, WINDOWS), WINDOW)
        deficits = np.full((count, WINDOWS), -1, np.int16)
        mates = []
        for read, (slot, own) in enumerate(zip(slots, windows, strict=True)):
            for rank, window in enumerate(own):
                rows[slot, rank] = tuple(getattr(window, name) for name in WINDOW.names)
                deficits[slot, rank] = window.deficit
            flipped = canonical(reads[read]) != clean(reads[read])
            known = chosen[read], len(reads[read]), int(hashes[slot]), flipped, unexamined[read], variants[read]
            mates.append(Mate(own if chosen[read] >= 0 else [], *known, [self.contig_of(window) for window in own]))

        def by_slot(values: Sequence[int], dtype: Any) -> Array:
            held = np.zeros(count, dtype)
            held[slots] = values
            return self.backend.to_device(held)

        batch.windows.rows = self.backend.to_device(rows.view(np.int64).reshape(-1, WINDOW_WORDS))
        batch.windows.counts = by_slot([len(own) for own in windows], np.int32)
        batch.windows.unexamined = by_slot(unexamined, np.int32)
        batch.placements.chosen = by_slot(chosen, np.int32)
        batch.placements.mapqs = by_slot(mapqs or [0] * count, np.uint8)
        batch.placements.deficits = self.backend.to_device(deficits.reshape(-1))
        batch.placements.variants = by_slot(variants, np.uint8)
        return World(batch, mates)

    def by_read(self, world: World, array: Array) -> list[int]:
        values: list[int] = self.backend.to_host(array)[self.backend.to_host(world.batch.queries.slot_of)].tolist()
        return values

    def sizes(self, library: Sequence[InsertSize]) -> Sizes:
        """As the kernels have them; test_inserts.py holds the penalties to their formula."""
        inserts = to_device(library, self.backend)
        offsets, penalties = (self.backend.to_host(array).tolist() for array in (inserts.offsets, inserts.penalties))
        begins = {size.direction: offsets[DIRECTIONS.index(size.direction)] for size in library}
        return {
            size.direction: (size.low, size.high, penalties[begins[size.direction] :][: size.high - size.low + 1])
            for size in library
        }

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


def draw_world(bench: Bench, generator: random.Random, count: int) -> tuple[World, list[str]]:
    """Pairs of reads with up to WINDOWS windows each, some of them near windows of the mate; none twice."""
    reads, all_windows, chosen, unexamined, variants = [], [], [], [], []
    for number in range(2 * count):
        length = 20 + below(generator, 130)
        reads.append(random_bases(generator, length))
        before = all_windows[-1] if number % 2 else []
        windows = []
        for _ in range((0, 1, 2, 3, 8, WINDOWS)[below(generator, 6)]):
            anchor = before[below(generator, len(before))] if before and below(generator, 4) else None
            drawn = bench.draw_window(generator, length, anchor and anchor.diagonal)
            taken = {(window.diagonal, window.orientation) for window in windows}
            windows += [drawn] if (drawn.diagonal, drawn.orientation) not in taken else []
        best = below(generator, len(windows)) if windows else -1
        if windows:
            windows[best] = dataclasses.replace(windows[best], deficit=0)
        all_windows.append(windows)
        chosen.append(best)
        unexamined.append(below(generator, length) if below(generator, 4) == 0 else 0)
        variants.append(THIRD + below(generator, 30))
    return bench.world(reads, all_windows, chosen, unexamined=unexamined, variants=variants), reads


def window_at(bench: Bench, contig: int, start: int, length: int, flipped: bool, reverse: bool) -> Window:
    """Of a whole read, as it was sequenced or reversed."""
    orientation = int(reverse != flipped)
    return Window(bench.starts[contig] + start, orientation, length, length, 0, length, 0, length, 0, 0, 0, 0)
