"""Diagonals and windows: all that the seeds lead to, each as good as its bases are, and the best first."""

import dataclasses
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from examples import below, index_of, queries_of, random_bases, substitute
from oracles.alignment import canonical, clean, column_score, gap_cost, reverse_complement, segment

from readmap.backend import Array, Backend, open_backend
from readmap.index.device import DeviceIndex
from readmap.reads.queries import Queries
from readmap.search.diagonals import DIAGONAL, KEPT, find_diagonals
from readmap.search.parameters import FOUND_WINDOWS, SPLIT_WINDOWS, WINDOWS, Effort, Scoring, efforts
from readmap.search.seeds import find_seeds
from readmap.search.windows import WINDOW, Windows, add_diagonals, join_diagonals, no_windows

DROP = 30  # of kernels/search/ungapped.cuh
SPREAD, LONG_SPREAD, WORSE = 24, 128, 30  # of kernels/search/windows.cu
NARROW_SPREAD, MIDDLE_SPREAD, LONG_READ = 8, 16, 512  # of kernels/search/windows.cuh
FLIPPED = 1
NEXT_BASE = str.maketrans("ACGT", "CGTA")


@dataclass(frozen=True)
class Found:
    """Of one read: structured rows, whose diagonals are those of the whole reference."""

    diagonals: Any
    windows: Any
    missed: int
    flipped: bool


def find(
    reads: Sequence[str],
    index: DeviceIndex,
    backend: Backend,
    stride: int,
    effort: Effort,
    scoring: Scoring | None = None,
    parts: Sequence[tuple[int, int]] | None = None,
    windows: Windows | None = None,
    most: int = 0,
) -> list[Found]:
    """In the order of the reads.

    parts: begin and end by read, of what is searched of its canonical form; by default all of it.
    windows: to be replaced, or where there may be `most`, to be added to; by default there are none.
    """
    scoring = scoring or Scoring()
    queries = queries_of(reads, backend)
    windows = windows or no_windows(len(reads), backend)
    selected = backend.to_device(np.arange(len(reads), dtype=np.int32))
    lengths = queries.host_lengths[backend.to_host(selected)]
    seeds = find_seeds(queries, selected, lengths, stride, index, effort, backend)
    diagonals = find_diagonals(
        queries, selected, seeds, placed(parts, queries, backend), index, effort, scoring, backend
    )
    if most:
        add_diagonals(windows, diagonals, queries, selected, most, index, scoring, backend)
    else:
        join_diagonals(windows, diagonals, queries, selected, index, scoring, backend)
    kept = backend.to_host(diagonals.rows).view(DIAGONAL).reshape(-1, KEPT)
    rows = backend.to_host(windows.rows).view(WINDOW).reshape(-1, WINDOWS)
    counts = (diagonals.counts, windows.counts, diagonals.missed, queries.flags)
    host = list(zip(kept, rows, *(backend.to_host(array).tolist() for array in counts), strict=True))
    return [
        Found(kept[:kept_count].copy(), rows[:count].copy(), missed, bool(flags & FLIPPED))
        for kept, rows, kept_count, count, missed, flags in (host[slot] for slot in backend.to_host(queries.slot_of))
    ]


