"""ALT contigs: placements on the primary assembly ignore them, and better placements on them are reported, too."""

from __future__ import annotations

import dataclasses
import functools
import random
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from examples import (
    Read,
    below,
    context_of,
    delete,
    fasta,
    fastq,
    index_of,
    insert,
    random_bases,
    reverse_complement,
    substitute,
)
from oracles.alignment import best_anywhere, local_score, parse_cigar
from search_runs import map_files
from test_windows import find

from readmap.backend import Backend, open_backend
from readmap.backend.compilation.declarations import constant
from readmap.formats.sam import SamEncoding
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.mapping.batch import Context
from readmap.mapping.parameters import DIVERGENT, Reporting, Scoring, SearchPass
from readmap.mapping.records import RecordStyle
from readmap.reads.chunks import PairLayout

MAX_DIAGONALS = constant("mapping/diagonals.cuh", "MAX_DIAGONALS")
MAX_SEED_WINDOWS = constant("mapping/windows.cuh", "MAX_SEED_WINDOWS")
SUPPLEMENTARY, SECONDARY = 0x800, 0x100


def draw_world(generator: random.Random) -> tuple[dict[str, str], dict[str, str]]:
    """Return the primary assembly, and ALT contigs: versions of its parts on both strands, and added sequence."""
    primary = {"one": random_bases(generator, 12_000), "two": random_bases(generator, 5_000)}
    unit = primary["one"][9_000:9_400]
    primary["two"] += substitute(generator, unit, 8) + random_bases(generator, 300)
    alternates = {}
    for number in range(6):
        start = 500 + 1_200 * number
        version = substitute(generator, primary["one"][start : start + 1_000], (1, 10, 25, 50)[number % 4])
        version = insert(generator, delete(version, 300, 7), 600, 250)
        alternates[f"one_alt{number}"] = version if number % 2 else reverse_complement(version)
    return primary, alternates


GENERATOR = random.Random(2024)
PRIMARY, ALTERNATES = draw_world(GENERATOR)
ALL = PRIMARY | ALTERNATES


def of_quality(name: str, bases: str) -> Read:
    return Read(name, bases, "I" * len(bases))


def draw_read(generator: random.Random, name: str, number: int, length: int = 120) -> Read:
    letters = ALL[name]
    start = below(generator, len(letters) - length + 1)
    bases = substitute(generator, letters[start : start + length], below(generator, 4))
    strand = below(generator, 2)
    return of_quality(f"{name}!{start}!{strand}!{number}", reverse_complement(bases) if strand else bases)


READS = [draw_read(GENERATOR, name, number) for name in sorted(ALL) for number in range(30)]


@dataclass(frozen=True)
class Record:
    """The fields of a SAM line that the tests check."""

    name: str
    flag: int
    contig: str
    position: int
    mapq: int
    cigar: str
    sequence: str
    tags: dict[str, str]

    @classmethod
    def of(cls, line: str) -> Record:
        name, flag, contig, position, mapq, cigar, *_ = fields = line.split("\t")
        tags = {tag[:2]: tag[5:] for tag in fields[11:]}
        return cls(name, int(flag), contig, int(position), int(mapq), cigar, fields[9], tags)

    @property
    def on_alternate(self) -> bool:
        return self.contig in ALTERNATES

    @property
    def place(self) -> tuple[object, ...]:
        return self.contig, self.position, self.flag & 16, self.cigar

    @property
    def xa(self) -> set[str]:
        """The contigs that XA names."""
        return {hit.split(",")[0] for hit in self.tags.get("XA", "").split(";") if hit}

    @property
    def sa(self) -> set[str]:
        return {hit.split(",")[0] for hit in self.tags.get("SA", "").split(";") if hit}


@functools.cache
def indexes() -> tuple[Index, Index, Index]:
    """Return indexes of the primary assembly, of all contigs with ALT contigs marked, and of all contigs unmarked."""
    return index_of(PRIMARY), index_of(ALL, alternates=ALTERNATES), index_of(ALL)


def records_of(
    reads: list[Read], index: DeviceIndex, backend: Backend, folder: Path, **options: object
) -> list[list[Record]]:
    """Return the records of each read, the primary one first."""
    (folder / "r.fq").write_bytes(fastq(reads))
    map_files([folder / "r.fq"], index, backend, folder / "out", **options)
    found: list[list[Record]] = []
    for line in (folder / "out").read_text().splitlines():
        record = Record.of(line)
        if not record.flag & (SUPPLEMENTARY | SECONDARY):
            found.append([])
        found[-1].append(record)
    assert len(found) == len(reads)
    return found


