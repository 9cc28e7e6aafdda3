"""Whole searches: the same bytes however they are cut, threaded, packed or interleaved, and what stops one half-way."""

import dataclasses
import errno
import gzip
import io
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import (
    Read,
    context_of,
    draw_reads,
    fasta_reads,
    fastq,
    index_of,
    insert,
    random_bases,
    random_quality,
    reads_of,
    small_genome,
    substitute,
    with_table,
)
from oracles.alignment import best_anywhere, clean, parse_cigar, reverse_complement
from search_runs import Full, map_files, reads_in, refuse

from readmap.backend import Backend, cuda_available, open_backend
from readmap.errors import DataError
from readmap.formats.output import Output, open_output
from readmap.index.device import DeviceIndex
from readmap.mapping.batch import MAX_WINDOWS, Context, Sample
from readmap.mapping.parameters import (
    DEFAULT_BASES_PER_DIFFERENCE,
    MAX_XA_HITS,
    NO_LIMIT,
    Reporting,
    Scoring,
    search_passes,
)
from readmap.mapping.pipeline import search_reads
from readmap.run import chunk_plan, device_reads, read_mapper, record_blocks, sample, stream
from readmap.run.chunk_plan import ChunkPlan
from readmap.run.chunk_turns import DeviceLease

DRAW = random.Random(61)
GENOME = small_genome(DRAW)
READS = draw_reads(DRAW, GENOME, 300)
INDEX = index_of(GENOME)


@dataclass(frozen=True)
class World:
    """An index on a device, reads in a file, and the records that one search in one batch gave."""

    backend: Backend
    index: DeviceIndex
    reads: Path
    records: bytes


