"""Mates placed together: insert sizes, the cheapest choice and its MAPQ, and mates found beside their partners."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from examples import Read, below, fasta_reads, random_bases, reads_of, substitute
from oracles.alignment import canonical, clean, reverse_complement, segment
from oracles.pairs import (
    DOUBT,
    FOUND_WINDOWS,
    NO_LOSS,
    WORTH,
    End,
    Mate,
    anchors_of,
    cheapest,
    choices,
    decide,
    fragment,
)
from window_bench import Bench, World, draw_world, window_at

from readmap.backend import Array
from readmap.search import pairs, pipeline
from readmap.search.diagonals import DIAGONAL, KEPT, Diagonals
from readmap.search.inserts import DIRECTIONS, InsertSize, place_inserts
from readmap.search.pairs import measure_inserts, pair_mates, unpaired_cost
from readmap.search.parameters import WINDOWS, Scoring, efforts

SURE, MOST_ANCHORS, LEAST_RUN, LONGEST_INSERT = 20, 8, 12, 10_000  # of kernels/search/pairs.cu
WORD = 32  # bases that are looked at at once
DROP = 30  # of kernels/search/ungapped.cuh

RANDOM = random.Random(111)
CONTIGS = [random_bases(RANDOM, 1_500), random_bases(RANDOM, 40), random_bases(RANDOM, 700)]
LIBRARIES = {
    "FR": [InsertSize("FR", 300, 40, 140, 460)],
    "RF and FR": [InsertSize("FR", 200, 30, 80, 320), InsertSize("RF", 500, 60, 260, 740)],
    "one strand": [InsertSize("FF", 150, 30, 1, 270), InsertSize("RR", 250, 20, 170, 330)],
    "all": [InsertSize(name, 220, 50, 20, 420) for name in DIRECTIONS],
    "none": [],
}


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


# Insert sizes.


def test_fragment_by_hand() -> None:
    """The oracle itself: -> at 100 and <- ending at 400, and so on."""
    assert fragment((100, False), (400, True)) == ("FR", 300)
    assert fragment((400, True), (100, False)) == ("FR", 300)
    assert fragment((100, True), (400, False)) == ("RF", 300)
    assert fragment((100, False), (400, False)) == ("FF", 300)
    assert fragment((400, False), (100, False)) == ("RR", 300)
    assert fragment((400, True), (100, True)) == ("FF", 300)
    assert fragment((100, True), (400, True)) == ("RR", 300)


def test_every_direction_and_distance(bench: Bench) -> None:
    """On both strands, either read first, overlapping or apart, up to a contig's two ends; on two contigs: none."""
    generator = random.Random(112)
    reads, candidates, expected = [], [], []
    for number in range(600):
        ends: list[End] = []
        contigs = [below(generator, 3) if number % 9 == 0 else 0 for _ in range(2)]
        for contig in contigs:
            read = random_bases(generator, 20 + below(generator, 15))
            start = below(generator, len(CONTIGS[contig]) - len(read) + 1)
            reverse = bool(below(generator, 2))
            flipped = canonical(read) != clean(read)
            reads.append(read)
            candidates.append([window_at(bench, contig, start, len(read), flipped, reverse)])
            ends.append((start + (len(read) if reverse else 0), reverse))
        expected.append(fragment(*ends) if contigs[0] == contigs[1] else None)
    world = bench.world(reads, candidates, [0] * len(reads), [SURE] * len(reads))
    directions, sizes = measure_inserts(world.windows, world.placements, world.queries, bench.index, bench.backend)
    found = [
        (DIRECTIONS[direction], size) if direction < len(DIRECTIONS) else None
        for direction, size in zip(directions.tolist(), sizes.tolist(), strict=True)
    ]
    # Where both ends are one place, no strand tells which read is first.
    assert [pair for pair in found if pair is None or pair[1]] == [pair for pair in expected if pair is None or pair[1]]
    assert {pair[0] for pair in expected if pair} == set(DIRECTIONS)
    assert expected.count(None) > 20


@pytest.mark.parametrize(
    ("mapqs", "chosen", "told"),
    [((20, 20), (0, 0), True), ((60, 19), (0, 0), False), ((19, 60), (0, 0), False), ((60, 60), (-1, 0), False)],
)
def test_only_sure_pairs_are_measured(
    bench: Bench, mapqs: tuple[int, int], chosen: tuple[int, int], told: bool
) -> None:
    reads = [CONTIGS[0][100:150], reverse_complement(CONTIGS[0][200:250])]
    flipped = [canonical(read) != clean(read) for read in reads]
    candidates = [[window_at(bench, 0, 100, 50, flipped[0], False)], [window_at(bench, 0, 200, 50, flipped[1], True)]]
    world = bench.world(reads, candidates, chosen, mapqs)
    directions, sizes = measure_inserts(world.windows, world.placements, world.queries, bench.index, bench.backend)
    assert (directions.tolist(), sizes.tolist()) == (([1], [150]) if told else ([4], [0]))


