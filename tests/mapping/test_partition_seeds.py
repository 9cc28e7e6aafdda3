"""Reads that are resolved by their partition seeds: an exhaustive search finds no other placement that matters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from examples import (
    Read,
    below,
    context_of,
    delete,
    draw_pairs,
    draw_reads,
    fastq,
    index_of,
    insert,
    random_bases,
    random_quality,
    reads_of,
    small_genome,
    substitute,
    write_pairs,
)
from numpy.typing import NDArray
from oracles.alignment import clean, reverse_complement
from oracles.placements import NEGLIGIBLE, PHRED_ONE_OF_THREE, SPREAD, chance, phred
from search_runs import map_files

from readmap.backend import open_backend
from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import MAX_WINDOWS, WINDOW, Batch, Context
from readmap.mapping.divergence import MIN_BASES_PER_DIFFERENCE
from readmap.mapping.parameters import DIVERGENT, MAX_XA_HITS, UNSEARCHED, Reporting, dense_seed_bases
from readmap.mapping.partition_seeds import resolve_reads
from readmap.mapping.windows import choose_windows
from readmap.reads.chunks import PairLayout

FLIPPED = constant("reads/queries.cuh", "READ_FLIPPED")
MAX_OCCURRENCES = constant("mapping/partition_seeds.cuh", "MAX_OCCURRENCES")
MAX_PARTITION_SEEDS, MIN_PARTITION_SEEDS = (
    constant("mapping/partition_seeds.cuh", f"{name}_PARTITION_SEEDS") for name in ("MAX", "MIN")
)
LENGTH = 160
OTHER_BASE = str.maketrans("ACGT", "CATG")  # applied twice, the bases are as before


@dataclass(frozen=True)
class Resolved:
    """The chosen placement of a read (diagonal, reversed), all its windows, and its MAPQ."""

    place: tuple[int, bool]
    named: list[tuple[int, bool]]
    mapq: int


def resolved_reads(reads: Sequence[Read], context: Context) -> dict[int, Resolved]:
    """Return the resolved reads by index."""
    batch = Batch.of(reads_of(fastq(reads), context.backend), context)
    resolve_reads(batch, context)
    host = context.backend.to_host
    unresolved = host(batch.placements.unresolved).copy()
    choose_windows(DeviceList.of(batch.queries.slot_of), batch, context)
    slots, rows = host(batch.queries.slot_of), host(batch.windows.rows).view(WINDOW).reshape(-1, MAX_WINDOWS)
    found = {}
    for number, slot in enumerate(slots):
        if unresolved[slot]:
            continue
        flipped = bool(host(batch.queries.flags)[slot] & FLIPPED)
        windows = rows[slot, : host(batch.windows.counts)[slot]]
        named = [(int(one["diagonal"]), bool(one["orientation"]) != flipped) for one in windows]
        mapq = int(host(batch.placements.mapqs)[slot])
        found[number] = Resolved(named[host(batch.placements.chosen)[slot]], named, mapq)
    return found


def changed(bases: str, places: Sequence[int]) -> str:
    letters = list(bases)
    for place in places:
        letters[place] = letters[place].translate(OTHER_BASE)
    return "".join(letters)


def one_in_each_seed(count: int) -> list[int]:
    return [LENGTH // MAX_PARTITION_SEEDS * piece + 9 for piece in range(count)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("copy", "own", "quality", "places"),
    [
        ([], [], "I", 2),
        (one_in_each_seed(2), [], "I", 2),
        (one_in_each_seed(3), [], "I", 1),
        ([9, 10, 11], [], "I", 2),  # in one seed
        (one_in_each_seed(4), [], "'", 2),  # phred 6
        (one_in_each_seed(6), [], "'", 1),
        (one_in_each_seed(8), [], "#", 0),  # phred 2
        (one_in_each_seed(2), [150], "I", 2),
        (one_in_each_seed(3), [150], "I", 1),
        (one_in_each_seed(8), [50, 70, 90, 150], "I", 1),
        (one_in_each_seed(8), [50, 70, 90, 110, 150], "I", 0),
        ([], [50, 70, 90, 110, 150], "I", 0),
    ],
)
def test_two_copies(backends: str, copy: list[int], own: list[int], quality: str, places: int, reverse: bool) -> None:
    """A copy that differs in some seeds, and a read that differs from its origin; places: number of windows."""
    generator = random.Random(311)
    unit, other = random_bases(generator, LENGTH), [random_bases(generator, 300) for _ in range(3)]
    far = changed(unit, copy)
    contig = other[0] + unit + other[1] + (reverse_complement(far) if reverse else far) + other[2]
    reads = [Read("a", changed(unit, own), quality * LENGTH)]
    reads.append(Read("b", reverse_complement(reads[0].bases), quality * LENGTH))
    found = resolved_reads(reads, context_of([contig], backends))
    assert list(found) == ([0, 1] if places else [])
    for turned, one in found.items():
        both = [(300, bool(turned)), (600 + LENGTH, bool(turned) != reverse)]
        assert sorted(one.named) == sorted(both[:places])
        assert one.mapq == 60 or places > 1
        assert one.place == both[0] or not copy


@pytest.mark.parametrize(("copies", "is_resolved"), [(MAX_OCCURRENCES, True), (MAX_OCCURRENCES + 1, False)])
def test_many_copies(backends: str, copies: int, is_resolved: bool) -> None:
    """Seeds with more occurrences than MAX_OCCURRENCES are not examined."""
    generator = random.Random(316)
    unit = random_bases(generator, LENGTH)
    contig = "".join(random_bases(generator, 70) + unit for _ in range(copies)) + random_bases(generator, 70)
    found = resolved_reads([Read("r", unit, "I" * LENGTH)], context_of([contig], backends))
    assert list(found) == [0] * is_resolved
    for one in found.values():
        assert sorted(one.named) == [(70 + 230 * number, False) for number in range(copies)]
        assert one.mapq == 0


def test_which_reads_are_resolved(backends: str) -> None:
    """N, gaps, contig ends, N in the reference, length, both strands."""
    generator = random.Random(312)
    half = random_bases(generator, LENGTH // 2)
    contig = random_bases(generator, 900)
    contigs = [contig, half + reverse_complement(half) + random_bases(generator, 99), contig[:80] + "N" * 9]
    context = context_of(contigs, backends)
    own = contig[300 : 300 + LENGTH]
    least = MIN_PARTITION_SEEDS * dense_seed_bases(context.index.suffix_count)
    cases = {
        "plain": own,
        "N in a piece": own[:30] + "N" + own[31:],
        "N in all pieces": "".join(own[i : i + 9] + "N" for i in range(0, LENGTH, 10)),
        "insertion": insert(generator, own, 50, 3)[:LENGTH],
        "deletion": delete(contig[300 : 303 + LENGTH], 50, 3),
        "clipped": random_bases(generator, 40) + own[40:],
        "at the end": contig[-LENGTH + 4 :] + "ACGT",
        "past the end": contig[-LENGTH + 40 :] + random_bases(generator, 40),
        "both strands": half + reverse_complement(half),
        "long enough": contig[500 : 500 + least],
        "too short": contig[500 : 500 + least - 1],
        "nowhere": random_bases(generator, LENGTH),
        "empty": "",
    }
    found = resolved_reads([Read("r", bases, "I" * len(bases)) for bases in cases.values()], context)
    expected = {"plain": 300, "N in a piece": 300, "insertion": 297, "deletion": 303, "at the end": 904 - LENGTH}
    expected |= {"both strands": 901, "long enough": 500}
    assert {name: found[number].place[0] for number, name in enumerate(cases) if number in found} == expected


def penalties(read: str, contig: str, phreds: Sequence[int], variant: float) -> NDArray[np.float64]:
    """Return the ungapped penalty of every diagonal."""
    texts = np.lib.stride_tricks.sliding_window_view(np.frombuffer(contig.encode(), np.uint8), len(read))
    costs = np.array([phred(chance(quality + PHRED_ONE_OF_THREE) + chance(variant)) for quality in phreds])
    return (texts != np.frombuffer(read.encode(), np.uint8)) @ costs


def test_no_alternative_is_missed(backends: str) -> None:
    """Every placement of a resolved read that is less than 60 phred worse, on either strand, has a window."""
    generator = random.Random(313)
    repeat = random_bases(generator, 400)
    contig = random_bases(generator, 500)
    for differences in (1, 4, 12, 25, 40, 60):
        copy = substitute(generator, repeat, differences)
        contig += (reverse_complement(copy) if differences % 2 else copy) + random_bases(generator, 100)
    context = context_of([contig], backends)
    reads = []
    for _ in range(150):
        start = below(generator, len(contig) - LENGTH)
        bases = substitute(generator, contig[start : start + LENGTH], below(generator, 7))
        bases = reverse_complement(bases) if below(generator, 2) else bases
        quality = "".join("+5FI"[below(generator, 4)] for _ in bases) if below(generator, 2) else "I" * LENGTH
        reads.append(Read("r", bases, quality))
    found = resolved_reads(reads, context)
    assert len(reads) // 4 < len(found) < len(reads)
    for number, one in found.items():
        (diagonal, reverse), bases = one.place, reads[number].bases
        phreds = [ord(letter) - 33 for letter in reads[number].quality or ""]
        oriented = {False: (bases, phreds), True: (reverse_complement(bases), phreds[::-1])}
        text = contig[diagonal : diagonal + LENGTH]
        differences = sum(a != b for a, b in zip(oriented[reverse][0], text, strict=True))
        variant = PHRED_ONE_OF_THREE + phred((1 + differences) / (MIN_BASES_PER_DIFFERENCE + LENGTH))
        costs = {strand: penalties(read, contig, marks, variant) for strand, (read, marks) in oriented.items()}
        own = costs[reverse][diagonal]
        for place, strand in one.named:
            costs[strand][max(place - SPREAD, 0) : place + SPREAD + 1] = np.inf
        left_out = min(one.min() for one in costs.values())
        assert left_out - own >= NEGLIGIBLE - 2 * MAX_PARTITION_SEEDS  # rounding of each


def without_xs_and_xa(path: Path) -> list[list[str]]:
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return [[field for field in line if field[:3] not in ("XS:", "XA:")] for line in lines]


@pytest.mark.parametrize("paired", [False, True])
def test_records_equal_an_exhaustive_search(backends: str, tmp_path: Path, paired: bool) -> None:
    """Except for XS and XA, which omit what is not searched."""
    generator, backend = random.Random(314), open_backend(backends)
    genome = small_genome(generator)
    index = index_of(genome).to_device(backend)
    if paired:
        files = write_pairs(tmp_path, draw_pairs(generator, genome, 300), PairLayout.TWO_FILES)
    else:
        files = [tmp_path / "reads"]
        files[0].write_bytes(fastq(draw_reads(generator, genome, 600)))
    paths = tmp_path / "quick", tmp_path / "everywhere"
    for path, most in zip(paths, (None, MAX_XA_HITS), strict=True):
        layout = {"layout": PairLayout.TWO_FILES} if paired else {}
        map_files(files, index, backend, path, reporting=Reporting(max_xa_hits=most), **layout)
    quick, everywhere = map(without_xs_and_xa, paths)
    assert quick == everywhere
    assert paths[0].read_text() != paths[1].read_text()


def test_any_qualities(backends: str) -> None:
    """Whether a read without differences is resolved depends on the lowest quality in each seed."""
    generator = random.Random(315)
    contig = random_bases(generator, 2_000)
    context = context_of([contig], backends)
    reads = []
    for _ in range(40):
        start = below(generator, len(contig) - LENGTH)
        reads.append(Read("r", contig[start : start + LENGTH], random_quality(generator, LENGTH)))
    piece, found = LENGTH // MAX_PARTITION_SEEDS, resolved_reads(reads, context)
    variant = PHRED_ONE_OF_THREE + phred(1 / (MIN_BASES_PER_DIFFERENCE + LENGTH))
    for number, read in enumerate(reads):
        marks = read.quality or ""
        marks = marks if clean(read.bases) <= reverse_complement(read.bases) else marks[::-1]
        lows = [min(map(ord, marks[i : i + piece])) - 33 for i in range(0, LENGTH, piece)]
        known = sum(phred(chance(low + PHRED_ONE_OF_THREE) + chance(variant)) for low in lows)
        if not NEGLIGIBLE - 8 <= known <= NEGLIGIBLE + 8:
            assert (number in found) == (known > NEGLIGIBLE)
    assert np.unique([number in found for number in range(len(reads))]).size == 2


@pytest.mark.parametrize(("differing", "expected"), [(2, UNSEARCHED), (3, DIVERGENT), (8, DIVERGENT)])
def test_divergent_reads(backends: str, differing: int, expected: int) -> None:
    """Reads with missing seeds, whose other seeds occur too often to be examined."""
    generator = random.Random(317)
    unit = random_bases(generator, LENGTH)
    contig = "".join(random_bases(generator, 70) + unit for _ in range(MAX_OCCURRENCES + 1))
    context = context_of([contig], backends)
    read = Read("r", changed(unit, one_in_each_seed(differing)), "I" * LENGTH)
    batch = Batch.of(reads_of(fastq([read]), context.backend), context)
    resolve_reads(batch, context)
    assert context.backend.to_host(batch.placements.unresolved).tolist() == [expected]