@pytest.fixture(scope="module", autouse=True)
def few_reads_show_the_sample() -> Iterator[None]:
    """Estimate the sample from 40 reads, so that the records of the first reads do not depend on later reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "READS", 40)
        yield


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    backend = open_backend(backends, 1)
    index = INDEX.to_device(backend)
    (folder / "reads.fq").write_bytes(fastq(READS))
    map_files([folder / "reads.fq"], index, backend, folder / "out.sam")
    return World(backend, index, folder / "reads.fq", (folder / "out.sam").read_bytes())


def rows_of(records: bytes) -> list[list[str]]:
    return [line.split("\t") for line in records.decode().splitlines()]


# The same bytes.


@pytest.mark.parametrize(
    ("batch", "threads", "packed"),
    [
        *((1, 1, "plain"), (1, 4, "members"), (7, 1, "members"), (7, 4, "gzip"), (7, 4, "plain")),
        *((1_000, 1, "gzip"), (1_000, 4, "members"), (1_000, 4, "bgzip"), (None, 1, "bgzip"), (None, 3, "gzip")),
    ],
)
def test_same_bytes_for_any_batch_threads_and_packing(
    world: World, tmp_path: Path, batch: int | None, threads: int, packed: str
) -> None:
    path, data = tmp_path / "reads", world.reads.read_bytes()
    members = [gzip.compress(data[i : i + 30_000], 1) for i in range(0, len(data), 30_000)]
    if packed == "bgzip":
        pysam = pytest.importorskip("pysam", reason="pysam is not installed")
        with pysam.BGZFile(str(path), "wb") as out:
            out.write(data)
    else:
        path.write_bytes({"plain": data, "gzip": gzip.compress(data, 1), "members": b"".join(members)}[packed])
    backend = open_backend(world.backend.name, threads)
    map_files([path], world.index, backend, tmp_path / "out.sam", batch_reads=batch)
    assert (tmp_path / "out.sam").read_bytes() == world.records


@pytest.mark.parametrize("attributes", [{"lanes": 1}, {"lanes": 32}, {"lanes": 8}, {"scratch_bytes": 1}])
def test_same_bytes_for_any_layout(world: World, tmp_path: Path, attributes: dict[str, int]) -> None:
    backend = open_backend(world.backend.name)
    for name, value in attributes.items():
        setattr(backend, name, value)
    map_files([world.reads], world.index, backend, tmp_path / "out.sam")
    assert (tmp_path / "out.sam").read_bytes() == world.records


def test_same_bytes_from_chunks_smaller_than_a_record(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_plan, "MIN_CHUNK_BYTES", 1)
    backend = open_backend(world.backend.name)
    backend.chunk_bytes = 500
    map_files([world.reads], world.index, backend, tmp_path / "out.sam")
    assert (tmp_path / "out.sam").read_bytes() == world.records


@pytest.mark.parametrize("force_64_bits", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("bases", [8, 11, 12])
def test_same_bytes_from_larger_prefix_tables(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bases: int, force_64_bits: bool
) -> None:
    """Also of more bases than the shortest seeds, and where an ambiguous base leaves a read fewer."""
    shortest = min(search_pass.min_seed_bases for search_pass in search_passes(world.index.suffix_count))
    assert world.index.table_bases < 8 < shortest < 11
    index = with_table(index_of(GENOME, force_64_bits), bases, open_backend(world.backend.name), monkeypatch)
    map_files([world.reads], index, world.backend, tmp_path / "out.sam")
    assert (tmp_path / "out.sam").read_bytes() == world.records
    for name, each in (("stored", world.index), ("larger", index)):
        map_files([world.reads], each, world.backend, tmp_path / name, reporting=Reporting(max_secondary=NO_LIMIT))
    assert (tmp_path / "larger").read_bytes() == (tmp_path / "stored").read_bytes() != world.records


def test_same_bytes_from_crlf_and_from_several_files(world: World, tmp_path: Path) -> None:
    (tmp_path / "one.fq").write_bytes(fastq(READS[:250]).replace(b"\n", b"\r\n"))
    (tmp_path / "empty.fq").write_bytes(b"")
    (tmp_path / "two.fq").write_bytes(fastq(READS[250:]).removesuffix(b"\n"))
    paths = [tmp_path / name for name in ("one.fq", "empty.fq", "two.fq")]
    map_files(paths, world.index, world.backend, tmp_path / "out.sam", batch_reads=99)
    assert (tmp_path / "out.sam").read_bytes() == world.records


def test_same_bytes_from_fasta_of_many_lines(world: World, tmp_path: Path) -> None:
    reads = [read for read in READS if read.bases]
    (tmp_path / "two.fa").write_bytes(fasta_reads(reads))
    broken = "".join(f">{r.name}\n" + "\r\n".join(re.findall("(?s).{1,50}", r.bases)) + "\n" for r in reads)
    (tmp_path / "many.fa").write_bytes(broken.encode())
    for name in ("two.fa", "many.fa"):
        map_files([tmp_path / name], world.index, world.backend, tmp_path / f"{name}.sam")
    records = (tmp_path / "two.fa.sam").read_bytes()
    assert (tmp_path / "many.fa.sam").read_bytes() == records
    assert {row[10] for row in rows_of(records)} == {"*"}


@pytest.mark.gpu
def test_same_bytes_on_cpu_and_gpu(tmp_path: Path) -> None:
    if reason := cuda_available():
        pytest.skip(f"no CUDA: {reason}")
    (tmp_path / "reads.fq").write_bytes(fastq(READS + draw_reads(random.Random(62), GENOME, 3_000)))
    for name in ("cpu", "cuda"):
        backend = open_backend(name)
        map_files([tmp_path / "reads.fq"], INDEX.to_device(backend), backend, tmp_path / f"{name}.sam")
    assert (tmp_path / "cpu.sam").read_bytes() == (tmp_path / "cuda.sam").read_bytes()


@pytest.mark.parametrize(
    ("stage", "limit"), [("parse_reads", 41), ("search_reads", 250), ("search_reads", 1), ("format_records", 100)]
)
def test_same_bytes_where_memory_makes_batches_smaller(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, limit: int
) -> None:
    """As if the device held `limit` reads and no more: the batch is halved until it fits."""
    backend, released = open_backend(world.backend.name), list[int]()

    def too_many(*arguments: Any) -> bool:
        return (int(arguments[1]) if stage == "parse_reads" else reads_in(*arguments)) > limit

    rooms = {"parse_reads": device_reads, "search_reads": read_mapper, "format_records": record_blocks}
    refused = refuse(monkeypatch, backend, rooms[stage], stage, too_many)
    monkeypatch.setattr(backend, "release_memory", lambda: released.append(1))
    map_files([world.reads], world.index, backend, tmp_path / "out.sam")
    assert (tmp_path / "out.sam").read_bytes() == world.records
    assert refused
    assert len(released) == len(refused)


def test_what_is_found_of_a_read_does_not_depend_on_the_sample(backends: str) -> None:
    """Reads over two places of one score: which is taken, and so what is left over of the read, is up to the sample."""
    generator = random.Random(72)
    halves = [random_bases(generator, 60), random_bases(generator, 60)]
    places = [halves[0], reverse_complement(halves[1])]
    copies = [substitute(generator, place, 6) for place in places for _ in range(8)]
    context = context_of(["".join(random_bases(generator, 200) + place for place in [*places, *copies])], backends)
    reads = []
    for _ in range(100):
        bases = "".join(substitute(generator, half[:52], 2) + half[52:] for half in halves)
        reads.append(Read("r", bases, random_quality(generator, 120)))
    found = []
    for bases_per_difference in (20, DEFAULT_BASES_PER_DIFFERENCE, 2_000):
        known = dataclasses.replace(context, sample=Sample(bases_per_difference))
        batch = search_reads(reads_of(fastq(reads), context.backend), known)
        counts, rows = context.backend.to_host(batch.windows.counts), context.backend.to_host(batch.windows.rows)
        found.append(
            [own[:count].tolist() for count, own in zip(counts, rows.reshape(100, MAX_WINDOWS, -1), strict=True)]
        )
    assert found[0] == found[1] == found[2]


def test_one_read_that_does_not_fit(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, world.backend, read_mapper, "search_reads", lambda *_: True)
    with pytest.raises(Full):
        map_files([world.reads], world.index, world.backend, tmp_path / "out.sam", batch_reads=1)
    assert (tmp_path / "out.sam").read_bytes() == b""


# Reverse complements.


def turned_strands(fields: Sequence[str]) -> list[str]:
    """With the other strand at each place that XA names."""
    signs = str.maketrans("+-", "-+")
    return [
        re.sub(r",[+-]\d", lambda strand: strand[0].translate(signs), field) if field.startswith("XA:Z:") else field
        for field in fields
    ]


def test_reverse_complements_map_to_the_same_places(world: World, tmp_path: Path) -> None:
    """On the other strand with the same CIGAR, MAPQ and tags; the records' sequences and qualities are the same."""
    turned = [Read(r.name, reverse_complement(r.bases), (r.quality or "")[::-1]) for r in READS]
    (tmp_path / "turned.fq").write_bytes(fastq(turned))
    map_files([tmp_path / "turned.fq"], world.index, world.backend, tmp_path / "out.sam")
    mapped = 0
    for read, one, other in zip(
        READS, rows_of(world.records), rows_of((tmp_path / "out.sam").read_bytes()), strict=True
    ):
        if one[1] == "4":
            assert other[1:9] == one[1:9]
            assert (other[9], other[10]) == (
                (reverse_complement(read.bases), one[10][::-1]) if read.bases else ("*", "*")
            )
            continue
        mapped += 1
        palindrome = clean(read.bases) == reverse_complement(read.bases)
        assert other[0] == one[0]
        assert palindrome or {one[1], other[1]} == {"0", "16"}
        assert turned_strands(other[2:]) == one[2:]
    assert mapped > 200


