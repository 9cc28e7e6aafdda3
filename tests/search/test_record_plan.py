"""What is told of a read: its place, the parts of a split read, and other places, as Reporting asks."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import numpy as np
import pytest
from examples import random_bases
from oracles.pairs import Candidate, Line, select
from window_bench import Bench, World, draw_world

from readmap.errors import UsageError
from readmap.search.parameters import WINDOWS, Reporting, Scoring
from readmap.search.record_plan import MENTION, PIECE, PLACE, PRIMARY, Lines, select_lines

RANDOM = random.Random(121)
CONTIGS = [random_bases(RANDOM, 2_000), random_bases(RANDOM, 300)]
ROLES = {"primary": PRIMARY, "piece": PIECE, "mention": MENTION}


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


def told(bench: Bench, world: World, reporting: Reporting, scoring: Scoring) -> list[list[tuple[int, ...]]]:
    """By read: rank, role, owner (its number among the read's lines), MAPQ and second score of each line."""
    lines = select_lines(world.placements, world.windows, world.queries, reporting, scoring, bench.backend)
    check_arrays(bench, world, lines, scoring)
    host = bench.backend.to_host
    offsets = host(lines.offsets).tolist()
    rows = list(
        zip(
            *(host(a).tolist() for a in (lines.windows, lines.slots, lines.roles, lines.owners)),
            *(host(a).tolist() for a in (lines.mapqs, lines.seconds)),
            strict=True,
        )
    )
    rows = [
        (row - slot * WINDOWS if row >= 0 else -1, role, owner, mapq, second)
        for row, slot, role, owner, mapq, second in rows
    ]
    return [
        [(rank, role, owner - begin, mapq, second) for rank, role, owner, mapq, second in rows[begin:end]]
        for begin, end in itertools.pairwise(offsets)
    ]


def check_arrays(bench: Bench, world: World, lines: Lines, scoring: Scoring) -> None:
    """Each read has lines of its own, the first one primary; owners are parts of the same read, of parts themselves."""
    host = bench.backend.to_host
    offsets, slots, owners, roles = (host(a) for a in (lines.offsets, lines.slots, lines.owners, lines.roles))
    read_of = np.repeat(np.arange(len(world.mates)), np.diff(offsets))
    assert (offsets[0], offsets[-1], len(read_of)) == (0, lines.count, lines.count)
    assert (np.diff(offsets) >= 1).all()
    assert (slots == host(world.queries.slot_of)[read_of]).all()
    assert ((roles == PRIMARY) == np.isin(np.arange(lines.count), offsets)).all()
    assert (read_of[owners] == read_of).all()
    assert (roles[owners] <= PIECE).all()
    assert ((owners == np.arange(lines.count)) == (roles <= PIECE)).all()
    joint = host(world.placements.joint)[slots] & (roles == PRIMARY)
    least = np.where(joint, min(scoring.min_score, 19), scoring.min_score)
    assert (host(lines.least_scores) == least).all()
    for read, slot, row, band, room, score in zip(
        read_of, *(host(a).tolist() for a in (lines.slots, lines.windows, lines.bands, lines.rooms)), least, strict=True
    ):
        mate = world.mates[read]
        window = mate.candidates[row - slot * WINDOWS] if row >= 0 else None
        traced = window is not None and (window.gapped or plain_score(window, mate.length, scoring) < score)
        assert band == (max(window.band, 1) if window and traced else 0)
        assert room > 3 if traced else room == 3


def plain_score(window: Candidate, length: int, scoring: Scoring) -> int:
    """Of a segment, without the bonuses for the ends that it reaches."""
    return window.score - ((window.begin == 0) + (window.end == length)) * scoring.clip_penalty


def expected(world: World, mapqs: list[int], seconds: list[int], reporting: Reporting, scoring: Scoring) -> Any:
    """The oracle's, in the same form."""
    result = []
    for read, mapq, second in zip(world.mates, mapqs, seconds, strict=True):
        lines = select(read, mapq, second, world.placements.clean_bases, reporting, scoring)

        def number(line: Line, lines: list[Line] = lines) -> int:
            return next(i for i, other in enumerate(lines) if other is (line.owner or line))

        result.append([(line.rank, ROLES[line.role], number(line), line.mapq, line.second) for line in lines])
    return result


@pytest.mark.parametrize("min_score", [1, 40, 90])
@pytest.mark.parametrize("leftmost", [False, True])
@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"most_mentions": 0},
        {"most_mentions": 2, "mention_share": 0},
        {"most_mentions": 100, "mention_share": 50},
        {"mention_share": 100},
        {"most_places": 1},
    ],
)
def test_lines(bench: Bench, counts: dict[str, int], leftmost: bool, min_score: int) -> None:
    world, _ = draw_world(bench, random.Random(122), 150)
    draw = np.random.default_rng(1)
    placements = dataclasses.replace(
        world.placements,
        mapqs=bench.backend.to_device(draw.integers(0, 61, len(world.mates)).astype(np.uint8)),
        seconds=bench.backend.to_device(draw.integers(0, 90, len(world.mates)).astype(np.int32)),
        joint=bench.backend.to_device(draw.integers(0, 2, len(world.mates)).astype(np.uint8)),
        clean_bases=min_score * 10,
    )
    world = dataclasses.replace(world, placements=placements)
    reporting, scoring = Reporting(leftmost_primary=leftmost, **counts), Scoring(min_score=min_score)
    found = told(bench, world, reporting, scoring)
    mapqs, seconds = bench.by_read(world, placements.mapqs), bench.by_read(world, placements.seconds)
    assert found == expected(world, mapqs, seconds, reporting, scoring)
    roles = [role for lines in found for _, role, *_ in lines]
    assert PIECE in roles or min_score > 40
    assert PLACE not in roles
    assert reporting.most_places == 0 or MENTION not in roles
    assert counts.get("most_mentions", 5) < 100 or MENTION in roles


