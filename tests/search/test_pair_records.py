"""The records of pairs: as the oracle writes them from places alone, and as pysam and samtools fixmate read them."""

from __future__ import annotations

import dataclasses
import random
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pysam
import pytest
from examples import Read, draw_pairs, index_of, map_files, random_bases, small_genome, write_pairs
from oracles.pairs import size_penalty
from oracles.sam import Book, ReportedRead, reported

from readmap.backend import Backend, open_backend
from readmap.formats.sam import Form, ReadGroup, header
from readmap.index.device import DeviceIndex
from readmap.reads.chunks import Layout
from readmap.search.inserts import InsertSize
from readmap.search.mapping import MappingSummary
from readmap.search.parameters import EVERY_PLACE, Pairing, Reporting
from readmap.search.records import Style

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
    """What a search wrote and counted."""

    lines: list[str]
    summary: MappingSummary


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    backend = open_backend(backends)
    folder = tmp_path_factory.mktemp("pairs")
    return World(backend, index_of(GENOME).to_device(backend), write_pairs(folder, PAIRS, Layout.TWO_FILES))


def search(world: World, out: Path, style: Style | None = None, **options: object) -> Found:
    summary = map_files(world.files, world.index, world.backend, out, style=style, layout=Layout.TWO_FILES, **options)  # type: ignore[arg-type]
    text = style is None or style.form is Form.TEXT
    return Found(out.read_text().splitlines(keepends=True) if text else [], summary)


def by_read(lines: list[str]) -> list[list[str]]:
    """The lines of each read, in their order: a primary one begins a read's."""
    reads: list[list[str]] = []
    for line in lines:
        # A supplementary one that -M flags as secondary is not primary either.
        if not int(line.split("\t")[1]) & 2304:
            reads.append([])
        reads[-1].append(line)
    return reads


def is_proper(first: ReportedRead, second: ReportedRead, sizes: tuple[InsertSize, ...] | None) -> bool:
    """Whether the primary alignments are on one contig and make a fragment of the library."""
    one, other = first.primary, second.primary
    if not one or not other or one.contig != other.contig:
        return False
    ranges = {size.direction: (size.low, size.high, range(size.high - size.low + 1)) for size in sizes or ()}
    return size_penalty((one.fragment_end, one.reverse), (other.fragment_end, other.reverse), ranges) is not None


def check(found: Found, book: Book, pairs: list[tuple[Read, Read]] = PAIRS) -> Counter[int]:
    """Each record from its place, CIGAR, MAPQ, XS and XA alone; also how often each flag is."""
    reads = by_read(found.lines)
    assert len(reads) == 2 * len(pairs)
    for number, pair in enumerate(pairs):
        own = [reported(reads[2 * number + i], read.name, read.bases, read.quality) for i, read in enumerate(pair)]
        proper = is_proper(own[0], own[1], found.summary.insert_sizes)
        expected = book.records(own[0], own[1], 1, proper) + book.records(own[1], own[0], 2, proper)
        assert reads[2 * number] + reads[2 * number + 1] == expected
    return Counter(int(line.split("\t")[1]) for line in found.lines)


OPTIONS = {
    "default": Reporting(),
    "secondary": Reporting(most_secondary=3),
    "all secondary": Reporting(most_secondary=EVERY_PLACE),
    "soft clips": Reporting(soft_clipped=True),
    "soft clips and secondary": Reporting(soft_clipped=True, most_secondary=2),
    "supplementary as secondary": Reporting(supplementary_as_secondary=True),
    "leftmost primary": Reporting(leftmost_primary=True, most_xa_hits=50, xa_share=0),
}


#: Of primary lines: neither mapped, or one of them, on either strand; both, and a fragment of the library or none.
LONELY = {77, 141, 73, 133, 69, 137, 89, 165, 101, 153}
FRAGMENTS = {67, 131, 115, 179, 99, 147, 83, 163}
NO_FRAGMENTS = {65, 129, 113, 177, 97, 145, 81, 161}