@pytest.mark.parametrize(("left_out", "sure"), [(0, True), (10, False)])
def test_palindrome_is_reported_forward(world: World, tmp_path: Path, left_out: int, sure: bool) -> None:
    """It has one place on both strands, but less than all of it has two."""
    half = random_bases(random.Random(63), 60)
    palindrome = half + reverse_complement(half)
    assert palindrome == reverse_complement(palindrome)
    contigs = {"a": random_bases(random.Random(64), 300) + palindrome + random_bases(random.Random(65), 300)}
    read = palindrome[left_out:]
    (tmp_path / "reads.fq").write_bytes(fastq([Read("p", read, "I" * len(read))]))
    map_files([tmp_path / "reads.fq"], index_of(contigs).to_device(world.backend), world.backend, tmp_path / "out.sam")
    (row,) = rows_of((tmp_path / "out.sam").read_bytes())
    places = [["0", "a", str(301 + left_out), row[4], f"{len(read)}M"], ["16", "a", "301", row[4], f"{len(read)}M"]]
    assert row[1:6] in places[: 1 if sure else 2]
    assert int(row[4]) >= 30 if sure else int(row[4]) <= 3


# Where reads go.


def test_records_are_in_the_order_of_the_reads(world: World) -> None:
    assert [row[0] for row in rows_of(world.records)] == [read.name.split("/")[0] for read in READS]