@dataclass(frozen=True)
class World:
    backend: Backend
    index: DeviceIndex
    without: DeviceIndex
    records: list[list[Record]]


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    backend = open_backend(backends)
    without, index, _ = (each.to_device(backend) for each in indexes())
    folder = tmp_path_factory.mktemp("world")
    return World(backend, index, without, records_of(READS, index, backend, folder))


def test_primary_placements_ignore_alt_contigs(world: World, tmp_path: Path) -> None:
    """Position, CIGAR and MAPQ stay the same for every read that aligns well to the primary assembly."""
    alone, placed = records_of(READS, world.without, world.backend, tmp_path), 0
    for (expected, *_), (found, *_) in zip(alone, world.records, strict=True):
        if expected.contig == "*" or int(expected.tags["AS"]) < 40:
            assert found.on_alternate or found.place == expected.place
            continue
        placed += 1
        assert (found.place, found.tags["AS"]) == (expected.place, expected.tags["AS"])
        assert abs(found.mapq - expected.mapq) <= 3, (found, expected)
    assert placed > 200


def test_better_alt_placements_get_supplementary_records(world: World) -> None:
    """A read that scores higher on an ALT contig gets an unclipped supplementary record there, and the tag pa."""
    told = 0
    for read, (first, *others) in zip(READS, world.records, strict=True):
        assert not any(record.flag & SECONDARY for record in others)
        best, best_alternate = (best_anywhere(read.bases, own.values(), Scoring()) for own in (PRIMARY, ALTERNATES))
        better = [record for record in others if record.on_alternate]
        if first.on_alternate:
            assert best < 2 * Scoring().min_score  # hardly found elsewhere
            assert "pa" not in first.tags
            continue
        # Scores are compared without end bonuses.
        assert bool(better) == (best_alternate > best) or abs(best_alternate - best) <= 10
        if not better:
            assert "pa" not in first.tags
            continue
        told += 1
        (alternate, *rest) = better
        assert alternate.flag & SUPPLEMENTARY
        assert "H" not in alternate.cigar
        assert len(alternate.sequence) == len(read.bases)
        assert "pa" not in alternate.tags
        share = int(first.tags["AS"]) / int(alternate.tags["AS"])
        assert share < 1
        assert rest or first.tags["pa"] == f"{share:.3f}"
        assert {alternate.contig} <= first.sa
        assert {first.contig} <= alternate.sa
    assert told > 90


def test_xa_belongs_to_the_best_record(world: World) -> None:
    """XA of a better ALT record names the primary placement; otherwise XA of the primary record names the ALT."""
    seen = {"better": 0, "equal": 0}
    for first, *others in world.records:
        if first.on_alternate:
            continue
        alternates = [record for record in others if record.on_alternate]
        for alternate in alternates:
            if int(first.tags["AS"]) * 10 >= int(alternate.tags["AS"]) * 9:
                seen["better"] += 1
                assert first.contig in alternate.xa
                assert not first.xa & {alternate.contig}
        if not alternates and first.xa & set(ALTERNATES):
            seen["equal"] += 1
    assert min(seen.values()) > 10, seen


def test_ties_go_to_the_primary_assembly(world: World, tmp_path: Path) -> None:
    """An equally good ALT placement is in XA and does not lower MAPQ."""
    letters, other = PRIMARY["one"], ALTERNATES["one_alt1"]
    shared = [at for at in range(200) if letters[1_700 + at : 1_770 + at] == other[at : at + 70]]
    assert shared
    reads = [of_quality("r", letters[1_700 + at : 1_770 + at]) for at in shared[:5]]
    for (record,) in records_of(reads, world.index, world.backend, tmp_path):
        assert (record.contig, record.cigar, record.mapq) == ("one", "70M", 60)
        assert record.xa == {"one_alt1"}


def test_reads_found_only_on_an_alt_contig(world: World, tmp_path: Path) -> None:
    """Sequence that the primary assembly lacks gets its primary record on the ALT contig."""
    inside = ALTERNATES["one_alt1"][640:760]
    (records,) = records_of([of_quality("r", inside)], world.index, world.backend, tmp_path)
    assert [(record.flag, record.contig, record.cigar) for record in records] == [(0, "one_alt1", "120M")]
    assert records[0].mapq == 60