@pytest.mark.parametrize("pairing", [Pairing(), Pairing(insert_size=(300, 30))], ids=["any direction", "FR"])
@pytest.mark.parametrize("name", OPTIONS)
def test_records(world: World, tmp_path: Path, name: str, pairing: Pairing) -> None:
    reporting = OPTIONS[name]
    found = search(world, tmp_path / "out", Style(read_group=READ_GROUP), pairing=pairing, reporting=reporting)
    soft, secondary = reporting.soft_clipped, reporting.supplementary_as_secondary
    flags = check(found, Book(GENOME, read_group="RG:Z:a", soft_clipped=soft, supplementary_as_secondary=secondary))
    summary = found.summary
    # Many pairs are drawn that lie otherwise than FR.
    directions = [size.direction for size in summary.insert_sizes or ()]
    assert directions == (["FR"] if pairing.insert_size else ["FF", "FR", "RF", "RR"])
    plain = {flag for flag in flags if not flag & 2304}
    assert plain >= LONELY
    assert plain >= (NO_FRAGMENTS if pairing.insert_size else FRAGMENTS)
    assert bool(summary.supplementary) == (not secondary)
    assert bool(summary.secondary) == (secondary or reporting.most_secondary > 0)
    count = {bit: sum(many for flag, many in flags.items() if flag & bit) for bit in (256, 2048)}
    assert (summary.secondary, summary.supplementary) == (count[256], count[2048])
    primary = [flag for flag in flags.elements() if not flag & 2304]
    assert summary.mapped == sum(not flag & 4 for flag in primary)
    assert summary.properly_paired == sum(bool(flag & 2) for flag in primary)


@pytest.mark.parametrize("pairing", [Pairing(joint=False), Pairing(rescue=False), Pairing(joint=False, rescue=False)])
def test_records_of_any_pairing(world: World, tmp_path: Path, pairing: Pairing) -> None:
    found = search(world, tmp_path / "out", pairing=pairing)
    check(found, Book(GENOME))


def test_split_reads_are_whole(world: World, tmp_path: Path) -> None:
    """The parts of a read, hard clips counted, are as long as it, and SA holds the read's other records."""
    found = search(world, tmp_path / "out")
    reads = by_read(found.lines)
    split = 0
    for lines, read in zip(reads, [read for pair in PAIRS for read in pair], strict=True):
        rows = [line.rstrip("\n").split("\t") for line in lines]
        tags = [{field[:2]: field[5:] for field in row[11:]} for row in rows]
        entries = [
            f"{row[2]},{row[3]},{'-' if int(row[1]) & 16 else '+'},{row[5].replace('H', 'S')},{row[4]},{tag.get('NM')};"
            for row, tag in zip(rows, tags, strict=True)
        ]
        for number, (row, tag) in enumerate(zip(rows, tags, strict=True)):
            assert tag.get("SA", "") == "".join(entries[:number] + entries[number + 1 :])
            if len(rows) == 1:
                continue
            lengths = re.findall(r"(\d+)([MIDSH])", row[5])
            assert sum(int(length) for length, operation in lengths if operation != "D") == len(read.bases)
            assert len(row[9]) == len(row[10]) == sum(int(n) for n, operation in lengths if operation in "MIS")
            assert bool(int(row[1]) & 2048) == (number > 0)
        split += len(rows) > 1
    assert split >= 20


def test_split_reads_are_reported(world: World, tmp_path: Path) -> None:
    """Of the drawn ones nearly all: both of their parts have a record."""
    reads = by_read(search(world, tmp_path / "out").lines)
    whole = [len(reads[2 * i]) + len(reads[2 * i + 1]) > 2 for i, (r, _) in enumerate(PAIRS) if "!split" in r.name]
    assert sum(whole) >= 0.8 * len(whole)


def alignment_of(contig: str, start: int, cigar: str, reverse: bool) -> tuple[str, bool, int, int]:
    """Where it lies, half-open."""
    covered = sum(int(length) for length, operation in re.findall(r"(\d+)([MD])", cigar))
    return contig, reverse, start, start + covered


def are_duplicates(one: tuple[str, bool, int, int], other: tuple[str, bool, int, int]) -> bool:
    """Whether they begin or end at the same place."""
    return one[:2] == other[:2] and (one[2] == other[2] or one[3] == other[3])


def test_secondary_records_and_xa_hits_are_the_same_places(world: World, tmp_path: Path) -> None:
    """What XA names has a record with -a, or is one place with it; those have neither letters nor SA nor XA."""
    with_xa = by_read(search(world, tmp_path / "out", reporting=Reporting(most_xa_hits=99, xa_share=0)).lines)
    with_all = by_read(search(world, tmp_path / "out", reporting=Reporting(most_secondary=99)).lines)
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
    for line in search(world, tmp_path / "out", reporting=Reporting(most_xa_hits=most)).lines:
        assert line.partition("XA:Z:")[2].partition("\t")[0].count(";") <= most
    for lines in by_read(search(world, tmp_path / "out", reporting=Reporting(most_secondary=most)).lines):
        rows = [line.split("\t") for line in lines]
        parts = sum(not int(row[1]) & 256 for row in rows)
        assert len(rows) - parts <= most * parts