def test_reads_go_where_they_are_from(world: World) -> None:
    """Those that no repeat and no change makes uncertain, to the base."""
    unchanged = wrong = 0
    for read, row in zip(READS, rows_of(world.records), strict=True):
        _, contig, start, strand = read.name.split("/")[0].split("!")
        letters = GENOME.get(contig, "")[int(start) : int(start) + len(read.bases)]
        as_drawn = read.bases if strand == "+" else reverse_complement(read.bases)
        copies = [
            letters in other or reverse_complement(letters) in other for name, other in GENOME.items() if name != contig
        ]
        text = GENOME.get(contig, "")
        twice = text.find(letters) != text.rfind(letters) or reverse_complement(letters) in text
        if not letters or clean(as_drawn) != letters or "N" in letters or any(copies) or twice or len(letters) < 40:
            continue
        unchanged += 1
        expected = [contig, str(int(start) + 1), f"{len(letters)}M"]
        wrong += [row[2], row[3], row[5]] != expected or row[1] != ("0" if strand == "+" else "16")
    assert unchanged > 30
    assert wrong == 0


def test_alignments_are_the_best_that_there_are(world: World) -> None:
    """By an unbanded alignment with the whole genome; few may differ: a gap that no band takes, a place not seen."""
    scoring = Scoring()
    lesser = []
    checked = 0
    for read, row in zip(READS, rows_of(world.records), strict=True):
        if not read.bases or len(read.bases) > 300:
            continue
        best = best_anywhere(read.bases, GENOME.values(), scoring)
        if row[1] == "4":
            # Bonuses are no part of the score that decides whether a read is mapped.
            lesser += [(read, best)] if best >= scoring.min_score + 2 * scoring.clip_penalty + 5 else []
            continue
        checked += 1
        ends = [operation for _, operation in (parse_cigar(row[5])[0], parse_cigar(row[5])[-1])]
        score = int(row[13].removeprefix("AS:i:")) + scoring.clip_penalty * sum(end != "S" for end in ends)
        assert score <= best
        lesser += [(read, best)] if score < best else []
    assert checked > 200
    assert len(lesser) <= checked // 100, lesser


