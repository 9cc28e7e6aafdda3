"""Records of pairs: each checked against its own alignment, and mates as pysam and samtools fixmate read them."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pysam
import pytest
from examples import Read, draw_pairs, index_of, random_bases, small_genome, substitute, write_pairs
from oracles.alignment import parse_cigar, reverse_complement
from oracles.placements import fragment
from oracles.sam import by_read, check_read, check_same_records, fields_of, write_bgzf
from search_runs import map_files

from readmap.backend import Backend, open_backend
from readmap.formats.sam import ReadGroup, SamEncoding, header
from readmap.index.device import DeviceIndex
from readmap.mapping.inserts import InsertSize
from readmap.mapping.parameters import NO_LIMIT, Pairing, Reporting, Scoring, search_passes
from readmap.mapping.records import RecordStyle
from readmap.reads.chunks import PairLayout
from readmap.run.read_mapper import MappingSummary

DRAW = random.Random(131)
GENOME = {**small_genome(DRAW), "three": random_bases(DRAW, 5_000)}
PAIRS = draw_pairs(DRAW, GENOME, 450)
READ_GROUP = ReadGroup(b"@RG\tID:a\tSM:sample", b"a")


@dataclass(frozen=True)
class World:
    backend: Backend
    index: DeviceIndex
    files: list[Path]


@dataclass(frozen=True)
class Found:
    """The lines and the summary of a search."""

    lines: list[str]
    summary: MappingSummary


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    backend = open_backend(backends)
    folder = tmp_path_factory.mktemp("pairs")
    return World(backend, index_of(GENOME).to_device(backend), write_pairs(folder, PAIRS, PairLayout.TWO_FILES))


def search(world: World, out: Path, style: RecordStyle | None = None, **options: object) -> Found:
    summary = map_files(
        world.files, world.index, world.backend, out, style=style, layout=PairLayout.TWO_FILES, **options
    )  # type: ignore[arg-type]
    text = style is None or style.encoding is SamEncoding.TEXT
    return Found(out.read_text().splitlines(keepends=True) if text else [], summary)


def is_proper(first: str, second: str, sizes: Sequence[InsertSize]) -> bool:
    """Return True if two primary alignments are on one contig and make a fragment of the library."""
    contigs, ends = [], []
    for fields, _ in (fields_of(first), fields_of(second)):
        flag, start = int(fields[1]), int(fields[3]) - 1
        if flag & 4:
            return False
        contigs.append(fields[2])
        covered = sum(length for length, operation in parse_cigar(fields[5]) if operation in "MD")
        ends.append((start + covered if flag & 16 else start, bool(flag & 16)))
    direction, size = fragment(*ends)
    return contigs[0] == contigs[1] and any(s.direction == direction and s.low <= size <= s.high for s in sizes)


def check(found: Found, reporting: Reporting | None = None, pairs: Sequence[tuple[Read, ...]] = PAIRS) -> Counter[int]:
    """Check each record against its own alignment, and the proper-pair flags; return the number of records by flag."""
    reads, soft_clipped = by_read(found.lines), (reporting or Reporting()).soft_clipped
    for lines, read in zip(reads, [read for pair in pairs for read in pair], strict=True):
        check_read(lines, read, GENOME, Scoring(), soft_clipped)
    for first, second in zip(reads[::2], reads[1::2], strict=True):
        proper = is_proper(first[0], second[0], found.summary.insert_sizes or ())
        flags = [{int(line.split("\t")[1]) & (2 | 192) for line in lines} for lines in (first, second)]
        assert flags == [{64 + 2 * proper}, {128 + 2 * proper}]
    return Counter(int(line.split("\t")[1]) for line in found.lines)


OPTIONS = {
    "default": Reporting(),
    "secondary": Reporting(max_secondary=3),
    "all secondary": Reporting(max_secondary=NO_LIMIT),
    "soft clips": Reporting(soft_clipped=True),
    "soft clips and secondary": Reporting(soft_clipped=True, max_secondary=2),
    "supplementary as secondary": Reporting(supplementary_as_secondary=True),
    "leftmost primary": Reporting(leftmost_primary=True, max_xa_hits=50, xa_share=0),
}


#: Flags of primary lines: at most one mate mapped; both mapped as a proper pair; both mapped otherwise.
LONELY = {77, 141, 73, 133, 69, 137, 89, 165, 101, 153}
FRAGMENTS = {67, 131, 115, 179, 99, 147, 83, 163}
NO_FRAGMENTS = {65, 129, 113, 177, 97, 145, 81, 161}


@pytest.mark.parametrize("pairing", [Pairing(), Pairing(insert_size=(300, 30))], ids=["any direction", "FR"])
@pytest.mark.parametrize("name", OPTIONS)
def test_records(world: World, tmp_path: Path, name: str, pairing: Pairing) -> None:
    reporting = OPTIONS[name]
    found = search(
        world, tmp_path / "out", RecordStyle(read_groups=(READ_GROUP,)), pairing=pairing, reporting=reporting
    )
    flags, summary, secondary = check(found, reporting), found.summary, reporting.supplementary_as_secondary
    # Many pairs are drawn in other directions than FR.
    directions = {size.direction for size in summary.insert_sizes or ()}
    assert directions == {"FR"} if pairing.insert_size else directions > {"FR"}
    plain = {flag for flag in flags if not flag & 2304}
    assert plain >= LONELY
    assert plain >= (NO_FRAGMENTS if pairing.insert_size else FRAGMENTS)
    assert bool(summary.supplementary) == (not secondary)
    assert bool(summary.secondary) == (secondary or reporting.max_secondary > 0)
    count = {bit: sum(many for flag, many in flags.items() if flag & bit) for bit in (256, 2048)}
    assert (summary.secondary, summary.supplementary) == (count[256], count[2048])
    primary = [flag for flag in flags.elements() if not flag & 2304]
    assert summary.mapped == sum(not flag & 4 for flag in primary)
    assert summary.properly_paired == sum(bool(flag & 2) for flag in primary)
    fields = [line.split("\t") for line in found.lines]
    mapqs = Counter(int(row[4]) for row in fields if not int(row[1]) & (4 | 2304))
    assert summary.mapqs.tolist() == [mapqs[mapq] for mapq in range(61)]


@pytest.mark.parametrize("pairing", [Pairing(joint=False), Pairing(rescue=False), Pairing(joint=False, rescue=False)])
def test_records_of_other_pairings(world: World, tmp_path: Path, pairing: Pairing) -> None:
    check(search(world, tmp_path / "out", pairing=pairing))


def test_split_reads_are_reported(world: World, tmp_path: Path) -> None:
    """Both parts have a record for nearly all split reads."""
    reads = by_read(search(world, tmp_path / "out").lines)
    whole = [len(reads[2 * i]) + len(reads[2 * i + 1]) > 2 for i, (r, _) in enumerate(PAIRS) if "!split" in r.name]
    assert sum(whole) >= 0.8 * len(whole)


def alignment_of(contig: str, start: int, cigar: str, reverse: bool) -> tuple[str, bool, int, int]:
    """Return contig, strand and half-open reference range."""
    covered = sum(int(length) for length, operation in re.findall(r"(\d+)([MD])", cigar))
    return contig, reverse, start, start + covered


def are_duplicates(one: tuple[str, bool, int, int], other: tuple[str, bool, int, int]) -> bool:
    """Return True if the alignments start or end at the same position."""
    return one[:2] == other[:2] and (one[2] == other[2] or one[3] == other[3])


def test_secondary_records_and_xa_hits_agree(world: World, tmp_path: Path) -> None:
    """Each XA hit has a record with -a, or shares its placement; secondary records have no bases, SA or XA."""
    with_xa = by_read(search(world, tmp_path / "out", reporting=Reporting(max_xa_hits=99, xa_share=0)).lines)
    with_all = by_read(search(world, tmp_path / "out", reporting=Reporting(max_secondary=99)).lines)
    several = 0
    for one, other in zip(with_xa, with_all, strict=True):
        named = set()
        for line in one:
            for contig, sign, place, cigar in re.findall(
                r"([^;\t:]+),([+-])(\d+),(\w+),\d+;", line.partition("XA:Z:")[2]
            ):
                named.add(alignment_of(contig, int(place), cigar, sign == "-"))
        rows = [line.rstrip("\n").split("\t") for line in other]
        second = [row for row in rows if int(row[1]) & 256]
        found = {alignment_of(row[2], int(row[3]), row[5], bool(int(row[1]) & 16)) for row in second}
        for hit in named:
            assert any(are_duplicates(hit, place) for place in found)
        assert all(row[9:11] == ["*", "*"] and row[4] == "0" for row in second)
        assert not any(field.startswith(("SA:", "XA:")) for row in second for field in row[11:])
        assert [row for row in rows if not int(row[1]) & 256] == [
            [field for field in line.rstrip("\n").split("\t") if not field.startswith("XA:")] for line in one
        ]
        several += bool(named)
    assert several > 30


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_limits_of_xa_hits_and_secondary_records(world: World, tmp_path: Path, most: int) -> None:
    for line in search(world, tmp_path / "out", reporting=Reporting(max_xa_hits=most)).lines:
        assert line.partition("XA:Z:")[2].partition("\t")[0].count(";") <= most
    for lines in by_read(search(world, tmp_path / "out", reporting=Reporting(max_secondary=most)).lines):
        rows = [line.split("\t") for line in lines]
        parts = sum(not int(row[1]) & 256 for row in rows)
        assert len(rows) - parts <= most * parts


def test_text_and_binary_are_the_same(world: World, tmp_path: Path) -> None:
    for name, reporting in OPTIONS.items():
        for encoding, out in ((SamEncoding.TEXT, "text"), (SamEncoding.BINARY, "binary")):
            search(world, tmp_path / "records", RecordStyle(encoding, (READ_GROUP,)), reporting=reporting)
            head = header(world.index.host.contigs, "1.0", "readmap search", READ_GROUP.line, encoding)
            write_bgzf(tmp_path / out, head + (tmp_path / "records").read_bytes())
        assert len(check_same_records(tmp_path / "text", tmp_path / "binary")) >= 2 * len(PAIRS), name


def as_sam(world: World, records: list[str], path: Path) -> Path:
    path.write_bytes(header(world.index.host.contigs, "1.0", "readmap search") + "".join(records).encode())
    return path


@pytest.mark.parametrize("name", OPTIONS)
def test_fixmate_changes_nothing(world: World, tmp_path: Path, name: str) -> None:
    """samtools fixmate -m changes no flag, mate field, TLEN, MC, MQ or ms, except the CIGAR of unmapped mates."""
    found = search(world, tmp_path / "out", pairing=Pairing(insert_size=(300, 30)), reporting=OPTIONS[name])
    sam, fixed = as_sam(world, found.lines, tmp_path / "out.sam"), tmp_path / "fixed.sam"
    pysam.fixmate("-m", "-O", "sam", str(sam), str(fixed), catch_stdout=False)
    after = [line for line in fixed.read_text().splitlines() if not line.startswith("@")]

    def fields(lines: list[str]) -> list[list[str]]:
        """Sort the lines, since fixmate moves primary lines together."""
        rows = [line.rstrip("\n").split("\t") for line in lines]
        return sorted([*row[:11], *sorted(tag for tag in row[11:] if tag != "MC:Z:*")] for row in rows)

    for expected, own in zip(fields(after), fields(found.lines), strict=True):
        assert own == expected


def test_reads_without_qualities(world: World, tmp_path: Path) -> None:
    pairs = [
        tuple(dataclasses.replace(read, quality=None) for read in pair) for pair in PAIRS if all(r.bases for r in pair)
    ]
    data = "".join(f">{read.name}\n{read.bases}\n" for pair in pairs for read in pair)
    (tmp_path / "r.fa").write_text(data)
    summary = map_files(
        [tmp_path / "r.fa"], world.index, world.backend, tmp_path / "out", layout=PairLayout.INTERLEAVED
    )
    found = Found((tmp_path / "out").read_text().splitlines(keepends=True), summary)
    check(found, pairs=pairs)


def test_work_counters(world: World, tmp_path: Path) -> None:
    """Each counter agrees with the records and with another search."""
    quick, slow = (search(world, tmp_path / "out", reporting=Reporting(max_xa_hits=most)) for most in (None, 0))
    without = search(world, tmp_path / "out", pairing=Pairing(rescue=False))
    work, everywhere = quick.summary.work, slow.summary.work
    lengths = [len(read.bases) for pair in PAIRS for read in pair]
    shortest = search_passes(world.index.suffix_count)[0].min_seed_bases
    assert everywhere.searched == sum(length >= shortest for length in lengths)
    assert work.resolved + work.searched < everywhere.searched <= work.resolved + work.searched + work.divergent
    assert work.resolved > 0 == everywhere.resolved
    alone = without.summary.work
    assert (alone.divergent, alone.split) == (everywhere.divergent, everywhere.split)
    assert min(work.repetitive, work.divergent, work.split) > 0
    assert work.near_mates > work.resolved_near_mates > 0 == alone.near_mates == everywhere.near_mates
    gapped = sum(bool(re.search("[ID]", fields_of(line)[0][5])) for line in slow.lines)
    assert everywhere.scored >= everywhere.traced >= gapped > 0
    assert work.windows >= quick.summary.mapped
    assert work.rescues >= work.rescued
    assert alone.rescues == 0


def test_rescued_counter(world: World, tmp_path: Path) -> None:
    """Mates without a seed: they differ in every ninth base."""
    draw, contig = random.Random(132), GENOME["three"]
    pairs = []
    for number in range(60):
        start = 60 * number
        fragment_bases = contig[start : start + 290 + number % 21]
        first, second = fragment_bases[:100], reverse_complement(fragment_bases)[:100]
        if number % 10 == 0:
            second = "".join(substitute(draw, second[i], 1) + second[i + 1 : i + 9] for i in range(0, 100, 9))
        pairs.append((Read(f"{number}/1", first, "I" * 100), Read(f"{number}/2", second, "I" * 100)))
    files = write_pairs(tmp_path, pairs, PairLayout.TWO_FILES)
    options = {"layout": PairLayout.TWO_FILES, "pairing": Pairing(insert_size=(300, 10))}
    summary = map_files(files, world.index, world.backend, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert summary.mapped == summary.properly_paired == 120
    assert summary.work.rescues >= summary.work.rescued == 6