def test_text_and_binary_are_the_same(world: World, tmp_path: Path) -> None:
    for name, reporting in OPTIONS.items():
        for form, out in ((Form.TEXT, "text"), (Form.BINARY, "binary")):
            search(world, tmp_path / "records", Style(form, READ_GROUP), reporting=reporting)
            head = header(world.index.host.contigs, "1.0", "readmap search", READ_GROUP.line, form)
            with pysam.BGZFile(str(tmp_path / out), "wb") as file:
                file.write(head + (tmp_path / "records").read_bytes())
        with (
            pysam.AlignmentFile(str(tmp_path / "text")) as text,
            pysam.AlignmentFile(str(tmp_path / "binary")) as binary,
        ):
            records = list(zip(text, binary, strict=True))
        assert len(records) >= 2 * len(PAIRS), name
        for expected, found in records:
            assert found.to_string() == expected.to_string()
            assert found.bin == expected.bin
            assert found.get_tags(with_value_type=True) == expected.get_tags(with_value_type=True)


def as_sam(world: World, records: list[str], path: Path) -> Path:
    path.write_bytes(header(world.index.host.contigs, "1.0", "readmap search") + "".join(records).encode())
    return path


def test_fixmate_changes_nothing(world: World, tmp_path: Path) -> None:
    """samtools fixmate -m, of flags, mate fields, TLEN, MC, MQ and ms; but it gives an unmapped mate's CIGAR."""
    samtools = shutil.which("samtools")
    if samtools is None:
        pytest.skip("samtools is not on PATH: apt install samtools")
    found = search(world, tmp_path / "out", pairing=Pairing(insert_size=(300, 30)))
    sam = as_sam(world, found.lines, tmp_path / "out.sam")
    done = subprocess.run(
        [samtools, "fixmate", "-m", "-O", "sam", sam, "-"], capture_output=True, text=True, check=True
    )
    after = [line for line in done.stdout.splitlines() if not line.startswith("@")]

    def fields(lines: list[str]) -> list[list[str]]:
        """In an order of their own, as it puts primary lines behind each other."""
        rows = [line.rstrip("\n").split("\t") for line in lines]
        return sorted([*row[:11], *sorted(tag for tag in row[11:] if tag != "MC:Z:*")] for row in rows)

    for own, fixed in zip(fields(found.lines), fields(after), strict=True):
        assert fixed == own


def test_markdup_runs(world: World, tmp_path: Path) -> None:
    samtools = shutil.which("samtools")
    if samtools is None:
        pytest.skip("samtools is not on PATH: apt install samtools")
    found = search(world, tmp_path / "out")
    twice = [line for lines in zip(*[iter(by_read(found.lines))] * 2, strict=True) for line in lines[0] + lines[1]]
    renamed = ["again_" + line for line in twice]
    sam = as_sam(world, twice + renamed, tmp_path / "out.sam")
    pysam.sort("-o", str(tmp_path / "sorted.bam"), str(sam))
    done = subprocess.run(
        [samtools, "markdup", "-O", "sam", tmp_path / "sorted.bam", "-"], capture_output=True, text=True, check=True
    )
    flags = [int(line.split("\t")[1]) for line in done.stdout.splitlines() if not line.startswith("@")]
    mapped = sum(not flag & (4 | 2304) for flag in flags)
    assert sum(bool(flag & 1024) for flag in flags if not flag & (4 | 2304)) >= mapped // 2


def test_reads_without_qualities(world: World, tmp_path: Path) -> None:
    pairs = [
        tuple(dataclasses.replace(read, quality=None) for read in pair) for pair in PAIRS if all(r.bases for r in pair)
    ]
    data = "".join(f">{read.name}\n{read.bases}\n" for pair in pairs for read in pair)
    (tmp_path / "r.fa").write_text(data)
    summary = map_files([tmp_path / "r.fa"], world.index, world.backend, tmp_path / "out", layout=Layout.INTERLEAVED)
    found = Found((tmp_path / "out").read_text().splitlines(keepends=True), summary)
    check(found, Book(GENOME), [(first, second) for first, second in pairs])