def placed(parts: Sequence[tuple[int, int]] | None, queries: Queries, backend: Backend) -> tuple[Array, Array]:
    """The begins and the ends by slot."""
    if parts is None:
        return backend.full(len(queries.host_lengths), 0, np.int32), queries.lengths
    by_slot = np.array(parts, np.int32)[backend.to_host(queries.order)]
    return backend.to_device(by_slot[:, 0].copy()), backend.to_device(by_slot[:, 1].copy())


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
    """Score and begin by (orientation, diagonal, end), around every word of the grid that a contig holds somewhere.

    part: of the read in orientation 0; only the words inside it.
    """
    found: dict[tuple[int, int, int], tuple[int, int]] = {}
    for orientation, bases in enumerate(orientations(read)):
        first, last = (len(bases) - part[1], len(bases) - part[0]) if orientation else part
        for position in range(0, len(bases) - shortest + 1, stride):
            if position < first or position + shortest > last:
                continue
            word = bases[position : position + shortest]
            for contig, start in zip(contigs, starts, strict=False):
                for match in re.finditer(f"(?={word})" if "N" not in word else "(?!)", contig):
                    diagonal = match.start() - position
                    told = segment(bases, contig, diagonal, position, position + shortest, DROP, scoring)
                    key = orientation, start + diagonal, told[2]
                    before = found.get(key, (0, 0))
                    found[key] = max(before, told[:2], key=lambda part: (part[0], -part[1]))
    return found


def check_diagonals(
    read: str,
    found: Found,
    contigs: Sequence[str],
    starts: Sequence[int],
    stride: int,
    effort: Effort,
    scoring: Scoring,
    part: tuple[int, int] | None = None,
) -> None:
    expected = seeded_segments(read, contigs, starts, stride, effort.shortest_seed, scoring, part or (0, len(read)))
    rows = found.diagonals
    told = {
        (int(r["orientation"]), int(r["diagonal"]), int(r["end"])): (int(r["score"]), int(r["begin"])) for r in rows
    }
    assert len(told) == len(rows) == min(len(expected), KEPT)
    assert told.items() <= expected.items()
    scores = [int(score) for score in rows["score"]]
    assert scores == sorted((score for score, _ in expected.values()), reverse=True)[:KEPT]


@dataclass
class Draft:
    """A window of the oracle: kept diagonals that one banded alignment may lead through, the best of them first.

    Attributes:
        offsets: of the diagonals that the band has to hold, relative to the best one's.
        covered: positions of the read, those between segments included.
        promise: what an alignment that steps between the diagonals may score.
        length: of the read.
    """

    own: Any
    offsets: list[int]
    covered: range
    promise: int
    length: int

    def offset(self, row: Any) -> int:
        return int(row["diagonal"]) - int(self.own["diagonal"])

    def spread_with(self, row: Any) -> int:
        offsets = [*self.offsets, self.offset(row)]
        return max(offsets) - min(offsets)

    def gain(self, row: Any, scoring: Scoring) -> int:
        """What an alignment scores more that steps to this diagonal for what it covers beside the others."""
        more = range(int(row["begin"]), int(row["end"]))
        shared = len(set(self.covered) & set(more))
        if shared == len(more):
            return 0
        gap, behind = abs(self.offset(row)), sum(more) * len(self.covered) > sum(self.covered) * len(more)
        if behind == (self.offset(row) < 0) and gap > self.length - gap:  # inserted
            return 0
        return int(row["score"]) - shared * scoring.match - gap_cost(gap, scoring, long_gaps=True)

    def takes(self, row: Any, starts: Sequence[int], scoring: Scoring) -> bool:
        same = (row["orientation"], contig_of(row, starts)) == (self.own["orientation"], contig_of(self.own, starts))
        pays = abs(self.offset(row)) <= SPREAD or self.gain(row, scoring) > 0
        return same and pays and self.spread_with(row) <= LONG_SPREAD

    def add(self, row: Any, scoring: Scoring) -> None:
        """A diagonal that adds nothing widens no band that is wide for it."""
        gain = self.gain(row, scoring)
        if gain > 0 or self.spread_with(row) <= MIDDLE_SPREAD:
            self.offsets.append(self.offset(row))
        if gain > 0:
            self.promise += gain
            begin, end = min(self.covered[0], int(row["begin"])), max(self.covered[-1] + 1, int(row["end"]))
            self.covered = range(begin, end)


def band_of(length: int, spread: int) -> int:
    """The kind of band that a window wants."""
    if length > LONG_READ:
        return 4
    return 3 if spread > MIDDLE_SPREAD else 2 if spread > NARROW_SPREAD else 1