def test_copies_of_a_repeat_share_the_reads(world: World, tmp_path: Path) -> None:
    """Of equal places none is preferred, whichever strand a read is from, and MAPQ says so."""
    generator = random.Random(66)
    unit = random_bases(generator, 2_000)
    contigs = {name: random_bases(generator, 300) + unit + random_bases(generator, 300) for name in "abc"}
    starts = [stride * 8 for stride in range(230)]
    reads = [Read(str(start), unit[start : start + 100], "I" * 100) for start in starts]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    map_files([tmp_path / "reads.fq"], index_of(contigs).to_device(world.backend), world.backend, tmp_path / "out.sam")
    rows = rows_of((tmp_path / "out.sam").read_bytes())
    found = [row[2] for row in rows]
    assert all(found.count(name) > 45 for name in "abc")
    assert [int(row[3]) for row in rows] == [301 + start for start in starts]
    assert max(int(row[4]) for row in rows) <= 3
    assert {row[13:15] == ["AS:i:100", "XS:i:100"] for row in rows} == {True}


@pytest.mark.parametrize("after", [0, 7, 60])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_run_of_n_shows_nothing(world: World, tmp_path: Path, after: int, reverse: bool) -> None:
    """The clipped end of a read lies next to N at one of two copies, and must not affect the choice between them."""
    generator = random.Random(162)
    unit, front, following, rest = (random_bases(generator, length) for length in (80, 300, 300, 300))
    contig = f"{front}{unit}{following}{unit}{following[:after]}{'N' * 100}{rest}"
    contig = reverse_complement(contig) if reverse else contig
    # Which nothing that follows a copy resembles.
    clipped = following[:70].translate(str.maketrans("ACGT", "CATG"))
    reads = [Read(f"r{i}", substitute(generator, unit, 1) + clipped, "8" * 150) for i in range(20)]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    index = index_of([contig]).to_device(world.backend)
    map_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out")
    rows = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert all(int(row[4]) <= 3 for row in rows)
    assert len({row[3] for row in rows}) == 2


def test_second_score_is_that_of_the_best_other_place(world: World, tmp_path: Path) -> None:
    """Without bonuses. Two copies of a stretch, with three bases and with a gap of two between them and the read."""
    generator = random.Random(69)
    unit = random_bases(generator, 100)
    changed = "".join("ACGT"[("ACGT".index(base) + (i in (30, 50, 70))) % 4] for i, base in enumerate(unit))
    spacers = [random_bases(generator, 200) for _ in range(5)]
    for copy, second in ((changed, 97 - 12), (unit[:50] + unit[52:], 98 - 8)):
        contigs = {"a": spacers[0] + copy + spacers[1], "b": spacers[2] + unit + spacers[3]}
        reads = [Read("r", unit, "I" * 100), Read("s", reverse_complement(unit), "I" * 100)]
        (tmp_path / "reads.fq").write_bytes(fastq(reads))
        index, out = index_of(contigs).to_device(world.backend), tmp_path / "out.sam"
        map_files([tmp_path / "reads.fq"], index, world.backend, out, reporting=Reporting(max_xa_hits=MAX_XA_HITS))
        for row, flag in zip(rows_of((tmp_path / "out.sam").read_bytes()), ("0", "16"), strict=True):
            assert row[1:4] == [flag, "b", "201"]
            assert row[13:15] == ["AS:i:100", f"XS:i:{second}"]
            assert int(row[4]) >= 10


@pytest.mark.parametrize("min_score", [0, 30, 31, 200])
def test_minimum_score(world: World, tmp_path: Path, min_score: int) -> None:
    """The score without bonuses decides: 40 equal bases, a mismatch among them, 8 bases clipped."""
    letters = GENOME["one"]
    read = letters[100:119] + ("A" if letters[119] != "A" else "C") + letters[120:136]
    reads = [Read("a", read, "I" * 36), Read("b", letters[150:180], "I" * 30), Read("c", letters[150:181], "I" * 31)]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    scoring = Scoring(min_score=min_score)
    summary = map_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "out.sam", scoring)
    scores = [31, 30, 31]
    rows = rows_of((tmp_path / "out.sam").read_bytes())
    assert [row[1] != "4" for row in rows] == [score >= min_score for score in scores]
    assert summary.too_short == sum(len(read.bases) < min_score for read in reads)
    assert summary.mapped == sum(score >= min_score for score in scores)


