"""Divergence of the sample: what single reads show, and the estimate."""

from __future__ import annotations

import dataclasses
import random
from itertools import pairwise

import numpy as np
import pytest
from examples import Read, below, random_bases, reads_of
from oracles.alignment import clean, reverse_complement
from oracles.placements import chance
from window_bench import Bench, Window, window_at

from readmap.backend.compilation.declarations import constant
from readmap.mapping.batch import Batch
from readmap.mapping.divergence import (
    MAX_BASES_PER_DIFFERENCE,
    MIN_BASES_PER_DIFFERENCE,
    ONE_ERROR,
    estimate_bases_per_difference,
    measure_divergence,
)
from readmap.mapping.inserts import fixed_insert_size
from readmap.mapping.parameters import DEFAULT_BASES_PER_DIFFERENCE
from readmap.mapping.pipeline import search_reads
from readmap.run import sample as sample_of_reads
from readmap.run.sample import PAIRS, READS, Observation, are_sufficient, estimate_sample, have_pairs, observe

RELIABLE = constant("mapping/mapping_quality.cuh", "RELIABLE")
CERTAIN_MAPQ = constant("mapping/divergence.cu", "CERTAIN_MAPQ")
RANDOM = random.Random(171)
CONTIGS = [random_bases(RANDOM, 900, "ACGT" * 20 + "N"), random_bases(RANDOM, 400)]


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


@dataclasses.dataclass(frozen=True)
class Case:
    """A read as sequenced, its position, the aligned part, and its MAPQ."""

    read: Read
    contig: int
    start: int
    reverse: bool
    part: tuple[int, int]
    gapped: bool
    mapq: int

    def expected(self) -> tuple[int, int, float]:
        """Return bases, differences and expected errors, counted base by base along the contig."""
        if self.gapped or self.mapq < CERTAIN_MAPQ:
            return 0, 0, 0
        bases, phreds = clean(self.read.bases), [ord(letter) - 33 for letter in self.read.quality or ""]
        if self.reverse:
            bases, phreds = reverse_complement(bases), phreds[::-1]
        contig = clean(CONTIGS[self.contig])
        shown = [(bases[i], contig[self.start + i], phreds[i]) for i in range(*self.part) if phreds[i] >= RELIABLE]
        differences = sum(a != b and {a, b} <= set("ACGT") for a, b, _ in shown)
        return len(shown), differences, sum(chance(phred) for _, _, phred in shown)


def draw_case(generator: random.Random) -> Case:
    length, contig = 30 + below(generator, 70), below(generator, 2)
    start = below(generator, len(CONTIGS[contig]) - length + 1)
    letters = list(clean(CONTIGS[contig][start : start + length]))
    for _ in range(below(generator, 5)):
        letters[below(generator, length)] = "ACGTN"[below(generator, 5)]
    reverse = bool(below(generator, 2))
    bases = "".join(letters)
    quality = "".join(chr(33 + (2, 19, 20, 30, 41, 93)[below(generator, 6)]) for _ in letters)
    begin = below(generator, 10) if below(generator, 3) == 0 else 0
    end = length - (below(generator, 10) if below(generator, 3) == 0 else 0)
    read = Read("r", reverse_complement(bases) if reverse else bases, quality)
    return Case(
        read, contig, start, reverse, (begin, end), below(generator, 6) == 0, CERTAIN_MAPQ - (below(generator, 4) == 3)
    )


def batch_of(bench: Bench, cases: list[Case], with_qualities: bool = True) -> Batch:
    windows: list[list[Window]] = []
    for case in cases:
        window = window_at(bench, case.read.bases, case.contig, case.start, case.reverse)
        begin, end = case.part
        score = window.score + 5 * case.gapped
        windows.append([dataclasses.replace(window, start=begin, end=end, score=score)])
    bases, mapqs = [case.read.bases for case in cases], [case.mapq for case in cases]
    qualities = [case.read.quality or "" for case in cases] if with_qualities else None
    return bench.world(bases, windows, [0] * len(cases), mapqs, qualities=qualities).batch


def test_measure_divergence(bench: Bench) -> None:
    cases = [draw_case(random.Random(number)) for number in range(400)]
    batch = batch_of(bench, cases)
    found = measure_divergence(batch, 1_000, bench.context)
    for (bases, differences, errors), case in zip(found.tolist(), cases, strict=True):
        assert (bases, differences, pytest.approx(errors / ONE_ERROR, abs=1e-4)) == case.expected()
    assert found[:, 1].max() >= 3
    assert (measure_divergence(batch, 7, bench.context) == found[:7]).all()


def test_reads_without_qualities_or_placement_show_nothing(bench: Bench) -> None:
    cases = [draw_case(random.Random(number)) for number in range(40)]
    assert not measure_divergence(batch_of(bench, cases, with_qualities=False), 40, bench.context).any()
    batch = batch_of(bench, cases)
    batch.placements.chosen.fill(-1)
    assert not measure_divergence(batch, 40, bench.context).any()