def split_read(bench: Bench, orientations: tuple[int, int] = (0, 0)) -> World:
    """A read of 100 bases: its first 60 at one place, its last 50 at another, and both at a second one each."""
    read = "A" * 99 + "C"  # it is its own canonical form
    spans = [(0, 60), (50, 100), (0, 60), (50, 100), (0, 60)]
    windows = []
    for number, (begin, end) in enumerate(spans):
        orientation = orientations[number % 2]
        begin, end = (100 - end, 100 - begin) if orientation else (begin, end)
        score = (65, 55, 60, 54, 30)[number]
        windows.append(Candidate(300 * (number + 1), orientation, score, score, begin, end, begin, end, 0, 0, 0, 0))
    return bench.world([read], [windows], [0], [50])


@pytest.mark.parametrize("orientations", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_split_read_by_hand(bench: Bench, orientations: tuple[int, int]) -> None:
    world = split_read(bench, orientations)
    (lines,) = told(bench, world, Reporting(), Scoring())
    # Of the first part's other places one is too poor to be mentioned.
    assert [line[:3] for line in lines] == [(0, PRIMARY, 0), (2, MENTION, 0), (1, PIECE, 2), (3, MENTION, 2)]
    (lines,) = told(bench, world, Reporting(leftmost_primary=True), Scoring())
    assert [line[:2] for line in lines][:1] == [(0, PRIMARY)]
    (lines,) = told(bench, world, Reporting(most_places=9), Scoring())
    assert [line[:3] for line in lines] == [(0, PRIMARY, 0), (1, PIECE, 1)]
    (lines,) = told(bench, world, Reporting(), Scoring(min_score=56))
    assert [line[:3] for line in lines] == [(0, PRIMARY, 0), (2, MENTION, 0)]


def test_leftmost_part_is_primary(bench: Bench) -> None:
    """As the read was sequenced; MAPQ and mentions go with the parts, which have the same line for their mentions."""
    world = split_read(bench)
    read = world.mates[0]
    windows = [read.candidates[i] for i in (1, 0, 2, 3)]
    scores = (70, 65, 60, 69)
    windows = [dataclasses.replace(w, score=s, ungapped=s) for w, s in zip(windows, scores, strict=True)]
    for bases, flipped in (("A" * 99 + "C", False), ("G" + "T" * 99, True)):
        turned = bench.world([bases], [windows], [0], [50])
        (by_score,) = told(bench, turned, Reporting(), Scoring())
        (by_place,) = told(bench, turned, Reporting(leftmost_primary=True), Scoring())
        assert [line[:3] for line in by_score] == [(0, PRIMARY, 0), (3, MENTION, 0), (1, PIECE, 2), (2, MENTION, 2)]
        if flipped:
            assert by_place == by_score
            continue
        assert [line[:3] for line in by_place] == [(1, PRIMARY, 0), (3, MENTION, 2), (0, PIECE, 2), (2, MENTION, 0)]
        assert [by_place[0][3:], by_place[2][3:]] == [by_score[2][3:], by_score[0][3:]]


@pytest.mark.parametrize(("bases", "primary"), [(29, 0), (30, 1)])
def test_no_part_is_primary_that_may_be_no_alignment(bench: Bench, bases: int, primary: int) -> None:
    """Its score contains a bonus, without which an alignment that is too poor has no place, nor has its read then."""
    spans, scores = [(bases, 100), (0, bases)], (100 - bases + 5, bases + 5)
    windows = [
        Candidate(300 * number + 300, 0, score, score, *span, *span, 0, 0, 0, 0)
        for number, (span, score) in enumerate(zip(spans, scores, strict=True))
    ]
    (lines,) = told(bench, bench.world(["A" * 99 + "C"], [windows], [0]), Reporting(leftmost_primary=True), Scoring())
    assert [line[:2] for line in lines] == [(primary, PRIMARY), (1 - primary, PIECE)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("most_places", -1), ("most_mentions", -1), ("mention_share", -1)),
        ("mention_share", 101),
        ("most_places", 2**31),
    ],
)
def test_reporting_out_of_range(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=name.replace("_", " ")):
        Reporting(**{name: value})
