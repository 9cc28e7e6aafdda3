"""Banded scores and CIGARs, compared with the oracle, and with parasail if the band makes no difference."""

import dataclasses
import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import window_bench
from examples import batch_of, below, delete, insert, random_bases, substitute
from oracles.alignment import (
    Cigar,
    bonuses,
    clean,
    column_score,
    gaps_to_shift,
    local_score,
    parse_cigar,
    rescore,
    reverse_complement,
)
from oracles.placements import PRIMARY

from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import MAX_WINDOWS, WINDOW, WINDOW_WORDS, Batch, Context
from readmap.mapping.extension import BANDS, Extensions, score_windows, trace_alignments
from readmap.mapping.parameters import Scoring
from readmap.mapping.record_plan import plan_records
from readmap.reads.bad_records import MAX_READ_LENGTH

READ_FLIPPED = constant("reads/queries.cuh", "READ_FLIPPED")
#: Only longer reads use the widest band.
LONG_READ = constant("mapping/windows.cuh", "LONG_READ")
WIDTHS = {band.name: band.width for band in BANDS.values()}
KINDS = {band.name: kind for kind, band in BANDS.items()}
DEFAULT = Scoring()
SCORINGS = {
    "default": DEFAULT,
    "linear gaps": Scoring(match=2, mismatch=3, gap_open=0, gap_extend=2),
    "cheap gaps": Scoring(match=5, mismatch=9, gap_open=0, gap_extend=1, clip_penalty=1),
    "no bonus": Scoring(match=1, mismatch=1, gap_open=3, gap_extend=1, clip_penalty=0),
    "free mismatches": Scoring(match=1, mismatch=0, gap_open=2, gap_extend=2),
    "large": Scoring(match=100, mismatch=400, gap_open=600, gap_extend=100, clip_penalty=500),
    "largest": Scoring(match=1000, mismatch=1000, gap_open=1000, gap_extend=1000, clip_penalty=1000),
    "high bonus": Scoring(clip_penalty=20),
    "from end to end": Scoring(clip_penalty=200),
    "gaps of one price": Scoring(long_gap=7),
    "long gaps cheaper than short ones": Scoring(match=2, gap_open=6, long_gap=5),
    "no long gaps": Scoring(long_gap=1000),
    "dear insertions": Scoring(gap_open=(4, 9), gap_extend=(1, 3)),
    "dear deletions": Scoring(match=2, gap_open=(30, 0), gap_extend=(1, 2), long_gap=40),
    "unequal ends": Scoring(clip_penalty=(9, 1)),
    "all unequal": Scoring(30, 60, gap_open=(5, 300), gap_extend=(40, 1), long_gap=350, clip_penalty=(0, 300)),
}


best_score = functools.cache(local_score)


class ThirtyTwoBits(Scoring):
    """A scoring whose scores never fit into 16 bits."""

    def fits_16_bits(self, length: int) -> bool:
        return False


def with_bits(scoring: Scoring, bits: int) -> Scoring:
    return scoring if bits == 16 else ThirtyTwoBits(*dataclasses.astuple(scoring))


@dataclass(frozen=True)
class Task:
    """A read to be aligned in a band of a contig, around some diagonals, as read or reversed.

    The widest band is there where a read of the batch is longer than LONG_READ.
    """

    read: str
    contig: int
    diagonal: int
    band: str = "narrow"
    low: int = 0
    high: int = 0
    reverse: bool = False
    segment: tuple[int, int] | None = None

    @property
    def oriented(self) -> str:
        return reverse_complement(self.read) if self.reverse else clean(self.read)

    @property
    def long_gaps(self) -> bool:
        return self.band in ("wide", "widest")

    @property
    def diagonals(self) -> range:
        """The diagonals of the band on the contig; the middle of low and high is rounded towards zero."""
        width = WIDTHS[self.band]
        first = self.diagonal + int((self.low + self.high) / 2) - width // 2
        return range(first, first + width)


@dataclass(frozen=True)
class Alignment:
    cigar: Cigar
    start: int


ANY = -1_000_000  # a score that every alignment reaches


