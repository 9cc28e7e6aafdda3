"""Reads with windows that tests make up, on a device: what the stages behind the search for windows are given."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from examples import below, index_of, queries_of, random_bases
from oracles.alignment import canonical, clean
from oracles.pairs import NO_LOSS, THIRD, Candidate, Mate, Sizes

from readmap.backend import Array, open_backend
from readmap.reads.queries import Queries
from readmap.search.inserts import DIRECTIONS, InsertSize, place_inserts
from readmap.search.parameters import CLEAN_BASES, WINDOWS
from readmap.search.placement import Placements, no_placements
from readmap.search.windows import WINDOW, Windows, no_windows


@dataclass(frozen=True)
class World:
    """Pairs of reads on a device, with windows that tests made up."""

    queries: Queries
    windows: Windows
    placements: Placements
    mates: list[Mate]


class Bench:
    """Contigs on a device, and the stages of pairs for any windows."""

    def __init__(self, contigs: Sequence[str], name: str) -> None:
        self.contigs = contigs
        self.backend = open_backend(name, 2)
        self.index = index_of(contigs).to_device(self.backend)
        self.starts = self.index.host.contig_starts.tolist()

    def contig_of(self, candidate: Candidate) -> int:
        place = candidate.diagonal + candidate.begin
        return max(number for number, start in enumerate(self.starts[:-1]) if start <= place)

    def world(
        self,
        reads: Sequence[str],
        candidates: Sequence[Sequence[Candidate]],
        chosen: Sequence[int],
        mapqs: Sequence[int] | None = None,
        missed: Sequence[int] | None = None,
        variants: Sequence[int] | None = None,
        clean_bases: int = CLEAN_BASES,
    ) -> World:
        """All by read; mates are neighbours."""
        queries, count = queries_of(reads, self.backend), len(reads)
        slots = self.backend.to_host(queries.slot_of)
        hashes = self.backend.to_host(queries.hashes)
        missed, variants = missed or [0] * count, variants or [THIRD] * count
        rows = np.zeros((count, WINDOWS), WINDOW)
        losses = np.full((count, WINDOWS), -1, np.int16)
        mates = []
        for read, (slot, own) in enumerate(zip(slots, candidates, strict=True)):
            for rank, candidate in enumerate(own):
                rows[slot, rank] = tuple(getattr(candidate, name) for name in WINDOW.names)
                losses[slot, rank] = candidate.loss
            flipped = canonical(reads[read]) != clean(reads[read])
            contigs = [self.contig_of(candidate) for candidate in own]
            known = chosen[read], len(reads[read]), int(hashes[slot]), flipped, missed[read], variants[read]
            mates.append(Mate(own if chosen[read] >= 0 else [], *known, contigs))

        def by_slot(values: Sequence[int], dtype: Any) -> Array:
            held = np.zeros(count, dtype)
            held[slots] = values
            return self.backend.to_device(held)

        held = self.backend.to_device(rows.view(np.int64).reshape(-1, 5))
        counts = by_slot([len(own) for own in candidates], np.int32)
        placements = dataclasses.replace(
            no_placements(count, self.backend),
            clean_bases=clean_bases,
            chosen=by_slot(chosen, np.int32),
            mapqs=by_slot(mapqs or [0] * count, np.uint8),
            losses=self.backend.to_device(losses.reshape(-1)),
            variants=by_slot(variants, np.uint8),
        )
        windows = dataclasses.replace(
            no_windows(count, self.backend), rows=held, counts=counts, missed=by_slot(missed, np.int32)
        )
        return World(queries, windows, placements, mates)

    def by_read(self, world: World, array: Array) -> list[int]:
        values: list[int] = self.backend.to_host(array)[self.backend.to_host(world.queries.slot_of)].tolist()
        return values

    def sizes(self, library: Sequence[InsertSize]) -> Sizes:
        """As the kernels have them; test_inserts.py holds the penalties to their formula."""
        offsets, penalties = (
            self.backend.to_host(a).tolist() for a in place_inserts(library, self.backend).arguments[2:]
        )
        begins = {size.direction: offsets[DIRECTIONS.index(size.direction)] for size in library}
        return {
            size.direction: (size.low, size.high, penalties[begins[size.direction] :][: size.high - size.low + 1])
            for size in library
        }

    def draw_candidate(self, generator: random.Random, length: int, near: int | None = None) -> Candidate:
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
        loss = (0, below(generator, 40), below(generator, 200), NO_LOSS)[below(generator, 4)]
        band = 1 + below(generator, 4)
        return Candidate(place - begin, below(generator, 2), score, ungapped, begin, end, *cover, low, high, band, loss)


def draw_world(bench: Bench, generator: random.Random, count: int) -> tuple[World, list[str]]:
    """Pairs of reads with up to WINDOWS windows each, some of them near windows of the mate; none twice."""
    reads, all_candidates, chosen, missed, variants = [], [], [], [], []
    for number in range(2 * count):
        length = 20 + below(generator, 130)
        reads.append(random_bases(generator, length))
        before = all_candidates[-1] if number % 2 else []
        windows = []
        for _ in range((0, 1, 2, 3, 8, WINDOWS)[below(generator, 6)]):
            anchor = before[below(generator, len(before))] if before and below(generator, 4) else None
            drawn = bench.draw_candidate(generator, length, anchor and anchor.diagonal)
            taken = {(window.diagonal, window.orientation) for window in windows}
            windows += [drawn] if (drawn.diagonal, drawn.orientation) not in taken else []
        best = below(generator, len(windows)) if windows else -1
        if windows:
            windows[best] = dataclasses.replace(windows[best], loss=0)
        all_candidates.append(windows)
        chosen.append(best)
        missed.append(below(generator, length) if below(generator, 4) == 0 else 0)
        variants.append(THIRD + below(generator, 30))
    return bench.world(reads, all_candidates, chosen, missed=missed, variants=variants), reads


def window_at(bench: Bench, contig: int, start: int, length: int, flipped: bool, reverse: bool) -> Candidate:
    """Of a whole read, as it was sequenced or reversed."""
    orientation = int(reverse != flipped)
    return Candidate(bench.starts[contig] + start, orientation, length, length, 0, length, 0, length, 0, 0, 0, 0)
