"""Record plans: primary records, parts of split reads, and other placements, by the options of Reporting."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter

import numpy as np
import pytest
from examples import random_bases
from oracles.placements import (
    NARROW_BAND,
    PHRED_ONE_OF_THREE,
    PRIMARY,
    SPREAD,
    SUPPLEMENTARY,
    XA_HIT,
    overlaps_by_half,
    phred,
    placement_phred,
)
from window_bench import Bench, Mate, Window, World, draw_pairs

from readmap.errors import UsageError
from readmap.mapping.batch import MAX_WINDOWS, Context, Sample
from readmap.mapping.parameters import Reporting, Scoring
from readmap.mapping.record_plan import RecordPlan, plan_records

RANDOM = random.Random(121)
CONTIGS = [random_bases(RANDOM, 2_000), random_bases(RANDOM, 300)]


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


Entry = tuple[int, int, int, int, int]


def planned(bench: Bench, world: World, reporting: Reporting, context: Context | None = None) -> list[list[Entry]]:
    """Return (rank, role, owner index in the read, MAPQ, suboptimal score) of each entry of each read."""
    context = dataclasses.replace(context or bench.context, reporting=reporting)
    plan = plan_records(world.batch, context)
    check_arrays(world, plan, context)
    host = bench.backend.to_host
    offsets, rows = host(plan.offsets), host(plan.windows)
    ranks = np.where(rows >= 0, rows % MAX_WINDOWS, -1)
    owners = host(plan.owners) - np.repeat(offsets[:-1], np.diff(offsets))
    columns = ranks, host(plan.roles), owners, host(plan.mapqs), host(plan.suboptimal_scores)
    entries = list(zip(*(column.tolist() for column in columns), strict=True))
    return [entries[begin:end] for begin, end in itertools.pairwise(offsets)]


def check_arrays(world: World, plan: RecordPlan, context: Context) -> None:
    """Assert that the first entry of each read is primary, and that owners are parts of the same read."""
    host, scoring, batch = context.backend.to_host, context.scoring, world.batch
    offsets, slots, owners, roles = (host(a) for a in (plan.offsets, plan.slots, plan.owners, plan.roles))
    read_of, is_part = np.repeat(np.arange(len(world.mates)), np.diff(offsets)), roles <= SUPPLEMENTARY
    assert (offsets[0], offsets[-1], len(read_of)) == (0, plan.entries, plan.entries)
    assert (np.diff(offsets) >= 1).all()
    assert (slots == host(batch.queries.slot_of)[read_of]).all()
    assert ((roles == PRIMARY) == np.isin(np.arange(plan.entries), offsets)).all()
    assert (read_of[owners] == read_of).all()
    assert is_part[owners].all()
    assert ((owners == np.arange(plan.entries)) == is_part).all()
    rows = host(plan.windows)
    assert (rows[rows >= 0] // MAX_WINDOWS == slots[rows >= 0]).all()
    joint = host(batch.placements.properly_paired)[slots] & (roles == PRIMARY)
    least = np.where(joint, scoring.paired_min_score, scoring.min_score)
    assert (host(plan.min_scores) == least).all()
    columns = read_of, rows, host(plan.bands), host(plan.cigar_capacities), least
    for read, row, band, room, score in zip(*(column.tolist() for column in columns), strict=True):
        mate = world.mates[read]
        window = mate.windows[row % MAX_WINDOWS] if row >= 0 else None
        traced = window is not None and (window.gapped or window.surely_scores(mate.length, scoring) < score)
        assert band == (max(window.band, NARROW_BAND) if window and traced else 0)
        assert room > 5 if traced else room == 5


def beside(one: Window, other: Window) -> bool:
    return one.orientation == other.orientation and abs(one.diagonal - other.diagonal) <= SPREAD


def check_entries(mate: Mate, entries: list[Entry], reporting: Reporting, scoring: Scoring) -> None:
    """Assert that parts do not overlap, and that each has its best other placements within the limits.

    No window is missing that is a part or a sufficiently good other placement.
    """
    windows, taken = mate.windows, [rank for rank, *_ in entries]
    spans = [window.span(mate.length) for window in windows]
    parts = [rank for rank, role, *_ in entries if role != XA_HIT]
    hits = [(rank, entries[owner][0]) for rank, role, owner, *_ in entries if role == XA_HIT]
    assert len(set(taken)) == len(taken)
    assert not any(overlaps_by_half(spans[a], spans[b]) for a, b in itertools.combinations(parts, 2))
    for rank, owner in hits:
        assert overlaps_by_half(spans[rank], spans[owner])
        assert 100 * windows[rank].score >= reporting.xa_share * windows[owner].score
    assert not any(beside(windows[one], windows[other]) for (one, _), (other, _) in itertools.combinations(hits, 2))
    for part in parts:
        assert sum(owner == part for _, owner in hits) <= reporting.xa_limit
    for rank, window in enumerate(windows):
        if rank == mate.chosen or window.score < scoring.min_score:
            assert (rank in taken) == (rank == mate.chosen)
            continue
        owners = [part for part in parts if overlaps_by_half(spans[rank], spans[part])]
        assert owners or rank in parts
        good = all(100 * window.score >= reporting.xa_share * windows[owner].score for owner in owners)
        if good and reporting.xa_limit >= len(windows) and not window.gapped:
            assert rank in taken or any(beside(window, windows[other]) for other in taken)


@pytest.mark.parametrize("min_score", [1, 40, 90])
@pytest.mark.parametrize("leftmost", [False, True])
@pytest.mark.parametrize(
    "counts",
    [
        *({}, {"max_xa_hits": 0}, {"max_xa_hits": 2, "xa_share": 0}, {"max_xa_hits": 100, "xa_share": 50}),
        *({"xa_share": 100}, {"max_secondary": 1}),
    ],
)
def test_entries(bench: Bench, counts: dict[str, int], leftmost: bool, min_score: int) -> None:
    world = bench.world(**draw_pairs(bench, random.Random(122), 150))
    draw, placements, reads = np.random.default_rng(1), world.batch.placements, len(world.mates)
    mapqs, seconds = draw.integers(0, 61, reads).astype(np.uint8), draw.integers(0, 90, reads).astype(np.int32)
    slots = bench.backend.to_host(world.batch.queries.slot_of)
    placements.mapqs, placements.suboptimal_scores = bench.backend.to_device(mapqs), bench.backend.to_device(seconds)
    placements.properly_paired = bench.backend.to_device(draw.integers(0, 2, reads).astype(np.uint8))
    reporting, scoring = Reporting(leftmost_primary=leftmost, **counts), Scoring(min_score=min_score)
    context = dataclasses.replace(bench.context, scoring=scoring, sample=Sample(10 * min_score))
    found = planned(bench, world, reporting, context)
    by_score = planned(bench, world, dataclasses.replace(reporting, leftmost_primary=False), context)
    unexamined = bench.by_read(world, world.batch.windows.unexamined_prefixes)
    for mate, slot, unseen, entries, plain in zip(world.mates, slots, unexamined, found, by_score, strict=True):
        assert plain[0] == (mate.chosen, PRIMARY, 0, mapqs[slot], seconds[slot])
        if not mate.windows:
            assert entries == plain == [(-1, PRIMARY, 0, mapqs[slot], seconds[slot])]
            continue
        check_entries(mate, entries, reporting, scoring)
        # Only the choice of the primary part differs.
        assert sorted((rank, mapq, second) for rank, _, _, mapq, second in entries) == sorted(
            (rank, mapq, second) for rank, _, _, mapq, second in plain
        )
        for rank, role, _, mapq, second in plain:
            if role == SUPPLEMENTARY:
                own = mate.windows[rank]
                others = [window for window in mate.windows if window.is_elsewhere(own, mate.length)]
                # An upper bound of the phred per point.
                phreds = PHRED_ONE_OF_THREE + phred(1 / (10 * min_score + mate.length))
                lost = [max(own.score - window.score, 0) for window in others]
                lost += [max(own.score - unseen - 2 * scoring.clip_penalty, 0)] if unseen else []
                assert mapq <= min(mapqs[slot], placement_phred([points * phreds / 5 for points in lost]))
                assert second >= max((window.score for window in others), default=0)
                assert second in (0, *(window.score for window in mate.windows))
        scores = [mate.windows[rank].score for rank, role, *_ in plain if role == SUPPLEMENTARY]
        assert scores == sorted(scores, reverse=True)
    roles = [role for entries in found for _, role, *_ in entries]
    assert SUPPLEMENTARY in roles or min_score > 40
    assert set(roles) <= {PRIMARY, SUPPLEMENTARY, XA_HIT}
    assert reporting.max_secondary == 0 or XA_HIT not in roles
    assert counts.get("max_xa_hits", 5) < 100 or XA_HIT in roles
    owners = Counter((read, owner) for read, own in enumerate(found) for _, role, owner, *_ in own if role == XA_HIT)
    assert counts.get("max_xa_hits") != 2 or max(owners.values()) == 2


def split_read(bench: Bench, orientations: tuple[int, int] = (0, 0)) -> World:
    """Make a read of 100 bases whose first 60 and last 50 have two placements each."""
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
    # One of the other placements of the first part scores too little for XA.
    assert [entry[:3] for entry in entries] == [(0, PRIMARY, 0), (2, XA_HIT, 0), (1, SUPPLEMENTARY, 2), (3, XA_HIT, 2)]
    (entries,) = planned(bench, world, Reporting(leftmost_primary=True))
    assert [entry[:2] for entry in entries][:1] == [(0, PRIMARY)]
    (entries,) = planned(bench, world, Reporting(max_secondary=9))
    assert [entry[:3] for entry in entries] == [(0, PRIMARY, 0), (1, SUPPLEMENTARY, 1)]
    picky = dataclasses.replace(bench.context, scoring=Scoring(min_score=56))
    (entries,) = planned(bench, world, Reporting(), picky)
    assert [entry[:3] for entry in entries] == [(0, PRIMARY, 0), (2, XA_HIT, 0)]


def test_leftmost_part_is_primary(bench: Bench) -> None:
    """The order is that of the read as sequenced; parts keep their MAPQ and XA hits."""
    world = split_read(bench)
    read = world.mates[0]
    windows = [read.windows[i] for i in (1, 0, 2, 3)]
    scores = (70, 65, 60, 69)
    windows = [dataclasses.replace(w, score=s, ungapped=s) for w, s in zip(windows, scores, strict=True)]
    for bases, flipped in (("A" * 99 + "C", False), ("G" + "T" * 99, True)):
        turned = bench.world([bases], [windows], [0], [50])
        (by_score,) = planned(bench, turned, Reporting())
        (by_place,) = planned(bench, turned, Reporting(leftmost_primary=True))
        roles = [PRIMARY, XA_HIT, SUPPLEMENTARY, XA_HIT]
        assert [entry[:3] for entry in by_score] == list(zip([0, 3, 1, 2], roles, [0, 0, 2, 2], strict=True))
        if flipped:
            assert by_place == by_score
            continue
        assert [entry[:3] for entry in by_place] == list(zip([1, 3, 0, 2], roles, [0, 2, 2, 0], strict=True))
        assert [by_place[0][3:], by_place[2][3:]] == [by_score[2][3:], by_score[0][3:]]


@pytest.mark.parametrize(("bases", "primary"), [(29, 0), (30, 1)])
def test_uncertain_part_is_not_primary(bench: Bench, bases: int, primary: int) -> None:
    """A part that reaches min_score only by its bonus may become unmapped, and would unmap the read as primary."""
    spans, scores = [(bases, 100), (0, bases)], (100 - bases + 5, bases + 5)
    windows = [
        Window(300 * number + 300, 0, score, score, *span, *span, 0, 0, 0, 0)
        for number, (span, score) in enumerate(zip(spans, scores, strict=True))
    ]
    world = bench.world(["A" * 99 + "C"], [windows], [0])
    (entries,) = planned(bench, world, Reporting(leftmost_primary=True))
    assert [entry[:2] for entry in entries] == [(primary, PRIMARY), (1 - primary, SUPPLEMENTARY)]


@pytest.mark.parametrize(
    ("name", "value"), [("max_secondary", -1), ("max_xa_hits", -1), ("xa_share", 101), ("max_secondary", 2**31)]
)
def test_reporting_out_of_range(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=name.replace("_", " ")):
        Reporting(**{name: value})
