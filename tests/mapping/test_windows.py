"""Diagonals and windows: all that the seeds lead to, with correct scores, the best first."""

import dataclasses
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from examples import batch_of, below, context_of, random_bases, substitute
from oracles.alignment import canonical, clean, gap_cost, reverse_complement, segment

from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import MAX_WINDOWS, WINDOW, Batch, Context
from readmap.mapping.diagonals import DIAGONAL, MAX_DIAGONALS, find_diagonals
from readmap.mapping.parameters import DIVERGENT, MAX_SPLIT_WINDOWS, SPLIT, Scoring, SearchPass, search_passes
from readmap.mapping.seeds import Selection, find_seeds
from readmap.mapping.windows import add_windows, replace_windows

X_DROP = constant("mapping/ungapped.cuh", "X_DROP")
LONG_SPREAD = constant("mapping/window_builder.cuh", "LONG_SPREAD")
MAX_DEFICIT_FOR_LONG_GAP = constant("mapping/windows.cu", "MAX_DEFICIT_FOR_LONG_GAP")
MAX_SEED_WINDOWS, LONG_READ, SPREAD, NARROW_SPREAD, MIDDLE_SPREAD = (
    constant("mapping/windows.cuh", name)
    for name in ("MAX_SEED_WINDOWS", "LONG_READ", "SPREAD", "NARROW_SPREAD", "MIDDLE_SPREAD")
)
NO_BAND, NARROW, MIDDLE, WIDE, WIDEST = (
    constant("mapping/windows.cuh", f"{name}_BAND") for name in ("NO", "NARROW", "MIDDLE", "WIDE", "WIDEST")
)
FLIPPED = constant("reads/queries.cuh", "READ_FLIPPED")

FIRST = SearchPass(DIVERGENT, stride=12, min_stride=3, min_seed_bases=14, max_suffixes=16)
EVERY = dataclasses.replace(FIRST, min_seed_bases=10, max_suffixes=10_000)
NEXT_BASE = str.maketrans("ACGT", "CGTA")


@dataclass(frozen=True)
class Found:
    """The rows of one read; diagonals are positions in the whole reference."""

    diagonals: Any
    windows: Any
    unexamined: int
    dropped_score: int
    flipped: bool


def find(
    reads: Sequence[str],
    context: Context,
    stride: int,
    search_pass: SearchPass,
    batch: Batch | None = None,
    parts: Sequence[tuple[int, int]] | None = None,
    most: int = MAX_SPLIT_WINDOWS,
) -> list[Found]:
    """Return what is found for each read, in order.

    batch: the batch of the reads, by default a new one, whose windows are replaced.
    parts: for each read, start and end of the searched part of its canonical form; new windows are added, up to `most`.
    """
    host, batch = context.backend.to_host, batch or batch_of(reads, context)
    slots = DeviceList.of(batch.queries.slot_of)
    selection = Selection(slots, stride, dataclasses.replace(search_pass, reason=SPLIT if parts else DIVERGENT))
    if parts:
        by_slot = np.array(parts, np.int32)[host(batch.queries.order)]
        ends = (context.backend.to_device(column.copy()) for column in by_slot.T)
        batch.placements.uncovered_starts, batch.placements.uncovered_ends = ends
    seeds = find_seeds(selection, batch, context)
    diagonals = find_diagonals(selection, seeds, batch, context)
    if parts:
        add_windows(slots, diagonals, most, batch, context)
    else:
        replace_windows(slots, diagonals, batch, context)
    kept = host(diagonals.rows).view(DIAGONAL).reshape(-1, MAX_DIAGONALS)
    rows = host(batch.windows.rows).view(WINDOW).reshape(-1, MAX_WINDOWS)
    return [
        Found(
            kept[read, : host(diagonals.counts)[read]].copy(),
            rows[slot, : host(batch.windows.counts)[slot]].copy(),
            int(host(diagonals.unexamined_prefixes)[read]),
            int(host(batch.windows.dropped_scores)[slot]),
            bool(host(batch.queries.flags)[slot] & FLIPPED),
        )
        for read, slot in enumerate(host(batch.queries.slot_of))
    ]


