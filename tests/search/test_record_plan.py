"""What is reported of a read: its place, the parts of a split read, and other places, as Reporting asks."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import numpy as np
import pytest
from examples import random_bases
from oracles.pairs import NARROW_BAND, PRIMARY, SECONDARY, SUPPLEMENTARY, XA_HIT, Entry, Window, least_score, select
from window_bench import Bench, World, draw_world

from readmap.errors import UsageError
from readmap.search.batch import WINDOWS
from readmap.search.context import Context, Sample
from readmap.search.parameters import Reporting, Scoring
from readmap.search.record_plan import RecordPlan, plan_records

RANDOM = random.Random(121)
CONTIGS = [random_bases(RANDOM, 2_000), random_bases(RANDOM, 300)]


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


def planned(bench: Bench, world: World, reporting: Reporting, context: Context | None = None) -> list[Any]:
    """By read: rank, role, owner (its number among the read's entries), MAPQ and second score of each entry."""
    context = dataclasses.replace(context or bench.context, reporting=reporting)
    plan = plan_records(world.batch, context)
    check_arrays(world, plan, context)
    host = bench.backend.to_host
    offsets, rows = host(plan.offsets), host(plan.windows)
    ranks = np.where(rows >= 0, rows % WINDOWS, -1)
    owners = host(plan.owners) - np.repeat(offsets[:-1], np.diff(offsets))
    columns = ranks, host(plan.roles), owners, host(plan.mapqs), host(plan.seconds)
    entries = list(zip(*(column.tolist() for column in columns), strict=True))
    return [entries[begin:end] for begin, end in itertools.pairwise(offsets)]


def check_arrays(world: World, plan: RecordPlan, context: Context) -> None:
    """Each read has entries, the first one primary; owners are parts of the same read, of parts themselves."""
    host, scoring, batch = context.backend.to_host, context.scoring, world.batch
    offsets, slots, owners, roles = (host(a) for a in (plan.offsets, plan.slots, plan.owners, plan.roles))
    read_of, is_part = np.repeat(np.arange(len(world.mates)), np.diff(offsets)), roles <= SUPPLEMENTARY
    assert (offsets[0], offsets[-1], len(read_of)) == (0, plan.count, plan.count)
    assert (np.diff(offsets) >= 1).all()
    assert (slots == host(batch.queries.slot_of)[read_of]).all()
    assert ((roles == PRIMARY) == np.isin(np.arange(plan.count), offsets)).all()
    assert (read_of[owners] == read_of).all()
    assert is_part[owners].all()
    assert ((owners == np.arange(plan.count)) == is_part).all()
    rows = host(plan.windows)
    assert (rows[rows >= 0] // WINDOWS == slots[rows >= 0]).all()
    joint = host(batch.placements.joint)[slots] & (roles == PRIMARY)
    least = np.where(joint, scoring.joint_score, scoring.min_score)
    assert (host(plan.least_scores) == least).all()
    columns = read_of, rows, host(plan.bands), host(plan.rooms), least
    for read, row, band, room, score in zip(*(column.tolist() for column in columns), strict=True):
        mate = world.mates[read]
        window = mate.windows[row % WINDOWS] if row >= 0 else None
        traced = window is not None and (window.gapped or least_score(window, mate.length, scoring) < score)
        assert band == (max(window.band, NARROW_BAND) if window and traced else 0)
        assert room > 3 if traced else room == 3


def expected(bench: Bench, world: World, context: Context, reporting: Reporting) -> list[Any]:
    """The oracle's, in the same form."""
    result, placements = [], world.batch.placements
    mapqs, seconds = bench.by_read(world, placements.mapqs), bench.by_read(world, placements.seconds)
    for read, mapq, second in zip(world.mates, mapqs, seconds, strict=True):
        entries = select(read, mapq, second, context.sample.bases_per_variant, reporting, context.scoring)

        def number(entry: Entry, entries: list[Entry] = entries) -> int:
            return next(i for i, other in enumerate(entries) if other is (entry.owner or entry))

        result.append([(entry.rank, entry.role, number(entry), entry.mapq, entry.second) for entry in entries])
    return result


@pytest.mark.parametrize("min_score", [1, 40, 90])
@pytest.mark.parametrize("leftmost", [False, True])
@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"most_xa_hits": 0},
        {"most_xa_hits": 2, "xa_share": 0},
        {"most_xa_hits": 100, "xa_share": 50},
        {"xa_share": 100},
        {"most_secondary": 1},
    ],
)
def test_entries(bench: Bench, counts: dict[str, int], leftmost: bool, min_score: int) -> None:
    world, _ = draw_world(bench, random.Random(122), 150)
    draw, placements, reads = np.random.default_rng(1), world.batch.placements, len(world.mates)
    placements.mapqs = bench.backend.to_device(draw.integers(0, 61, reads).astype(np.uint8))
    placements.seconds = bench.backend.to_device(draw.integers(0, 90, reads).astype(np.int32))
    placements.joint = bench.backend.to_device(draw.integers(0, 2, reads).astype(np.uint8))
    reporting, scoring = Reporting(leftmost_primary=leftmost, **counts), Scoring(min_score=min_score)
    context = dataclasses.replace(bench.context, scoring=scoring, sample=Sample(10 * min_score))
    found = planned(bench, world, reporting, context)
    assert found == expected(bench, world, context, reporting)
    roles = [role for entries in found for _, role, *_ in entries]
    assert SUPPLEMENTARY in roles or min_score > 40
    assert SECONDARY not in roles
    assert reporting.most_secondary == 0 or XA_HIT not in roles
    assert counts.get("most_xa_hits", 5) < 100 or XA_HIT in roles


