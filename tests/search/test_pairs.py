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
    NO_DEFICIT,
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

from readmap.backend.compilation.declarations import constant
from readmap.search import pairs, pipeline
from readmap.search.batch import WINDOWS
from readmap.search.diagonals import DIAGONAL, KEPT
from readmap.search.inserts import DIRECTIONS, InsertSize, to_device
from readmap.search.pairs import measure_inserts, pair_mates
from readmap.search.parameters import Scoring, efforts

LONGEST_INSERT, FAR_APART = (constant("search/pairs.cuh", name) for name in ("LONGEST_INSERT", "FAR_APART"))
SURE, MOST_ANCHORS, LEAST_RUN = (constant("search/pairs.cu", name) for name in ("SURE", "MOST_ANCHORS", "LEAST_RUN"))
WORD = 32  # bases that are looked at at once
DROP = constant("search/ungapped.cuh", "DROP")

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
    reads, windows, expected = [], [], []
    for number in range(600):
        ends: list[End] = []
        contigs = [below(generator, 3) if number % 9 == 0 else 0 for _ in range(2)]
        for contig in contigs:
            read = random_bases(generator, 20 + below(generator, 15))
            start = below(generator, len(CONTIGS[contig]) - len(read) + 1)
            reverse = bool(below(generator, 2))
            flipped = canonical(read) != clean(read)
            reads.append(read)
            windows.append([window_at(bench, contig, start, len(read), flipped, reverse)])
            ends.append((start + (len(read) if reverse else 0), reverse))
        expected.append(fragment(*ends) if contigs[0] == contigs[1] else None)
    world = bench.world(reads, windows, [0] * len(reads), [SURE] * len(reads))
    directions, sizes = measure_inserts(world.batch, bench.context)
    found = [
        (DIRECTIONS[direction], size) if direction < len(DIRECTIONS) else None
        for direction, size in zip(directions.tolist(), sizes.tolist(), strict=True)
    ]
    # Where both ends are one place, no strand says which read is first.
    assert [pair for pair in found if pair is None or pair[1]] == [pair for pair in expected if pair is None or pair[1]]
    assert {pair[0] for pair in expected if pair} == set(DIRECTIONS)
    assert expected.count(None) > 20


@pytest.mark.parametrize(
    ("mapqs", "chosen", "measured"),
    [
        *(((SURE, SURE), (0, 0), True), ((60, SURE - 1), (0, 0), False)),
        *(((SURE - 1, 60), (0, 0), False), ((60, 60), (-1, 0), False)),
    ],
)
def test_only_sure_pairs_are_measured(
    bench: Bench, mapqs: tuple[int, int], chosen: tuple[int, int], measured: bool
) -> None:
    reads = [CONTIGS[0][100:150], reverse_complement(CONTIGS[0][200:250])]
    flipped = [canonical(read) != clean(read) for read in reads]
    windows = [[window_at(bench, 0, 100, 50, flipped[0], False)], [window_at(bench, 0, 200, 50, flipped[1], True)]]
    world = bench.world(reads, windows, chosen, mapqs)
    directions, sizes = measure_inserts(world.batch, bench.context)
    assert (directions.tolist(), sizes.tolist()) == (
        ([DIRECTIONS.index("FR")], [150]) if measured else ([len(DIRECTIONS)], [0])
    )


def test_far_pairs_are_not_measured(backends: str) -> None:
    contig = random_bases(random.Random(113), LONGEST_INSERT + 200)
    bench = Bench([contig], backends)
    reads = [contig[100:150], reverse_complement(contig[LONGEST_INSERT + 50 : LONGEST_INSERT + 100])] * 2
    flipped = [canonical(read) != clean(read) for read in reads]
    starts = (100, LONGEST_INSERT + 50, 100, LONGEST_INSERT + 51)
    windows = [
        [window_at(bench, 0, start, 50, flip, bool(number % 2))]
        for number, (start, flip) in enumerate(zip(starts, flipped, strict=True))
    ]
    world = bench.world(reads, windows, [0] * 4, [60] * 4)
    directions, sizes = measure_inserts(world.batch, bench.context)
    assert (directions.tolist(), sizes.tolist()) == ([DIRECTIONS.index("FR"), FAR_APART], [LONGEST_INSERT, 0])


# The choice.


def paired(bench: Bench, world: World, library: Sequence[InsertSize], scoring: Scoring) -> list[tuple[int, ...]]:
    """Window, MAPQ and second score of every read, and whether it and its mate make a fragment."""
    context, placements = dataclasses.replace(bench.context, scoring=scoring), world.batch.placements
    pair_mates(to_device(library, bench.backend), world.batch, context)
    arrays = (placements.chosen, placements.mapqs, placements.seconds, placements.joint)
    return list(zip(*(bench.by_read(world, array) for array in arrays), strict=True))