def orientations(read: str) -> tuple[str, str]:
    first = canonical(read)
    return first, reverse_complement(first)


def seeded_segments(
    read: str,
    contigs: Sequence[str],
    starts: Sequence[int],
    stride: int,
    shortest: int,
    scoring: Scoring,
    part: tuple[int, int],
) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Return {(orientation, diagonal, end): (score, begin)} around every word of the grid that occurs in a contig."""
    found: dict[tuple[int, int, int], tuple[int, int]] = {}
    flipped = canonical(read) != clean(read)
    for orientation, bases in enumerate(orientations(read)):
        reversed_ = bool(orientation) != flipped
        first, last = (len(bases) - part[1], len(bases) - part[0]) if orientation else part
        for position in range(0, len(bases) - shortest + 1, stride):
            if position < first or position + shortest > last:
                continue
            word = bases[position : position + shortest]
            for contig, start in zip(contigs, starts, strict=False):
                for match in re.finditer(f"(?={word})" if "N" not in word else "(?!)", contig):
                    diagonal = match.start() - position
                    around = segment(bases, contig, diagonal, position, position + shortest, X_DROP, scoring, reversed_)
                    key = orientation, start + diagonal, around[2]
                    before = found.get(key, (0, 0))
                    found[key] = max(before, around[:2], key=lambda part: (part[0], -part[1]))
    return found


def check_diagonals(
    read: str,
    found: Found,
    contigs: Sequence[str],
    context: Context,
    stride: int,
    search_pass: SearchPass,
    part: tuple[int, int] | None = None,
) -> None:
    starts, part = context.index.host.contig_starts.tolist(), part or (0, len(read))
    expected = seeded_segments(read, contigs, starts, stride, search_pass.min_seed_bases, context.scoring, part)
    rows = found.diagonals
    named = {
        (int(r["orientation"]), int(r["diagonal"]), int(r["end"])): (int(r["score"]), int(r["start"])) for r in rows
    }
    assert len(named) == len(rows) == min(len(expected), MAX_DIAGONALS)
    assert named.items() <= expected.items()
    scores = [int(score) for score in rows["score"]]
    assert scores == sorted((score for score, _ in expected.values()), reverse=True)[:MAX_DIAGONALS]


def band_of(length: int, spread: int) -> int:
    """Return the kind of band that a window needs."""
    if length > LONG_READ:
        return WIDEST
    return WIDE if spread > MIDDLE_SPREAD else MIDDLE if spread > NARROW_SPREAD else NARROW


def contig_of(row: Any, starts: Sequence[int]) -> int:
    return max(number for number, start in enumerate(starts[:-1]) if start <= row["diagonal"] + row["start"])


def check_windows(read: str, found: Found, context: Context) -> None:
    """No two windows share a placement; each kept diagonal is in a window or worse; the best segment is first."""
    starts, scoring = context.index.host.contig_starts.tolist(), context.scoring
    assert found.flipped == (canonical(read) != clean(read))
    assert min(1, len(found.diagonals)) <= len(found.windows) <= min(MAX_SEED_WINDOWS, len(found.diagonals))
    own = [(row["orientation"], row["diagonal"], row["start"], row["end"], row["score"]) for row in found.diagonals]
    top = int(found.diagonals["score"].max(initial=0))
    for number, row in enumerate(found.windows):
        assert (row["orientation"], row["diagonal"], row["start"], row["end"], row["ungapped"]) in own
        assert row["score"] == row["ungapped"]
        assert -LONG_SPREAD <= row["low"] <= 0 <= row["high"] <= LONG_SPREAD
        # What adds nothing widens no band that is wide for it.
        more = (row["cover_start"], row["cover_end"]) != (row["start"], row["end"])
        assert more or row["high"] - row["low"] <= MIDDLE_SPREAD
        assert 0 <= row["cover_start"] <= row["start"] < row["end"] <= row["cover_end"] <= len(read)
        for other in found.windows[:number]:
            apart = abs(int(row["diagonal"]) - int(other["diagonal"])) > SPREAD
            strands = row["orientation"] != other["orientation"]
            # A window may be near another one if the other's band cannot hold it, too.
            assert apart or strands or contig_of(row, starts) != contig_of(other, starts) or is_full(row, other, top)
        lost = scoring.match * len(read) + scoring.clip_5 + scoring.clip_3 - row["ungapped"]
        if lost <= min(gap_cost(1, kind, scoring, long_gaps=True) for kind in "ID"):
            assert row["band"] == NO_BAND
        elif number == 0:
            assert row["band"] == -band_of(len(read), row["high"] - row["low"])
        else:
            assert row["band"] in (NO_BAND, -band_of(len(read), row["high"] - row["low"]))
    if len(found.windows) < MAX_SEED_WINDOWS:
        for kept in found.diagonals:
            assert holds_any(found.windows[found.windows["ungapped"] >= kept["score"]], kept, starts, top)


def holds_any(windows: Any, kept: Any, starts: Sequence[int], top: int = 0) -> bool:
    """Return True if one of the windows covers the placement of a kept diagonal."""
    home = kept["orientation"], contig_of(kept, starts)
    return any((row["orientation"], contig_of(row, starts)) == home and holds(row, kept, top) for row in windows)


def may_be_narrowed(row: Any, top: int) -> bool:
    """Return True if a window may have given up far diagonals."""
    return bool(row["ungapped"] < top - MAX_DEFICIT_FOR_LONG_GAP and row["low"] == row["high"] == 0)


def holds(row: Any, kept: Any, top: int) -> bool:
    """Return True if a kept diagonal is in a window's band or near it, or far with better ones near."""
    offset = int(kept["diagonal"]) - int(row["diagonal"])
    return bool(
        row["low"] <= offset <= row["high"] or abs(offset) <= (LONG_SPREAD if may_be_narrowed(row, top) else SPREAD)
    )


