"""Placing reads for themselves: the choice among windows, and all that later stages know of it."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import pytest
from examples import Read, below, random_bases, substitute
from oracles.alignment import canonical, clean, reverse_complement
from oracles.pairs import (
    NEGLIGIBLE,
    NO_DEFICIT,
    THIRD,
    Mate,
    Window,
    in_phred,
    is_rival,
    least_score,
    mapping_quality,
    perfect,
    phred_of,
    same_alignment,
    tie_of,
    unexamined_deficit,
    variant_of,
)
from window_bench import Bench, World

from readmap.backend.compilation.declarations import constant
from readmap.search.batch import WINDOWS
from readmap.search.context import Sample
from readmap.search.parameters import CROWDED, DISTANT, SETTLED_DIFFERENCES, SPLIT, Scoring
from readmap.search.placement import choose_windows

NO_QUALITY, RELIABLE = (constant("search/mapping_quality.cuh", name) for name in ("NO_QUALITY", "RELIABLE"))
CROWD_SHARE, NEAR = (constant("search/placement.cu", name) for name in ("CROWD_SHARE", "NEAR"))

RANDOM = random.Random(131)
REPEAT = random_bases(RANDOM, 300)
CONTIGS = [
    random_bases(RANDOM, 500) + REPEAT + random_bases(RANDOM, 200, "ACGT" * 10 + "N") + REPEAT,
    substitute(RANDOM, REPEAT, 6),
]


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


@dataclasses.dataclass(frozen=True)
class Placed:
    """The choice for a read; part: what is left over of it, or all of it."""

    chosen: int
    second: int
    mapq: int
    variant: int
    unsettled: int
    part: tuple[int, int]
    deficits: list[int]


@dataclasses.dataclass(frozen=True)
class Columns:
    """By position of the oriented read: the qualities where it differs clearly from the contig, and where it lies."""

    differing: dict[int, int]
    begin: int
    end: int


def lay(bench: Bench, read: str, quality: str | None, mate: Mate, rank: int) -> Columns:
    window = mate.windows[rank]
    contig = clean(bench.contigs[mate.contigs[rank]])
    diagonal = window.diagonal - bench.starts[mate.contigs[rank]]
    reverse = bool(window.orientation) != mate.flipped
    bases = reverse_complement(clean(read)) if reverse else clean(read)
    phreds = [ord(letter) - 33 for letter in quality] if quality else [NO_QUALITY] * len(read)
    phreds = phreds[::-1] if reverse else phreds
    begin, end = max(0, -diagonal), min(len(read), len(contig) - diagonal)
    pairs = {i: (bases[i], contig[i + diagonal]) for i in range(begin, end)}
    return Columns({i: phreds[i] for i, (a, b) in pairs.items() if a != b and {a, b} <= set("ACGT")}, begin, end)


def either(a: int, b: int) -> int:
    """Phred of one of two causes, to less than one: so much likelier than the likelier one."""
    apart = abs(a - b)
    return min(a, b) - next(more for more, least in ((0, 10), (1, 5), (2, 2), (3, 0)) if apart >= least)


def penalty(columns: Columns, window: Window, length: int, variant: int, scoring: Scoring) -> int:
    """Of a window without gaps. Beyond its segment a difference costs no more than clipping does."""

    def cost(begin: int, end: int) -> int:
        held = [phred for i, phred in columns.differing.items() if begin <= i < end]
        return sum(max(either(phred + THIRD, variant), 1) for phred in held)

    def clip(bases: int) -> int:
        return in_phred(bases * scoring.match + scoring.clip_penalty if bases else 0, variant, scoring)

    left = cost(0, window.begin) if columns.begin == 0 else 100 * NEGLIGIBLE
    right = cost(window.end, length) if columns.end == length else 100 * NEGLIGIBLE
    ends = min(left, clip(window.begin)) + min(right, clip(length - window.end))
    return cost(window.begin, window.end) + ends


def is_duplicate(windows: Sequence[Window], best: int, i: int) -> bool:
    """Whether another window stands for this alignment: the chosen one, one without gaps, an earlier one with gaps."""
    others = [j for j, other in enumerate(windows) if j == best or j < i or not other.gapped]
    return i != best and any(same_alignment(windows[i], windows[j]) for j in others if j != i)


def place(bench: Bench, read: str, quality: str | None, mate: Mate, bases_per_variant: int, scoring: Scoring) -> Placed:
    windows, length, per_difference = mate.windows, len(read), scoring.match + scoring.mismatch
    reaching = [window for window in windows if least_score(window, length, scoring) >= scoring.min_score]
    top = max((window.score for window in reaching or windows), default=0)
    if not windows:
        variant = variant_of(length, perfect(length, scoring), bases_per_variant, scoring)
        return Placed(-1, 0, 0, variant, DISTANT, (0, length), [])
    laid = [lay(bench, read, quality, mate, rank) for rank in range(len(windows))]
    ahead = [rank for rank, window in enumerate(windows) if window.score == top and window in (reaching or windows)]
    first = ahead[0]
    variant = variant_of(length, perfect(length, scoring) - top, bases_per_variant, scoring)
    if not windows[first].gapped:
        begin, end = windows[first].begin, windows[first].end
        real = sum(begin <= i < end and phred >= RELIABLE for i, phred in laid[first].differing.items())
        real += (length - (end - begin)) * scoring.match // per_difference
        variant = THIRD + phred_of(1 + real, bases_per_variant + length)
    penalties = [
        None if window.gapped or window.score < top - NEAR else penalty(columns, window, length, variant, scoring)
        for window, columns in zip(windows, laid, strict=True)
    ]

    def order(rank: int) -> tuple[bool, int, int]:
        return penalties[rank] is None, penalties[rank] or 0, tie_of(mate.hash, windows[rank].diagonal)

    best = min(ahead, key=order)

    def difference(rank: int) -> int:
        own, other = penalties[best], penalties[rank]
        if own is None or other is None:
            return in_phred(top - windows[rank].score, variant, scoring)
        return other - own

    deficits = [NO_DEFICIT if is_duplicate(windows, best, i) else max(difference(i), 0) for i in range(len(windows))]
    rivals = [i for i, other in enumerate(windows) if i != best and is_rival(other, windows[best], length)]
    mapq = mapping_quality([*map(difference, rivals), unexamined_deficit(mate.unexamined, top, variant, scoring)])
    second = max((windows[i].score for i in rivals), default=0)
    span = windows[best].span(length)
    lost = perfect(length, scoring) - top
    unsettled = CROWDED if mate.unexamined * CROWD_SHARE >= length else 0
    unsettled |= DISTANT if lost > SETTLED_DIFFERENCES * per_difference else 0
    part = max((max(span) + 1, length), (0, min(span)), key=lambda rest: rest[1] - rest[0])
    if min((part[1] - part[0]) * scoring.match, lost) < scoring.min_score:
        return Placed(best, second, mapq, variant, unsettled, (0, length), deficits)
    return Placed(best, second, mapq, variant, unsettled | SPLIT, part, deficits)


def draw_windows(bench: Bench, generator: random.Random, read: str, source: tuple[int, int, bool]) -> list[Window]:
    """One where the read is from; others with about its score, some of them one alignment from several diagonals."""
    length, flipped = len(read), canonical(read) != clean(read)
    top = length - 5 * below(generator, 5)
    windows: list[Window] = []
    for number in range((1, 2, 5, WINDOWS)[below(generator, 4)]):
        contig, start, reverse = source
        if number:
            contig, start, reverse = below(generator, len(CONTIGS)), 0, bool(below(generator, 2))
            start = below(generator, len(CONTIGS[contig]) - length // 2) - length // 4
        least, most = max(0, -start), min(length, len(CONTIGS[contig]) - start)
        begin = least + (below(generator, most - least) if below(generator, 4) == 0 else 0)
        end = begin + 1 + below(generator, most - begin) if below(generator, 4) == 0 else most
        score = max(top - (0, 0, 5, NEAR, NEAR + 1, 60)[below(generator, 6)], 1)
        ungapped = score - (10 if below(generator, 3) == 0 else 0)
        cover = below(generator, begin + 1), end + below(generator, length - end + 1)
        spread, band = (-below(generator, 30), below(generator, 30)), 1 + below(generator, 4)
        place, orientation = bench.starts[contig] + start, int(reverse != flipped)
        made = Window(place, orientation, score, ungapped, begin, end, *cover, *spread, band, 0)
        windows.append(made)
        shifted = begin + start + 3 < len(CONTIGS[contig]) and end + start + 3 <= len(CONTIGS[contig])
        if shifted and below(generator, 3) == 0 and len(windows) < WINDOWS:
            windows.append(dataclasses.replace(made, diagonal=place + 3, ungapped=score - 7))
    return windows[:WINDOWS]


def doubtful(windows: list[Window], generator: random.Random, least: int) -> list[Window]:
    """The windows without gaps, with scores that may have bonuses to thank for reaching the least one."""
    scores = [least - 2 + below(generator, 12) for _ in windows]
    return [
        dataclasses.replace(window, score=score, ungapped=score) for window, score in zip(windows, scores, strict=True)
    ]


def draw_reads(
    bench: Bench, generator: random.Random, count: int, with_qualities: bool, scoring: Scoring
) -> tuple[World, list[Read]]:
    reads, windows, unexamined = [], [], []
    for number in range(count):
        length = 40 + below(generator, 110)
        contig, reverse = below(generator, len(CONTIGS)), bool(below(generator, 2))
        start = below(generator, len(CONTIGS[contig]) - length + 1)
        bases = substitute(generator, clean(CONTIGS[contig][start : start + length]), below(generator, 6))
        bases = reverse_complement(bases) if reverse else bases
        quality = "".join("#5678I"[below(generator, 6)] for _ in range(length))
        reads.append(Read("", bases, quality))
        windows.append(draw_windows(bench, generator, bases, (contig, start, reverse)) if number % 20 else [])
        if number % 20 == 1:
            windows[-1] = doubtful(windows[-1], generator, scoring.min_score)
        unexamined.append(below(generator, length) if below(generator, 3) == 0 else 0)
    chosen = [0 if own else -1 for own in windows]
    bases = [read.bases for read in reads]
    qualities = [read.quality or "" for read in reads] if with_qualities else None
    return bench.world(bases, windows, chosen, unexamined=unexamined, qualities=qualities), reads


@pytest.mark.parametrize(
    ("scoring", "bases_per_variant"),
    [(Scoring(), 400), (Scoring(), 31), (Scoring(match=2, mismatch=3, min_score=20), 2_000)],
)
@pytest.mark.parametrize("with_qualities", [False, True])
def test_choose_windows(bench: Bench, with_qualities: bool, scoring: Scoring, bases_per_variant: int) -> None:
    world, reads = draw_reads(bench, random.Random(132), 300, with_qualities, scoring)
    backend, placements = bench.backend, world.batch.placements
    context = dataclasses.replace(bench.context, scoring=scoring, sample=Sample(bases_per_variant))
    choose_windows(world.batch.queries.slot_of, world.batch, context)
    names = ("chosen", "seconds", "mapqs", "variants", "unsettled", "part_begins", "part_ends")
    choices = zip(*(bench.by_read(world, getattr(placements, name)) for name in names), strict=True)
    by_slot = backend.to_host(placements.deficits).reshape(-1, WINDOWS)
    deficits = by_slot[backend.to_host(world.batch.queries.slot_of)].tolist()
    found = [
        Placed(*row[:5], row[5:], own[: len(mate.windows)])
        for row, own, mate in zip(choices, deficits, world.mates, strict=True)
    ]
    for read, mate, placed in zip(reads, world.mates, found, strict=True):
        assert placed == place(
            bench, read.bases, read.quality if with_qualities else None, mate, bases_per_variant, scoring
        )
    assert sum(NO_DEFICIT in placed.deficits for placed in found) > 20
    assert {bit for placed in found for bit in (CROWDED, DISTANT, SPLIT) if placed.unsettled & bit} == {1, 2, 4}
    assert len({placed.variant for placed in found}) > 5
    assert sum(placed.chosen > 0 for placed in found) > 50
    chosen = [
        (mate.windows, placed.chosen) for mate, placed in zip(world.mates, found, strict=True) if placed.chosen >= 0
    ]
    assert any(windows[rank].score < max(window.score for window in windows) for windows, rank in chosen)