def split_read(bench: Bench, orientations: tuple[int, int] = (0, 0)) -> World:
    """A read of 100 bases: its first 60 at one place, its last 50 at another, and both at a second one each."""
    read = "A" * 99 + "C"  # it is its own canonical form
    spans = [(0, 60), (50, 100), (0, 60), (50, 100), (0, 60)]
    windows = []
    for number, (begin, end) in enumerate(spans):
        orientation = orientations[number % 2]
        begin, end = (100 - end, 100 - begin) if orientation else (begin, end)
        score = (65, 55, 60, 54, 30)[number]
        windows.append(Window(300 * (number + 1), orientation, score, score, begin, end, begin, end, 0, 0, 0, 0))
    return bench.world([read], [windows], [0], [50])


@pytest.mark.parametrize("orientations", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_split_read_by_hand(bench: Bench, orientations: tuple[int, int]) -> None:
    world = split_read(bench, orientations)
    (entries,) = planned(bench, world, Reporting())
    # Of the first part's other places one is too poor for XA.
    assert [entry[:3] for entry in entries] == [(0, PRIMARY, 0), (2, XA_HIT, 0), (1, SUPPLEMENTARY, 2), (3, XA_HIT, 2)]
    (entries,) = planned(bench, world, Reporting(leftmost_primary=True))
    assert [entry[:2] for entry in entries][:1] == [(0, PRIMARY)]
    (entries,) = planned(bench, world, Reporting(most_secondary=9))
    assert [entry[:3] for entry in entries] == [(0, PRIMARY, 0), (1, SUPPLEMENTARY, 1)]
    picky = dataclasses.replace(bench.context, scoring=Scoring(min_score=56))
    (entries,) = planned(bench, world, Reporting(), picky)
    assert [entry[:3] for entry in entries] == [(0, PRIMARY, 0), (2, XA_HIT, 0)]


def test_leftmost_part_is_primary(bench: Bench) -> None:
    """As the read was sequenced; MAPQ and XA hits go with the parts, which have the same entry for their hits."""
    world = split_read(bench)
    read = world.mates[0]
    windows = [read.windows[i] for i in (1, 0, 2, 3)]
    scores = (70, 65, 60, 69)
    windows = [dataclasses.replace(w, score=s, ungapped=s) for w, s in zip(windows, scores, strict=True)]
    for bases, flipped in (("A" * 99 + "C", False), ("G" + "T" * 99, True)):
        turned = bench.world([bases], [windows], [0], [50])
        (by_score,) = planned(bench, turned, Reporting())
        (by_place,) = planned(bench, turned, Reporting(leftmost_primary=True))
        assert [entry[:3] for entry in by_score] == [
            (0, PRIMARY, 0),
            (3, XA_HIT, 0),
            (1, SUPPLEMENTARY, 2),
            (2, XA_HIT, 2),
        ]
        if flipped:
            assert by_place == by_score
            continue
        assert [entry[:3] for entry in by_place] == [
            (1, PRIMARY, 0),
            (3, XA_HIT, 2),
            (0, SUPPLEMENTARY, 2),
            (2, XA_HIT, 0),
        ]
        assert [by_place[0][3:], by_place[2][3:]] == [by_score[2][3:], by_score[0][3:]]


@pytest.mark.parametrize(("bases", "primary"), [(29, 0), (30, 1)])
def test_no_part_is_primary_that_may_be_no_alignment(bench: Bench, bases: int, primary: int) -> None:
    """Its score contains a bonus, without which an alignment that is too poor has no place, nor has its read then."""
    spans, scores = [(bases, 100), (0, bases)], (100 - bases + 5, bases + 5)
    windows = [
        Window(300 * number + 300, 0, score, score, *span, *span, 0, 0, 0, 0)
        for number, (span, score) in enumerate(zip(spans, scores, strict=True))
    ]
    world = bench.world(["A" * 99 + "C"], [windows], [0])
    (entries,) = planned(bench, world, Reporting(leftmost_primary=True))
    assert [entry[:2] for entry in entries] == [(primary, PRIMARY), (1 - primary, SUPPLEMENTARY)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("most_secondary", -1), ("most_xa_hits", -1), ("xa_share", -1)),
        ("xa_share", 101),
        ("most_secondary", 2**31),
    ],
)
def test_reporting_out_of_range(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=name.replace("_", " ")):
        Reporting(**{name: value})