def test_split_read_on_an_alt_contig(world: World, tmp_path: Path) -> None:
    """Each part that scores higher on an ALT contig has a record there; the primary records stay the same."""
    one, alternate = PRIMARY["one"], ALTERNATES["one_alt3"]
    joined = one[11_000:11_080] + alternate[60:160]
    (records,) = records_of([of_quality("r", joined)], world.index, world.backend, tmp_path)
    (alone,) = records_of([of_quality("r", joined)], world.without, world.backend, tmp_path)
    own = [record for record in records if not record.on_alternate]
    assert [record.place for record in own] == [record.place for record in alone]
    assert [(r.contig, bool(r.flag & SUPPLEMENTARY)) for r in records if r.on_alternate] == [("one_alt3", True)]
    (leftmost,) = records_of(
        [of_quality("r", joined)], world.index, world.backend, tmp_path, reporting=Reporting(leftmost_primary=True)
    )
    assert leftmost[0].contig == "one"
    assert leftmost[0].position == 11_001


def test_secondary_records_are_on_the_primary_assembly(world: World, tmp_path: Path) -> None:
    everything = Reporting(max_secondary=100)
    for first, *others in records_of(READS, world.index, world.backend, tmp_path, reporting=everything):
        assert not any(record.flag & SECONDARY and record.on_alternate for record in others)
        assert "XA" not in first.tags


def test_without_the_alt_file(world: World, tmp_path: Path) -> None:
    """Without the ALT file they are contigs like all others."""
    index = indexes()[2].to_device(world.backend)
    found = records_of(READS, index, world.backend, tmp_path)
    assert sum(first.on_alternate for first, *_ in found) > 100
    assert not any("pa" in record.tags for records in found for record in records)


def test_pairs(world: World, tmp_path: Path) -> None:
    """Mates are paired on the primary assembly; records on ALT contigs have the flags of the pair."""
    generator, pairs = random.Random(8), []
    for name in ("one", "one_alt0", "one_alt1", "one_alt3", "one_alt5"):
        for _ in range(40):
            start, size = below(generator, len(ALL[name]) - 320), 220 + below(generator, 100)
            letters = ALL[name][start : start + size]
            pairs.append((letters[:100], reverse_complement(letters)[:100]))
    generator.shuffle(pairs)
    for mate in range(2):
        reads = [of_quality(f"p{number}", pair[mate]) for number, pair in enumerate(pairs)]
        (tmp_path / f"r{mate}.fq").write_bytes(fastq(reads))
    files = [tmp_path / "r0.fq", tmp_path / "r1.fq"]
    lines = []
    for name, index in (("with", world.index), ("without", world.without)):
        map_files(files, index, world.backend, tmp_path / name, layout=PairLayout.TWO_FILES)
        lines.append([Record.of(line) for line in (tmp_path / name).read_text().splitlines()])
    own, alone = ([record for record in each if not record.on_alternate] for each in lines)
    missing = {record.name for record in lines[0] if record.on_alternate and not record.flag & SUPPLEMENTARY}
    placed = [record.place for record in own if record.name not in missing]
    assert placed == [record.place for record in alone if record.name not in missing]
    assert len(missing) < len(pairs) // 2
    better = [record for record in lines[0] if record.on_alternate and record.flag & SUPPLEMENTARY]
    assert len(better) > 60
    primaries = {(record.name, record.flag & 0xC0): record for record in own if not record.flag & SUPPLEMENTARY}
    for record in better:
        primary = primaries.get((record.name, record.flag & 0xC0))
        assert primary is None or (primary.flag ^ record.flag) & ~(SUPPLEMENTARY | 16) == 0


def test_binary_records(world: World, tmp_path: Path) -> None:
    """pa is the float nearest to its three decimals."""
    (tmp_path / "r.fq").write_bytes(fastq(READS))
    path = tmp_path / "out.bam"
    map_files([tmp_path / "r.fq"], world.index, world.backend, path, style=RecordStyle(encoding=SamEncoding.BINARY))
    data, at, shares = path.read_bytes(), 0, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little") + 4
        text = data[at : at + size]
        if b"paf" in text:
            place = text.index(b"paf") + 3
            shares.append(np.frombuffer(text[place : place + 4], np.float32)[0])
        at += size
    expected = [record.tags["pa"] for records in world.records for record in records if "pa" in record.tags]
    assert shares == [np.float32(share) for share in expected]


# Hundreds of versions of one gene.

GENE = random_bases(GENERATOR, 700)
VERSIONS = {f"gene{number}": substitute(GENERATOR, GENE, 1 + number % 9) for number in range(90)}
CHROMOSOME = random_bases(GENERATOR, 4_000) + GENE + random_bases(GENERATOR, 4_000)