def contig_of(row: Any, starts: Sequence[int]) -> int:
    return max(number for number, start in enumerate(starts[:-1]) if start <= row["diagonal"] + row["begin"])


def joined(
    rows: Any, starts: Sequence[int], length: int, scoring: Scoring, most: int = FOUND_WINDOWS
) -> list[tuple[int, ...]]:
    """The windows, as tuples, that kept diagonals make."""
    drafts: list[Draft] = []
    for row in rows:
        home = next((draft for draft in drafts if draft.takes(row, starts, scoring)), None)
        if home:
            home.add(row, scoring)
        else:
            drafts.append(Draft(row, [0], range(int(row["begin"]), int(row["end"])), int(row["score"]), length))
    drafts.sort(key=lambda draft: -draft.promise)
    windows: list[tuple[int, ...]] = []
    for draft in drafts[:most]:
        own, low, high = draft.own, min(draft.offsets), max(draft.offsets)
        if draft.promise < int(rows[0]["score"]) - WORSE and high - low > NARROW_SPREAD:
            low = high = 0
        lost = scoring.match * length + 2 * scoring.clip_penalty - int(own["score"])
        hopeless = lost <= gap_cost(1, scoring, long_gaps=True) or 2 * draft.promise < drafts[0].promise
        score, place = int(own["score"]), (int(own["begin"]), int(own["end"]), low, high)
        cover = draft.covered[0], draft.covered[-1] + 1
        band = 0 if hopeless else -band_of(length, high - low)
        windows.append((int(own["diagonal"]), score, score, *place, int(own["orientation"]), band, *cover))
    return windows


def widened(own: Any, row: Any, starts: Sequence[int], length: int, scoring: Scoring) -> Any | None:
    """The window, widened for the best segment of another where that promises more; None where it does not take it."""
    low, high = int(own["low"]), int(own["high"])
    draft = Draft(own, [low, high], range(int(own["cover_begin"]), int(own["cover_end"])), 0, length)
    if not draft.takes(row, starts, scoring):
        return None
    draft.add(row, scoring)
    wide = own.copy()
    if draft.promise:
        wide["low"], wide["high"] = low, high = min(draft.offsets), max(draft.offsets)
        wide["cover_begin"], wide["cover_end"] = draft.covered[0], draft.covered[-1] + 1
        wide["band"] = -band_of(length, high - low)
    return wide


def check_windows(read: str, found: Found, starts: Sequence[int], scoring: Scoring) -> None:
    """The oracle's; and what that means: none is in two windows' places, and a kept diagonal is in one or worse."""
    assert [tuple(row) for row in found.windows.tolist()] == joined(found.diagonals, starts, len(read), scoring)
    assert found.flipped == (canonical(read) != clean(read))
    assert min(1, len(found.diagonals)) <= len(found.windows) <= min(FOUND_WINDOWS, len(found.diagonals))
    own = [(row["orientation"], row["diagonal"], row["begin"], row["end"], row["score"]) for row in found.diagonals]
    top = int(found.diagonals["score"].max(initial=0))
    for number, row in enumerate(found.windows):
        assert (row["orientation"], row["diagonal"], row["begin"], row["end"], row["ungapped"]) in own
        assert row["score"] == row["ungapped"]
        assert -LONG_SPREAD <= row["low"] <= 0 <= row["high"] <= LONG_SPREAD
        assert 0 <= row["cover_begin"] <= row["begin"] < row["end"] <= row["cover_end"] <= len(read)
        for other in found.windows[:number]:
            apart = abs(int(row["diagonal"]) - int(other["diagonal"])) > SPREAD
            strands = row["orientation"] != other["orientation"]
            # One is no part of the other if the band of that cannot hold it too.
            assert apart or strands or contig_of(row, starts) != contig_of(other, starts) or full(row, other, top)
        loss = scoring.match * len(read) + 2 * scoring.clip_penalty - row["ungapped"]
        if loss <= gap_cost(1, scoring, long_gaps=True):
            assert row["band"] == 0
        elif number == 0:
            spread = row["high"] - row["low"]
            assert row["band"] == -(4 if len(read) > LONG_READ else 3 if spread > 16 else 2 if spread > 8 else 1)
        else:
            assert row["band"] <= 0
    if len(found.windows) < FOUND_WINDOWS:
        for kept in found.diagonals:
            assert any(
                (row["orientation"], contig_of(row, starts)) == (kept["orientation"], contig_of(kept, starts))
                and holds(row, kept, top)
                and row["ungapped"] >= kept["score"]
                for row in found.windows
            )