def test_scoring_decides(world: World, tmp_path: Path) -> None:
    """A gap of two bases is worth it, or a clip is."""
    letters = GENOME["one"]
    read = letters[100:150] + letters[152:178]
    (tmp_path / "reads.fq").write_bytes(fastq([Read("a", read, "I" * len(read))]))
    for scoring, cigar in (
        (Scoring(), r"\d+M2D\d+M"),
        (Scoring(gap_open=40), r"50M26S|5[12]M2[45]S"),
        (Scoring(gap_open=20, clip_penalty=40), r"\d+M2D\d+M"),
    ):
        map_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "out.sam", scoring)
        (row,) = rows_of((tmp_path / "out.sam").read_bytes())
        assert re.fullmatch(cigar, row[5])


def first_place(text: str, start: int, length: int) -> int:
    """Return the leftmost position at which a deletion of `length` letters gives the same text."""
    while start and text[start - 1] == text[start + length - 1]:
        start -= 1
    return start


@pytest.mark.parametrize(("operation", "length"), [("D", 100), ("D", 150), ("D", 250), ("I", 150), ("I", 250)])
def test_long_gaps(world: World, tmp_path: Path, length: int, operation: str) -> None:
    """Of 20 to 110 bases in the middle of a read, on both strands: one gap at its first place, and one record."""
    generator = random.Random(70)
    contig = random_bases(generator, 30_000)
    reads, expected = [], []
    for number, gap in enumerate(range(20, 111, 2)):
        start, kept = 300 + 600 * number, length - (gap if operation == "I" else 0)
        if kept < 90:
            continue
        at = kept // 2 + number % 7 - 3
        if operation == "D":
            read = contig[start : start + at] + contig[start + at + gap : start + length + gap]
            at = first_place(contig, start + at, gap) - start
        else:
            read = insert(generator, contig[start : start + kept], at, gap)
            at = first_place(read, at, gap)
        score = kept - min(6 + gap, 22)
        cigar = f"{at}M{gap}{operation}{kept - at}M"
        for bases, flag in ((read, "0"), (reverse_complement(read), "16")):
            reads.append(Read(f"{gap}", bases, "I" * len(bases)))
            expected.append([flag, "0", str(start + 1), cigar, f"NM:i:{gap}", f"AS:i:{score}"])
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    map_files([tmp_path / "reads.fq"], index_of([contig]).to_device(world.backend), world.backend, tmp_path / "out.sam")
    rows = rows_of((tmp_path / "out.sam").read_bytes())
    assert [[*row[1:4], row[5], row[11], row[13]] for row in rows] == expected
    assert len(reads) > 40
    assert min(int(row[4]) for row in rows) >= 30


def test_no_gap_of_one_price(world: World, tmp_path: Path) -> None:
    """Where long gaps cost what they are long, a gap of 60 bases is two parts of a read."""
    contig = random_bases(random.Random(71), 2_000)
    read = contig[500:550] + contig[610:660]
    (tmp_path / "reads.fq").write_bytes(fastq([Read("r", read, "I" * 100)]))
    index = index_of([contig]).to_device(world.backend)
    for scoring, flags in ((Scoring(), ["0"]), (Scoring(long_gap=1000), ["0", "2048"])):
        map_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out.sam", scoring)
        assert [row[1] for row in rows_of((tmp_path / "out.sam").read_bytes())] == flags


# What is counted.


