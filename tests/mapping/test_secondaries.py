"""Secondary records: every copy of a repeat once, with its best alignment."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from examples import (
    Read,
    below,
    delete,
    draw_pairs,
    draw_reads,
    fastq,
    index_of,
    insert,
    random_bases,
    random_quality,
    small_genome,
    substitute,
    write_pairs,
)
from oracles.alignment import bonuses, local_score, parse_cigar, rescore, reverse_complement
from search_runs import map_files

from readmap.backend import Backend, open_backend
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.mapping import matches
from readmap.mapping.parameters import NO_LIMIT, Reporting, Scoring
from readmap.reads.chunks import PairLayout

DEFAULT, PLAIN, ALL = Scoring(), Scoring(clip_penalty=0), Reporting(max_secondary=NO_LIMIT)
COPIES = 80


@dataclass(frozen=True)
class Copy:
    """The position of a copy of the repeat; reverse: the copy is reverse-complemented."""

    contig: str
    start: int
    end: int
    reverse: bool


@dataclass(frozen=True)
class Record:
    """A SAM record; start is 0-based."""

    flag: int
    contig: str
    start: int
    cigar: str
    score: int
    text: str

    @property
    def reverse(self) -> bool:
        return bool(self.flag & 16)

    @property
    def secondary(self) -> bool:
        return bool(self.flag & 256)

    @property
    def soft(self) -> str:
        return self.cigar.replace("H", "S")

    @property
    def end(self) -> int:
        return self.start + sum(length for length, operation in parse_cigar(self.soft) if operation in "MD")

    @property
    def full_score(self) -> int:
        return self.score + bonuses(parse_cigar(self.soft), DEFAULT)


def draw_repeats(generator: random.Random, repeat: str) -> tuple[dict[str, str], list[Copy]]:
    """Draw contigs with copies on both strands: exact, with differences, with a gap, one cut off by a contig end."""
    contigs, copies = {"one": "", "two": "", "three": ""}, []
    for number in range(COPIES):
        name = ("one", "two", "three")[number % 3]
        bases = substitute(generator, repeat, (0, 1, 3, 5)[number % 4])
        if number % 7 == 3:
            at, size = 30 + below(generator, 60), 1 + below(generator, 9)
            bases = insert(generator, bases, at, size) if number % 2 else delete(bases, at, size)
        if number == COPIES - 1:
            bases = bases[:90]
        reverse = bool(below(generator, 2)) and number < COPIES - 1
        contigs[name] += random_bases(generator, 30 + below(generator, 90))
        begin = len(contigs[name])
        contigs[name] += reverse_complement(bases) if reverse else bases
        copies.append(Copy(name, begin, len(contigs[name]), reverse))
    return contigs, copies


DRAW = random.Random(181)
REPEAT = random_bases(DRAW, 150)
CONTIGS, PLANTED = draw_repeats(DRAW, REPEAT)


def draw_copies(generator: random.Random) -> dict[str, tuple[int, str]]:
    """Draw reads by name: start in the repeat, and bases with differences, a gap or an ambiguous base."""
    lost = delete(REPEAT[10:135], 61, 5)
    unclear = REPEAT[15:70] + "N" + REPEAT[71:115]
    drawn = [(begin, REPEAT[begin:end]) for begin, end in [(20, 120), (0, 150), (60, 110), (10, 130)]]
    drawn += [(5, substitute(generator, REPEAT[5:125], 4)), (10, lost), (15, unclear)]
    return {f"r{number}": read for number, read in enumerate(drawn)}


FORWARD = draw_copies(DRAW)
TURNED = "r3"  # the read that is given as reverse complement
READS = [
    Read(name, reverse_complement(bases) if name == TURNED else bases, random_quality(DRAW, len(bases)))
    for name, (_, bases) in FORWARD.items()
]


@dataclass(frozen=True)
class World:
    backend: Backend
    host_index: Index
    index: DeviceIndex


@pytest.fixture(scope="module")
def world(backends: str) -> World:
    backend = open_backend(backends)
    index = index_of(CONTIGS)
    return World(backend, index, index.to_device(backend))


def search(
    world: World, folder: Path, reads: list[Read], reporting: Reporting = ALL, index: DeviceIndex | None = None
) -> dict[str, list[Record]]:
    """Return the records of every read in output order."""
    (folder / "reads.fq").write_bytes(fastq(reads))
    out = folder / "out.sam"
    map_files([folder / "reads.fq"], index or world.index, world.backend, out, reporting=reporting)
    return records_of(out.read_text())


def records_of(text: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for line in text.splitlines():
        name, flag, contig, start, _, cigar, *_ = line.split("\t")
        score = re.search("\tAS:i:(\\d+)", line)
        fields = int(flag), contig, int(start) - 1, cigar, int(score[1]) if score else 0, line
        found.setdefault(name, []).append(Record(*fields))
    return found


def check_records(reads: list[Read], found: dict[str, list[Record]], contigs: dict[str, str]) -> None:
    """Assert that records have correct scores of at least min_score, and that none duplicates another."""
    for read in reads:
        records = [record for record in found[read.name] if not record.flag & 4]
        for record in records:
            bases = reverse_complement(read.bases) if record.reverse else read.bases
            rescored = rescore(parse_cigar(record.soft), bases, contigs[record.contig], record.start, DEFAULT)
            assert rescored.score == record.score >= DEFAULT.min_score
            assert rescored.query_length == len(read.bases)
        for end in ("start", "end"):
            assert len({(x.contig, x.reverse, getattr(x, end)) for x in records}) == len(records)


def best_at(name: str, copy: Copy, scoring: Scoring) -> int:
    """Return the best score, with bonuses, of a read on a copy and its surroundings."""
    (offset, bases), margin = FORWARD[name], 40
    first = max(copy.start - margin, 0)
    letters = CONTIGS[copy.contig][first : copy.end + margin]
    if copy.reverse:
        offset, bases = copy.end - copy.start - offset - len(bases), reverse_complement(bases)
    diagonal = copy.start - first + offset
    return local_score(bases, letters, scoring, range(diagonal - 16, diagonal + 17))


def test_all_copies_are_reported(world: World, tmp_path: Path) -> None:
    """Each copy is reported once, on its strand, with its best score."""
    found = search(world, tmp_path, READS)
    check_records(READS, found, CONTIGS)
    for read in READS:
        records = found[read.name]
        assert len(records) > COPIES - 10
        assert [record.secondary for record in records] == [False] + [True] * (len(records) - 1)
        for copy in PLANTED:
            score = best_at(read.name, copy, DEFAULT)
            own = [x for x in records if x.contig == copy.contig and x.start < copy.end and copy.start < x.end]
            assert all(record.reverse == (copy.reverse != (read.name == TURNED)) for record in own)
            if score >= DEFAULT.min_score + 2 * DEFAULT.clip_penalty:
                assert [record.full_score for record in own] == [score]
                continue
            # An alignment that reaches min_score only by bonuses is replaced by the best one without bonuses.
            plain = best_at(read.name, copy, PLAIN)
            assert len(own) == (plain >= DEFAULT.min_score)
            assert all(record.full_score == score or record.score == plain for record in own)


def test_parts_of_reads_are_reported(world: World, tmp_path: Path) -> None:
    """A part of a read is found anywhere, also inside the span of a gapped alignment."""
    generator = random.Random(189)
    reads, contigs, parts = list[Read](), dict[str, str](), list[tuple[str, str, int, int, bool]]()
    for number in range(80):
        bases, name = random_bases(generator, 101), f"r{number}"
        reads.append(Read(name, bases, "I" * 101))
        home, letters = bases, random_bases(generator, 150)
        for at in (75, 50, 25):
            size = below(generator, 9)
            home = insert(generator, home, at, size) if below(generator, 2) else delete(home, at, size)
        letters += home + random_bases(generator, 150)
        for _ in range(6):
            size = DEFAULT.min_score + below(generator, 12)
            begin = below(generator, 102 - size)
            begin = (0, 102 - size - 1, begin, begin)[below(generator, 4)]
            part, reverse = bases[begin : begin + size], bool(below(generator, 2))
            parts.append((name, f"c{number}", len(letters), size, reverse))
            letters += (reverse_complement(part) if reverse else part) + random_bases(generator, 200)
        contigs[f"c{number}"] = letters
    found = search(world, tmp_path, reads, ALL, index_of(contigs).to_device(world.backend))
    check_records(reads, found, contigs)
    for name, contig, start, size, reverse in parts:
        records = [x for x in found[name] if x.contig == contig and x.reverse == reverse]
        assert any(x.start < start + size and start < x.end for x in records), (name, start, size, reverse)


@pytest.mark.parametrize("most", [1, 10, 60, 1_000])
def test_max_secondary_keeps_the_best(world: World, tmp_path: Path, most: int) -> None:
    every = search(world, tmp_path, READS)
    found = search(world, tmp_path, READS, Reporting(max_secondary=most))

    def scores(records: list[Record]) -> list[int]:
        return sorted((record.full_score for record in records[1:]), reverse=True)

    for read in READS:
        assert scores(found[read.name]) == scores(every[read.name])[:most]
        assert {record.text for record in found[read.name]} <= {record.text for record in every[read.name]}


def test_ties_are_broken_by_read(world: World, tmp_path: Path) -> None:
    """Reads differ in which of equally good placements are reported."""
    reads = [Read(f"r{i}", REPEAT[i : i + 100], "I" * 100) for i in range(40)]
    found = search(world, tmp_path, reads, Reporting(max_secondary=1))
    places = Counter((record.contig, record.start // 400) for records in found.values() for record in records[1:])
    assert len(places) > 10


def many_reads() -> list[Read]:
    again = [Read(f"again{read.name}", read.bases, read.quality) for read in READS[1:4]]
    return READS + draw_reads(random.Random(182), CONTIGS, 12) + again


@pytest.mark.parametrize("layout", [PairLayout.SINGLE, PairLayout.INTERLEAVED])
def test_same_bytes_with_little_memory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: PairLayout
) -> None:
    """The records do not depend on the matches that fit into memory, nor on the batch size."""
    reads = many_reads()
    if layout.paired:
        reads = [Read(f"p{i // 2}/{i % 2 + 1}", read.bases, read.quality) for i, read in enumerate(reads)]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    backend = open_backend(world.backend.name)

    def records(batch_reads: int | None = None) -> tuple[bytes, object]:
        out, options = tmp_path / "out.sam", {"layout": layout, "batch_reads": batch_reads}
        summary = map_files([tmp_path / "reads.fq"], world.index, backend, out, reporting=ALL, **options)
        counted = summary.reads, summary.mapped, summary.secondary, summary.too_short, summary.mapqs.tolist()
        return out.read_bytes(), counted

    whole = records()
    assert records(2) == whole
    for most, batch_reads in ((400, None), (10_000, 20)):
        monkeypatch.setattr(matches, "MATCH_BYTES", backend.scratch_bytes // most)
        assert records(batch_reads) == whole


def test_strands_are_equal(world: World, tmp_path: Path) -> None:
    turned = [Read(read.name, reverse_complement(read.bases), (read.quality or "")[::-1]) for read in READS]
    one, other = search(world, tmp_path, READS), search(world, tmp_path, turned)
    for read in READS:
        places = [(x.contig, x.start, x.cigar, x.reverse) for x in one[read.name]]
        assert places == [(x.contig, x.start, x.cigar, not x.reverse) for x in other[read.name]]


def test_other_records_are_as_without_secondary_ones(world: World, tmp_path: Path) -> None:
    """Other records are the same except XA, and precede the secondary records."""
    generator = random.Random(183)
    genome = small_genome(generator)
    reads, index = draw_reads(generator, genome, 400), index_of(genome).to_device(world.backend)
    reads = [Read(f"r{number}", read.bases, read.quality) for number, read in enumerate(reads)]
    plain = search(world, tmp_path, reads, Reporting(max_xa_hits=0), index)
    every = search(world, tmp_path, reads, ALL, index)
    check_records(reads, every, genome)
    for name, records in plain.items():
        assert [record.text for record in every[name] if not record.secondary] == [record.text for record in records]
        assert [record.secondary for record in every[name]] == sorted(record.secondary for record in every[name])
    assert sum(record.secondary for records in every.values() for record in records) > 100


def test_each_part_has_secondary_records(world: World, tmp_path: Path) -> None:
    """A read spans two repeats, each with copies elsewhere."""
    generator = random.Random(184)
    first, second = random_bases(generator, 70), random_bases(generator, 60)
    letters = "".join(half + random_bases(generator, 200) for half in [first, second] * 6)
    index = index_of([letters]).to_device(world.backend)
    reads = [Read("r", first + second, "I" * 130)]
    for most, count in ((1, 1), (3, 3), (NO_LIMIT, 5)):
        records = search(world, tmp_path, reads, Reporting(max_secondary=most), index)["r"]
        assert [record.flag & 2304 for record in records] == [0, 2048] + [256] * (2 * count)
        starts = [match.start() for match in re.finditer(first, letters)]
        places = Counter(record.start in starts for record in records[2:])
        assert places == {True: count, False: count}


TANDEMS = {
    "poly-A": ("A" * 4_000, "A" * 100),
    "pairs": ("CA" * 2_000, "CA" * 50),
    "unit of 5": ("GGAAT" * 1_000, "GGAAT" * 20),
    "unit of 31": (random_bases(random.Random(185), 31) * 150, None),
    "poly-A in many contigs": ("A" * 150, "A" * 100),
}


@pytest.mark.parametrize("name", TANDEMS)
def test_tandem_repeats_end(world: World, tmp_path: Path, name: str) -> None:
    """A tandem repeat has about one record per read length, not one per base."""
    letters, bases = TANDEMS[name]
    bases = bases or letters[:100]
    flank = random_bases(random.Random(186), 300)
    contigs = [flank + letters + flank[::-1]] * (40 if "contigs" in name else 1)
    index = index_of(contigs).to_device(world.backend)
    reads = [Read(f"r{number}", bases, "I" * len(bases)) for number in range(3)]
    found = search(world, tmp_path, reads, ALL, index)
    check_records(reads, found, {str(number): contig for number, contig in enumerate(contigs)})
    for records in found.values():
        places = [(record.contig, record.reverse) for record in records]
        assert len(letters) // 100 <= min(Counter(places).values())
        assert max(Counter(places).values()) <= (len(letters) + 100) // 20


def test_read_over_a_contig_end(world: World, tmp_path: Path) -> None:
    unit = random_bases(random.Random(187), 100)
    contigs = [unit + "ACGT" * 9, unit[:60], unit[45:] + "TTTT", "N" * 5 + unit[30:70] + "N"]
    index = index_of(contigs).to_device(world.backend)
    records = search(world, tmp_path, [Read("r", unit, "I" * 100)], ALL, index)["r"]
    places = {(record.contig, record.start, record.cigar) for record in records}
    assert places == {("0", 0, "100M"), ("1", 0, "60M40H"), ("2", 0, "45H55M"), ("3", 5, "30H40M30H")}


def test_pairs(world: World, tmp_path: Path) -> None:
    """Other records are the same as without secondary records, which have the mate fields of their reads."""
    generator = random.Random(188)
    genome = {**small_genome(generator), "repeats": "".join(CONTIGS.values())}
    index = index_of(genome).to_device(world.backend)
    files = write_pairs(tmp_path, draw_pairs(generator, genome, 150), PairLayout.TWO_FILES)
    found = {}
    for most in (0, NO_LIMIT):
        reporting, out = Reporting(max_secondary=most, max_xa_hits=0), tmp_path / "out.sam"
        map_files(files, index, world.backend, out, reporting=reporting, layout=PairLayout.TWO_FILES)
        found[most] = records_of(out.read_text())
    secondary = 0
    for name, records in found[NO_LIMIT].items():
        assert [record.text for record in records if not record.secondary] == [record.text for record in found[0][name]]
        primary = {record.flag & 192: record for record in found[0][name] if not record.flag & 2048}
        for record in records:
            if not record.secondary:
                continue
            own, mate = primary[record.flag & 192], primary[192 - (record.flag & 192)]
            assert record.flag & (1 + 2 + 8 + 32 + 192) == own.flag & (1 + 2 + 8 + 32 + 192)
            beside = own if mate.flag & 4 else mate
            contig, place = record.text.split("\t")[6:8]
            assert (record.contig if contig == "=" else contig, int(place)) == (beside.contig, beside.start + 1)
            secondary += 1
    assert secondary > 1_000