@pytest.mark.parametrize(
    ("bases", "differences", "errors", "expected"),
    [
        (0, 0, 0, DEFAULT_BASES_PER_DIFFERENCE),
        (10_000_000, 10_000, 0, 985),  # (10,000,000 + 100,000) / (10,000 + 250)
        (10_000_000, 15_000, 5_000, 985),
        (10_000_000, 50_000, 0, 200),
        (10_000_000, 900, 1_000, MAX_BASES_PER_DIFFERENCE),
        (1_000_000, 200_000, 0, MIN_BASES_PER_DIFFERENCE),
        (15_000, 15, 0, 433),  # a hundred reads show little
    ],
)
def test_estimate_bases_per_difference(bases: int, differences: int, errors: int, expected: int) -> None:
    halves = np.array([[bases // 2, differences // 2, errors * ONE_ERROR // 2]] * 2 + [[bases % 2, differences % 2, 0]])
    assert estimate_bases_per_difference(halves) == expected


def draw_sample(draw: np.random.Generator, genome: str, apart: int, count: int) -> bytes:
    """Return reads that differ from the genome once in `apart` bases, with errors at their quality's rate."""
    letters, phreds = np.frombuffer(b"ACGT", np.uint8), draw.integers(20, 40, count)
    codes = np.searchsorted(letters, np.frombuffer(genome.encode(), np.uint8))
    reads = codes[draw.integers(0, len(genome) - 100, count)[:, None] + np.arange(100)]
    for rates in (1 / apart, 10 ** (-phreds[:, None] / 10)):
        reads = np.where(draw.random(reads.shape) < rates, (reads + draw.integers(1, 4, reads.shape)) % 4, reads)
    text = []
    for read, phred, is_forward in zip(letters[reads], phreds.tolist(), draw.integers(0, 2, count), strict=True):
        bases = read.tobytes().decode()
        bases = bases if is_forward else reverse_complement(bases)
        text.append(f"@r\n{bases}\n+\n{chr(33 + phred) * 100}\n")
    return "".join(text).encode()


def observed_of(fastq: bytes, bench: Bench) -> Observation:
    return observe(search_reads(reads_of(fastq, bench.backend), bench.context), bench.context)


@pytest.mark.parametrize("apart", [50, 200, 1_000])
def test_estimate_of_a_known_sample(backends: str, apart: int) -> None:
    genome = random_bases(random.Random(172), 50_000)
    bench = Bench([genome], backends)
    generator = np.random.default_rng(apart)
    batches = [observed_of(draw_sample(generator, genome, apart, 5_000), bench) for _ in range(4)]
    sample = estimate_sample(batches, None)
    assert abs(sample.bases_per_difference / apart - 1) < 0.1
    assert sample.insert_sizes == ()


@pytest.mark.parametrize(
    ("reads", "pairs", "insert_size", "expected"),
    [
        (READS - 1, 0, None, False),
        (READS, 0, None, True),
        (READS, READS // 2, None, False),
        (READS, READS // 2, (400.0, 50.0), True),
        (2 * PAIRS - 1, PAIRS - 1, None, False),
        (2 * PAIRS, PAIRS, None, True),
        (2 * PAIRS, 1, None, False),  # the pair is the last
    ],
)
def test_sufficient_reads(reads: int, pairs: int, insert_size: tuple[float, float] | None, expected: bool) -> None:
    """Pairs may follow single reads."""
    observed = []
    for n, m in ((reads - 2 * pairs, 0), (2 * pairs, pairs)):
        tallies, directions, sizes = np.zeros((n, 3), np.int64), np.zeros(m, np.uint8), np.zeros(m, np.int32)
        observed.append(Observation(n, tallies, directions, sizes, n - 2 * np.arange(m)[::-1]))
    assert are_sufficient(observed, insert_size) is expected


def test_insert_sizes_come_from_the_first_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed number of reads counts from the first pair on, including single reads, however batches are cut."""
    monkeypatch.setattr(sample_of_reads, "PAIRS", 4)
    monkeypatch.setattr(sample_of_reads, "estimate_insert_sizes", lambda _, sizes: tuple(sizes.tolist()))
    ends = np.array([7, 9, 12, 13, 15])  # the first pair is reads 5 and 6
    for cuts in ([20], [5, 20], [3, 7, 9, 20], [13, 20]):
        observed = []
        for begin, end in pairwise([0, *cuts]):
            own = ends[(ends > begin) & (ends <= end)]
            tallies, directions = np.zeros((end - begin, 3), np.int64), np.zeros(len(own), np.uint8)
            observed.append(Observation(end - begin, tallies, directions, own.astype(np.int32), own - begin))
        assert have_pairs(observed)
        assert estimate_sample(observed, None).insert_sizes == (7, 9, 12, 13)
        assert estimate_sample(observed, (300.0, 20.0)).insert_sizes == fixed_insert_size(300.0, 20.0)