def test_summary(world: World, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    work = read_mapper.ReadMapper([Context(world.index, world.backend)])
    summary = work.summary
    with open_output(str(tmp_path / "out.sam")) as output:
        stream.run(
            [str(world.reads)],
            [output],
            work,
            [world.backend],
            batch_reads=100,
            progress=lambda: reported.append((summary.reads, summary.mapped)),
        )
    rows = rows_of(world.records)
    mapped = [row for row in rows if row[1] != "4"]
    assert (summary.reads, summary.mapped) == (len(rows), len(mapped))
    assert summary.mapqs.tolist() == [sum(row[4] == str(mapq) for row in mapped) for mapq in range(61)]
    assert summary.too_short == sum(len(read.bases) < 30 for read in READS)
    assert summary.replaced == sum(letter in "RYSWKMBDHV" for read in READS for letter in read.bases.upper())
    assert [reads for reads, _ in reported] == [100, 200, 300]
    assert reported[-1] == (summary.reads, summary.mapped)
    assert summary.seconds > 0


@pytest.mark.parametrize("data", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
def test_no_reads(world: World, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "reads.fq").write_bytes(data)
    summary = map_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "out.sam")
    assert (summary.reads, summary.mapped) == (0, 0)
    assert (tmp_path / "out.sam").read_bytes() == b""


# What stops a search.


def first_records(world: World, count: int) -> bytes:
    return b"".join(world.records.splitlines(keepends=True)[:count])


@pytest.mark.parametrize("batch", [None, 7])
@pytest.mark.parametrize("number", [1, 8, 101, 300])
def test_records_before_a_bad_one_are_written(world: World, tmp_path: Path, number: int, batch: int | None) -> None:
    records = [fastq([read]) for read in READS]
    name = READS[number - 1].name.split()[0]
    header, bases, *_ = records[number - 1].split(b"\n")
    records[number - 1] = b"\n".join([header, bases + b"A", b"+", b"I" * len(bases), b""])
    (tmp_path / "reads.fq").write_bytes(b"".join(records))
    expected = f"reads.fq, record {number} ({name}): quality has {len(bases)} characters, sequence has {len(bases) + 1}"
    with pytest.raises(DataError, match=re.escape(expected)):
        map_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "out.sam", batch_reads=batch)
    assert (tmp_path / "out.sam").read_bytes() == first_records(world, number - 1)


def test_bad_record_in_a_later_file_and_in_a_halved_batch(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the record's number in its file, also if another file was mapped before."""
    backend = open_backend(world.backend.name)
    refuse(monkeypatch, backend, read_mapper, "search_reads", lambda *arguments: reads_in(*arguments) > 30)
    (tmp_path / "one.fq").write_bytes(fastq(READS[:150]))
    (tmp_path / "two.fq").write_bytes(fastq([*READS[150:287], Read("bad", "AC-T", "IIII"), *READS[287:]]))
    with pytest.raises(DataError, match=r"two\.fq, record 138 \(bad\): expected a nucleotide at base 3, found '-'"):
        map_files([tmp_path / "one.fq", tmp_path / "two.fq"], world.index, backend, tmp_path / "out.sam")
    assert (tmp_path / "out.sam").read_bytes() == first_records(world, 287)


def test_records_before_a_break_in_gzip_are_written(world: World, tmp_path: Path) -> None:
    data = gzip.compress(fastq(READS), 1)
    (tmp_path / "reads.fq.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"reads\.fq\.gz"):
        map_files([tmp_path / "reads.fq.gz"], world.index, world.backend, tmp_path / "out.sam")
    written = (tmp_path / "out.sam").read_bytes()
    count = written.count(b"\n")
    assert 50 < count < len(READS)
    assert written == first_records(world, count)


def test_missing_file(world: World, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.fq"):
        map_files([world.reads, tmp_path / "none.fq"], world.index, world.backend, tmp_path / "out.sam")
    assert (tmp_path / "out.sam").read_bytes() == world.records


class FailingOutput(Output):
    """Takes some writes, then raises."""

    def __init__(self, error: OSError, writes: int) -> None:
        super().__init__("out.sam", -1)
        self.written = io.BytesIO()
        self._left = writes
        self._error = error

    def write(self, data: Any) -> None:
        if self._left == 0:
            raise self._error
        self._left -= 1
        self.written.write(bytes(data))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), BrokenPipeError(errno.EPIPE, "Broken pipe")])