def is_full(row: Any, other: Any, top: int) -> bool:
    """Return True if one of two windows is too wide to include the other."""
    for one, offset in (
        (row, int(other["diagonal"] - row["diagonal"])),
        (other, int(row["diagonal"] - other["diagonal"])),
    ):
        if may_be_narrowed(one, top) or max(int(one["high"]), offset) - min(int(one["low"]), offset) > LONG_SPREAD:
            return True
    return False


RANDOM = random.Random(41)
UNIT = random_bases(RANDOM, 160)
GENOMES = {
    "random": [random_bases(RANDOM, 900), random_bases(RANDOM, 300), random_bases(RANDOM, 20)],
    "copies": [
        random_bases(RANDOM, 50) + UNIT + random_bases(RANDOM, 70) + substitute(RANDOM, UNIT, 4),
        reverse_complement(UNIT) + random_bases(RANDOM, 60) + UNIT[:80],
        substitute(RANDOM, UNIT, 9)[40:],
    ],
    "tandem": [random_bases(RANDOM, 100) + UNIT[:31] * 6 + random_bases(RANDOM, 100), UNIT[:12] * 12],
    "ambiguous": [random_bases(RANDOM, 600, "ACGT" * 12 + "N"), random_bases(RANDOM, 300, "ACGT" * 25 + "R")],
}