def test_far_pairs_are_not_measured(backends: str) -> None:
    contig = random_bases(random.Random(113), LONGEST_INSERT + 200)
    bench = Bench([contig], backends)
    reads = [contig[100:150], reverse_complement(contig[10_050:10_100])] * 2
    flipped = [canonical(read) != clean(read) for read in reads]
    starts = (100, LONGEST_INSERT + 50, 100, LONGEST_INSERT + 51)
    candidates = [
        [window_at(bench, 0, start, 50, flip, bool(number % 2))]
        for number, (start, flip) in enumerate(zip(starts, flipped, strict=True))
    ]
    world = bench.world(reads, candidates, [0] * 4, [60] * 4)
    directions, sizes = measure_inserts(world.windows, world.placements, world.queries, bench.index, bench.backend)
    assert (directions.tolist(), sizes.tolist()) == ([1, 4], [LONGEST_INSERT, 0])


# The choice.


def paired(bench: Bench, world: World, library: Sequence[InsertSize], scoring: Scoring) -> list[tuple[int, ...]]:
    """Window, MAPQ and second score of every read, and whether it and its mate make a fragment."""
    inserts = place_inserts(library, bench.backend)
    pair_mates(world.placements, world.windows, inserts, world.queries, bench.index, scoring, bench.backend)
    placements = world.placements
    arrays = (placements.chosen, placements.mapqs, placements.seconds, placements.joint)
    return list(zip(*(bench.by_read(world, array) for array in arrays), strict=True))