@pytest.mark.parametrize("writes", [0, 3])
def test_output_that_fails(world: World, error: OSError, writes: int) -> None:
    output = FailingOutput(error, writes)
    work = read_mapper.ReadMapper([Context(world.index, world.backend)])
    with pytest.raises(type(error)) as raised:
        stream.run([str(world.reads)], [output], work, [world.backend], batch_reads=20)
    assert raised.value is error
    assert output.written.getvalue() == first_records(world, 20 * writes)


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_search_that_follows_another(world: World, monkeypatch: pytest.MonkeyPatch, is_ahead: bool) -> None:
    """It reads ahead in whole chunks, maps when it is let, and lets the next one read, and then map."""
    told, first_bytes, read_chunks = list[str](), list[int | None](), stream.read_chunks

    class Following(DeviceLease):
        def is_ahead(self) -> bool:
            return is_ahead

        def wait_for_device(self) -> None:
            while len(told) < 1:
                time.sleep(1e-3)
            told.append("has the device")

        def end_reading(self) -> None:
            told.append("has read")

        def release_device(self) -> None:
            told.append("gives way")

    def reading(*given: Any, **named: Any) -> Any:
        first_bytes.append(given[6])
        return read_chunks(*given, **named)

    monkeypatch.setattr(stream, "read_chunks", reading)
    output, work = (
        FailingOutput(OSError("not reached"), 1000),
        read_mapper.ReadMapper([Context(world.index, world.backend)]),
    )
    plan = ChunkPlan(1, 1 << 20)
    stream.run([str(world.reads)], [output], work, [world.backend], plan=plan, lease=Following())
    assert told == ["has read", "has the device", "gives way"]
    assert first_bytes == [1 << 20 if is_ahead else None]


def test_interrupt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt returns to the caller at once, and no later record is written."""
    output = FailingOutput(OSError("not reached"), 100)
    seen: list[int] = []

    work = read_mapper.ReadMapper([Context(world.index, world.backend)])

    def interrupt() -> None:
        seen.append(work.summary.reads)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream.run([str(world.reads)], [output], work, [world.backend], batch_reads=20, progress=interrupt)
    assert seen == [20, 40, 60]
    assert first_records(world, 60).startswith(output.written.getvalue())


def test_names_of_many_contigs(world: World, tmp_path: Path) -> None:
    """The right name and place among thousands."""
    generator = random.Random(67)
    contigs = {f"contig_{number}|{'x' * (number % 9)}": random_bases(generator, 60) for number in range(3_000)}
    names = list(contigs)
    chosen = [0, 1, 2, 1_499, 2_998, 2_999]
    reads = [Read(str(number), contigs[names[number]][5:55], "I" * 50) for number in chosen]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    map_files([tmp_path / "reads.fq"], index_of(contigs).to_device(world.backend), world.backend, tmp_path / "out.sam")
    rows = rows_of((tmp_path / "out.sam").read_bytes())
    assert [row[2:4] + row[5:6] for row in rows] == [[names[number], "6", "50M"] for number in chosen]


def test_low_complexity_reads_end(world: World, tmp_path: Path) -> None:
    """A few units repeated, against a reference that is full of them: one record each, in reasonable time."""
    generator = random.Random(68)
    contigs = {"a": "".join(random_bases(generator, 1 + number % 5) * (40 + number) for number in range(60))}
    reads = [
        Read(str(i), substitute(generator, random_bases(generator, 1 + i % 6) * 60, i % 3)[:120], None)
        for i in range(60)
    ]
    reads = [dataclasses.replace(read, quality="I" * len(read.bases)) for read in reads]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    summary = map_files(
        [tmp_path / "reads.fq"], index_of(contigs).to_device(world.backend), world.backend, tmp_path / "o"
    )
    assert summary.reads == 60
    assert summary.mapped > 10
    assert np.count_nonzero(summary.mapqs[30:]) <= 5