class Bench(window_bench.Bench):
    """Runs the scoring and the traceback of any tasks."""

    def batch(self, tasks: Sequence[Task], score: int) -> Batch:
        """Return a batch with one window per read: of this score, not yet aligned, at rank (index of the task) % 3."""
        batch = batch_of([task.read for task in tasks], self.context)
        flags = self.backend.to_host(batch.queries.flags)
        rows = np.zeros(len(tasks) * MAX_WINDOWS, WINDOW)
        counts = np.zeros(len(tasks), np.int32)
        for slot, record in enumerate(self.backend.to_host(batch.queries.order).tolist()):
            task, rank = tasks[record], record % 3
            contig = self.contigs[task.contig]
            begin, end = task.segment or (max(0, -task.diagonal), len(task.read))
            assert 0 <= task.diagonal + begin < len(contig)
            orientation = int(flags[slot] & READ_FLIPPED) ^ task.reverse
            rows[slot * MAX_WINDOWS + rank] = (
                *(task.diagonal + self.starts[task.contig], score, score, begin, end, task.low, task.high),
                *(orientation, 0, -KINDS[task.band], begin, end),
            )
            counts[slot] = rank + 1
        self.put_rows(rows, batch)
        batch.windows.counts = self.backend.to_device(counts)
        return batch

    def put_rows(self, rows: Any, batch: Batch) -> None:
        batch.windows.rows = self.backend.to_device(rows.view(np.int64).reshape(-1, WINDOW_WORDS))

    def rows(self, batch: Batch) -> Any:
        """Return a copy of the windows, [reads, MAX_WINDOWS]."""
        return self.backend.to_host(batch.windows.rows).view(WINDOW).reshape(-1, MAX_WINDOWS).copy()

    def rows_of(self, batch: Batch) -> list[Any]:
        """Return the windows in the order of the tasks."""
        rows, slots = self.rows(batch), self.backend.to_host(batch.queries.slot_of).tolist()
        return [rows[slot][record % 3] for record, slot in enumerate(slots)]

    def scored_by(self, scoring: Scoring) -> Context:
        return dataclasses.replace(self.context, scoring=scoring)

    def score(self, batch: Batch, scoring: Scoring = DEFAULT, long_gaps: bool = True) -> None:
        score_windows(DeviceList.of(batch.queries.slot_of), batch, self.scored_by(scoring), long_gaps=long_gaps)

    def scores(self, tasks: Sequence[Task], scoring: Scoring = DEFAULT, score: int = -1) -> list[int]:
        batch = self.batch(tasks, score)
        self.score(batch, scoring)
        rows = self.rows_of(batch)
        assert [int(row["band"]) for row in rows] == [KINDS[task.band] for task in tasks]
        return [int(row["score"]) for row in rows]

    def alignments(
        self, tasks: Sequence[Task], scoring: Scoring = DEFAULT, traced: bool = True, least: int = ANY
    ) -> list[Alignment]:
        batch = self.batch(tasks, 1_000_000)
        rows = self.rows(batch)
        if traced:
            rows["score"] = 0  # differs from the ungapped segment's, so that the segment is no alignment
            rows["band"] *= -1
        self.put_rows(rows, batch)
        return self.aligned(tasks, batch, scoring, least)

    def aligned(self, tasks: Sequence[Task], batch: Batch, scoring: Scoring, least: int = ANY) -> list[Alignment]:
        """least: minimum score of the alignments without bonuses."""
        found = self.traced(batch, scoring, least)
        names = "capacity_ends", "cigar_capacities", "counts", "reference_starts", "operations"
        arrays = (self.backend.to_host(getattr(found, name)).tolist() for name in names)
        ends, capacities, counts, starts, operations = arrays
        results = []
        for entry, task in enumerate(tasks):
            assert 0 < counts[entry] <= capacities[entry]
            begin = ends[entry] - capacities[entry]
            own = operations[begin : begin + counts[entry]]
            cigar = [(operation >> 4, "MIDNS"[operation & 15]) for operation in own]
            results.append(Alignment(cigar, starts[entry] - self.starts[task.contig]))
        return results

    def traced(self, batch: Batch, scoring: Scoring, least: int = ANY) -> Extensions:
        """Plan one entry per read, for its last window; the other windows score 0."""
        batch.placements.chosen = batch.windows.counts - 1
        plan = plan_records(batch, self.scored_by(dataclasses.replace(scoring, min_score=1)))
        assert self.backend.to_host(plan.roles).tolist() == [PRIMARY] * batch.reads.count
        plan = plan.replace(min_scores=self.backend.full(plan.entries, least, np.int32))
        return trace_alignments(plan, batch, self.scored_by(scoring))

    def expected(self, task: Task, scoring: Scoring = DEFAULT) -> int:
        around = task.oriented, self.contigs[task.contig]
        return best_score(*around, scoring, task.diagonals, task.long_gaps, task.reverse)

    def check_scores(self, tasks: Sequence[Task], scoring: Scoring, bits: int) -> None:
        found = self.scores(tasks, with_bits(scoring, bits))
        for task, score in zip(tasks, found, strict=True):
            assert score == self.expected(task, scoring), task

    def check_alignments(self, tasks: Sequence[Task], scoring: Scoring, scores: Sequence[int]) -> None:
        """Assert that CIGARs are complete, reach the best score, and have their gaps leftmost."""
        for task, found, score in zip(tasks, self.alignments(tasks, scoring), scores, strict=True):
            contig, cigar = self.contigs[task.contig], found.cigar
            text = "".join(f"{length}{operation}" for length, operation in cigar)
            assert parse_cigar(text) == cigar
            assert "S" not in [operation for _, operation in cigar[1:-1]]
            assert all(a[1] != b[1] for a, b in itertools.pairwise(cigar)), task
            if all(operation == "S" for _, operation in cigar):
                assert score <= max(scoring.clip_5, scoring.clip_3)
                assert cigar == [(len(task.read), "S")]
                continue
            rescored = rescore(cigar, task.oriented, contig, found.start, scoring, task.long_gaps)
            assert rescored.query_length == len(task.read)
            assert 0 <= found.start <= found.start + rescored.reference_length <= len(contig)
            assert rescored.score + bonuses(cigar, scoring, task.reverse) == score, (task, cigar, found.start)
            assert gaps_to_shift(cigar, task.oriented, contig, found.start, scoring) == []