def given_up(row: Any, top: int) -> bool:
    """Whether a window may have given up far diagonals."""
    return bool(row["ungapped"] < top - WORSE and row["low"] == row["high"] == 0)


def holds(row: Any, kept: Any, top: int) -> bool:
    """Whether a kept diagonal is in a window's band, or beside its own; far from it where others are better."""
    offset = int(kept["diagonal"]) - int(row["diagonal"])
    return bool(row["low"] <= offset <= row["high"] or abs(offset) <= (LONG_SPREAD if given_up(row, top) else SPREAD))


def full(row: Any, other: Any, top: int) -> bool:
    """Whether one of two windows spreads so far that it can hold nothing where the other one is."""
    for one, offset in (
        (row, int(other["diagonal"] - row["diagonal"])),
        (other, int(row["diagonal"] - other["diagonal"])),
    ):
        if given_up(one, top) or max(int(one["high"]), offset) - min(int(one["low"]), offset) > LONG_SPREAD:
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
            # As many differences in a row as end a segment, or nearly.
            at, count = below(generator, len(piece)), 5 + below(generator, 6)
            piece = piece[:at] + piece[at : at + count].translate(NEXT_BASE) + piece[at + count :]
        piece = piece.ljust(14, "G")
        reads.append(piece if number % 2 else reverse_complement(piece))
    return reads


@pytest.mark.parametrize("stride", [1, 4, 9])
@pytest.mark.parametrize("genome", GENOMES)
def test_windows(backends: str, genome: str, stride: int) -> None:
    contigs = GENOMES[genome]
    backend = open_backend(backends, 2)
    index = index_of(contigs).to_device(backend)
    starts = index.host.contig_starts.tolist()
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=10, neighbours=10_000)
    reads = reads_of(contigs, random.Random(42))
    for read, found in zip(reads, find(reads, index, backend, stride, effort), strict=True):
        check_diagonals(read, found, contigs, starts, stride, effort, Scoring())
        check_windows(read, found, starts, Scoring())
        assert found.missed == 0


def test_windows_by_another_scoring(backends: str) -> None:
    backend = open_backend(backends)
    scoring = Scoring(match=3, mismatch=5, gap_open=2, gap_extend=4, clip_penalty=11)
    for contigs in GENOMES.values():
        index = index_of(contigs, force_64_bits=True).to_device(backend)
        starts = index.host.contig_starts.tolist()
        effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=10, neighbours=10_000)
        reads = reads_of(contigs, random.Random(43))
        for read, found in zip(reads, find(reads, index, backend, 3, effort, scoring), strict=True):
            check_diagonals(read, found, contigs, starts, 3, effort, scoring)
            check_windows(read, found, starts, scoring)


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("genome", GENOMES)
def test_windows_of_parts(backends: str, genome: str, stride: int) -> None:
    """Seeds of a part alone, of either strand; those found before take what they make, else it stands behind them."""
    contigs = GENOMES[genome]
    backend = open_backend(backends, 2)
    index = index_of(contigs).to_device(backend)
    starts = index.host.contig_starts.tolist()
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=10, neighbours=10_000)
    generator = random.Random(52)
    reads = [read for _ in range(4) for read in reads_of(contigs, generator)]
    parts = [
        ((0, below(generator, len(read))), (below(generator, len(read)), len(read)))[i % 2]
        for i, read in enumerate(reads)
    ]
    windows, added, wider = no_windows(len(reads), backend), 0, 0
    before = find(reads, index, backend, 40, dataclasses.replace(effort, shortest_seed=14), windows=windows)
    after = find(reads, index, backend, stride, effort, None, parts, windows, SPLIT_WINDOWS)
    for read, part, first, second in zip(reads, parts, before, after, strict=True):
        check_diagonals(read, second, contigs, starts, stride, effort, Scoring(), part)
        expected = list(first.windows)
        for fresh in np.array(joined(second.diagonals, starts, len(read), Scoring(), KEPT), WINDOW):
            for rank, window in enumerate(expected):
                taken = widened(window, fresh, starts, len(read), Scoring())
                if taken is not None:
                    wider += taken != window
                    expected[rank] = taken
                    break
            else:
                expected += [fresh] * (len(expected) < SPLIT_WINDOWS)
        assert list(second.windows) == expected
        added += len(expected) - len(first.windows)
    assert added > 0
    assert wider > 0