@pytest.mark.parametrize("scoring", [Scoring(), Scoring(unpaired_penalty=0), Scoring(match=2, mismatch=3)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_choice_and_its_mapping_quality(bench: Bench, library: str, scoring: Scoring) -> None:
    """Against all choices that there are; a pair of which one mate has no window stays as it is."""
    world, _ = draw_world(bench, random.Random(114), 150)
    sizes = bench.sizes(LIBRARIES[library])
    found = paired(bench, world, LIBRARIES[library], scoring)
    together = 0
    for pair in range(150):
        first, second = world.mates[2 * pair : 2 * pair + 2]
        own = found[2 * pair : 2 * pair + 2]
        if first.chosen < 0 or second.chosen < 0:
            assert own == [(first.chosen, 0, 0, 0), (second.chosen, 0, 0, 0)]
            continue
        expected = decide(first, second, sizes, scoring)
        decided = zip(expected.ranks, expected.mapqs, expected.seconds, [expected.joint] * 2, strict=True)
        assert own == list(decided)
        together += expected.ranks != (first.chosen, second.chosen)
    assert library == "none" or scoring.unpaired_deficit == 0 or together > 10


@pytest.mark.parametrize(("copies", "apart", "sure"), [(15, 0, True), (16, 0, False), (16, 15, True)])
def test_copies_that_had_no_room(bench: Bench, copies: int, apart: int, sure: bool) -> None:
    """Both mates lie in a repeat, and without gaps all its copies score the same: one without a window may be it.

    But not where all but one of the places of one mate are away from those of the other.
    """
    reads, all_windows = [], []
    for reverse in (False, True):
        read = random_bases(random.Random(119 + reverse), 50)
        flipped = canonical(read) != clean(read)
        places = [(0, 100 + 60 * copy + 150 * reverse) for copy in range(copies)]
        places[copies - apart :] = [(2 * reverse, 900 - 800 * reverse + 30 * copy) for copy in range(apart)]
        windows = [window_at(bench, *place, 50, flipped, reverse) for place in places]
        all_windows.append([dataclasses.replace(w, ungapped=40, deficit=45 if i else 0) for i, w in enumerate(windows)])
        reads.append(read)
    world = bench.world(reads, all_windows, [0, 0])
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
        [world.mates[read].windows for read in order],
        [world.mates[read].chosen for read in order],
        unexamined=[world.mates[read].unexamined for read in order],
        variants=[world.mates[read].variant for read in order],
    )
    here = paired(bench, world, LIBRARIES[library], Scoring())
    there = paired(bench, other, exchanged(LIBRARIES[library]), Scoring())
    assert [there[read] for read in order] == here


def test_ties_are_decided_by_reads_and_places(bench: Bench) -> None:
    """Two equal copies of a fragment: each gets its share, both mates go to the same, in any order of windows."""
    generator = random.Random(116)
    reads, all_windows = [], []
    for _ in range(200):
        for reverse in (False, True):
            read = random_bases(generator, 50)
            flipped = canonical(read) != clean(read)
            starts = (100 + 150 * reverse, 900 + 150 * reverse)
            windows = [window_at(bench, 0, start, 50, flipped, reverse) for start in starts]
            all_windows.append(windows[::-1] if below(generator, 2) else windows)
            reads.append(read)
    world = bench.world(reads, all_windows, [below(generator, 2) for _ in reads])
    chosen = [window for window, *_ in paired(bench, world, LIBRARIES["FR"], Scoring())]
    places = [all_windows[read][window].diagonal >= 600 for read, window in enumerate(chosen)]
    assert places[::2] == places[1::2]
    assert 60 < sum(places[::2]) < 140


# Rescue.


def rescues(bench: Bench, world: World, library: Sequence[InsertSize], patch: pytest.MonkeyPatch) -> dict[int, Any]:
    """By read that was looked for, the diagonals at which it was found."""
    given: list[Any] = []
    patch.setattr(pairs, "add_diagonals", lambda *arguments: given.append(arguments))
    patch.setattr(pairs, "score_windows", lambda *_: None)
    patch.setattr(pairs, "choose_windows", lambda *_: None)
    backend, host = bench.backend, bench.backend.to_host
    pairs.rescue_mates(to_device(library, backend), world.batch, bench.context)
    if not given:
        return {}
    selected, diagonals, *_ = given[0]
    rows = host(diagonals.rows).view(DIAGONAL).reshape(-1, KEPT)
    records = host(world.batch.queries.order)[host(selected)].tolist()
    return {read: row[:count] for read, row, count in zip(records, rows, host(diagonals.counts).tolist(), strict=True)}


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
    bench: Bench, own: Mate, read: str, partner: Mate, deficit: int, library: Sequence[InsertSize], own_first: bool
) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Score and begin by (orientation, diagonal, end): all that a look at every diagonal of the contigs finds."""
    ranges = {size.direction: range(size.low, size.high + 1) for size in library}
    found = {}
    for anchor in anchors_of(partner, own, deficit)[:MOST_ANCHORS]:
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
    reads, all_windows, chosen = [], [], []
    for number in range(count):
        partner = random_bases(generator, 30 + below(generator, 90))
        anchors = []
        for _ in range((1, 1, 2, MOST_ANCHORS + 2)[below(generator, 4)]):
            anchor = bench.draw_window(generator, len(partner))
            anchors.append(dataclasses.replace(anchor, deficit=below(generator, 60) if anchors else 0))
        near = anchors[below(generator, len(anchors))]
        reverse = bool(near.orientation) != (canonical(partner) != clean(partner))
        end = near.diagonal - bench.starts[bench.contig_of(near)] + (len(partner) if reverse else 0), reverse
        partner_first = bool(below(generator, 2))
        mate = draw_mate(generator, bench.contigs[bench.contig_of(near)], end, partner_first, library)
        if number % 5 == 0:
            mate = f"{mate[: len(mate) // 3]}N{mate[len(mate) // 3 + 1 :]}"
        windows = [bench.draw_window(generator, len(mate)) for _ in range((0, 0, 1, 3)[below(generator, 4)])]
        if number % 2 == 0:
            many = (FOUND_WINDOWS - 1, FOUND_WINDOWS, WINDOWS)[below(generator, 3)]
            windows = [bench.draw_window(generator, len(mate), near.diagonal) for _ in range(many)]
            deficits = [NO_DEFICIT if below(generator, 8) == 0 else below(generator, DOUBT) for _ in windows]
            deficits[-1] = (0, DOUBT - 1, DOUBT, NO_DEFICIT)[below(generator, 4)]
            windows = [dataclasses.replace(w, deficit=d) for w, d in zip(windows, [0, *deficits[1:]], strict=True)]
        pair = [(partner, anchors, 0), (mate, windows, 0 if windows else -1)]
        for read, own, best in pair if partner_first else pair[::-1]:
            reads.append(read)
            all_windows.append(own)
            chosen.append(best)
    return bench.world(reads, all_windows, chosen), reads


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
    found = rescues(bench, world, sizes, monkeypatch)
    looked = named = crowded = 0
    for pair in range(0, len(reads), 2):
        mates = world.mates[pair : pair + 2]
        fragments = choices(*mates, bench.sizes(sizes), Scoring())
        deficit = cheapest(*mates, fragments, Scoring()).deficit
        for side in (0, 1):
            own, partner = mates[side], mates[1 - side]
            wanted = bool(anchors_of(partner, own, deficit))
            assert (pair + side in found) == wanted
            if not wanted:
                continue
            expected = found_beside(bench, own, reads[pair + side], partner, deficit, sizes, side == 0)
            rows = found[pair + side]
            named_here = {
                (int(r["orientation"]), int(r["diagonal"]), int(r["end"])): (int(r["score"]), int(r["begin"]))
                for r in rows
            }
            assert len(named_here) == len(rows) == min(len(expected), KEPT)
            assert named_here.items() <= expected.items()
            scores = sorted((score for score, _ in expected.values()), reverse=True)
            assert rows["score"].tolist() == scores[:KEPT]
            looked, named = looked + 1, named + len(expected)
            crowded += not any(window.deficit + WORTH < deficit for window in partner.windows)
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
    backend, host = bench.backend, bench.backend.to_host
    held = dataclasses.replace(reads_of(fasta_reads([Read("", read) for read in reads]), backend, 2), paired=True)
    batch, inserts = pipeline.search_reads(held, bench.context), to_device(LIBRARIES["FR"], backend)
    chosen = host(batch.placements.chosen)[host(batch.queries.slot_of)].reshape(-1, 2)
    assert (chosen.min(axis=1) < 0).all()
    pairs.rescue_mates(inserts, batch, bench.context)
    pair_mates(inserts, batch, bench.context)
    assert host(batch.placements.chosen).min() >= 0
    assert host(batch.placements.mapqs).min() >= 30
    assert host(batch.placements.joint).all()