@pytest.mark.parametrize("scoring", [Scoring(), Scoring(unpaired_penalty=0), Scoring(match=2, mismatch=3)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_choice_and_its_mapping_quality(bench: Bench, library: str, scoring: Scoring) -> None:
    """Against all choices that there are; a pair of which one mate has no window stays as it is."""
    world, _ = draw_world(bench, random.Random(114), 150)
    sizes, unpaired = bench.sizes(LIBRARIES[library]), unpaired_cost(scoring)
    found = paired(bench, world, LIBRARIES[library], scoring)
    together = 0
    for pair in range(150):
        first, second = world.mates[2 * pair : 2 * pair + 2]
        told = found[2 * pair : 2 * pair + 2]
        if first.chosen < 0 or second.chosen < 0:
            assert told == [(first.chosen, 0, 0, 0), (second.chosen, 0, 0, 0)]
            continue
        expected = decide(first, second, sizes, unpaired, scoring)
        decided = zip(expected.windows, expected.mapqs, expected.seconds, [expected.joint] * 2, strict=True)
        assert told == list(decided)
        together += expected.windows != (first.chosen, second.chosen)
    assert library == "none" or unpaired == 0 or together > 10


@pytest.mark.parametrize(("copies", "apart", "sure"), [(15, 0, True), (16, 0, False), (16, 15, True)])
def test_copies_that_had_no_room(bench: Bench, copies: int, apart: int, sure: bool) -> None:
    """Both mates lie in a repeat, and without gaps all its copies score the same: one without a window may be it.

    But not where all but one of the places of one mate are away from those of the other.
    """
    reads, candidates = [], []
    for reverse in (False, True):
        read = random_bases(random.Random(119 + reverse), 50)
        flipped = canonical(read) != clean(read)
        places = [(0, 100 + 60 * copy + 150 * reverse) for copy in range(copies)]
        places[copies - apart :] = [(2 * reverse, 900 - 800 * reverse + 30 * copy) for copy in range(apart)]
        windows = [window_at(bench, *place, 50, flipped, reverse) for place in places]
        candidates.append([dataclasses.replace(w, ungapped=40, loss=45 if i else 0) for i, w in enumerate(windows)])
        reads.append(read)
    world = bench.world(reads, candidates, [0, 0])
    mapqs = [mapq for _, mapq, *_ in paired(bench, world, LIBRARIES["FR"], Scoring())]
    assert [mapq >= 25 for mapq in mapqs] == [sure] * 2
    assert max(mapqs) <= 3 or sure


def exchanged(library: Sequence[InsertSize]) -> list[InsertSize]:
    """With the reads of a pair the other way round: what was FF is RR."""
    names = {"FF": "RR", "RR": "FF"}
    return [dataclasses.replace(size, direction=names.get(size.direction, size.direction)) for size in library]


@pytest.mark.parametrize("library", LIBRARIES)
def test_exchanged_mates_are_placed_alike(bench: Bench, library: str) -> None:
    world, reads = draw_world(bench, random.Random(115), 200)
    order = [read ^ 1 for read in range(len(reads))]
    other = bench.world(
        [reads[read] for read in order],
        [world.mates[read].candidates for read in order],
        [world.mates[read].chosen for read in order],
        missed=[world.mates[read].missed for read in order],
        variants=[world.mates[read].variant for read in order],
    )
    here = paired(bench, world, LIBRARIES[library], Scoring())
    there = paired(bench, other, exchanged(LIBRARIES[library]), Scoring())
    assert [there[read] for read in order] == here


def test_ties_are_decided_by_reads_and_places(bench: Bench) -> None:
    """Two equal copies of a fragment: each gets its share, both mates go to the same, in any order of windows."""
    generator = random.Random(116)
    reads, candidates = [], []
    for _ in range(200):
        for reverse in (False, True):
            read = random_bases(generator, 50)
            flipped = canonical(read) != clean(read)
            starts = (100 + 150 * reverse, 900 + 150 * reverse)
            windows = [window_at(bench, 0, start, 50, flipped, reverse) for start in starts]
            candidates.append(windows[::-1] if below(generator, 2) else windows)
            reads.append(read)
    world = bench.world(reads, candidates, [below(generator, 2) for _ in reads])
    chosen = [window for window, *_ in paired(bench, world, LIBRARIES["FR"], Scoring())]
    places = [candidates[read][window].diagonal >= 600 for read, window in enumerate(chosen)]
    assert places[::2] == places[1::2]
    assert 60 < sum(places[::2]) < 140


# Rescue.


def rescues(
    bench: Bench, world: World, reads: Sequence[str], library: Sequence[InsertSize], patch: pytest.MonkeyPatch
) -> dict[int, Any]:
    """By read that was looked for, the diagonals at which it was found."""
    given: list[tuple[Diagonals, Array]] = []
    patch.setattr(
        pairs, "add_diagonals", lambda windows, diagonals, queries, selected, *_: given.append((diagonals, selected))
    )
    patch.setattr(pairs, "score_windows", lambda *_: None)
    patch.setattr(pairs, "place_reads", lambda *_: None)
    backend, inserts = bench.backend, place_inserts(library, bench.backend)
    held = reads_of(fasta_reads([Read("", read) for read in reads]), backend, 2)
    pairs.rescue_mates(world.windows, world.placements, inserts, held, world.queries, bench.index, Scoring(), backend)
    if not given:
        return {}
    (diagonals, selected), order = given[0], backend.to_host(world.queries.order).tolist()
    rows = backend.to_host(diagonals.rows).view(DIAGONAL).reshape(-1, KEPT)
    counts = backend.to_host(diagonals.counts).tolist()
    slots = backend.to_host(selected).tolist()
    return {order[slot]: row[:count] for slot, row, count in zip(slots, rows, counts, strict=True)}


def longest_run(read: str, contig: str, diagonal: int) -> tuple[int, int] | None:
    """The longest run of equal bases in a word of the read, the first such; None where none is long.

    Words lie so that each run of LEAST_RUN bases is in one of them; of a longer one that may be a part.
    """
    begin, end = max(0, -diagonal), min(len(read), len(contig) - diagonal)
    equal = "".join("=" if read[i] == contig[i + diagonal] and read[i] in "ACGT" else "X" for i in range(begin, end))
    runs = [
        (begin + word + run.start(), begin + word + run.end())
        for word in range(0, len(equal), WORD - LEAST_RUN)
        for run in re.finditer("=+", equal[word : word + WORD])
    ]
    longest = max(runs, key=lambda run: run[1] - run[0], default=(0, 0))
    return longest if longest[1] - longest[0] >= LEAST_RUN else None


def found_beside(
    bench: Bench, own: Mate, read: str, partner: Mate, loss: int, library: Sequence[InsertSize], own_first: bool
) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Score and begin by (orientation, diagonal, end): all that a look at every diagonal of the contigs finds."""
    ranges = {size.direction: range(size.low, size.high + 1) for size in library}
    found = {}
    for anchor in anchors_of(partner, own, loss)[:MOST_ANCHORS]:
        contig, start = clean(bench.contigs[partner.contigs[anchor]]), bench.starts[partner.contigs[anchor]]
        for orientation, bases in enumerate((canonical(read), reverse_complement(canonical(read)))):
            reverse = bool(orientation) != own.flipped
            for diagonal in range(LEAST_RUN - len(read), len(contig) - LEAST_RUN + 1):
                here = start + diagonal + (len(read) if reverse else 0), reverse
                ends = (here, partner.end(anchor)) if own_first else (partner.end(anchor), here)
                direction, size = fragment(*ends)
                if size not in ranges.get(direction, ()):
                    continue
                run = longest_run(bases, contig, diagonal)
                if run:
                    score, begin, end = segment(bases, contig, diagonal, *run, DROP, Scoring())
                    found[orientation, start + diagonal, end] = score, begin
    return found


def draw_lost_mates(
    bench: Bench, generator: random.Random, count: int, library: Sequence[InsertSize]
) -> tuple[World, list[str]]:
    """One read of a pair has windows here and there; the other is like the place beside one of them.

    It has few windows, or many near that one which are about as good, all of them or all but one.
    """
    reads, all_candidates, chosen = [], [], []
    for number in range(count):
        partner = random_bases(generator, 30 + below(generator, 90))
        anchors = []
        for _ in range((1, 1, 2, MOST_ANCHORS + 2)[below(generator, 4)]):
            anchor = bench.draw_candidate(generator, len(partner))
            anchors.append(dataclasses.replace(anchor, loss=below(generator, 60) if anchors else 0))
        near = anchors[below(generator, len(anchors))]
        reverse = bool(near.orientation) != (canonical(partner) != clean(partner))
        end = near.diagonal - bench.starts[bench.contig_of(near)] + (len(partner) if reverse else 0), reverse
        partner_first = bool(below(generator, 2))
        mate = draw_mate(generator, bench.contigs[bench.contig_of(near)], end, partner_first, library)
        if number % 5 == 0:
            mate = f"{mate[: len(mate) // 3]}N{mate[len(mate) // 3 + 1 :]}"
        windows = [bench.draw_candidate(generator, len(mate)) for _ in range((0, 0, 1, 3)[below(generator, 4)])]
        if number % 2 == 0:
            many = (FOUND_WINDOWS - 1, FOUND_WINDOWS, WINDOWS)[below(generator, 3)]
            windows = [bench.draw_candidate(generator, len(mate), near.diagonal) for _ in range(many)]
            losses = [NO_LOSS if below(generator, 8) == 0 else below(generator, DOUBT) for _ in windows]
            losses[-1] = (0, DOUBT - 1, DOUBT, NO_LOSS)[below(generator, 4)]
            windows = [
                dataclasses.replace(window, loss=loss) for window, loss in zip(windows, [0, *losses[1:]], strict=True)
            ]
        pair = [(partner, anchors, 0), (mate, windows, 0 if windows else -1)]
        for read, candidates, best in pair if partner_first else pair[::-1]:
            reads.append(read)
            all_candidates.append(candidates)
            chosen.append(best)
    return bench.world(reads, all_candidates, chosen), reads


def draw_mate(
    generator: random.Random, contig: str, partner: End, partner_first: bool, library: Sequence[InsertSize]
) -> str:
    """A read like a place that makes a fragment, if one drawn does, or hangs over an end of the contig."""
    length = (17, 25, 31, 32, 33, 64, 100, 150)[below(generator, 8)]
    ranges = {size.direction: range(size.low, size.high + 1) for size in library}
    for _ in range(100):
        start, reverse = below(generator, len(contig) + length) - length, bool(below(generator, 2))
        end = start + (length if reverse else 0), reverse
        direction, size = fragment(partner, end) if partner_first else fragment(end, partner)
        if size in ranges.get(direction, ()):
            break
    mate = random_bases(generator, max(0, -start)) + clean(contig[max(0, start) : start + length])
    mate = substitute(generator, mate + random_bases(generator, length - len(mate)), below(generator, 1 + length // 10))
    return reverse_complement(mate) if reverse else mate


@pytest.mark.parametrize(
    ("genome", "library"),
    [
        *(("random", name) for name, sizes in LIBRARIES.items() if sizes),
        *((genome, name) for genome in ("ambiguous", "repetitive") for name in ("FR", "all")),
    ],
)
def test_rescue(backends: str, monkeypatch: pytest.MonkeyPatch, library: str, genome: str) -> None:
    """All diagonals at which a mate may be, and no other; the best KEPT where there are more."""
    generator = random.Random(117)
    unclear = [random_bases(generator, length, "ACGT" * 15 + "N") for length in (500, 60)]
    genomes = {"random": CONTIGS, "ambiguous": unclear, "repetitive": ["CAG" * 200, "A" * 90]}
    bench, sizes = Bench(genomes[genome], backends), LIBRARIES[library]
    world, reads = draw_lost_mates(bench, generator, 75, sizes)
    found = rescues(bench, world, reads, sizes, monkeypatch)
    looked = named = crowded = 0
    for pair in range(0, len(reads), 2):
        mates = world.mates[pair : pair + 2]
        fragments = choices(*mates, bench.sizes(sizes), unpaired_cost(Scoring()))
        loss = cheapest(*mates, fragments, Scoring()).loss
        for side in (0, 1):
            own, partner = mates[side], mates[1 - side]
            wanted = bool(anchors_of(partner, own, loss))
            assert (pair + side in found) == wanted
            if not wanted:
                continue
            expected = found_beside(bench, own, reads[pair + side], partner, loss, sizes, side == 0)
            rows = found[pair + side]
            told = {
                (int(r["orientation"]), int(r["diagonal"]), int(r["end"])): (int(r["score"]), int(r["begin"]))
                for r in rows
            }
            assert len(told) == len(rows) == min(len(expected), KEPT)
            assert told.items() <= expected.items()
            scores = sorted((score for score, _ in expected.values()), reverse=True)
            assert rows["score"].tolist() == scores[:KEPT]
            looked, named = looked + 1, named + len(expected)
            crowded += not any(window.loss + WORTH < loss for window in partner.candidates)
    assert looked > 40
    assert named > 20
    assert crowded > 2


def test_longest_run_by_hand() -> None:
    """The oracle itself: words of 32 bases, one every 20 from where the read enters the contig."""
    contig = random_bases(random.Random(118), 200)

    def spoilt(*places: int) -> str:
        return "".join("N" if i in places else base for i, base in enumerate(contig[50:150]))

    assert longest_run(spoilt(), contig, 50) == (0, 32)
    assert longest_run(spoilt(3), contig, 50) == (20, 52)
    assert longest_run(spoilt(10, 45, *range(50, 100, 5)), contig, 50) == (20, 45)
    assert longest_run(spoilt(*range(0, 88, 5)), contig, 50) == (86, 100)
    assert longest_run(spoilt(*range(0, 100, 13)), contig, 50) == (1, 13)
    assert longest_run(spoilt(*range(0, 100, 12)), contig, 50) is None
    assert longest_run(contig[:20], contig, 0) == (0, 20)
    assert longest_run("ACGTA" + contig[:12], contig, -5) == (5, 17)
    assert longest_run("ACGTA" + contig[:11], contig, -5) is None


def test_rescued_mates_are_placed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mate with a difference every 13 bases has no seed in a large genome; beside its partner it is found, and both
    are sure then."""
    monkeypatch.setattr(pipeline, "efforts", lambda _: efforts(3_000_000_000))
    generator = random.Random(119)
    reads = []
    for _ in range(30):
        start = below(generator, 1_000)
        first, second = CONTIGS[0][start : start + 100], reverse_complement(CONTIGS[0][start + 200 : start + 300])
        letters = [base if (i + 5) % 13 else "ACGT"[("ACGT".index(base) + 1) % 4] for i, base in enumerate(second)]
        reads += [first, "".join(letters)][:: 1 if below(generator, 2) else -1]
    backend, scoring = bench.backend, Scoring()
    held = dataclasses.replace(reads_of(fasta_reads([Read("", read) for read in reads]), backend, 2), paired=True)
    searched = pipeline.search_reads(held, bench.index, scoring, backend)
    inserts = place_inserts(LIBRARIES["FR"], backend)
    order = backend.to_host(searched.queries.slot_of)
    before = backend.to_host(searched.placements.chosen)[order].reshape(-1, 2)
    pairs.rescue_mates(
        searched.windows, searched.placements, inserts, held, searched.queries, bench.index, scoring, backend
    )
    pair_mates(searched.placements, searched.windows, inserts, searched.queries, bench.index, scoring, backend)
    after = backend.to_host(searched.placements.chosen)[order].reshape(-1, 2)
    assert (before.min(axis=1) < 0).all()
    assert after.min() >= 0
    assert backend.to_host(searched.placements.mapqs).min() >= 30
    assert backend.to_host(searched.placements.joint).all()