@pytest.mark.parametrize(
    ("left", "right", "spread", "band"),
    [(70, 67, 20, -3), (70, 66, 0, -1), (70, 22, 0, -1), (70, 0, 0, -1), (69, 0, 0, 0)],
)
def test_windows_far_below_the_best(backends: str, left: int, right: int, spread: int, band: int) -> None:
    """No long gap where the best has 30 points more, and no alignment for less than half of what the best promises.

    The best place scores 150. Another one has `left` bases of the start, with the bonus, and behind 20 others `right`
    ones more; that gap costs 22.
    """
    generator = random.Random(53)
    backend = open_backend(backends)
    unit, between = random_bases(generator, 140), random_bases(generator, 20)
    other = unit[left:].translate(NEXT_BASE)
    if right:
        other = between + unit[left : left + right] + unit[left + right :].translate(NEXT_BASE)
    contig = random_bases(generator, 90) + unit + random_bases(generator, 300) + unit[:left] + other
    index = index_of([contig + random_bases(generator, 90)]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=12)
    for read in (unit, reverse_complement(unit)):
        (found,) = find([read], index, backend, 1, effort)
        best, row = found.windows
        assert (best["diagonal"], best["score"], best["band"]) == (90, 150, 0)
        assert (row["diagonal"], row["high"] - row["low"], row["band"]) == (530, spread, band)


def scored(found: Found) -> list[int]:
    return [int(score) for score in found.windows["ungapped"]]


