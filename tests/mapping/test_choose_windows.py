"""The choice among the windows of single reads, and the values that later stages use."""

from __future__ import annotations

import dataclasses
import random

import pytest
from examples import Read, below, random_bases, substitute
from oracles.alignment import canonical, clean, reverse_complement
from oracles.placements import NO_DEFICIT, PHRED_ONE_OF_THREE, SPREAD, chance, overlaps_by_half, phred, placement_phred
from window_bench import Bench, Mate, Window, World

from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import MAX_WINDOWS, Sample
from readmap.mapping.parameters import DIVERGENT, DIVERGENT_DIFFERENCES, REPETITIVE, SPLIT, Scoring
from readmap.mapping.windows import choose_windows

NO_QUALITY, RELIABLE = (constant("mapping/mapping_quality.cuh", name) for name in ("NO_QUALITY", "RELIABLE"))
REPETITIVE_SHARE, NEAR = (constant("mapping/placement.cu", name) for name in ("REPETITIVE_SHARE", "NEAR"))

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
    """The choice for a read; part: the part that is left uncovered, or all of it."""

    chosen: int
    second: int
    mapq: int
    variant: int
    unresolved: int
    part: tuple[int, int]
    deficits: list[int]


def differing(bench: Bench, read: Read, mate: Mate, rank: int) -> list[int]:
    """Return the qualities of the unambiguous bases that differ from the contig within a window's segment."""
    window, contig = mate.windows[rank], clean(bench.contigs[mate.contigs[rank]])
    reverse, start = bool(window.orientation) != mate.flipped, window.diagonal - bench.starts[mate.contigs[rank]]
    bases, marks = clean(read.bases), read.quality or chr(33 + NO_QUALITY) * mate.length
    if reverse:
        bases, marks = reverse_complement(bases), marks[::-1]
    columns = ((bases[i], contig[start + i], marks[i]) for i in range(window.start, window.end))
    return [ord(mark) - 33 for a, b, mark in columns if a != b and {a, b} <= set("ACGT")]


def is_whole(bench: Bench, mate: Mate, rank: int) -> bool:
    """Return True if a window aligns the whole read to its contig without gaps."""
    window, contig = mate.windows[rank], mate.contigs[rank]
    within = bench.starts[contig] <= window.diagonal <= bench.starts[contig + 1] - 1 - mate.length
    return not window.gapped and (window.start, window.end) == (0, mate.length) and within


def draw_windows(bench: Bench, generator: random.Random, read: str, source: tuple[int, int, bool]) -> list[Window]:
    """Return a window at the read's origin and others with similar scores; some lead to the same alignment."""
    length, flipped = len(read), canonical(read) != clean(read)
    top = length - 5 * below(generator, 5)
    windows: list[Window] = []
    for number in range((1, 2, 5, MAX_WINDOWS)[below(generator, 4)]):
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
        if shifted and below(generator, 3) == 0 and len(windows) < MAX_WINDOWS:
            windows.append(dataclasses.replace(made, diagonal=place + 3, ungapped=score - 7))
    return windows[:MAX_WINDOWS]


