"""All diagonals that seeds name, and their windows, compared with plain Python."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples import TEXTS, batch_of, below, context_of, insert, random_bases, substitute
from oracles.alignment import canonical, clean, gap_cost, reverse_complement, segment, text_of
from oracles.placements import SPREAD

from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping import secondaries
from readmap.mapping.batch import MAX_WINDOWS, WINDOW_WORDS, Batch, Context
from readmap.mapping.diagonals import DIAGONAL
from readmap.mapping.matches import (
    MATCH_BYTES,
    STRIDE,
    Candidates,
    find_matches,
    list_candidates,
    matches_per_read,
    placed_reads,
)
from readmap.mapping.parameters import Scoring, dense_seed_bases
from readmap.mapping.pipeline import search_reads

FITTING = 1 << 20  # matches
X_DROP = constant("mapping/ungapped.cuh", "X_DROP")

#: Orientation, diagonal in the whole reference, score, begin and end of a segment.
Segment = tuple[int, int, int, int, int]


def is_worth_listing(score: int, scoring: Scoring) -> bool:
    """Return True if a long gap to the segment pays, or if it may be the better one of two that a gap joins."""
    far, near = (min(gap_cost(bases, kind, scoring, long_gaps=True) for kind in "ID") for bases in (SPREAD, 1))
    return score > far or 2 * score >= scoring.min_score + near


def segments_of(read: str, contigs: Sequence[str], seed: int, scoring: Scoring) -> list[Segment]:
    """Return the segments around the seeds of each diagonal, one for the first seed in each."""
    text, starts, found = text_of(contigs), np.cumsum([0, *(len(c) + 1 for c in contigs)]).tolist(), []
    for orientation, bases in enumerate((canonical(read), reverse_complement(canonical(read)))):
        seeds: dict[int, list[int]] = {}
        for position in range(0, len(bases) - seed + 1, STRIDE):
            for match in re.finditer(f"(?={bases[position : position + seed]})", text):
                seeds.setdefault(match.start() - position, []).append(position)
        for diagonal, positions in seeds.items():
            for number, position in enumerate(positions):
                contig = max(c for c, start in enumerate(starts[:-1]) if start <= diagonal + position)
                around = clean(bases), clean(contigs[contig]), diagonal - starts[contig], position, position + seed
                score, begin, end = segment(*around, X_DROP, scoring)
                first = not any(begin <= earlier for earlier in positions[:number])
                if first and is_worth_listing(score, scoring):
                    found.append((orientation, diagonal, score, begin, end))
    return sorted(found, key=lambda one: one[:2] + one[3:4])


def candidates_of(reads: Sequence[str], context: Context) -> tuple[Batch, Candidates]:
    """Return the candidates of all reads, as if every read had a placement."""
    batch = batch_of(reads, context)
    batch.placements.chosen.fill(0)
    matches = find_matches(placed_reads(batch, context), STRIDE, batch, context, FITTING)
    return batch, list_candidates(matches, batch, context)


def draw(generator: random.Random, contigs: Sequence[str], count: int) -> list[str]:
    """Return parts of the contigs with differences, gaps and ambiguous bases, on both strands."""
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
    """The result does not depend on the number of matches that are processed at once."""
    context = dataclasses.replace(context_of(TEXTS[name], backends, 2), scoring=scoring)
    host, seed = context.backend.to_host, dense_seed_bases(context.index.suffix_count)
    reads = draw(random.Random(191), TEXTS[name], 4)
    batch, candidates = candidates_of(reads, context)
    rows = host(candidates.rows).view(DIAGONAL).reshape(-1)
    slots = host(candidates.slots)
    monkeypatch.setattr(context.backend, "scratch_bytes", 10 * MATCH_BYTES)
    _, few = candidates_of(reads, context)
    assert np.array_equal(host(few.rows), host(candidates.rows))
    assert np.array_equal(host(few.slots), slots)
    assert (np.diff(slots) >= 0).all()
    for read, slot in zip(reads, host(batch.queries.slot_of).tolist(), strict=True):
        own = rows[slots == slot]
        names = ["orientation", "diagonal", "score", "start", "end"]
        assert own[names].tolist() == segments_of(read, TEXTS[name], seed, scoring)


@pytest.mark.parametrize("most", [0, 15, 16, 143, 144])
def test_limit_of_matches(backends: str, most: int) -> None:
    """If one mate has too many matches, both mates get none."""
    unit, generator = random_bases(random.Random(195), 40), random.Random(196)
    contig = "".join(random_bases(generator, 50) + unit[: 12 if i % 2 else 40] for i in range(16))
    context = context_of([contig], backends, 2)
    batch = batch_of([unit, contig[:40], contig[5:45], random_bases(generator, 40), unit[:5], unit], context)
    slots = DeviceList.of(batch.queries.slot_of)
    counts = matches_per_read(find_matches(slots, STRIDE, batch, context, FITTING), context).reshape(-1, 2)
    limited = matches_per_read(find_matches(slots, STRIDE, batch, context, FITTING, most), context).reshape(-1, 2)
    assert len(set(counts.max(axis=1).tolist())) == 2
    assert np.array_equal(limited, np.where(counts.max(axis=1, keepdims=True) > most, 0, counts))


def test_part_of_a_batch_copies_only_windows(backends: str) -> None:
    """Unused rows of the table are uninitialized and are not copied."""
    context, mark = context_of(TEXTS["copies"], backends, 1), 0x5CA1AB1E0DDBA11
    batch = search_reads(batch_of(draw(random.Random(5), TEXTS["copies"], 30), context).reads, context)
    host = context.backend.to_host
    rows, counts = host(batch.windows.rows).reshape(-1, MAX_WINDOWS, WINDOW_WORDS).copy(), host(batch.windows.counts)
    filled = np.arange(MAX_WINDOWS) < counts[:, None]
    assert 0 < filled.sum() < filled.size
    rows[~filled] = mark
    batch.windows.rows = context.backend.to_device(rows.reshape(-1, WINDOW_WORDS))
    part = batch.part(4, 21, context)
    slots = host(batch.queries.slot_of)[4 + host(part.queries.order)]
    found = host(part.windows.rows).reshape(-1, MAX_WINDOWS, WINDOW_WORDS)
    assert np.array_equal(found[filled[slots]], rows[slots][filled[slots]])
    assert not (found == mark).any()
    for name in ("chosen", "mapqs", "suboptimal_scores", "properly_paired", "uncovered_starts", "uncovered_ends"):
        both = (host(getattr(part.placements, name)), host(getattr(batch.placements, name))[slots])
        assert np.array_equal(*both)


def heads_of(rows: Any, slots: Any, contigs: Any) -> list[int]:
    """Scan diagonals from the best on: the head of each is its first nearby head, else itself."""

    def rank(i: int) -> tuple[int, ...]:
        row = rows[i]
        return -int(row["score"]), int(row["tie"]), int(row["orientation"]), int(row["start"]), -int(row["end"])

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
    """The heads equal those of a scan from the best diagonal on, in any order of decisions."""
    contigs = [*TEXTS[name], random_bases(random.Random(192), 80)]
    context = context_of(contigs, backends, 2)
    host, index = context.backend.to_host, context.index
    batch, candidates = candidates_of(draw(random.Random(193), contigs, 20), context)
    found = host(secondaries._heads(candidates, batch, context)).tolist()
    rows, slots = host(candidates.rows).view(DIAGONAL).reshape(-1), host(candidates.slots)
    owners = np.searchsorted(index.host.contig_starts, rows["diagonal"] + rows["start"], "right")
    assert found == heads_of(rows, slots, owners)