def test_many_versions_of_a_gene_lower_no_mapq(backends: str, tmp_path: Path) -> None:
    backend, generator = open_backend(backends), random.Random(91)
    index = index_of({"one": CHROMOSOME, **VERSIONS}, alternates=VERSIONS)
    reads = []
    for number in range(60):
        letters = GENE if number % 2 else VERSIONS[f"gene{below(generator, 90)}"]
        start = below(generator, 580)
        reads.append(of_quality("r", letters[start : start + 120]))
    (tmp_path / "r.fq").write_bytes(fastq(reads))
    map_files([tmp_path / "r.fq"], index.to_device(backend), backend, tmp_path / "out")
    first = [Record.of(line) for line in (tmp_path / "out").read_text().splitlines()]
    first = [record for record in first if not record.flag & SUPPLEMENTARY]
    assert {record.contig for record in first} == {"one"}
    assert {record.mapq for record in first} == {60}


@pytest.mark.parametrize(("own", "versions"), [(5, 60), (20, 60), (40, 60), (40, 10), (3, 20), (20, 16), (60, 0)])
def test_alt_contigs_take_at_most_half_of_the_windows(backends: str, own: int, versions: int) -> None:
    """If diagonals or windows do not all fit, at most half are on ALT contigs, as long as others are left."""
    generator = random.Random(own * 100 + versions)
    unit = random_bases(generator, 100)
    copies = [substitute(generator, unit, 1 + below(generator, 6)) for _ in range(own + versions)]
    one = "".join(copy + random_bases(generator, 200) for copy in copies[:own])
    contigs = {"one": one, **{f"alt{number}": copy for number, copy in enumerate(copies[own:])}}
    backend = open_backend(backends)
    index = index_of(contigs, alternates=[name for name in contigs if name != "one"])
    context = Context(index.to_device(backend), backend)
    search_pass = SearchPass(DIVERGENT, 4, 4, 10, 10_000)
    (found,) = find([unit], context, search_pass.stride, search_pass)
    kept, windows = found.diagonals, found.windows
    ungapped = dataclasses.replace(Scoring(), gap_open=1000)
    assert len(kept) >= min(MAX_DIAGONALS, own + versions)
    for rows, most in ((kept, MAX_DIAGONALS), (windows, MAX_SEED_WINDOWS)):
        assert own + versions <= most or int(sum(rows["alternate"])) <= max(most // 2, most - own)
    best = sorted((int(local_score(unit, copy, ungapped)) for copy in copies[:own]), reverse=True)
    whole = [int(row["score"]) for row in kept if not row["alternate"] and row["end"] - row["start"] > 60]
    assert whole[:5] == best[: len(whole[:5])]
    keys = [(-int(row["score"]), int(row["alternate"])) for row in kept]
    assert keys == sorted(keys)


@pytest.mark.skipif(shutil.which("bwa") is None, reason="bwa is not installed")
def test_agreement_with_bwa(world: World, tmp_path: Path) -> None:
    """Reads whose best placements bwa finds, too, have the same contigs, CIGARs and pa."""
    (tmp_path / "ref.fa").write_bytes(fasta(ALL))
    (tmp_path / "ref.fa.alt").write_text("".join(f"{name}\t4\t*\n" for name in ALTERNATES))
    (tmp_path / "r.fq").write_bytes(fastq(READS))
    subprocess.run(["bwa", "index", "ref.fa"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["bwa", "mem", "ref.fa", "r.fq"], cwd=tmp_path, check=True, capture_output=True)
    by_name: dict[str, list[Record]] = {}
    for line in done.stdout.decode().splitlines():
        if not line.startswith("@"):
            by_name.setdefault(line.split("\t")[0], []).append(Record.of(line))
    same = compared = shares = 0
    for first, *others in world.records:
        peer = by_name[first.name]
        if len(peer) != 1 + len(others) or any(len(parse_cigar(re.sub("H", "S", r.cigar))) > 3 for r in peer):
            continue
        compared += 1
        own, theirs = (sorted(each, key=lambda record: record.place) for each in ([first, *others], peer))
        same += all(
            (one.place, one.flag & SUPPLEMENTARY) == (other.place, other.flag & SUPPLEMENTARY)
            for one, other in zip(own, theirs, strict=True)
        )
        # bwa's AS is the local score even if the CIGAR extends to the end of the read.
        if [record.tags["AS"] for record in own] == [record.tags["AS"] for record in theirs]:
            shares += any("pa" in record.tags for record in own)
            assert [record.tags.get("pa") for record in own] == [record.tags.get("pa") for record in theirs]
    assert compared > 200
    assert same > 0.98 * compared
    assert shares > 50


def test_alt_names_mark_contigs() -> None:
    contigs = indexes()[0].with_alternates(["two", "three"]).reference.contigs
    assert [contig.alternate for contig in contigs] == [False, True]
    assert context_of({"a": "ACGT"}, "cpu").index.host.has_alternates is False