def test_every_copy_of_a_repeat_is_a_window(backends: str) -> None:
    """On both strands; the more a copy differs, the further behind it comes."""
    generator = random.Random(44)
    unit = random_bases(generator, 120)
    copies = [substitute(generator, unit, changes) for changes in (0, 1, 3, 5, 8)]
    copies = [copy if number % 2 else reverse_complement(copy) for number, copy in enumerate(copies)]
    contig = "".join(random_bases(generator, 80) + copy for copy in copies) + random_bases(generator, 80)
    backend = open_backend(backends)
    index = index_of([contig]).to_device(backend)
    (found,) = find([unit], index, backend, 1, efforts(index.suffix_count)[1])
    assert set(found.windows["diagonal"][:5].tolist()) == {80 + 200 * number for number in range(5)}
    assert scored(found)[:5] == sorted(scored(found)[:5], reverse=True)
    assert scored(found)[0] == 130
    forward = 0 if not found.flipped else 1
    on_reverse = {int(row["diagonal"]) // 200 for row in found.windows[:5] if row["orientation"] != forward}
    assert on_reverse == {0, 2, 4}


def test_reverse_complements_have_the_same_windows(backends: str) -> None:
    backend = open_backend(backends)
    for contigs in GENOMES.values():
        index = index_of(contigs).to_device(backend)
        reads = reads_of(contigs, random.Random(45))
        turned = [reverse_complement(read) for read in reads]
        for effort in efforts(index.suffix_count):
            here = find(reads, index, backend, 4, effort)
            there = find(turned, index, backend, 4, effort)
            for read, one, other in zip(reads, here, there, strict=True):
                assert one.diagonals.tolist() == other.diagonals.tolist()
                assert one.windows.tolist() == other.windows.tolist()
                assert one.missed == other.missed
                assert one.flipped != other.flipped or clean(read) == reverse_complement(read)


@pytest.mark.parametrize("lanes", [1, 32])
def test_windows_do_not_depend_on_the_batch(backends: str, lanes: int) -> None:
    contigs = GENOMES["copies"]
    reads = reads_of(contigs, random.Random(46))
    backend = open_backend(backends, 3)
    index = index_of(contigs).to_device(backend)
    effort = efforts(index.suffix_count)[0]
    alone = [find([read], index, backend, 4, effort)[0] for read in reads]
    backend.lanes = lanes
    for one, other in zip(find(reads, index, backend, 4, effort), alone, strict=True):
        assert one.windows.tolist() == other.windows.tolist()
        assert (one.missed, one.flipped) == (other.missed, other.flipped)


@pytest.mark.parametrize(("copies", "neighbours", "missed"), [(5, 16, 0), (30, 16, 60), (30, 64, 0)])
def test_walk_that_ends_at_its_limit_is_told(backends: str, copies: int, neighbours: int, missed: int) -> None:
    generator = random.Random(47)
    unit = random_bases(generator, 60)
    contig = "".join(unit + random_bases(generator, 40) for _ in range(copies))
    backend = open_backend(backends)
    index = index_of([contig]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=14, neighbours=neighbours)
    (found,) = find([unit], index, backend, 5, effort)
    assert found.missed == missed
    assert len(found.windows) == min(copies, FOUND_WINDOWS)
    assert set(scored(found)) == {70}


def test_reads_that_are_nowhere_have_no_windows(backends: str) -> None:
    backend = open_backend(backends)
    index = index_of([random_bases(random.Random(48), 500)]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=14)
    reads = [random_bases(random.Random(49), 100), "N" * 50, "ACGT" * 10]
    assert [len(found.windows) for found in find(reads, index, backend, 1, effort)] == [0, 0, 0]


def test_both_sides_of_a_gap_are_one_window(backends: str) -> None:
    """Diagonals near each other widen the window, and those that a long gap pays for; the ones behind become others."""
    contig = random_bases(random.Random(50), 600)
    backend = open_backend(backends)
    index = index_of([contig]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=14)
    for gap, band in ((1, 1), (8, 1), (9, 2), (16, 2), (17, 3), (24, 3), (25, 3), (128, 3), (129, 1), (200, 1)):
        read = contig[200:270] + contig[270 + gap : 330 + gap]
        (found,) = find([read], index, backend, 4, effort)
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


def test_copies_hide_no_gap(backends: str) -> None:
    """Where copies of one side crowd out the other one, a search for what is left of the read finds it."""
    draw = random.Random(54)
    left, right = random_bases(draw, 90), random_bases(draw, 40)
    copies = "".join(substitute(draw, left, 1 + number % 3) + random_bases(draw, 30) for number in range(40))
    backend = open_backend(backends)
    index = index_of([copies + left + right + random_bases(draw, 50)]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[2], shortest_seed=14)
    read = left + random_bases(draw, 25) + right
    for one in (read, reverse_complement(read)):
        windows = no_windows(1, backend)
        (first,) = find([one], index, backend, 1, effort, windows=windows)
        own = first.windows[0]
        assert (own["ungapped"], own["low"], own["high"]) == (95, 0, 0)
        part = (int(own["end"]), 155) if own["begin"] == 0 else (0, int(own["begin"]))
        part = (155 - part[1], 155 - part[0]) if own["orientation"] else part
        (second,) = find([one], index, backend, 1, effort, None, [part], windows, SPLIT_WINDOWS)
        own = second.windows[0]
        assert (own["high"] - own["low"], own["cover_begin"], own["cover_end"], own["band"]) == (25, 0, 155, -3)


@pytest.mark.parametrize("left", [20, 25, 30])
@pytest.mark.parametrize("inserted", [49, 50, 51])
def test_most_of_a_read_is_no_insertion(backends: str, left: int, inserted: int) -> None:
    """Of 100 bases 50 may be: then both sides are one window, else two, on whichever strand the read is."""
    draw = random.Random(51)
    contig = random_bases(draw, 600)
    backend = open_backend(backends)
    index = index_of([contig]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=14)
    read = contig[300 - left : 300] + random_bases(draw, inserted) + contig[300 : 400 - left - inserted]
    for one in (read, reverse_complement(read)):
        (found,) = find([one], index, backend, 4, effort)
        spreads = sorted(int(row["high"]) - int(row["low"]) for row in found.windows)
        assert spreads == ([inserted] if inserted <= 50 else [0, 0])


@pytest.mark.parametrize(("count", "ended"), [(7, False), (8, True)])
def test_segment_ends_where_it_falls_too_far(backends: str, count: int, ended: bool) -> None:
    """Seven differences in a row cost 28, eight 32: more than the 30 that a segment may fall below its best."""
    contig = random_bases(random.Random(52), 400)
    read = contig[100:160] + contig[160 : 160 + count].translate(NEXT_BASE) + contig[160 + count : 230]
    backend = open_backend(backends)
    index = index_of([contig]).to_device(backend)
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=14)
    (found,) = find([read], index, backend, 4, effort)
    turned = found.windows[0]["orientation"] ^ found.flipped
    segments = [(int(row["begin"]), int(row["end"]), int(row["score"])) for row in found.diagonals]
    if turned:
        segments = [(130 - end, 130 - begin, score) for begin, end, score in segments]
    whole = 130 - 5 * count + 10
    assert sorted(segments) == ([(0, 60, 65), (60 + count, 130, 75 - count)] if ended else [(0, 130, whole)])


