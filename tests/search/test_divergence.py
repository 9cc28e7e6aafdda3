"""How far the sample is from the reference: what single reads tell, and what is believed of it."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from examples import Read, below, fasta_reads, random_bases, reads_of
from oracles.alignment import canonical, clean, reverse_complement
from oracles.pairs import Candidate, likelihood
from window_bench import Bench, World, window_at

from readmap.search.batch import Searched
from readmap.search.divergence import LEAST_CLEAN_BASES, MOST_CLEAN_BASES, ONE_ERROR, clean_bases, measure_divergence
from readmap.search.parameters import CLEAN_BASES, Scoring
from readmap.search.pipeline import search_reads
from readmap.search.sample import READS, Observed, enough, learn, observe

RELIABLE, NEGLIGIBLE = 20, 60  # of kernels/search/mapping_quality.cuh
RANDOM = random.Random(171)
CONTIGS = [random_bases(RANDOM, 900, "ACGT" * 20 + "N"), random_bases(RANDOM, 400)]


@pytest.fixture(scope="module")
def bench(backends: str) -> Bench:
    return Bench(CONTIGS, backends)


@dataclasses.dataclass(frozen=True)
class Case:
    """A read as sequenced, where it lies, what of it is aligned, and how sure its place is."""

    read: Read
    contig: int
    start: int
    reverse: bool
    part: tuple[int, int]
    gapped: bool
    mapq: int

    def expected(self) -> tuple[int, int, int]:
        """Base by base, along the contig."""
        if self.gapped or self.mapq < 60:
            return 0, 0, 0
        bases, phreds = clean(self.read.bases), [ord(letter) - 33 for letter in self.read.quality or ""]
        if self.reverse:
            bases, phreds = reverse_complement(bases), phreds[::-1]
        contig = clean(CONTIGS[self.contig])
        told = [(bases[i], contig[self.start + i], phreds[i]) for i in range(*self.part) if phreds[i] >= RELIABLE]
        differences = sum(a != b and {a, b} <= set("ACGT") for a, b, _ in told)
        return len(told), differences, sum(likelihood(min(phred, NEGLIGIBLE)) for _, _, phred in told)


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
    read = Read("", reverse_complement(bases) if reverse else bases, quality)
    return Case(
        read, contig, start, reverse, (begin, end), below(generator, 6) == 0, (60, 60, 60, 59)[below(generator, 4)]
    )


def searched_of(bench: Bench, cases: list[Case], fastq: bool = True) -> tuple[World, Searched]:
    windows: list[list[Candidate]] = []
    for case in cases:
        bases = case.read.bases
        window = window_at(bench, case.contig, case.start, len(bases), canonical(bases) != clean(bases), case.reverse)
        begin, end = case.part
        score = window.score + 5 * case.gapped
        windows.append([dataclasses.replace(window, begin=begin, end=end, score=score)])
    world = bench.world([case.read.bases for case in cases], windows, [0] * len(cases), [case.mapq for case in cases])
    text = "".join(f"@\n{case.read.bases}\n+\n{case.read.quality}\n" for case in cases).encode()
    reads = reads_of(text, bench.backend) if fastq else reads_of(fasta_reads([c.read for c in cases]), bench.backend, 2)
    return world, Searched(reads, world.queries, world.windows, world.placements)


def test_what_reads_tell(bench: Bench) -> None:
    cases = [draw_case(random.Random(number)) for number in range(400)]
    _, searched = searched_of(bench, cases)
    found = measure_divergence(searched, 1_000, bench.index, bench.backend)
    assert [tuple(row) for row in found.tolist()] == [case.expected() for case in cases]
    assert found[:, 1].max() >= 3
    assert (measure_divergence(searched, 7, bench.index, bench.backend) == found[:7]).all()


def test_reads_without_qualities_or_place_tell_nothing(bench: Bench) -> None:
    cases = [draw_case(random.Random(number)) for number in range(40)]
    _, searched = searched_of(bench, cases, fastq=False)
    assert not measure_divergence(searched, 40, bench.index, bench.backend).any()
    _, searched = searched_of(bench, cases)
    nowhere = dataclasses.replace(searched.placements, chosen=bench.backend.full(40, -1, np.int32))
    searched = dataclasses.replace(searched, placements=nowhere)
    assert not measure_divergence(searched, 40, bench.index, bench.backend).any()


@pytest.mark.parametrize(
    ("bases", "differences", "errors", "told"),
    [
        (0, 0, 0, CLEAN_BASES),
        (10_000_000, 10_000, 0, 985),  # (10,000,000 + 100,000) / (10,000 + 250)
        (10_000_000, 15_000, 5_000, 985),
        (10_000_000, 50_000, 0, 200),
        (10_000_000, 900, 1_000, MOST_CLEAN_BASES),
        (1_000_000, 200_000, 0, LEAST_CLEAN_BASES),
        (15_000, 15, 0, 433),  # a hundred reads tell little
    ],
)
def test_what_is_believed(bases: int, differences: int, errors: int, told: int) -> None:
    halves = np.array([[bases // 2, differences // 2, errors * ONE_ERROR // 2]] * 2 + [[bases % 2, differences % 2, 0]])
    assert clean_bases(halves) == told


def draw_sample(generator: random.Random, genome: str, apart: int, count: int) -> bytes:
    """Reads of 100 bases of which one in `apart` differs, each with errors of its own at the rate of its quality."""
    text = []
    for _ in range(count):
        start, phred = below(generator, len(genome) - 100), 20 + below(generator, 20)
        letters = list(genome[start : start + 100])
        for i, base in enumerate(letters):
            for chance in (1 / apart, 10 ** (-phred / 10)):
                if generator.random() < chance:
                    letters[i] = "ACGT"[("ACGT".index(base) + 1 + below(generator, 3)) % 4]
        bases = "".join(letters) if below(generator, 2) else reverse_complement("".join(letters))
        text.append(f"@\n{bases}\n+\n{chr(33 + phred) * 100}\n")
    return "".join(text).encode()


def observed_of(fastq: bytes, bench: Bench) -> Observed:
    searched = search_reads(reads_of(fastq, bench.backend), bench.index, Scoring(), bench.backend)
    return observe(searched, bench.index, bench.backend)


@pytest.mark.parametrize("apart", [50, 200, 1_000])
def test_the_sample_is_found(backends: str, apart: int) -> None:
    genome = random_bases(random.Random(172), 50_000)
    bench = Bench([genome], backends)
    generator = random.Random(apart)
    batches = [observed_of(draw_sample(generator, genome, apart, 5_000), bench) for _ in range(4)]
    sample = learn(batches, None, bench.backend)
    assert abs(sample.clean_bases / apart - 1) < 0.1
    assert sample.inserts.sizes == ()


@pytest.mark.parametrize(
    ("paired", "reads", "pairs", "insert_size", "told"),
    [
        (False, READS - 1, 0, None, False),
        (False, READS, 0, None, True),
        (True, READS, READS // 2, None, False),
        (True, READS, READS // 2, (400.0, 50.0), True),
        (True, 2 * READS, 100_000, None, True),
    ],
)
def test_enough_reads(
    paired: bool, reads: int, pairs: int, insert_size: tuple[float, float] | None, told: bool
) -> None:
    halves = [
        Observed(paired, np.zeros((n, 3), np.int64), np.zeros(m, np.uint8), np.zeros(m, np.int32))
        for n, m in ((reads // 2, pairs // 2), (reads - reads // 2, pairs - pairs // 2))
    ]
    assert enough(halves, insert_size) is told
