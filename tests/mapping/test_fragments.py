"""Mates in repeats: all placements of both, and their fragments, compared with plain Python."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples import Read, below, fasta_reads, random_bases, reads_of, substitute
from oracles.alignment import canonical, clean, reverse_complement, segment, text_of
from oracles.placements import MAX_SEED_WINDOWS, NO_DEFICIT, End, chance, fragment, joint_loss, phred
from window_bench import Bench, World, window_at

from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping import fragments
from readmap.mapping.batch import MAX_WINDOWS, WINDOW
from readmap.mapping.diagonals import DIAGONAL, MAX_DIAGONALS
from readmap.mapping.fragments import NOT_JOINED, STRIDE, RepeatPlacements, join_mates
from readmap.mapping.inserts import DIRECTIONS, InsertSize, _penalty, insert_size_table
from readmap.mapping.matches import find_matches
from readmap.mapping.pairs import pair_mates, rescue_mates
from readmap.mapping.parameters import Scoring, dense_seed_bases
from readmap.mapping.pipeline import search_reads

KEPT_FRAGMENTS, MAX_FRAGMENTS, END_BITS = (
    constant("mapping/fragments.cu", name) for name in ("KEPT_FRAGMENTS", "MAX_FRAGMENTS", "END_BITS")
)
NEGLIGIBLE = constant("mapping/mapping_quality.cuh", "NEGLIGIBLE")
X_DROP, UNPAIRED = constant("mapping/ungapped.cuh", "X_DROP"), Scoring().unpaired_phred
FR = [InsertSize("FR", 300, 40, 140, 460)]
FITTING = 1 << 20  # matches
ALL = [InsertSize(name, 220, 50, 20, 420) for name in DIRECTIONS]


def key_of(read: int, end: End, length: int) -> int:
    return (2 * read + end[1]) << END_BITS | (end[0] + length)


# Selection of pairs.


@pytest.mark.parametrize("counts", [(MAX_SEED_WINDOWS, MAX_SEED_WINDOWS), (MAX_SEED_WINDOWS, MAX_SEED_WINDOWS - 1)])
@pytest.mark.parametrize("losses", [(0, 0), (NEGLIGIBLE - 1, 0), (NEGLIGIBLE, 0), (30, 30), (40, 19), (3, 99)])
def test_when_placements_are_joined(
    backends: str, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, int], losses: tuple[int, int]
) -> None:
    """Both mates must have more placements than windows, and further fragments must not be negligible."""
    bench, generator = Bench([random_bases(random.Random(1), 3_000)], backends), random.Random(2)
    reads = [random_bases(generator, 50) for _ in range(2)]
    windows = []
    for mate, (read, count, last) in enumerate(zip(reads, counts, losses, strict=True)):
        # The first windows are a fragment of the likeliest size; the others are far from each other.
        own = [window_at(bench, read, 0, 1_000 + 250 * mate, bool(mate))]
        own += [window_at(bench, read, 0, 30 * i + 1_500 * mate) for i in range(count - 1)]
        windows.append([own[0], *(dataclasses.replace(w, ungapped=40, score=40, deficit=last) for w in own[1:])])
    world, given = bench.world(reads, windows, [0, 0]), list[Any]()
    monkeypatch.setattr(fragments, "_parts", lambda *arguments: given.append(arguments) or [])
    other_fragments = join_mates(insert_size_table(FR, bench.backend), world.batch, bench.context)
    assert bench.backend.to_host(other_fragments).tolist() == [NOT_JOINED]
    assert len(given) == (min(counts) >= MAX_SEED_WINDOWS and sum(losses) < NEGLIGIBLE)


# Placements.


@pytest.mark.parametrize("length", [30, 62, 100])
def test_all_placements_that_share_a_seed(backends: str, length: int) -> None:
    """Placements on both strands that lose less than unpaired placements."""
    generator = random.Random(3)
    unit = random_bases(generator, 120)
    copies = [substitute(generator, unit, below(generator, 9)) for _ in range(25)]
    contigs = ["".join(f"{copy}{random_bases(generator, 40)}" for copy in copies), reverse_complement(unit)]
    bench, scoring = Bench(contigs, backends), Scoring()
    reads = [substitute(generator, unit[:length], 2), reverse_complement(unit[-length:])]
    windows = [[dataclasses.replace(window_at(bench, read, 0, 0), ungapped=length)] for read in reads]
    world = bench.world(reads, windows, [0, 0], variants=[20, 33])
    host, slots = bench.backend.to_host, world.batch.queries.slot_of
    held = DeviceList.of(slots)
    matches = find_matches(held, STRIDE, world.batch, bench.context, FITTING)
    places = fragments._list_placements(matches, held, world.batch, bench.context)
    keys, losses = host(places.keys), host(places.losses)
    assert places.placement_count == len(keys) > 15
    assert (np.diff(keys.astype(np.int64)) >= 0).all()
    text, seed, expected = text_of(contigs), dense_seed_bases(bench.context.index.suffix_count), set()
    for number, (read, variant) in enumerate(zip(reads, (20, 33), strict=True)):
        for orientation, bases in enumerate((canonical(read), reverse_complement(canonical(read)))):
            reverse = bool(orientation) != (canonical(read) != clean(read))
            for position in range(0, length - seed + 1, STRIDE):
                for match in re.finditer(f"(?={bases[position : position + seed]})", text):
                    diagonal = match.start() - position
                    contig = max(c for c, start in enumerate(bench.starts[:-1]) if start <= match.start())
                    arguments = bases, contigs[contig], diagonal - bench.starts[contig], position, position + seed
                    score, *_ = segment(*arguments, X_DROP, scoring)
                    loss = max((length - score) * variant // (scoring.match + scoring.mismatch), 0)
                    end = diagonal + (length if reverse else 0), reverse
                    if loss < UNPAIRED and 2 * score >= scoring.min_score + 7:
                        expected.add((key_of(number, end, length), loss))
    assert set(zip(keys.tolist(), losses.tolist(), strict=True)) == expected


# Fragments.


def joined(
    bench: Bench, world: World, places: Sequence[tuple[int, int]], library: Sequence[InsertSize], patch: Any
) -> tuple[list[int], list[set[tuple[bool, int]]]]:
    """Return the phred of other fragments by pair, and by read the strands and diagonals that get windows."""
    keys, losses = (np.array(column, np.int64) for column in zip(*sorted(places), strict=True))
    on_device, given = bench.backend.to_device, list[Any]()
    arrays = {"keys": on_device(keys.astype(np.uint64)), "losses": on_device(losses.astype(np.uint32))}
    held = RepeatPlacements(**arrays, placement_count=len(keys))
    patch.setattr(fragments, "_list_placements", lambda *_: held)
    patch.setattr(fragments, "add_windows", lambda *arguments: given.append(arguments))
    patch.setattr(fragments, "score_windows", lambda *_: None)
    patch.setattr(fragments, "choose_windows", lambda *_: None)
    count, host = len(world.mates) // 2, bench.backend.to_host
    other_fragments = bench.backend.full(count, NOT_JOINED, np.int32)
    slots, mates = world.batch.queries.slot_of, DeviceList.of(on_device(np.arange(2 * count, dtype=np.int32)))
    inserts = insert_size_table(library, bench.backend)
    matches = find_matches(DeviceList.of(slots), STRIDE, world.batch, bench.context, FITTING)
    fragments._join_parts(mates, matches, other_fragments, inserts, world.batch, bench.context)
    selected, found, *_ = given[0]
    assert np.array_equal(host(selected.indices), host(slots))
    rows, counts = host(found.rows).view(DIAGONAL).reshape(-1, MAX_DIAGONALS), host(found.counts)
    named = [
        {(bool(row["orientation"]), int(row["diagonal"])) for row in own[:n]}
        for own, n in zip(rows, counts, strict=True)
    ]
    return host(other_fragments).tolist(), named


@pytest.mark.parametrize("library", [FR, ALL, [InsertSize("RF", 500, 60, 260, 740)]], ids=["FR", "all", "RF"])
def test_best_fragments(backends: str, monkeypatch: pytest.MonkeyPatch, library: list[InsertSize]) -> None:
    """The placements of the cheapest fragments, and the cost of the others together."""
    generator, bench = random.Random(4), Bench(["ACGT" * 700, "ACGT" * 150], backends)
    penalties = {(s.direction, size): _penalty(size, s) for s in library for size in range(s.low, s.high + 1)}
    reads = ["ACGT" * (5 + below(generator, 30)) for _ in range(40)]
    world = bench.world(reads, [[window_at(bench, read, 0, 0)] for read in reads], [0] * len(reads))
    ends: list[dict[End, int]] = []
    for read in reads:
        drawn = {}
        for _ in range((1, 4, 30, 30)[below(generator, 4)]):
            contig, reverse = int(below(generator, 4) == 0), bool(below(generator, 2))
            start = bench.starts[contig] + 4 * below(generator, (len(bench.contigs[contig]) - len(read)) // 4 + 1)
            drawn[start + (len(read) if reverse else 0), reverse] = below(generator, 3) * below(generator, 40)
        ends.append(drawn)
    places = [
        (key_of(number, end, len(read)), loss)
        for number, (read, own) in enumerate(zip(reads, ends, strict=True))
        for end, loss in own.items()
    ]
    other_fragments, named = joined(bench, world, places, library, monkeypatch)
    seen = 0
    for pair, rest in enumerate(other_fragments):
        lengths = len(reads[2 * pair]), len(reads[2 * pair + 1])
        costs = []
        for both in itertools.product(ends[2 * pair].items(), ends[2 * pair + 1].items()):
            (one, other), losses = zip(*both, strict=True)
            starts = [end[0] - length * end[1] for end, length in zip((one, other), lengths, strict=True)]
            together = fragment(one, other)
            if together in penalties and (starts[0] < bench.starts[1]) == (starts[1] < bench.starts[1]):
                cost = joint_loss(losses, together, lengths) + penalties[together]
                costs.append((cost, (one[1], starts[0]), (other[1], starts[1])))
        costs.sort()
        if not costs:
            assert rest == NOT_JOINED
            assert not named[2 * pair] | named[2 * pair + 1]
            continue
        seen += len(costs) > KEPT_FRAGMENTS
        last = costs[min(KEPT_FRAGMENTS, len(costs)) - 1][0]
        for side in range(2):
            sure = {cost[1 + side] for cost in costs if cost[0] < last}
            assert sure <= named[2 * pair + side] <= {cost[1 + side] for cost in costs if cost[0] <= last}
            assert named[2 * pair + side]
        left = sum(chance(cost) for cost, *_ in costs[KEPT_FRAGMENTS:] if cost < NEGLIGIBLE)
        assert abs(rest - min(phred(min(left, 1.0)), NEGLIGIBLE)) <= 1 if left else rest == NO_DEFICIT
    assert seen > 3


@pytest.mark.parametrize(("copies", "rest"), [(63, 0), (66, NOT_JOINED)])
def test_mates_in_a_satellite_are_not_joined(
    backends: str, monkeypatch: pytest.MonkeyPatch, copies: int, rest: int
) -> None:
    """The number of fragments is limited, in the same way for both mates."""
    bench, read = Bench(["ACGT" * 300], backends), "ACGT" * 10
    library = [InsertSize("FR", 200, 100, 1, 2_000), InsertSize("RF", 200, 100, 1, 2_000)]
    window = window_at(bench, read, 0, 0)
    world = bench.world([read, read], [[window], [window]], [0, 0])
    assert 63**2 <= MAX_FRAGMENTS < 66**2
    places = [(key_of(side, (8 * i + 40 * side, bool(side)), 40), 0) for side in range(2) for i in range(copies)]
    other_fragments, named = joined(bench, world, places, library, monkeypatch)
    assert other_fragments == [rest]
    assert [len(own) > 0 for own in named] == [rest == 0] * 2


# End to end.


@pytest.mark.parametrize(("together", "parts"), [(1, 1), (2, 1), (1, 20)])
def test_mates_in_two_families(backends: str, monkeypatch: pytest.MonkeyPatch, together: int, parts: int) -> None:
    """Each mate has sixty placements; the one fragment, where the families are adjacent, is found.

    parts: number of parts in which pairs are joined, for lack of memory.
    """
    generator = random.Random(5)
    one, other = random_bases(generator, 300), random_bases(generator, 300)
    loci = [one + other] * together + [one] * 60 + [other] * 60
    generator.shuffle(loci)
    bench = Bench(["".join(locus + random_bases(generator, 700) for locus in loci)], backends)
    truth = [match.start() for match in re.finditer(f"(?={one + other})", bench.contigs[0])]
    assert len(truth) == together
    reads, starts = [], []
    for _ in range(20):
        start = 120 + below(generator, 80)
        first, second = (one + other)[start : start + 80], reverse_complement((one + other)[start + 220 : start + 300])
        reads += [substitute(generator, first, below(generator, 2)), second][:: 1 if below(generator, 2) else -1]
        starts.append(start)
    backend, host = bench.backend, bench.backend.to_host
    library = insert_size_table([InsertSize("FR", 300, 30, 180, 420)], backend)
    held = dataclasses.replace(reads_of(fasta_reads([Read("r", read) for read in reads]), backend, 2), paired=True)
    batch = search_reads(held, bench.context)
    if parts > 1:
        monkeypatch.setattr(backend, "scratch_bytes", 1)
        monkeypatch.setattr(fragments, "MAX_MATCHES", 800)
    joined, join = list[int](), fragments._join_parts
    monkeypatch.setattr(fragments, "_join_parts", lambda *arguments: joined.append(1) or join(*arguments))
    other_fragments = join_mates(library, batch, bench.context)
    assert len(joined) == parts
    assert host(other_fragments).min() >= 0
    rescue_mates(library, batch, bench.context)
    pair_mates(library, other_fragments, batch, bench.context)
    slots, rows = host(batch.queries.slot_of), host(batch.windows.rows).view(WINDOW).reshape(-1, MAX_WINDOWS)
    chosen, mapqs = host(batch.placements.chosen)[slots], host(batch.placements.mapqs)[slots]
    placed = rows[slots, chosen]["diagonal"].reshape(-1, 2)
    assert host(batch.placements.properly_paired).all()
    for pair, start in enumerate(starts):
        at = int(placed[pair].min()) - start
        assert at in truth
        assert int(placed[pair].max()) == at + start + 220
    assert (mapqs >= 30).all() if together == 1 else (mapqs <= 3).all()
