"""Pairing: insert sizes, the cheapest choice and its MAPQ, and mate rescue."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples import Read, below, fasta_reads, random_bases, reads_of, substitute
from oracles.alignment import canonical, clean, column_score, reverse_complement
from oracles.placements import MAX_SEED_WINDOWS, End, fragment, joint_loss, placement_phred
from window_bench import Bench, Mate, World, draw_pairs, window_at

from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping import pairs, pipeline
from readmap.mapping.diagonals import DIAGONAL, MAX_DIAGONALS
from readmap.mapping.fragments import NOT_JOINED
from readmap.mapping.inserts import DIRECTIONS, InsertSize, _penalty, insert_size_table
from readmap.mapping.pairs import measure_inserts, pair_mates
from readmap.mapping.parameters import Scoring, search_passes
from readmap.mapping.windows import choose_windows

MAX_INSERT_SIZE, FAR_APART = (constant("mapping/pairs.cuh", name) for name in ("MAX_INSERT_SIZE", "FAR_APART"))
MAX_ANCHORS, DOUBT_PHRED, MIN_GAIN = (
    constant("mapping/rescues.cu", name) for name in ("MAX_ANCHORS", "DOUBT_PHRED", "MIN_GAIN")
)
MIN_INSERT_MAPQ = constant("mapping/pairs.cu", "MIN_INSERT_MAPQ")
MIN_RUN = constant("mapping/diagonal_range.cuh", "MIN_RUN")

UNPAIRED, COMPLEMENT = Scoring().unpaired_phred, str.maketrans("ACGT", "TGCA")
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
    """Both strands, either read first, overlapping or not, at both contig ends; no fragment on two contigs."""
    generator = random.Random(112)
    reads, windows, expected = [], [], []
    for number in range(600):
        ends: list[End] = []
        contigs = [below(generator, 3) if number % 9 == 0 else 0 for _ in range(2)]
        for contig in contigs:
            read = random_bases(generator, 20 + below(generator, 15))
            start = below(generator, len(CONTIGS[contig]) - len(read) + 1)
            reverse = bool(below(generator, 2))
            reads.append(read)
            windows.append([window_at(bench, read, contig, start, reverse)])
            ends.append((start + (len(read) if reverse else 0), reverse))
        expected.append(fragment(*ends) if contigs[0] == contigs[1] else None)
    world = bench.world(reads, windows, [0] * len(reads), [MIN_INSERT_MAPQ] * len(reads))
    directions, sizes = measure_inserts(world.batch, bench.context)
    found = [
        (DIRECTIONS[direction], size) if direction < len(DIRECTIONS) else None
        for direction, size in zip(directions.tolist(), sizes.tolist(), strict=True)
    ]
    # If both ends coincide, the strands do not tell which read is first.
    assert [pair for pair in found if pair is None or pair[1]] == [pair for pair in expected if pair is None or pair[1]]
    assert {pair[0] for pair in expected if pair} == set(DIRECTIONS)
    assert expected.count(None) > 20


@pytest.mark.parametrize(
    ("mapqs", "chosen", "measured"),
    [
        *(((MIN_INSERT_MAPQ, MIN_INSERT_MAPQ), (0, 0), True), ((60, MIN_INSERT_MAPQ - 1), (0, 0), False)),
        *(((MIN_INSERT_MAPQ - 1, 60), (0, 0), False), ((60, 60), (-1, 0), False)),
    ],
)
def test_only_confident_pairs_are_measured(
    bench: Bench, mapqs: tuple[int, int], chosen: tuple[int, int], measured: bool
) -> None:
    reads = [CONTIGS[0][100:150], reverse_complement(CONTIGS[0][200:250])]
    windows = [[window_at(bench, reads[0], 0, 100)], [window_at(bench, reads[1], 0, 200, True)]]
    world = bench.world(reads, windows, chosen, mapqs)
    directions, sizes = measure_inserts(world.batch, bench.context)
    expected = (DIRECTIONS.index("FR"), 150) if measured else (len(DIRECTIONS), 0)
    assert (directions.tolist(), sizes.tolist()) == ([expected[0]], [expected[1]])


def test_far_pairs_are_not_measured(backends: str) -> None:
    contig = random_bases(random.Random(113), MAX_INSERT_SIZE + 200)
    bench = Bench([contig], backends)
    reads = [contig[100:150], reverse_complement(contig[MAX_INSERT_SIZE + 50 : MAX_INSERT_SIZE + 100])] * 2
    starts = ((100, False), (MAX_INSERT_SIZE + 50, True), (100, False), (MAX_INSERT_SIZE + 51, True))
    windows = [[window_at(bench, read, 0, *start)] for read, start in zip(reads, starts, strict=True)]
    world = bench.world(reads, windows, [0] * 4, [60] * 4)
    directions, sizes = measure_inserts(world.batch, bench.context)
    assert (directions.tolist(), sizes.tolist()) == ([DIRECTIONS.index("FR"), FAR_APART], [MAX_INSERT_SIZE, 0])


# The choice.


def paired(bench: Bench, world: World, library: Sequence[InsertSize], scoring: Scoring) -> list[tuple[int, ...]]:
    """Return window, MAPQ, suboptimal score and properly_paired of every read."""
    context, placements = dataclasses.replace(bench.context, scoring=scoring), world.batch.placements
    apart = bench.backend.full(len(world.mates) // 2, NOT_JOINED, np.int32)
    pair_mates(insert_size_table(library, bench.backend), apart, world.batch, context)
    arrays = (placements.chosen, placements.mapqs, placements.suboptimal_scores, placements.properly_paired)
    return list(zip(*(bench.by_read(world, array) for array in arrays), strict=True))


Penalties = dict[tuple[str, int], int]  # phred by direction and size


def costs_of(first: Mate, second: Mate, penalties: Penalties) -> dict[tuple[int, int], int]:
    """Return the cost of each pair of window ranks that make a fragment."""
    costs = {}
    for i, j in itertools.product(range(len(first.windows)), range(len(second.windows))):
        together = fragment(first.end(i), second.end(j))
        if first.contigs[i] == second.contigs[j] and together in penalties:
            losses = first.windows[i].deficit, second.windows[j].deficit
            costs[i, j] = joint_loss(losses, together, (first.length, second.length)) + penalties[together]
    return costs


def can_pair(mate: Mate, i: int, scoring: Scoring) -> bool:
    """Return True if the read may be mapped there; a window with gaps may do without bonuses."""
    window = mate.windows[i]
    score = window.score if window.gapped else window.surely_scores(mate.length, scoring)
    return score >= scoring.paired_min_score


@pytest.mark.parametrize("scoring", [Scoring(), Scoring(unpaired_penalty=0), Scoring(match=2, mismatch=3)])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("plain", [False, True])
def test_choice(bench: Bench, plain: bool, library: str, scoring: Scoring) -> None:
    """The cheapest fragment is chosen, or none if unpaired placements are cheaper or a mate has no window.

    If no window is dropped and rivals are unambiguous (plain), the costs determine the MAPQ.
    """
    world = bench.world(**draw_pairs(bench, random.Random(114), 150, plain))
    found = paired(bench, world, LIBRARIES[library], scoring)
    moved, unpaired, sizes = 0, scoring.unpaired_phred, LIBRARIES[library]
    penalties = {(s.direction, size): _penalty(size, s) for s in sizes for size in range(s.low, s.high + 1)}
    for pair in range(150):
        first, second = mates = world.mates[2 * pair : 2 * pair + 2]
        own = found[2 * pair : 2 * pair + 2]
        if first.chosen < 0 or second.chosen < 0:
            assert own == [(first.chosen, 60, 0, 0), (second.chosen, 60, 0, 0)]  # as they were
            continue
        costs = costs_of(first, second, penalties)
        allowed = [
            cost for (i, j), cost in costs.items() if can_pair(first, i, scoring) and can_pair(second, j, scoring)
        ]
        ranks, joint, least = (own[0][0], own[1][0]), own[0][3], min([*allowed, unpaired])
        assert joint == own[1][3] == (least in allowed)
        assert costs[ranks] == least if joint else ranks == (first.chosen, second.chosen)
        if not joint and not (can_pair(first, first.chosen, scoring) and can_pair(second, second.chosen, scoring)):
            continue  # the single-read choice remains
        moved += ranks != (first.chosen, second.chosen)
        for side, (mate, (rank, mapq, second_score, _)) in enumerate(zip(mates, own, strict=True)):
            others = [i for i in range(len(mate.windows)) if i != rank]
            others = [i for i in others if mate.windows[i].is_elsewhere(mate.windows[rank], mate.length)]
            rivals = [cost for chosen, cost in costs.items() if chosen[side] in others]
            rivals += [mate.windows[i].deficit + unpaired for i in others]
            most = placement_phred([cost - least for cost in rivals])
            assert mapq <= most
            assert second_score >= max((mate.windows[i].score for i in others), default=0)
            if plain:
                assert mapq > most - 1
                assert second_score == max((mate.windows[i].score for i in others), default=0)
    assert library == "none" or unpaired == 0 or moved > 10


def test_unexamined_suffixes_lower_mapq(bench: Bench) -> None:
    """The more of the read an unexamined suffix shares, the lower MAPQ."""
    drawn = draw_pairs(bench, random.Random(118), 150, plain=True)
    mapqs = []
    for share in (0, 0.3, 0.8, 1):
        drawn["unexamined"] = [int(share * len(read)) for read in drawn["reads"]]
        found = paired(bench, bench.world(**drawn), LIBRARIES["all"], Scoring())
        mapqs.append([mapq for _, mapq, _, joint in found if joint])
    for before, after in itertools.pairwise(mapqs):
        assert all(b <= a for a, b in zip(before, after, strict=True))
        assert sum(b < a for a, b in zip(before, after, strict=True)) > 5
    assert max(mapqs[-1]) <= 3


@pytest.mark.parametrize(("copies", "apart", "sure"), [(15, 0, True), (16, 0, False), (16, 15, True)])
def test_dropped_copies_lower_mapq(bench: Bench, copies: int, apart: int, sure: bool) -> None:
    """Both mates lie in a repeat whose copies score the same without gaps, so a dropped copy may be the right one.

    This does not apply if all but one of a mate's placements are far from those of the other mate.
    """
    reads, all_windows = [], []
    for reverse in (False, True):
        read = random_bases(random.Random(119 + reverse), 50)
        places = [(0, 100 + 60 * copy + 150 * reverse) for copy in range(copies)]
        places[copies - apart :] = [(2 * reverse, 900 - 800 * reverse + 30 * copy) for copy in range(apart)]
        windows = [window_at(bench, read, *place, reverse) for place in places]
        all_windows.append([dataclasses.replace(w, ungapped=40, deficit=45 if i else 0) for i, w in enumerate(windows)])
        reads.append(read)
    world = bench.world(reads, all_windows, [0, 0])
    mapqs = [mapq for _, mapq, *_ in paired(bench, world, LIBRARIES["FR"], Scoring())]
    assert [mapq >= 25 for mapq in mapqs] == [sure] * 2
    assert max(mapqs) <= 3 or sure


@pytest.mark.parametrize(("size", "mapq"), [(240, 36), (100, 36), (60, 21), (50, 18), (30, 18)])
def test_a_difference_that_both_mates_show_counts_once(bench: Bench, size: int, mapq: int) -> None:
    """A copy loses 18 phred in both mates: one difference if they overlap fully, two if not at all."""
    library, reads, windows = [InsertSize("FR", size, 0, size, size)], list[str](), list[list[Any]]()
    for reverse in (False, True):
        read = random_bases(random.Random(120 + reverse), 50)
        places = [start + (size - 50 if reverse else 0) for start in (100, 500)]
        own = [window_at(bench, read, 0, start, reverse) for start in places]
        windows.append([own[0], dataclasses.replace(own[1], deficit=18)])
        reads.append(read)
    found = paired(bench, bench.world(reads, windows, [0, 0]), library, Scoring())
    assert [abs(read[1] - mapq) <= 1 for read in found] == [True, True]


@pytest.mark.parametrize(("size", "joint"), [(139, False), (140, True), (460, True), (461, False)])
def test_range_of_sizes(bench: Bench, size: int, joint: bool) -> None:
    reads = [CONTIGS[0][100:150], reverse_complement(CONTIGS[0][50 + size : 100 + size])]
    windows = [[window_at(bench, reads[0], 0, 100)], [window_at(bench, reads[1], 0, 50 + size, True)]]
    found = paired(bench, bench.world(reads, windows, [0, 0]), LIBRARIES["FR"], Scoring())
    assert [bool(read[3]) for read in found] == [joint, joint]


def exchanged(library: Sequence[InsertSize]) -> list[InsertSize]:
    """Return the library with the reads of a pair exchanged: FF becomes RR."""
    names = {"FF": "RR", "RR": "FF"}
    return [dataclasses.replace(size, direction=names.get(size.direction, size.direction)) for size in library]


@pytest.mark.parametrize("library", LIBRARIES)
def test_exchanged_mates(bench: Bench, library: str) -> None:
    drawn = draw_pairs(bench, random.Random(115), 200)
    order = [read ^ 1 for read in range(400)]
    turned = {name: [values[read] for read in order] for name, values in drawn.items()}
    here = paired(bench, bench.world(**drawn), LIBRARIES[library], Scoring())
    there = paired(bench, bench.world(**turned), exchanged(LIBRARIES[library]), Scoring())
    assert [there[read] for read in order] == here


def test_ties_depend_on_read_and_position(bench: Bench) -> None:
    """Two equal copies of a fragment are chosen equally often, by both mates alike, in any order of windows."""
    generator = random.Random(116)
    reads, all_windows = [], []
    for _ in range(200):
        for reverse in (False, True):
            read, starts = random_bases(generator, 50), (100 + 150 * reverse, 900 + 150 * reverse)
            windows = [window_at(bench, read, 0, start, reverse) for start in starts]
            all_windows.append(windows[::-1] if below(generator, 2) else windows)
            reads.append(read)
    placed = []
    for order in (1, -1):
        windows = [own[::order] for own in all_windows]
        world = bench.world(reads, windows, [below(generator, 2) for _ in reads])
        chosen = [window for window, *_ in paired(bench, world, LIBRARIES["FR"], Scoring())]
        placed.append([own[window].diagonal >= 600 for own, window in zip(windows, chosen, strict=True)])
    assert placed[0] == placed[1]
    assert placed[0][::2] == placed[0][1::2]
    assert 60 < sum(placed[0][::2]) < 140


# Rescue.


def rescued_diagonals(
    bench: Bench, world: World, library: Sequence[InsertSize], patch: pytest.MonkeyPatch
) -> dict[int, Any]:
    """Return the diagonals found for each read that was searched."""
    given: list[Any] = []
    patch.setattr(pairs, "add_windows", lambda *arguments: given.append(arguments))
    patch.setattr(pairs, "score_windows", lambda *_: None)
    patch.setattr(pairs, "choose_windows", lambda *_: None)
    backend, host = bench.backend, bench.backend.to_host
    pairs.rescue_mates(insert_size_table(library, backend), world.batch, bench.context)
    if not given:
        return {}
    selected, diagonals, *_ = given[0]
    rows = host(diagonals.rows).view(DIAGONAL).reshape(-1, MAX_DIAGONALS)
    records = host(world.batch.queries.order)[host(selected.indices)].tolist()
    return {read: row[:count] for read, row, count in zip(records, rows, host(diagonals.counts).tolist(), strict=True)}


def placements_near(
    bench: Bench, own: Mate, partner: Mate, library: Sequence[InsertSize], own_first: bool
) -> set[tuple[int, int, int]]:
    """Return orientation, diagonal and contig of all placements that make a fragment with an anchor."""
    found = set()
    for anchor in range(min(len(partner.windows), MAX_ANCHORS)):
        end, contig = partner.end(anchor), partner.contigs[anchor]
        for insert in library:
            for size, sign in itertools.product(range(insert.low, insert.high + 1), (-1, 1)):
                for reverse in (False, True):
                    here = end[0] + sign * size, reverse
                    if fragment(*((here, end) if own_first else (end, here))) == (insert.direction, size):
                        found.add((int(reverse != own.flipped), here[0] - (own.length if reverse else 0), contig))
    return found


def draw_pairs_with_lost_mates(
    bench: Bench, generator: random.Random, count: int, library: Sequence[InsertSize]
) -> tuple[World, list[str]]:
    """One read of a pair has windows; the other resembles the reference near one of them, and has no window."""
    reads, all_windows, chosen = [], [], []
    for number in range(count):
        partner = random_bases(generator, 30 + below(generator, 90))
        anchors = []
        for _ in range((1, 1, 2, MAX_ANCHORS + 2)[below(generator, 4)]):
            anchor = bench.draw_window(generator, len(partner))
            anchors.append(dataclasses.replace(anchor, deficit=below(generator, 60) if anchors else 0))
        near = anchors[below(generator, len(anchors))]
        reverse = bool(near.orientation) != (canonical(partner) != clean(partner))
        end = near.diagonal - bench.starts[bench.contig_of(near)] + (len(partner) if reverse else 0), reverse
        partner_first = bool(below(generator, 2))
        mate = draw_lost_mate(generator, bench.contigs[bench.contig_of(near)], end, partner_first, library)
        if number % 5 == 0:
            mate = f"{mate[: len(mate) // 3]}N{mate[len(mate) // 3 + 1 :]}"
        if number % 3 == 0:  # the shortest match that is extended
            at, other = below(generator, len(mate) - MIN_RUN + 1), mate.translate(COMPLEMENT)
            mate = other[:at] + mate[at : at + MIN_RUN] + other[at + MIN_RUN :]
        order = slice(None, None, 1 if partner_first else -1)
        reads += [partner, mate][order]
        all_windows += [anchors, []][order]
        chosen += [0, -1][order]
    return bench.world(reads, all_windows, chosen), reads


def draw_lost_mate(
    generator: random.Random, contig: str, partner: End, partner_first: bool, library: Sequence[InsertSize]
) -> str:
    """Return a read near an anchor, with extreme insert sizes included, or hanging over an end of the contig."""
    length = (17, 25, 31, 32, 33, 64, 100, 150)[below(generator, 8)]
    ranges = {size.direction: range(size.low, size.high + 1) for size in library}
    places = []
    for start, reverse in itertools.product(range(-length, len(contig)), (False, True)):
        end = start + (length if reverse else 0), reverse
        direction, size = fragment(partner, end) if partner_first else fragment(end, partner)
        if size in ranges.get(direction, ()):
            places.append((size, start, reverse))
    places = sorted(places) or [(0, below(generator, len(contig)), False)]
    _, start, reverse = (places[0], places[-1], places[below(generator, len(places))])[below(generator, 3)]
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
    """All diagonals at which a mate may lie are found, and no others; the best MAX_DIAGONALS if there are more."""
    generator = random.Random(117)
    unclear = [random_bases(generator, length, "ACGT" * 15 + "N") for length in (500, 60)]
    genomes = {"random": CONTIGS, "ambiguous": unclear, "repetitive": ["CAG" * 200, "A" * 90]}
    bench, sizes = Bench(genomes[genome], backends), LIBRARIES[library]
    world, reads = draw_pairs_with_lost_mates(bench, generator, 25, sizes)
    found, contigs = rescued_diagonals(bench, world, sizes, monkeypatch), [clean(contig) for contig in bench.contigs]
    assert sorted(found) == [read for read, mate in enumerate(world.mates) if not mate.windows]
    named = 0
    for read, rows in found.items():
        own, forward = world.mates[read], canonical(reads[read])
        oriented = forward, reverse_complement(forward)
        runs: dict[tuple[int, int, int], int] = {}
        for orientation, diagonal, contig in placements_near(bench, own, world.mates[read ^ 1], sizes, read % 2 == 0):
            letters, start = contigs[contig], diagonal - bench.starts[contig]
            begin = max(0, -start)
            laid = zip(oriented[orientation][begin:], letters[start + begin :], strict=False)
            equal = "".join(["=" if a == b != "N" else " " for a, b in laid])
            if "=" * MIN_RUN in equal:
                runs[orientation, diagonal, contig] = max(map(len, equal.split()))
        shown = set()
        for row in rows:
            orientation, diagonal, begin, end = (int(row[n]) for n in ("orientation", "diagonal", "start", "end"))
            contig = max(number for number, first in enumerate(bench.starts[:-1]) if first <= diagonal + begin)
            letters, start = contigs[contig], diagonal - bench.starts[contig]
            columns = [column_score(oriented[orientation][i], letters[start + i], Scoring()) for i in range(begin, end)]
            assert row["score"] == sum(columns) + Scoring().clip_penalty * ((begin == 0) + (end == own.length))
            shown.add((orientation, diagonal, contig))
        assert len(shown) == len(rows) == min(len(runs), MAX_DIAGONALS)
        assert shown <= runs.keys()
        assert all(runs[place] <= rows["score"].min() for place in runs.keys() - shown)
        named += len(runs)
    assert named > 5


@pytest.mark.parametrize("own_windows", [0, 1, MAX_SEED_WINDOWS - 1, MAX_SEED_WINDOWS])
@pytest.mark.parametrize(
    "loss", [0, DOUBT_PHRED - 1, DOUBT_PHRED, UNPAIRED - MIN_GAIN - 1, UNPAIRED - MIN_GAIN, UNPAIRED + DOUBT_PHRED - 1]
)
def test_when_a_mate_is_rescued(bench: Bench, monkeypatch: pytest.MonkeyPatch, loss: int, own_windows: int) -> None:
    """If the gain is worth the search or, if windows of the mate may have been dropped, the choice may be as likely."""
    reads = [random_bases(random.Random(120), 50), random_bases(random.Random(121), 50)]
    for last in (0, DOUBT_PHRED - 1, DOUBT_PHRED):
        # The chosen window of the first read is in another contig than all others.
        partners = [window_at(bench, reads[0], 1, -20), window_at(bench, reads[0], 0, 400)]
        partners[0] = dataclasses.replace(partners[0], deficit=UNPAIRED + 2 * DOUBT_PHRED)
        partners[1] = dataclasses.replace(partners[1], deficit=loss)
        mates = [window_at(bench, reads[1], 2, 30 * i, True) for i in range(own_windows)]
        mates = [dataclasses.replace(w, ungapped=w.score - i, deficit=last if i else 0) for i, w in enumerate(mates)]
        world = bench.world(reads, [partners, mates], [1, 0 if mates else -1])
        wanted = loss < UNPAIRED - MIN_GAIN or (
            own_windows == MAX_SEED_WINDOWS and last < DOUBT_PHRED and loss < UNPAIRED + DOUBT_PHRED
        )
        assert (1 in rescued_diagonals(bench, world, LIBRARIES["FR"], monkeypatch)) == wanted


@pytest.mark.parametrize(("crowded", "wanted"), [(0, False), (41, False), (40, True), (50, True)])
def test_rescue_after_dropped_diagonals(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, crowded: int, wanted: bool
) -> None:
    """A dropped diagonal may lose as little as the last window that scores more."""
    reads = [random_bases(random.Random(122), 50), random_bases(random.Random(123), 50)]
    partners = [window_at(bench, reads[0], 0, 400)]
    mates = [window_at(bench, reads[1], 0, 600 + 40 * i, True) for i in range(3)]
    scores = [(50, 0), (45, DOUBT_PHRED), (40, DOUBT_PHRED - 1) if crowded == 40 else (30, 0)]
    mates = [dataclasses.replace(w, ungapped=s, score=s, deficit=d) for w, (s, d) in zip(mates, scores, strict=True)]
    world = bench.world(reads, [partners, mates], [0, 0], crowded=[0, crowded])
    assert (1 in rescued_diagonals(bench, world, LIBRARIES["FR"], monkeypatch)) == wanted


def test_rescued_mates_are_placed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mates with a difference every 13 bases have no seed in a large genome; they are rescued."""
    monkeypatch.setattr(pipeline, "search_passes", lambda *_: search_passes(3_000_000_000))
    generator = random.Random(119)
    reads = []
    for _ in range(30):
        start = below(generator, 1_000)
        first, second = CONTIGS[0][start : start + 100], reverse_complement(CONTIGS[0][start + 200 : start + 300])
        letters = [base if (i + 5) % 13 else "ACGT"[("ACGT".index(base) + 1) % 4] for i, base in enumerate(second)]
        reads += [first, "".join(letters)][:: 1 if below(generator, 2) else -1]
    backend, host = bench.backend, bench.backend.to_host
    held = dataclasses.replace(reads_of(fasta_reads([Read("r", read) for read in reads]), backend, 2), paired=True)
    batch, inserts = pipeline.search_reads(held, bench.context), insert_size_table(LIBRARIES["FR"], backend)
    choose_windows(DeviceList.of(batch.queries.slot_of), batch, bench.context)
    chosen = host(batch.placements.chosen)[host(batch.queries.slot_of)].reshape(-1, 2)
    assert (chosen.min(axis=1) < 0).all()
    pairs.rescue_mates(inserts, batch, bench.context)
    pair_mates(inserts, backend.full(len(reads) // 2, NOT_JOINED, np.int32), batch, bench.context)
    assert host(batch.placements.chosen).min() >= 0
    assert host(batch.placements.mapqs).min() >= 30
    assert host(batch.placements.properly_paired).all()
