"""Counts of records compared with an oracle, for any chunks and on every backend."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pysam
import pytest
from alignment_files import bytes_of_records
from oracles import quality as oracle

from readmap.backend import Backend, open_backend
from readmap.errors import UsageError
from readmap.formats.sam import ReadGroupInfo, read_groups
from readmap.qc.survey import MAX_READ_GROUPS, Survey
from readmap.qc.tally import ADAPTER_NAMES, SampleTally, Tally

CONTIGS = [("a", 400), ("b", 3_000), ("c", 150)]
GROUPS = {"1": {"SM": "s", "LB": "x"}, "2": {"SM": "s", "LB": "y"}, "3": {"SM": "t"}, "4": {}}
HEADER = pysam.AlignmentHeader.from_dict({
    "HD": {"VN": "1.6", "SO": "coordinate"},
    "SQ": [{"SN": name, "LN": length} for name, length in CONTIGS],
    "RG": [{"ID": name, **facts} for name, facts in GROUPS.items()],
})  # fmt: skip
SAMPLES = {"1": "s", "2": "s", "3": "t", "4": None, None: None}
Records = list[pysam.AlignedSegment]


def draw_cigar(draw: random.Random) -> list[tuple[int, int]]:
    parts = [(0, draw.randrange(5, 40))]
    for kind in draw.choice([[], [1], [2], [3], [1, 2], [7], [8]]):
        parts += [(kind, draw.randrange(1, 9)), (0, draw.randrange(3, 30))]
    front, back = ([(4, draw.randrange(1, 12))] if draw.random() < 0.3 else [] for _ in range(2))
    hard = [(5, 7)] if draw.random() < 0.1 else []
    return [*hard, *front, *parts, *back]


def draw_letters(draw: random.Random, size: int) -> str:
    letters = "".join(draw.choices("ACGTN", [24, 24, 24, 24, 4], k=size))
    if size > 14 and draw.random() < 0.2:
        at = draw.randrange(size - 12)
        letters = letters[:at] + draw.choice(oracle.ADAPTERS) + letters[at + 12 :]
    return letters


def draw_md(draw: random.Random, cigar: Sequence[tuple[int, int]]) -> str:
    """Return an MD text that fits the CIGAR, with some mismatches."""
    text, run = "", 0
    for kind, length in cigar:
        if kind in (0, 7, 8):
            for _ in range(length):
                if draw.random() < 0.1:
                    text, run = f"{text}{run}A", 0
                else:
                    run += 1
        elif kind == 2:
            text, run = f"{text}{run}^{'C' * length}", 0
    return f"{text}{run}"


def draw_record(draw: random.Random, name: str, flag: int, place: tuple[int, int]) -> pysam.AlignedSegment:
    one = pysam.AlignedSegment(HEADER)
    one.query_name, one.flag, one.mapping_quality = name, flag, draw.choice([0, 3, 5, 20, 60, 60])
    cigar = draw_cigar(draw)
    size = sum(length for kind, length in cigar if kind in (0, 1, 4, 7, 8))
    letters = draw_letters(draw, size)
    if flag & 16 and draw.random() < 0.2 and size > 14:
        letters = letters[: size - 12] + "CCGAGAATTCCA"
    one.query_sequence = None if draw.random() < 0.03 else letters
    if one.query_sequence and draw.random() < 0.95:
        one.query_qualities = pysam.qualitystring_to_array("".join(draw.choices("!#5:AFK~", k=size)))
    if not flag & 4:
        one.reference_id, one.reference_start, one.cigartuples = *place, cigar
        if draw.random() < 0.9:
            one.set_tag("MD", draw_md(draw, cigar))
        one.set_tag("NM", draw.randrange(5))
    elif draw.random() < 0.5:
        one.reference_id, one.reference_start = place
    return one


def draw_records(seed: int, fragments: int) -> Records:
    """Return overlapping pairs, single reads, secondary and supplementary records, failed reads and duplicates, sorted
    by position.
    """
    draw, records = random.Random(seed), []
    for number in range(fragments):
        group = draw.choice(["1", "1", "2", "3", "4", None])
        flags = draw.choice([0, 0, 0, 0, 512, 1024])
        contig = draw.randrange(len(CONTIGS))
        place = draw.randrange(CONTIGS[contig][1] - 140 if CONTIGS[contig][1] > 150 else 20)
        kind, name = draw.choice(["pair", "pair", "pair", "half", "single", "apart"]), f"f{number}"
        if kind == "single":
            made = [draw_record(draw, name, flags | draw.choice([0, 4, 16]), (contig, place))]
        else:
            proper = 2 if kind == "pair" and draw.random() < 0.8 else 0
            first, second = draw.choice([(16, 32), (0, 0), (32, 16), (48, 48)])
            lost = kind == "half"
            other = (contig + 1) % len(CONTIGS) if kind == "apart" else contig
            beside = min(place + draw.choice([0, 0, 7, 25]), CONTIGS[other][1] - 130)
            one = draw_record(draw, name, flags | 1 | 64 | proper | first | (8 if lost else 0), (contig, place))
            flag = flags | 1 | 128 | proper | second | (4 if lost else 0)
            two = draw_record(draw, name, flag, (other, max(beside, 0)))
            two.flag = two.flag & ~48 | (16 if one.flag & 32 else 0) | (32 if one.flag & 16 else 0)
            one.flag = one.flag & ~32 | (32 if two.flag & 16 else 0)
            for own, mate in ((one, two), (two, one)):
                own.next_reference_id, own.next_reference_start = mate.reference_id, mate.reference_start
                if not mate.is_unmapped and draw.random() < 0.97:
                    own.set_tag("MC", mate.cigarstring)
                if own.reference_id == mate.reference_id and not lost:
                    own.template_length = draw.choice([1, -1]) * draw.choice([0, 80, 120, 7999, 8000, 20000])
            made = [one, two]
            if not (one.has_tag("MC") and (two.has_tag("MC") or lost)):
                for own in made:
                    own.set_tag("MC", None)
        if draw.random() < 0.1:
            made.append(draw_record(draw, name, made[0].flag & ~2 | draw.choice([256, 2048]), (contig, place)))
        for one in made:
            one.set_tag("RG", group)
        records += made
    placed = [one for one in records if one.reference_id >= 0]
    placed.sort(key=lambda one: (one.reference_id, one.reference_start))
    return placed + [one for one in records if one.reference_id < 0]


def encoded(records: Records, path: Path) -> list[bytes]:
    """Return the bytes of each record in BAM."""
    with pysam.AlignmentFile(str(path), "wb0", header=HEADER) as file:
        for one in records:
            file.write(one)
    return bytes_of_records(path)


def surveyed(parts: list[bytes], cuts: Sequence[int], backend: Backend, from_host: bool = False) -> list[SampleTally]:
    """Return the result of a survey of records in chunks; events are accumulated in order, after all chunks have been
    measured.
    """
    survey = Survey(backend)
    survey.set_header(read_groups(str(HEADER).splitlines()), CONTIGS)
    seen = []
    for begin, end in zip([0, *cuts], [*cuts, len(parts)], strict=True):
        if end == begin:
            continue
        data = np.frombuffer(b"".join(parts[begin:end]), np.uint8)
        ends = np.cumsum([len(part) for part in parts[begin:end]]) + 1000
        if from_host:
            seen.append(survey.measure(data, ends, 1000))
        else:
            seen.append(survey.measure(backend.to_device(data), backend.to_device(ends), 1000, backend))
    for one in seen:
        survey.accumulate(one)
    return survey.samples("unnamed")


@pytest.fixture(scope="module")
def records() -> Records:
    return draw_records(5, 700)


@pytest.fixture(scope="module")
def parts(records: Records, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return encoded(records, tmp_path_factory.mktemp("records") / "in.bam")


def dense(counts: Counter[tuple[int, ...]], shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    table = np.zeros(shape, np.int64)
    for place, count in counts.items():
        table[place] = count
    return table


def expect_tally(tally: Tally, counts: oracle.Counts) -> None:
    assert np.array_equal(tally._part("FLAG", 4096), dense(counts.flags, (2, 4096)))
    assert np.array_equal(tally._part("FLAG_LETTERS", 4096), dense(counts.letters, (2, 4096)))
    assert np.array_equal(tally.qualities, dense(counts.qualities, tally.qualities.shape))
    bases = Counter({(mate, cycle, "ACGTN".index(letter)): n for (mate, cycle, letter), n in counts.bases.items()})
    assert np.array_equal(tally.bases, dense(bases, tally.bases.shape))
    assert np.array_equal(tally.mismatches, dense(counts.mismatches, tally.mismatches.shape))
    assert np.array_equal(tally.adapters, dense(counts.adapters, tally.adapters.shape))
    assert np.array_equal(tally.inserts, dense(counts.inserts, tally.inserts.shape))
    assert tally.mapqs.tolist() == [counts.mapqs[mapq] for mapq in range(256)]
    assert tally.quality_of_reads.sum(0).tolist() == [counts.mean_qualities[mean] for mean in range(94)]
    assert tally.scalar("ALIGNED_BASES") == counts.aligned
    assert tally.scalar("DIFFERENCES") == counts.differences
    assert tally.scalar("MAPQ_ZERO") == counts.without_mapq
    assert tally.scalar("OTHER_CONTIG") + tally.scalar("FAILED_OTHER_CONTIG") == counts.apart


@pytest.mark.parametrize("from_host", [False, True])
@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_counts(records: Records, parts: list[bytes], pieces: int, from_host: bool, backends: str) -> None:
    draw = random.Random(pieces)
    cuts = sorted(draw.choices(range(len(parts)), k=pieces - 1))
    found = surveyed(parts, cuts, open_backend(backends, 2), from_host)
    expected = oracle.count(records)
    lanes = [(sample.name, [lane.name for lane in sample.lanes]) for sample in found]
    assert lanes == [("s", ["1", "2"]), ("t", ["3"]), ("unnamed", ["4", ""])]
    for sample in found:
        for lane in sample.lanes:
            expect_tally(lane.tally, expected[lane.name or None])
    assert found[0].tally.reads == sum(lane.tally.reads for lane in found[0].lanes)
    assert list(found[0].libraries) == ["x", "y"]
    assert all(count.adapters for count in expected.values())
    assert len(ADAPTER_NAMES) == len(oracle.ADAPTERS)


@pytest.mark.parametrize("pieces", [1, 2, 7, 150])
def test_coverage(records: Records, parts: list[bytes], pieces: int, backends: str) -> None:
    draw = random.Random(pieces)
    cuts = sorted(draw.choices(range(len(parts)), k=pieces - 1))
    depths, found = oracle.depths(records, SAMPLES), surveyed(parts, cuts, open_backend(backends, 2))
    assert sum(sample.depths.missing_mc for sample in found if sample.depths) > 5
    for sample in found:
        expected = depths[None if sample.name == "unnamed" else sample.name]
        assert sample.depths is not None
        counted = Counter(expected.values())
        assert sample.depths.histogram.tolist() == [counted[depth] if depth else 0 for depth in range(1024)]
        assert sample.depths.mean == pytest.approx(sum(expected.values()) / 3550)
        for number, (_, length) in enumerate(CONTIGS):
            own = [count for (contig, _), count in expected.items() if contig == number]
            mean, breadths = sample.depths.of_contig(number)
            assert mean == pytest.approx(sum(own) / length)
            shares = {depth: sum(count >= depth for count in own) / length for depth in (1, 10, 20, 30)}
            assert breadths == pytest.approx(shares)
        assert sample.depths.all_depths.sum() == 3550


def test_gc_of_each_read(records: Records, parts: list[bytes]) -> None:
    """Each read counts for a percentage within one base of its share."""
    for one, part in zip(records, parts, strict=True):
        if not one.query_length or one.flag & 0x900:
            continue
        (sample,) = [each for each in surveyed([part], [], open_backend("cpu", 1)) if each.tally.all_records]
        (found,) = np.flatnonzero(sample.tally.gc_of_reads.sum(0))
        letters = (one.get_forward_sequence() or "").replace("N", "")
        strong = sum(letter in "CG" for letter in letters)
        assert strong / (len(letters) + 1) * 101 - 1 <= found <= (strong + 1) / (len(letters) + 1) * 101


def test_reads_longer_than_the_cycles(tmp_path: Path, backends: str) -> None:
    one = pysam.AlignedSegment(HEADER)
    one.query_name, one.flag, one.query_sequence = "long", 4, "ACGT" * 200
    one.query_qualities = pysam.qualitystring_to_array("F" * 800)
    found = surveyed(encoded([one], tmp_path / "in.bam"), [], open_backend(backends, 1))
    (sample,) = [each for each in found if each.tally.all_records]
    assert sample.tally.bases_read == sample.tally.bases.sum() == sample.tally.qualities.sum() == 800
    assert sample.tally.is_last_cycle_more
    assert sample.tally.bases[0, 511].sum() == 289


def test_depth_above_the_histogram(tmp_path: Path, backends: str) -> None:
    one = pysam.AlignedSegment(HEADER)
    one.query_name, one.query_sequence, one.reference_id, one.reference_start = "r", "A" * 20, 1, 2_990
    one.cigarstring = "20M"  # after the contig's end
    found = surveyed(encoded([one] * 5000, tmp_path / "in.bam"), [1, 2000], open_backend(backends, 1))
    (sample,) = [each for each in found if each.tally.all_records]
    assert sample.depths is not None
    assert sample.depths.histogram[1023] == sample.depths.histogram.sum() == 10
    assert sample.depths.covered[:, 0].tolist() == [0, 50_000, 0]


def test_no_records(backends: str) -> None:
    first, *others = surveyed([], [], open_backend(backends, 1))
    assert [first.name, *(other.name for other in others)] == ["s", "t", "unnamed"]
    assert first.tally.reads == 0
    assert first.depths is not None
    assert first.depths.mean == 0


def test_too_many_read_groups() -> None:
    with pytest.raises(UsageError, match="--report: 257 read groups, the maximum is 256"):
        Survey(open_backend("cpu", 1)).set_header(
            [ReadGroupInfo(str(number)) for number in range(MAX_READ_GROUPS + 1)], CONTIGS
        )