def reads_of(contigs: Sequence[str], generator: random.Random) -> list[str]:
    reads = []
    for number in range(40):
        contig = contigs[below(generator, len(contigs))]
        length = 14 + below(generator, 110)
        start = below(generator, len(contig))
        piece = clean(contig[start : start + length]).replace("N", "A") + random_bases(generator, 14)
        piece = substitute(generator, piece, below(generator, 6))
        if number % 3 == 0:
            piece = piece[: length // 2] + piece[length // 2 + below(generator, 9) :]
        if number % 5 == 0:
            piece = random_bases(generator, below(generator, 20)) + piece[:-3] + "N" + piece[-2:]
        if number % 4 == 2:
            # About as many differences in a row as the X-drop allows.
            at, count = below(generator, len(piece)), 5 + below(generator, 6)
            piece = piece[:at] + piece[at : at + count].translate(NEXT_BASE) + piece[at + count :]
        piece = piece.ljust(14, "G")
        reads.append(piece if number % 2 else reverse_complement(piece))
    return reads


@pytest.mark.parametrize("stride", [1, 4, 9])
@pytest.mark.parametrize("genome", GENOMES)
def test_windows(backends: str, genome: str, stride: int) -> None:
    contigs = GENOMES[genome]
    context = context_of(contigs, backends, 2)
    reads = reads_of(contigs, random.Random(42))
    for read, found in zip(reads, find(reads, context, stride, EVERY), strict=True):
        check_diagonals(read, found, contigs, context, stride, EVERY)
        check_windows(read, found, context)
        assert found.unexamined == 0


@pytest.mark.parametrize("unequal", [False, True], ids=["equal", "unequal"])
def test_windows_with_other_scores(backends: str, unequal: bool) -> None:
    """unequal: different penalties for the two kinds of gaps, and for the two ends."""
    scoring = Scoring(match=3, mismatch=5, gap_open=2, gap_extend=4, clip_penalty=11)
    if unequal:
        scoring = dataclasses.replace(scoring, gap_open=(9, 2), gap_extend=(1, 4), clip_penalty=(11, 2))
    for contigs in GENOMES.values():
        context = dataclasses.replace(context_of(contigs, backends, force_64_bits=True), scoring=scoring)
        reads = reads_of(contigs, random.Random(43))
        for read, found in zip(reads, find(reads, context, 3, EVERY), strict=True):
            check_diagonals(read, found, contigs, context, 3, EVERY)
            check_windows(read, found, context)


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("genome", GENOMES)
def test_windows_of_uncovered_parts(backends: str, genome: str, stride: int) -> None:
    """Seeds of one part only, on either strand; present windows accept their diagonals, or new windows follow."""
    contigs = GENOMES[genome]
    context = context_of(contigs, backends, 2)
    starts = context.index.host.contig_starts.tolist()
    generator = random.Random(52)
    reads = [read for _ in range(3) for read in reads_of(contigs, generator)]
    cuts = [(below(generator, len(read)), below(generator, len(read))) for read in reads]
    parts = [((0, cut[0]), (cut[1], len(read)))[i % 2] for i, (read, cut) in enumerate(zip(reads, cuts, strict=True))]
    batch, added, wider = batch_of(reads, context), 0, 0
    before = find(reads, context, 40, FIRST, batch)
    after = find(reads, context, stride, EVERY, batch, parts)
    for read, part, first, second in zip(reads, parts, before, after, strict=True):
        check_diagonals(read, second, contigs, context, stride, EVERY, part)
        old, most, kept = len(first.windows), len(second.windows), second.diagonals
        assert old <= most <= MAX_SPLIT_WINDOWS
        for window, wide in zip(first.windows, second.windows[:old], strict=True):
            assert all(window[n] == wide[n] for n in ("diagonal", "orientation", "score", "ungapped", "start", "end"))
            assert wide["low"] <= window["low"] <= window["high"] <= wide["high"] <= wide["low"] + LONG_SPREAD
            assert wide["cover_start"] <= window["cover_start"] < window["cover_end"] <= wide["cover_end"]
            assert wide == window or wide["band"] == -band_of(len(read), wide["high"] - wide["low"])
            wider += wide != window
        named = {(row["orientation"], row["diagonal"], row["end"]) for row in kept}
        assert {(row["orientation"], row["diagonal"], row["end"]) for row in second.windows[old:]} <= named
        assert most == MAX_SPLIT_WINDOWS or all(holds_any(second.windows, row, starts) for row in kept[:1])
        added += most - old
    assert added > 0
    assert wider > 0


@pytest.mark.parametrize("most", [5, MAX_SPLIT_WINDOWS, MAX_WINDOWS])
@pytest.mark.parametrize("copies", [0, 3, MAX_SPLIT_WINDOWS - 1, MAX_SPLIT_WINDOWS, 30])
def test_limit_of_added_windows(backends: str, copies: int, most: int) -> None:
    """Copies of the read's left half take windows first; the right half has more copies than there is room for."""
    generator = random.Random(55)
    left, right = random_bases(generator, 60), random_bases(generator, 60)
    others = [substitute(generator, right, changes) for changes in range(6) for _ in range(5)]
    generator.shuffle(others)
    units, search_pass = [left] * copies + others, dataclasses.replace(EVERY, min_seed_bases=14)
    context = context_of(["".join(unit + random_bases(generator, 140) for unit in units)], backends)
    for read in (left + right, reverse_complement(left + right)):
        halves = [(0, 60), (60, 120)] if canonical(read) == left + right else [(60, 120), (0, 60)]
        batch = batch_of([read] * 2, context)  # a window too many of one read would overwrite the other's
        before = find([read] * 2, context, 1, search_pass, batch, [halves[0]] * 2, most)
        after = find([read] * 2, context, 1, search_pass, batch, [halves[1]] * 2, most)
        for first, second in zip(before, after, strict=True):
            taken = min(copies, most)
            best = [sorted(found.diagonals["score"].tolist(), reverse=True) for found in (first, second)]
            assert scored(first) == best[0][:taken]
            assert scored(second) == best[0][:taken] + best[1][: most - taken]
            assert len(second.windows) == most


@pytest.mark.parametrize(
    ("left", "right", "spread", "band"),
    [(70, 67, 20, -WIDE), (70, 66, 0, -NARROW), (70, 22, 0, -NARROW), (70, 0, 0, -NARROW), (69, 0, 0, NO_BAND)],
)
def test_windows_far_below_the_best(backends: str, left: int, right: int, spread: int, band: int) -> None:
    """No long gap 30 points below the best, no alignment below half of the best window's bound.

    The best placement scores 150. The other has `left` bases of the start, with the bonus, and after 20 other bases
    `right` more; that gap costs 22.
    """
    generator = random.Random(53)
    unit, between = random_bases(generator, 140), random_bases(generator, 20)
    other = unit[left:].translate(NEXT_BASE)
    if right:
        other = between + unit[left : left + right] + unit[left + right :].translate(NEXT_BASE)
    contig = random_bases(generator, 90) + unit + random_bases(generator, 300) + unit[:left] + other
    context = context_of([contig + random_bases(generator, 90)], backends)
    for read in (unit, reverse_complement(unit)):
        (found,) = find([read], context, 1, dataclasses.replace(FIRST, min_seed_bases=12))
        best, row = found.windows
        assert (best["diagonal"], best["score"], best["band"]) == (90, 150, 0)
        assert (row["diagonal"], row["high"] - row["low"], row["band"]) == (530, spread, band)


def scored(found: Found) -> list[int]:
    return [int(score) for score in found.windows["ungapped"]]


def test_every_copy_of_a_repeat_is_a_window(backends: str) -> None:
    """On both strands, the most similar copies first."""
    generator = random.Random(44)
    unit = random_bases(generator, 120)
    copies = [substitute(generator, unit, changes) for changes in (0, 1, 3, 5, 8)]
    copies = [copy if number % 2 else reverse_complement(copy) for number, copy in enumerate(copies)]
    contig = "".join(random_bases(generator, 80) + copy for copy in copies) + random_bases(generator, 80)
    context = context_of([contig], backends)
    (found,) = find([unit], context, 1, search_passes(context.index.suffix_count)[1])
    assert set(found.windows["diagonal"][:5].tolist()) == {80 + 200 * number for number in range(5)}
    assert scored(found)[:5] == sorted(scored(found)[:5], reverse=True)
    assert scored(found)[0] == 130
    forward = 0 if not found.flipped else 1
    on_reverse = {int(row["diagonal"]) // 200 for row in found.windows[:5] if row["orientation"] != forward}
    assert on_reverse == {0, 2, 4}


def test_reverse_complements_have_the_same_windows(backends: str) -> None:
    for contigs in GENOMES.values():
        context = context_of(contigs, backends)
        reads = reads_of(contigs, random.Random(45))
        turned = [reverse_complement(read) for read in reads]
        for search_pass in search_passes(context.index.suffix_count):
            here = find(reads, context, 4, search_pass)
            there = find(turned, context, 4, search_pass)
            for read, one, other in zip(reads, here, there, strict=True):
                assert one.diagonals.tolist() == other.diagonals.tolist()
                assert one.windows.tolist() == other.windows.tolist()
                assert (one.unexamined, one.dropped_score) == (other.unexamined, other.dropped_score)
                assert one.flipped != other.flipped or clean(read) == reverse_complement(read)


@pytest.mark.parametrize("lanes", [1, 32])
def test_windows_do_not_depend_on_the_batch(backends: str, lanes: int) -> None:
    contigs = GENOMES["copies"]
    reads = reads_of(contigs, random.Random(46))
    context = context_of(contigs, backends, 3)
    search_pass = search_passes(context.index.suffix_count)[0]
    alone = [find([read], context, 4, search_pass)[0] for read in reads]
    context.backend.warp_width = lanes
    for one, other in zip(find(reads, context, 4, search_pass), alone, strict=True):
        assert one.windows.tolist() == other.windows.tolist()
        for name in ("unexamined", "dropped_score", "flipped"):
            assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize(("copies", "is_full"), [(MAX_DIAGONALS // 2, False), (MAX_DIAGONALS, True)])
def test_dropped_score(backends: str, copies: int, is_full: bool) -> None:
    """In a tandem repeat many diagonals make few windows."""
    unit = random_bases(random.Random(48), 20)
    context = context_of([unit * (copies + 2)], backends)
    (found,) = find([unit * 3], context, 4, dataclasses.replace(FIRST, max_suffixes=2 * copies))
    assert len(found.windows) < MAX_SEED_WINDOWS
    assert (len(found.diagonals) == MAX_DIAGONALS) == is_full
    assert found.dropped_score == (found.diagonals["score"].min() if is_full else 0)


@pytest.mark.parametrize(("copies", "max_suffixes", "unexamined"), [(5, 16, 0), (30, 16, 60), (30, 64, 0)])
def test_unexamined_prefix(backends: str, copies: int, max_suffixes: int, unexamined: int) -> None:
    generator = random.Random(47)
    unit = random_bases(generator, 60)
    contig = "".join(unit + random_bases(generator, 40) for _ in range(copies))
    context = context_of([contig], backends)
    (found,) = find([unit], context, 5, dataclasses.replace(FIRST, max_suffixes=max_suffixes))
    assert found.unexamined == unexamined
    assert len(found.windows) == min(copies, MAX_SEED_WINDOWS)
    assert set(scored(found)) == {70}


def test_reads_without_windows(backends: str) -> None:
    context = context_of([random_bases(random.Random(48), 500)], backends)
    reads = [random_bases(random.Random(49), 100), "N" * 50, "ACGT" * 10]
    assert [len(found.windows) for found in find(reads, context, 1, FIRST)] == [0, 0, 0]


def test_both_sides_of_a_gap_are_one_window(backends: str) -> None:
    """Near diagonals widen the window, farther ones if a long gap pays; others become windows of their own."""
    contig = random_bases(random.Random(50), 600)
    context = context_of([contig], backends)
    bands = {1: NARROW, 8: NARROW, 9: MIDDLE, 16: MIDDLE, 17: WIDE, 24: WIDE, 128: WIDE, 129: NARROW, 200: NARROW}
    for gap, band in bands.items():
        read = contig[200:270] + contig[270 + gap : 330 + gap]
        (found,) = find([read], context, 4, FIRST)
        row = found.windows[0]
        assert row["diagonal"] == 200 + (gap if row["orientation"] ^ found.flipped else 0)
        assert row["ungapped"] >= 75
        assert row["band"] == -band
        if gap <= LONG_SPREAD:
            assert len(found.windows) == 1
            assert (row["low"], row["high"]) == (0, gap)
        else:
            assert [int(diagonal) for diagonal in found.windows["diagonal"]] == [200, 200 + gap]
            assert found.windows["low"].tolist() == found.windows["high"].tolist() == [0, 0]


def test_gap_hidden_by_copies(backends: str) -> None:
    """If copies of one side displace the other side, a search for the uncovered part finds it."""
    draw = random.Random(54)
    left, right = random_bases(draw, 90), random_bases(draw, 40)
    copies = "".join(substitute(draw, left, 1 + number % 3) + random_bases(draw, 30) for number in range(40))
    context = context_of([copies + left + right + random_bases(draw, 50)], backends)
    search_pass = dataclasses.replace(FIRST, max_suffixes=64)
    read = left + random_bases(draw, 25) + right
    for one in (read, reverse_complement(read)):
        batch = batch_of([one], context)
        (first,) = find([one], context, 1, search_pass, batch)
        own = first.windows[0]
        assert (own["ungapped"], own["low"], own["high"]) == (95, 0, 0)
        part = (int(own["end"]), 155) if own["start"] == 0 else (0, int(own["start"]))
        part = (155 - part[1], 155 - part[0]) if own["orientation"] else part
        (second,) = find([one], context, 1, search_pass, batch, [part])
        own = second.windows[0]
        assert (own["high"] - own["low"], own["cover_start"], own["cover_end"], own["band"]) == (25, 0, 155, -WIDE)


@pytest.mark.parametrize("left", [20, 25, 30])
@pytest.mark.parametrize("inserted", [49, 50, 51])
def test_max_insertion(backends: str, left: int, inserted: int) -> None:
    """50 of 100 bases may be an insertion: then both sides are one window, else two, on either strand."""
    draw = random.Random(51)
    contig = random_bases(draw, 600)
    context = context_of([contig], backends)
    read = contig[300 - left : 300] + random_bases(draw, inserted) + contig[300 : 400 - left - inserted]
    for one in (read, reverse_complement(read)):
        (found,) = find([one], context, 4, FIRST)
        spreads = sorted(int(row["high"]) - int(row["low"]) for row in found.windows)
        assert spreads == ([inserted] if inserted <= 50 else [0, 0])


@pytest.mark.parametrize(("count", "ended"), [(7, False), (8, True)])
def test_x_drop(backends: str, count: int, ended: bool) -> None:
    """Seven differences in a row cost 28 points, eight 32: more than the X-drop of 30."""
    contig = random_bases(random.Random(52), 400)
    read = contig[100:160] + contig[160 : 160 + count].translate(NEXT_BASE) + contig[160 + count : 230]
    context = context_of([contig], backends)
    (found,) = find([read], context, 4, FIRST)
    turned = found.windows[0]["orientation"] ^ found.flipped
    segments = [(int(row["start"]), int(row["end"]), int(row["score"])) for row in found.diagonals]
    if turned:
        segments = [(130 - end, 130 - begin, score) for begin, end, score in segments]
    whole = 130 - 5 * count + 10
    assert sorted(segments) == ([(0, 60, 65), (60 + count, 130, 75 - count)] if ended else [(0, 130, whole)])


def test_segments_end_with_their_contig(backends: str) -> None:
    """The read continues in the neighbouring contig, but those bases are not part of the segment."""
    genome = random_bases(random.Random(51), 200)
    contigs = [genome[:100], genome[101:]]
    context = context_of(contigs, backends)
    starts = context.index.host.contig_starts.tolist()
    reads = [genome[start : start + 80] for start in range(30, 95, 7)]
    for read, found in zip(reads, find(reads, context, 1, FIRST), strict=True):
        check_diagonals(read, found, contigs, context, 1, FIRST)
        check_windows(read, found, context)
        for row in found.windows:
            inside = [start <= row["diagonal"] + row["start"] < start + 101 for start in starts[:2]]
            assert sum(inside) == 1
