"""Diagonals that seeds tell, all of them, and the windows that they make, against plain Python."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples import TEXTS, below, index_of, insert, queries_of, random_bases, substitute
from oracles.alignment import canonical, clean, common_prefix, reverse_complement, segment, text_of
from oracles.pairs import tie_of

from readmap.backend import Backend, open_backend
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search import secondaries as places
from readmap.search.diagonals import DIAGONAL
from readmap.search.matches import STRIDE, Crowd, find_matches, list_diagonals
from readmap.search.parameters import Scoring
from readmap.search.placement import no_placements

DROP, SPREAD = 30, 24  # of kernels/search/ungapped.cuh and kernels/search/window_builder.cuh

#: Orientation, diagonal in the whole reference, score, begin and end of a segment.
Segment = tuple[int, int, int, int, int]


def is_worth(score: int, scoring: Scoring) -> bool:
    """Whether a far gap pays for it, or it may be the better one of two that a gap joins."""
    far = min(scoring.gap_open + SPREAD * scoring.gap_extend, scoring.long_gap)
    near = min(scoring.gap_open + scoring.gap_extend, scoring.long_gap)
    return score > far or 2 * score >= scoring.min_score + near


def segments_of(read: str, contigs: Sequence[str], seed: int, scoring: Scoring) -> list[Segment]:
    """Of each diagonal with a seed the segments around its seeds, but those in which an earlier seed of it lies."""
    text, starts, found = text_of(contigs), np.cumsum([0, *(len(c) + 1 for c in contigs)]).tolist(), []
    for orientation, bases in enumerate((canonical(read), reverse_complement(canonical(read)))):
        seeds: dict[int, list[int]] = {}
        for position in range(0, len(bases) - seed + 1, STRIDE):
            word = bases[position : position + seed]
            for place in range(len(text)):
                if "N" not in word and common_prefix(text, place, word) == seed:
                    seeds.setdefault(place - position, []).append(position)
        for diagonal, positions in seeds.items():
            for number, position in enumerate(positions):
                contig = max(c for c, start in enumerate(starts[:-1]) if start <= diagonal + position)
                around = clean(bases), clean(contigs[contig]), diagonal - starts[contig], position, position + seed
                score, begin, end = segment(*around, DROP, scoring)
                first = not any(begin <= earlier for earlier in positions[:number])
                if first and is_worth(score, scoring):
                    found.append((orientation, diagonal, score, begin, end))
    return sorted(found, key=lambda one: one[:2] + one[3:4])


def crowd_of(
    reads: Sequence[str], index: DeviceIndex, backend: Backend, scoring: Scoring
) -> tuple[Queries, Crowd, int]:
    """As if all reads had a place; also the bases of a seed."""
    queries = queries_of(reads, backend)
    placements = dataclasses.replace(no_placements(len(reads), backend), chosen=backend.full(len(reads), 0, np.int32))
    matches = find_matches(queries, placements, index, backend)
    return queries, list_diagonals(matches, queries, index, scoring, backend), matches.seed_bases


def draw(generator: random.Random, contigs: Sequence[str], count: int) -> list[str]:
    """Parts of the contigs, with differences, gaps and ambiguous bases, on both strands."""
    reads = ["", "ACGT", "N" * 40]
    for number in range(count):
        contig = contigs[below(generator, len(contigs))]
        length = min(12 + below(generator, 90), len(contig))
        start = below(generator, len(contig) - length + 1)
        bases = substitute(generator, clean(contig[start : start + length]), below(generator, 4))
        bases = insert(generator, bases, length // 2, 3) if number % 4 == 0 else bases
        bases = bases[: length // 3] + "N" + bases[length // 3 :] if number % 5 == 0 else bases
        reads.append(reverse_complement(bases) if number % 2 else bases)
    return reads


@pytest.mark.parametrize("scoring", [Scoring(), Scoring(min_score=70, long_gap=12), Scoring(match=2, min_score=20)])
@pytest.mark.parametrize("name", ["random", "copies", "period of three", "fibonacci", "runs of N", "many contigs"])
def test_diagonals(backends: str, monkeypatch: pytest.MonkeyPatch, name: str, scoring: Scoring) -> None:
    """However many matches come together."""
    backend = open_backend(backends, 2)
    reads = draw(random.Random(191), TEXTS[name], 8)
    index = index_of(TEXTS[name]).to_device(backend)
    queries, crowd, seed = crowd_of(reads, index, backend, scoring)
    rows = backend.to_host(crowd.rows).view(DIAGONAL).reshape(-1)
    monkeypatch.setattr(backend, "scratch_bytes", 160)
    _, few, _ = crowd_of(reads, index, backend, scoring)
    assert np.array_equal(backend.to_host(few.rows).view(DIAGONAL).reshape(-1), rows)
    slots, hashes = backend.to_host(crowd.slots), backend.to_host(queries.hashes).tolist()
    assert np.array_equal(backend.to_host(few.slots), slots)
    assert (np.diff(slots) >= 0).all()
    for read, slot in zip(reads, backend.to_host(queries.slot_of).tolist(), strict=True):
        own = rows[slots == slot]
        names = ["orientation", "diagonal", "score", "begin", "end"]
        assert own[names].tolist() == segments_of(read, TEXTS[name], seed, scoring)
        assert own["tie"].tolist() == [tie_of(hashes[slot], diagonal) for diagonal in own["diagonal"].tolist()]


def heads_of(rows: Any, slots: Any, contigs: Any) -> list[int]:
    """Taken from the best on: each diagonal's first head that is near, else itself."""

    def rank(i: int) -> tuple[int, ...]:
        row = rows[i]
        return -int(row["score"]), int(row["tie"]), int(row["orientation"]), int(row["begin"]), -int(row["end"])

    heads: dict[int, int] = {}
    for i in sorted(range(len(rows)), key=rank):
        near = [
            j
            for j, head in heads.items()
            if j == head
            and (slots[j], contigs[j], rows[j]["orientation"]) == (slots[i], contigs[i], rows[i]["orientation"])
            and abs(int(rows[j]["diagonal"]) - int(rows[i]["diagonal"])) <= SPREAD
        ]
        heads[i] = near[0] if near else i
    return [heads[i] for i in range(len(rows))]


@pytest.mark.parametrize(
    "name", ["random", "one letter", "one letter, contigs", "period of three", "fibonacci", "copies"]
)
def test_heads(backends: str, name: str) -> None:
    """Whatever the order in which they are decided, they are those of a walk from the best diagonal on."""
    backend = open_backend(backends, 2)
    contigs = [*TEXTS[name], random_bases(random.Random(192), 80)]
    index, scoring = index_of(contigs).to_device(backend), Scoring()
    queries, crowd, _ = crowd_of(draw(random.Random(193), contigs, 20), index, backend, scoring)
    count = len(crowd.slots)
    arguments = (crowd.rows, crowd.slots, queries.lengths, *index.reference, count)
    found = backend.to_host(places._heads(arguments, count, scoring, backend)).tolist()
    rows, slots = backend.to_host(crowd.rows).view(DIAGONAL).reshape(-1), backend.to_host(crowd.slots)
    owners = np.searchsorted(index.host.contig_starts, rows["diagonal"] + rows["begin"], "right")
    assert found == heads_of(rows, slots, owners)