def altered(generator: random.Random, bases: str, longest_gap: int) -> str:
    """Return bases with substitutions and one or two gaps."""
    bases = substitute(generator, bases, below(generator, 1 + len(bases) // 12))
    for _ in range(below(generator, 3)):
        length = 1 + below(generator, longest_gap)
        at = below(generator, len(bases) + 1)
        bases = insert(generator, bases, at, length) if below(generator, 2) else delete(bases, at, length)
    return bases or "A"


def make_tasks(
    generator: random.Random, contigs: Sequence[str], lengths: Sequence[int], bands: Sequence[str]
) -> list[Task]:
    """Draw reads similar to a contig at random positions, also over its ends, with bands near these positions."""
    tasks = []
    for length in lengths:
        contig = below(generator, len(contigs))
        size = len(contigs[contig])
        start = below(generator, size + length // 2) - length // 4
        piece = contigs[contig][max(start, 0) : max(start, 0) + length]
        read = random_bases(generator, max(0, -start)) + altered(generator, clean(piece), 12)
        read = (read + random_bases(generator, length))[:length] if below(generator, 2) else read[:length]
        shift = below(generator, 9) - 4
        diagonal = min(max(start + shift, 1 - len(read)), size - 1)
        low, high = -below(generator, 12), below(generator, 12)
        reverse = bool(below(generator, 2))
        given = reverse_complement(read) if reverse else read
        tasks.append(Task(given, contig, diagonal, bands[below(generator, len(bands))], low, high, reverse))
    return tasks


def gapped_tasks(generator: random.Random, contigs: Sequence[str], count: int, band: str = "wide") -> list[Task]:
    """Draw reads with one or two gaps of some dozen bases."""
    tasks = []
    for contig, letters in enumerate(contigs):
        for _ in range(count if len(letters) >= 200 else 0):
            start, gap = below(generator, len(letters) - 180), 10 + below(generator, 110)
            read = clean(letters[start : start + 180])
            at = 40 + below(generator, 30)
            read = delete(read, at, min(gap, 90)) if below(generator, 2) else insert(generator, read, at, gap)
            read = insert(generator, read, len(read) - 30, 30) if below(generator, 3) == 0 else read
            reverse = bool(below(generator, 2))
            given = reverse_complement(read) if reverse else read
            tasks.append(Task(given, contig, start, band, -below(generator, 100), below(generator, 100), reverse))
    return tasks


def lengthened(generator: random.Random, task: Task) -> Task:
    """Draw reads one base longer than the longest without a widest band."""
    more = random_bases(generator, LONG_READ + 1 - len(task.read))
    return dataclasses.replace(task, read=more + task.read if task.reverse else task.read + more)


RANDOM = random.Random(11)
CONTIGS = [random_bases(RANDOM, length) for length in (400, 1, 2, 30, 64, 250, 33, 700)]
REPETITIVE = ["A" * 200, "AC" * 100, "CAG" * 70, "ACGT" * 10 + "T" * 60 + "ACGT" * 10, "AAAC" * 60]
UNCLEAR = [random_bases(RANDOM, length, "ACGTACGTACGTACGTNRM") for length in (300, 90, 500)]
GENOMES = {"random": CONTIGS, "repetitive": REPETITIVE, "ambiguous": UNCLEAR}
SHORT = [1, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 36, 63, 64, 65, 75, 90, 100, 101, 120, 150]


def ambiguous_reads(generator: random.Random, tasks: Sequence[Task]) -> list[Task]:
    """Put ambiguous bases into every other read."""
    changed = []
    for task in tasks:
        letters = [letter if below(generator, 15) else "N" for letter in task.read]
        changed.append(dataclasses.replace(task, read="".join(letters)) if below(generator, 2) else task)
    return changed


@pytest.fixture(scope="module")
def benches(backends: str) -> dict[str, Bench]:
    return {name: Bench(contigs, backends) for name, contigs in GENOMES.items()}


# Scores.


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("name", SCORINGS)
def test_scores_by_any_scoring(benches: dict[str, Bench], name: str, bits: int) -> None:
    generator, lengths = random.Random(13), 2 * SHORT if name == "default" else SHORT[::2]
    for genome, contigs in GENOMES.items():
        tasks = ambiguous_reads(generator, make_tasks(generator, contigs, lengths, ["narrow", "middle"]))
        benches[genome].check_scores(tasks, SCORINGS[name], bits)


@pytest.mark.parametrize("bits", [16, 32])
def test_scores_in_the_widest_band(benches: dict[str, Bench], bits: int) -> None:
    """A batch with bands of all widths."""
    generator = random.Random(14)
    long = make_tasks(generator, [CONTIGS[7] + CONTIGS[0]], [LONG_READ + 1, 600, 700], ["widest"])
    short = make_tasks(generator, CONTIGS, SHORT[::3], ["narrow", "middle", "wide"])
    bench = Bench([*CONTIGS, CONTIGS[7] + CONTIGS[0]], benches["random"].backend.name)
    bench.check_scores([*(dataclasses.replace(task, contig=8) for task in long), *short], DEFAULT, bits)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("name", SCORINGS)
def test_scores_with_long_gaps(benches: dict[str, Bench], name: str, bits: int) -> None:
    """Wide bands over the ends of contigs, with ambiguous bases and gaps at both ends of a band."""
    generator = random.Random(26)
    for genome, contigs in GENOMES.items():
        tasks = ambiguous_reads(generator, make_tasks(generator, contigs, SHORT[1::6], ["wide"]))
        tasks += [lengthened(generator, task) for task in make_tasks(generator, contigs, [300], ["widest"])]
        tasks += [*gapped_tasks(generator, contigs, 1), *gapped_tasks(generator, contigs[-1:], 1, "widest")]
        benches[genome].check_scores(tasks, SCORINGS[name], bits)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("gap", [1, 15, 16, 17, 31, 32, 33])
def test_gaps_up_to_half_a_band(benches: dict[str, Bench], gap: int, bits: int) -> None:
    """A gap may reach the last diagonal of the band and no further: 16 of 32 to the left, 15 to the right."""
    contig = CONTIGS[0]
    deleted, inserted = contig[100:170] + contig[170 + gap : 240 + gap], None
    inserted = contig[100:170] + random_bases(random.Random(15), gap) + contig[170:240]
    tasks = [Task(read, 0, 100, band) for read in (deleted, inserted) for band in ("narrow", "middle")]
    found = benches["random"].scores(tasks, with_bits(DEFAULT, bits))
    assert found == [benches["random"].expected(task) for task in tasks]
    whole = 140 + 10 - 6 - gap
    assert [score == whole for score in found] == [gap <= 15, gap <= 31, gap <= 16, gap <= 32]


@pytest.mark.parametrize("bits", [16, 32])
def test_a_score_is_never_lowered(benches: dict[str, Bench], bits: int) -> None:
    tasks = make_tasks(random.Random(16), CONTIGS, SHORT, ["narrow"])
    found = benches["random"].scores(tasks, with_bits(DEFAULT, bits), 50)
    assert found == [max(50, benches["random"].expected(task)) for task in tasks]
    assert {True, False} == {score == 50 for score in found}


def test_only_new_windows_are_aligned(benches: dict[str, Bench]) -> None:
    """Windows without a band, aligned windows and unselected slots are skipped."""
    bench = benches["random"]
    batch = bench.batch([Task(CONTIGS[0][:50], 0, 0)] * 5, 7)
    rows = bench.rows(batch)
    rows["band"][1], rows["band"][2] = 0, 1
    bench.put_rows(rows, batch)
    score_windows(DeviceList.of(bench.backend.to_device(np.array([0, 1, 2, 4], np.int32))), batch, bench.context)
    after = bench.rows(batch)
    expected = [(60, 1), (7, 0), (7, 1), (7, -1), (60, 1)]
    assert [(int(row["score"]), int(row["band"])) for row in (after[i][i % 3] for i in range(5))] == expected


def test_long_gaps_wait(benches: dict[str, Bench]) -> None:
    """Windows that need a wide band are skipped until long gaps are searched."""
    bench = benches["random"]
    tasks = [Task(CONTIGS[0][50:120], 0, 50, band) for band in ("narrow", "middle", "wide")]
    tasks.append(Task(CONTIGS[7][: LONG_READ + 1], 7, 0, "widest"))
    batch = bench.batch(tasks, 7)
    before = bench.rows_of(batch)[2]
    bench.score(batch, long_gaps=False)
    rows = bench.rows_of(batch)
    assert rows[2] == before
    assert [int(row["score"]) for row in rows] == [80, 80, 7, LONG_READ + 11]
    assert [int(row["band"]) for row in rows] == [1, 2, -3, 4]
    bench.score(batch)
    rows = bench.rows_of(batch)
    assert [(int(row["score"]), int(row["band"])) for row in rows[:3]] == [(80, 1), (80, 2), (80, 3)]


def parasail_score(read: str, contig: str, scoring: Scoring) -> int:
    """Return the unbanded score. Bonuses are modelled by extra letters at the read ends that match anything."""
    alphabet = "ACGTN^$#"
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    matrix = parasail.matrix_create(alphabet, 0, 0)
    for i, base in enumerate(alphabet):
        for j, letter in enumerate(alphabet):
            if {base, letter} & {"^", "$"}:
                matrix[i, j] = scoring.clip_penalty
            elif {base, letter} & {"#"}:
                matrix[i, j] = -100_000
            else:
                matrix[i, j] = column_score(base, letter, scoring)
    gaps = scoring.gap_open + scoring.gap_extend, scoring.gap_extend
    # Not sw_striped: it misses adjacent gaps if the first base of a gap costs no more than the others.
    return int(parasail.sw_scan_32(f"^{read}$", f"#{contig}#", *gaps, matrix).score)


def test_parasail_and_oracle_agree() -> None:
    """Compare the oracle with parasail without a band, on random pairs too."""
    generator = random.Random(17)
    for _ in range(60):
        contig = random_bases(generator, 1 + below(generator, 60), "ACGTACGTN")
        read = altered(generator, contig[below(generator, len(contig)) :], 5)[:50]
        for scoring in (DEFAULT, SCORINGS["cheap gaps"], SCORINGS["no bonus"]):
            # In parasail the extra letter of an end is an alignment by itself.
            found = max(local_score(clean(read), contig, scoring), scoring.clip_penalty)
            assert found == parasail_score(clean(read), contig, scoring)


@pytest.mark.parametrize("bits", [16, 32])
def test_scores_are_those_of_parasail(benches: dict[str, Bench], bits: int) -> None:
    """For reads similar to one position, with few gaps of about one base, the band contains the best alignment."""
    generator = random.Random(18)
    contigs = [random_bases(generator, 600, "ACGT" * 30 + "N") for _ in range(4)]
    tasks = []
    for number in range(200):
        contig, start = below(generator, 4), below(generator, 440)
        read = altered(generator, clean(contigs[contig][start : start + 20 + below(generator, 130)]), 5)
        tasks.append(Task(read, contig, start, ("narrow", "middle")[number % 2]))
    found = Bench(contigs, benches["random"].backend.name).scores(tasks, with_bits(DEFAULT, bits))
    assert found == [parasail_score(task.read, contigs[task.contig], DEFAULT) for task in tasks]


@pytest.fixture(scope="module")
def long_reads() -> tuple[list[str], list[Task]]:
    generator = random.Random(19)
    contigs = [random_bases(generator, MAX_READ_LENGTH + 500), random_bases(generator, 4_000)]
    tasks = []
    for length in (LONG_READ, LONG_READ + 1, 1_000, 2_500, 5_000, MAX_READ_LENGTH):
        contig = int(length < 3_000)
        start = below(generator, len(contigs[contig]) - length - 60)
        read = substitute(generator, contigs[contig][start : start + length + 40], length // 40)
        for _ in range(6 if length > LONG_READ else 1):
            at = below(generator, length)
            read = delete(insert(generator, read, at, 1 + below(generator, 12)), below(generator, length), 9)
        tasks.append(Task(read[:length], contig, start, "widest" if length > LONG_READ else "middle"))
    return contigs, tasks


@pytest.mark.parametrize("bits", [16, 32])
def test_scores_of_long_reads(backends: str, long_reads: tuple[list[str], list[Task]], bits: int) -> None:
    contigs, tasks = long_reads
    scoring = SCORINGS["no long gaps"]
    found = Bench(contigs, backends).scores(tasks, with_bits(scoring, bits))
    assert found == [parasail_score(task.read, contigs[task.contig], scoring) for task in tasks]


@pytest.mark.parametrize("bits", [16, 32])
def test_perfect_reads_of_the_longest_lengths(backends: str, bits: int) -> None:
    """The longest read that is scored with 16 bits, and the shortest that is not."""
    contig = random_bases(random.Random(20), MAX_READ_LENGTH)
    bench = Bench([contig], backends)
    most = next(n for n in range(MAX_READ_LENGTH, 0, -1) if Scoring(match=2).fits_16_bits(n))
    for match in (1, 2, 3):
        scoring = with_bits(Scoring(match=match), bits)
        tasks = [Task(contig[:length], 0, 0, "widest") for length in {most, MAX_READ_LENGTH}]
        assert bench.scores(tasks, scoring) == [match * len(task.read) + 10 for task in tasks]
    fitting = next(m for m in range(1000, 0, -1) if Scoring(match=m).fits_16_bits(150))
    for match in (fitting, fitting + 1, 1000):
        scoring = with_bits(Scoring(match=match), bits)
        assert bench.scores([Task(contig[:150], 0, 0)], scoring) == [150 * match + 10]


def test_fits_16_bits() -> None:
    """Every value of a cell, and every value minus a penalty, fits into an int16."""
    for scoring in SCORINGS.values():
        for length in (1, 100, 1_000, MAX_READ_LENGTH):
            first_deleted = scoring.deletion_open + scoring.deletion_extend
            first_inserted = scoring.insertion_open + scoring.insertion_extend
            largest = scoring.match * length + scoring.clip_5 + scoring.clip_3
            largest += max(scoring.mismatch, first_deleted, first_inserted)
            assert not scoring.fits_16_bits(length) or largest < 2**15
    assert DEFAULT.fits_16_bits(MAX_READ_LENGTH)
    assert not SCORINGS["largest"].fits_16_bits(100)


# CIGARs.


@pytest.mark.parametrize("name", SCORINGS)
def test_cigars_by_any_scoring(benches: dict[str, Bench], name: str) -> None:
    generator, lengths = random.Random(22), 2 * SHORT if name == "default" else SHORT[1::2]
    scoring = SCORINGS[name]
    for genome, contigs in GENOMES.items():
        tasks = ambiguous_reads(generator, make_tasks(generator, contigs, lengths, ["narrow", "middle"]))
        scores = [benches[genome].expected(task, scoring) for task in tasks]
        benches[genome].check_alignments(tasks, scoring, scores)


@pytest.mark.parametrize("name", SCORINGS)
def test_cigars_with_long_gaps(benches: dict[str, Bench], name: str) -> None:
    generator = random.Random(27)
    scoring, long = SCORINGS[name], 0
    for genome, contigs in GENOMES.items():
        tasks = [*make_tasks(generator, contigs, SHORT[::6], ["wide"]), *gapped_tasks(generator, contigs, 1)]
        tasks += gapped_tasks(generator, contigs[-1:], 1, "widest")
        benches[genome].check_alignments(tasks, scoring, [benches[genome].expected(task, scoring) for task in tasks])
        found = benches[genome].alignments(tasks, scoring)
        long += sum(length > 20 and operation in "ID" for alignment in found for length, operation in alignment.cigar)
    assert long >= 2


@pytest.mark.parametrize("genome", GENOMES)
def test_cigars_without_bonuses(benches: dict[str, Bench], genome: str) -> None:
    """If the best alignment misses the minimum score without bonuses, the best one without bonuses is reported."""
    generator, bench, plain = random.Random(29), benches[genome], dataclasses.replace(DEFAULT, clip_penalty=0)
    tasks = make_tasks(generator, GENOMES[genome], 10 * SHORT, ["narrow", "middle", "wide"])
    if genome == "ambiguous":
        tasks = ambiguous_reads(generator, tasks)
    fallen = other = 0
    for least in (10, 30, 60):
        both = bench.alignments(tasks), bench.alignments(tasks, least=least), bench.alignments(tasks, plain)
        for task, best, found, best_plain in zip(tasks, *both, strict=True):
            contig = bench.contigs[task.contig]
            score = rescore(best.cigar, task.oriented, contig, best.start, DEFAULT, task.long_gaps).score
            assert found == (best if score >= least else best_plain)
            other += found != best
            fallen += score < least <= bench.expected(task, plain)
    assert other > 0
    assert fallen > 0


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("gap", "band", "spread"),
    [(20, "wide", 0), (50, "wide", 0), (79, "wide", 0), (128, "wide", 128), (143, "wide", 128), (127, "widest", 0)],
)
def test_long_gaps_are_left_aligned(backends: str, gap: int, band: str, spread: int, reverse: bool) -> None:
    """A gap has its leftmost position on the forward reference, also on the last diagonals of the band."""
    generator = random.Random(28)
    flank = 260 if band == "widest" else 60
    left, lost, right = (random_bases(generator, length) for length in (flank, gap - 10, flank))
    unit = random_bases(generator, 10)
    contig = random_bases(generator, 150) + left + unit + lost + unit + right + random_bases(generator, 150)
    # The bases before the gap and before its end differ, so that the gap cannot shift further.
    deleted, inserted = left + unit + right, left + unit + lost + unit + right
    short = contig.replace(unit + lost + unit, unit)
    before = flank - next(i for i in range(flank) if left[-1 - i] != lost[-1 - i])
    for text, read, operation in ((contig, deleted, "D"), (short, inserted, "I")):
        low, high = (0, spread) if operation == "D" else (-spread, 0)
        task = Task(reverse_complement(read) if reverse else read, 0, 150, band, low, high, reverse)
        assert task.diagonals[0] <= 150 - gap if operation == "I" else 150 + gap <= task.diagonals[-1]
        bench = Bench([text], backends)
        (found,) = bench.alignments([task])
        rest = len(read) - before - (gap if operation == "I" else 0)
        assert (found.cigar, found.start) == ([(before, "M"), (gap, operation), (rest, "M")], 150)
        score = len(read) - (gap if operation == "I" else 0) - 22 + 10
        assert bench.scores([task]) == bench.scores([task], with_bits(DEFAULT, 32)) == [score]


def test_cigars_of_long_reads(backends: str, long_reads: tuple[list[str], list[Task]]) -> None:
    contigs, tasks = long_reads
    scoring = SCORINGS["no long gaps"]
    scores = [parasail_score(task.read, contigs[task.contig], scoring) for task in tasks]
    Bench(contigs, backends).check_alignments(tasks, scoring, scores)


@pytest.mark.parametrize("reverse", [False, True])
def test_ends_of_a_contig(backends: str, reverse: bool) -> None:
    """Bases over the end of a contig are clipped, even if the next contig continues the read."""
    genome = random_bases(random.Random(23), 300)
    bench = Bench([genome[:100], genome[101:200], genome[201:]], backends)
    tasks, expected = [], []
    for start, cigar, at in ((60, "40M30S", 60), (99 - 60, "61M9S", 39)):
        tasks.append(Task(genome[start : start + 70], 0, start))
        expected.append((cigar, at))
    for start, cigar, at in ((170, "30M40S", 69), (120, "70M", 19), (80, "21S49M", 0)):
        tasks.append(Task(genome[start : start + 70], 1, start - 101))
        expected.append((cigar, at))
    if reverse:
        tasks = [dataclasses.replace(task, read=reverse_complement(task.read), reverse=True) for task in tasks]
    found = bench.alignments(tasks)
    assert [(alignment.cigar, alignment.start) for alignment in found] == [(parse_cigar(c), p) for c, p in expected]
    bench.check_scores(tasks, DEFAULT, 16)


def test_bonus_decides_between_clip_and_mismatch(backends: str) -> None:
    """A mismatch near an end competes with clipping, which costs the bases and the bonus."""
    contig = random_bases(random.Random(24), 200)
    read = contig[50:150]
    spoilt = {i: read[:i] + ("A" if read[i] != "A" else "C") + read[i + 1 :] for i in (0, 1, 50, 98, 99)}
    bench = Bench([contig], backends)

    def cigars(clip_penalty: int) -> list[str]:
        found = bench.alignments([Task(bases, 0, 50) for bases in spoilt.values()], Scoring(clip_penalty=clip_penalty))
        return ["".join(f"{length}{operation}" for length, operation in a.cigar) for a in found]

    assert cigars(5) == ["100M"] * 5
    assert cigars(2) == ["1S99M", "2S98M", "100M", "98M2S", "99M1S"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("gap", "cigar"), [(4, "92M4D8M"), (6, "92M6D8M"), (7, "92M8S"), (8, "92M8S")])
def test_bonus_decides_between_clip_and_gap(backends: str, gap: int, cigar: str, reverse: bool) -> None:
    """The end of the read with its bonus, 13 points here, outweighs a gap of 6 bases but not one of 7."""
    contig = random_bases(random.Random(29), 200)
    read = contig[50:142] + contig[142 + gap : 150 + gap]
    assert contig[142] != contig[142 + gap]
    assert contig[141] != contig[141 + gap]
    task = Task(reverse_complement(read) if reverse else read, 0, 50, segment=(0, 92), reverse=reverse)
    bench = Bench([contig], backends)
    batch = bench.batch([task], 97)
    bench.score(batch)
    (found,) = bench.aligned([task], batch, DEFAULT)
    assert (found.cigar, found.start) == (parse_cigar(cigar), 50)
    assert int(bench.rows_of(batch)[0]["score"]) == max(97, 110 - 6 - gap)


@pytest.mark.parametrize("lanes", [1, 32])
def test_little_scratch_memory(benches: dict[str, Bench], monkeypatch: pytest.MonkeyPatch, lanes: int) -> None:
    """The alignments do not depend on the scratch memory or the lanes that share it."""
    bench = benches["random"]
    tasks = make_tasks(random.Random(25), CONTIGS, 2 * SHORT, ["narrow", "middle", "wide"])
    expected = bench.alignments(tasks)
    monkeypatch.setattr(bench.backend, "warp_width", lanes)
    for size in (1, 20_000, 100_000, bench.backend.scratch_bytes):
        monkeypatch.setattr(bench.backend, "scratch_bytes", size)
        assert bench.alignments(tasks) == expected


def test_ungapped_alignments(benches: dict[str, Bench]) -> None:
    """Without a traceback the CIGAR is the segment between two clips."""
    read = CONTIGS[0][100:200]
    tasks = [
        Task(read, 0, 100, segment=segment, reverse=reverse)
        for segment in ((0, 100), (0, 60), (40, 100), (30, 31), (3, 97))
        for reverse in (False, True)
    ]
    found = benches["random"].alignments(tasks, traced=False)
    for task, alignment in zip(tasks, found, strict=True):
        assert task.segment is not None
        begin, end = task.segment
        cigar = [(begin, "S"), (end - begin, "M"), (100 - end, "S")]
        assert alignment.cigar == [(length, operation) for length, operation in cigar if length]
        assert alignment.start == 100 + begin


def test_a_read_without_a_window_has_no_cigar(benches: dict[str, Bench]) -> None:
    bench = benches["random"]
    batch = bench.batch([Task(CONTIGS[0][:50], 0, 0)] * 2, 5)
    batch.windows.counts.fill(0)
    assert bench.backend.to_host(bench.traced(batch, DEFAULT).counts).tolist() == [0, 0]