def borderline_windows(windows: list[Window], generator: random.Random, least: int) -> list[Window]:
    """Return windows whose scores may reach the minimum only by end bonuses."""
    scores = [least - 2 + below(generator, 12) for _ in windows]
    gaps = [10 if below(generator, 3) == 0 else 0 for _ in windows]
    return [dataclasses.replace(w, score=s, ungapped=s - g) for w, s, g in zip(windows, scores, gaps, strict=True)]


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
        reads.append(Read("r", bases, quality))
        windows.append(draw_windows(bench, generator, bases, (contig, start, reverse)) if number % 20 else [])
        if number % 20 == 1:
            windows[-1] = borderline_windows(windows[-1], generator, scoring.min_score)
        unexamined.append((0, 0, 0, below(generator, length), -(-length // REPETITIVE_SHARE))[below(generator, 5)])
    chosen = [0 if own else -1 for own in windows]
    bases = [read.bases for read in reads]
    qualities = [read.quality or "" for read in reads] if with_qualities else None
    return bench.world(bases, windows, chosen, unexamined=unexamined, qualities=qualities), reads


def check_choice(mate: Mate, placed: Placed, scoring: Scoring) -> None:
    """The best score among certain alignments wins, if there are any; no other window explains the read better."""
    sure = [window for window in mate.windows if window.surely_scores(mate.length, scoring) >= scoring.min_score]
    best = mate.windows[placed.chosen]
    assert best in (sure or mate.windows)
    assert best.score == max(window.score for window in sure or mate.windows)
    assert placed.deficits[placed.chosen] == 0
    assert all(0 <= deficit <= NO_DEFICIT for deficit in placed.deficits)
    for window, deficit in zip(mate.windows, placed.deficits, strict=True):
        # One alignment found from several windows counts once.
        others = [w for w in mate.windows if w is not window and w.orientation == window.orientation]
        assert deficit < NO_DEFICIT or (window.gapped and window.score in [w.score for w in others])
        if deficit < NO_DEFICIT and window.gapped and window.score < best.score:
            assert deficit == (best.score - window.score) * placed.variant // (scoring.match + scoring.mismatch)


def check_mapq(mate: Mate, placed: Placed, unexamined: int, scoring: Scoring) -> None:
    """MAPQ lies between the values with all rivals and with all other windows as rivals, up to the cap.

    An unexamined placement shares exactly `unexamined` bases.
    """
    best, span = mate.windows[placed.chosen], mate.windows[placed.chosen].span(mate.length)
    rests = [window.score for window in mate.windows if not overlaps_by_half(window.span(mate.length), span)]
    perfect = scoring.match * mate.length + 2 * scoring.clip_penalty
    most = min(max(100 * (best.score + max(rests, default=0)) // perfect - 5, 0), 60)
    lost = best.score - scoring.match * unexamined - 2 * scoring.clip_penalty
    unseen = [lost * placed.variant // (scoring.match + scoring.mismatch)] if unexamined else []
    others = [i for i, window in enumerate(mate.windows) if window.is_elsewhere(best, mate.length)]
    assert placed.mapq <= min(placement_phred([placed.deficits[i] for i in others] + unseen), most)
    assert placed.second >= max((mate.windows[i].score for i in others), default=0)
    reach = [SPREAD if window.orientation == best.orientation else 0 for window in mate.windows]
    away = [i for i, w in enumerate(mate.windows) if abs(w.diagonal - best.diagonal) > reach[i]]
    assert placed.second in (0, *(mate.windows[i].score for i in away))
    least = min(placement_phred([placed.deficits[i] for i in away] + unseen) - 1, most - 1)
    assert placed.mapq > least or NO_DEFICIT in placed.deficits


def check_search(mate: Mate, placed: Placed, unexamined: int, scoring: Scoring) -> None:
    """The reasons for another search, and the part of the read that it covers."""
    best = mate.windows[placed.chosen]
    span, lost = best.span(mate.length), scoring.match * mate.length + 2 * scoring.clip_penalty - best.score
    part = max((span.stop, mate.length), (0, span.start), key=lambda rest: rest[1] - rest[0])
    split = min((part[1] - part[0]) * scoring.match, lost) >= scoring.min_score
    crowded = unexamined * REPETITIVE_SHARE >= mate.length
    distant = lost > DIVERGENT_DIFFERENCES * (scoring.match + scoring.mismatch)
    assert placed.unresolved == REPETITIVE * crowded + DIVERGENT * distant + SPLIT * split
    assert placed.part == (part if split else (0, mate.length))


def check_deficits(
    bench: Bench, read: Read, mate: Mate, placed: Placed, bases_per_difference: int, scoring: Scoring
) -> int:
    """Deficits of whole reads follow from their differences; return how many were compared."""
    best, per_difference = mate.windows[placed.chosen], scoring.match + scoring.mismatch
    if next(window for window in mate.windows if window.score == best.score) is not best:
        return 0  # the divergence comes from the first best window
    qualities = [] if best.gapped else differing(bench, read, mate, placed.chosen)
    lost = scoring.match * mate.length + 2 * scoring.clip_penalty - best.score
    clipped = mate.length - (best.end - best.start)
    real = sum(quality >= RELIABLE for quality in qualities) + clipped * scoring.match // per_difference
    real = max(lost, 0) // per_difference if best.gapped else real
    assert -1 <= placed.variant - PHRED_ONE_OF_THREE - phred((1 + real) / (bases_per_difference + mate.length)) <= 0
    if not is_whole(bench, mate, placed.chosen):
        return 0

    def penalty(qualities: list[int]) -> float:
        return sum(phred(chance(quality + PHRED_ONE_OF_THREE) + chance(placed.variant)) for quality in qualities)

    compared = 0
    for i, (window, deficit) in enumerate(zip(mate.windows, placed.deficits, strict=True)):
        if i == placed.chosen or not is_whole(bench, mate, i) or window.score < best.score - NEAR:
            continue
        theirs = differing(bench, read, mate, i)
        expected = max(penalty(theirs) - penalty(qualities), 0)
        assert abs(deficit - expected) <= len(qualities) + len(theirs)
        compared += len(theirs) != len(qualities)
    return compared


@pytest.mark.parametrize(
    ("scoring", "bases_per_difference"),
    [(Scoring(), 400), (Scoring(), 31), (Scoring(match=2, mismatch=3, min_score=20), 2_000)],
)
@pytest.mark.parametrize("with_qualities", [False, True])
def test_choose_windows(bench: Bench, with_qualities: bool, scoring: Scoring, bases_per_difference: int) -> None:
    world, reads = draw_reads(bench, random.Random(132), 300, with_qualities, scoring)
    backend, placements = bench.backend, world.batch.placements
    context = dataclasses.replace(bench.context, scoring=scoring, sample=Sample(bases_per_difference))
    choose_windows(DeviceList.of(world.batch.queries.slot_of), world.batch, context)
    names = ["chosen", "suboptimal_scores", "mapqs", "variant_phreds", "unresolved"]
    names += ["uncovered_starts", "uncovered_ends"]
    choices = zip(*(bench.by_read(world, getattr(placements, name)) for name in names), strict=True)
    by_slot = backend.to_host(placements.deficits).reshape(-1, MAX_WINDOWS)
    deficits = by_slot[backend.to_host(world.batch.queries.slot_of)].tolist()
    found = [
        Placed(*row[:5], row[5:], own[: len(mate.windows)])
        for row, own, mate in zip(choices, deficits, world.mates, strict=True)
    ]
    unexamined, compared = bench.by_read(world, world.batch.windows.unexamined_prefixes), 0
    for read, mate, placed, crowd in zip(reads, world.mates, found, unexamined, strict=True):
        if not mate.windows:
            assert (placed.chosen, placed.mapq, placed.unresolved, placed.part) == (-1, 0, DIVERGENT, (0, mate.length))
            continue
        shown = read if with_qualities else dataclasses.replace(read, quality=None)
        check_choice(mate, placed, scoring)
        check_mapq(mate, placed, crowd, scoring)
        check_search(mate, placed, crowd, scoring)
        compared += check_deficits(bench, shown, mate, placed, bases_per_difference, scoring)
    assert compared > 20
    assert sum(NO_DEFICIT in placed.deficits for placed in found) > 20
    assert {bit for placed in found for bit in (REPETITIVE, DIVERGENT, SPLIT) if placed.unresolved & bit} == {1, 2, 4}
    assert len({placed.variant for placed in found}) > 5
    assert sum(placed.chosen > 0 for placed in found) > 50
    chosen = [
        (mate.windows, placed.chosen) for mate, placed in zip(world.mates, found, strict=True) if placed.chosen >= 0
    ]
    assert any(windows[rank].score < max(window.score for window in windows) for windows, rank in chosen)


@pytest.mark.parametrize("diagonals", [(100, 110), (110, 100)])
def test_one_alignment_counts_once(bench: Bench, diagonals: tuple[int, int]) -> None:
    """The duplicate does not count, whichever window is chosen."""
    windows = [Window(diagonal, 0, 60, 9, 0, 60, 0, 60, 0, 0, 1, 0) for diagonal in diagonals]
    world = bench.world(["A" * 99 + "C"], [windows], [0])
    choose_windows(DeviceList.of(world.batch.queries.slot_of), world.batch, bench.context)
    deficits = bench.backend.to_host(world.batch.placements.deficits)[:2].tolist()
    assert sorted(deficits) == [0, NO_DEFICIT]


GAPPED = {"score": 60, "ungapped": 9}


def is_reported_rival(bench: Bench, chosen: Window, other: Window) -> bool:
    """Return True if the other window's score is reported as the suboptimal score."""
    read = "A" * 99 + "C"  # it is its own canonical form
    world = bench.world([read], [[chosen, other]], [0])
    choose_windows(DeviceList.of(world.batch.queries.slot_of), world.batch, bench.context)
    assert bench.by_read(world, world.batch.placements.chosen) == [0]
    return bench.by_read(world, world.batch.placements.suboptimal_scores) == [other.score]


@pytest.mark.parametrize(
    ("other", "rival"),
    [
        *(({"diagonal": 100 + SPREAD}, False), ({"diagonal": 101 + SPREAD}, True), ({"diagonal": 99 - SPREAD}, True)),
        # A palindrome, and a nearby placement on the other strand.
        *(
            ({"orientation": 1, "start": 40, "end": 100}, False),
            ({"diagonal": 101, "orientation": 1, "start": 40, "end": 100}, True),
        ),
        # Exactly the other half of the read.
        *(({"diagonal": 300, "start": 60, "end": 80}, False), ({"diagonal": 300, "start": 50, "end": 70}, True)),
        *(({"diagonal": 300, "start": 51, "end": 70}, False), ({"diagonal": 300, "start": 0, "end": 100}, True)),
        ({"diagonal": 300, "start": 40, "end": 100, "orientation": 1}, True),
        # A band that reaches the chosen alignment, which scores the same.
        ({**GAPPED, "diagonal": 125, "low": -18, "band": 1}, False),
        ({**GAPPED, "diagonal": 126, "low": -18, "band": 1}, True),
        ({**GAPPED, "diagonal": 125, "low": -18, "band": 1, "score": 59}, True),
        ({**GAPPED, "diagonal": 132, "band": 2}, False),
        ({**GAPPED, "diagonal": 133, "band": 2}, True),
    ],
)
def test_rivals(bench: Bench, other: dict[str, int], rival: bool) -> None:
    chosen = Window(100, 0, 60, 60, 0, 60, 0, 60, 0, 0, 0, 0)
    window = dataclasses.replace(chosen, **{"score": 58, **other})
    window = dataclasses.replace(window, **{"ungapped": window.score, **other})
    assert is_reported_rival(bench, chosen, window) == rival


@pytest.mark.parametrize("with_qualities", [False, True])
def test_reverse_complements_are_placed_alike(bench: Bench, with_qualities: bool) -> None:
    world, reads = draw_reads(bench, random.Random(133), 150, with_qualities, Scoring())
    windows, chosen = [mate.windows for mate in world.mates], [mate.chosen for mate in world.mates]
    turned = bench.world(
        [reverse_complement(read.bases) for read in reads],
        windows,
        chosen,
        unexamined=bench.by_read(world, world.batch.windows.unexamined_prefixes),
        qualities=[(read.quality or "")[::-1] for read in reads] if with_qualities else None,
    )
    found = []
    for one in (world, turned):
        choose_windows(DeviceList.of(one.batch.queries.slot_of), one.batch, bench.context)
        found.append(
            [bench.by_read(one, getattr(one.batch.placements, name)) for name in ("chosen", "mapqs", "variant_phreds")]
        )
    assert found[0] == found[1]