def test_a_read_is_laid_on_one_contig(backends: str) -> None:
    """The neighbouring contig goes on as the read does; still its bases are no part of the segment."""
    genome = random_bases(random.Random(51), 200)
    contigs = [genome[:100], genome[101:]]
    backend = open_backend(backends)
    index = index_of(contigs).to_device(backend)
    starts = index.host.contig_starts.tolist()
    effort = dataclasses.replace(efforts(index.suffix_count)[0], shortest_seed=14)
    reads = [genome[start : start + 80] for start in range(30, 95, 7)]
    for read, found in zip(reads, find(reads, index, backend, 1, effort), strict=True):
        check_diagonals(read, found, contigs, starts, 1, effort, Scoring())
        check_windows(read, found, starts, Scoring())
        for row in found.windows:
            inside = [start <= row["diagonal"] + row["begin"] < start + 101 for start in starts[:2]]
            assert sum(inside) == 1


def test_segment_of_the_oracle() -> None:
    """The oracle itself, by hand: match 1, mismatch 4, bonus 5."""
    contig = "ACGTACGTTGCA" * 3
    read = contig[2:30]
    scoring = Scoring()
    assert segment(read, contig, 2, 10, 14, DROP, scoring) == (38, 0, 28)
    assert segment("A" + read[1:], contig, 2, 10, 14, DROP, scoring) == (33, 0, 28)
    assert segment(read[:-6] + "AAAAAA", contig, 2, 10, 14, DROP, scoring)[0] < 38
    assert segment(read + contig[30:36] + "AC", contig, 2, 0, 4, DROP, scoring) == (39, 0, 34)
    assert sum(column_score(a, b, scoring) for a, b in zip(read, contig[2:], strict=False)) == 28
