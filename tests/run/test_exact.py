"""Whole exact searches: the oracle's lines, and the same bytes however reads are cut, threaded or interleaved."""

import dataclasses
import functools
import gzip
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from examples import (
    Read,
    below,
    draw_exact_reads,
    fasta_reads,
    fastq,
    index_of,
    random_bases,
    random_quality,
    small_genome,
)
from oracles.alignment import clean, occurrences, reverse_complement
from oracles.sam import check_same_records, shown_name, write_bgzf
from search_runs import Full, refuse, search_files

from readmap.backend import Backend, cuda_available, open_backend
from readmap.formats.sam import ReadGroup, SamEncoding, header
from readmap.index.building import build_index
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.run import exact
from readmap.run.exact import ExactSummary, LineFormat, Parameters
from readmap.strand import Strand

ROOT = Path(__file__).resolve().parents[2]
DRAW = random.Random(111)
GENOME = small_genome(DRAW)
READS = [
    *draw_exact_reads(DRAW, GENOME, 150),
    *(Read(f"{bases}x", bases, random_quality(DRAW, len(bases))) for bases in ("A", "c", "GU", "AATT", "A" * 12)),
    *(Read(f"whole!{name}", letters, "I" * len(letters)) for name, letters in GENOME.items()),
    Read("*", GENOME["two"][30:90], "J" * 60),
    Read("*", "NNN", "!!!"),
    Read("n" * 254, reverse_complement(GENOME["one"][30:90]), "#" * 60),
]
INDEX = index_of(GENOME, structure="both")


@dataclass(frozen=True)
class World:
    """An index on a device, reads in a file, and the SAM records that one search in one batch gave."""

    backend: Backend
    index: DeviceIndex
    reads: Path
    records: bytes


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    backend = open_backend(backends, 1)
    index = INDEX.to_device(backend, IndexStructure.BOTH)
    (folder / "reads.fq").write_bytes(fastq(READS))
    search_files([folder / "reads.fq"], index, backend, folder / "out", Parameters())
    return World(backend, index, folder / "reads.fq", (folder / "out").read_bytes())


@functools.cache
def places_of(bases: str, strand: str = "both") -> list[tuple[int, int, int]]:
    strands = {"both": (1, -1), "forward": (1,), "reverse": (-1,)}[strand]
    return occurrences(list(GENOME.values()), bases, strands)


def lines_of(
    read: Read, format: str, places: Sequence[tuple[int, int, int]], contigs: Sequence[str], most: int | None = None
) -> str:
    """Return the lines of a read that occurs at `places`, at most `most` of them; contigs: their names."""
    name, total, letters, marks = shown_name(read.name), len(places), clean(read.bases), read.quality or "*"
    if format == "counts":
        return f"{name}\t{total}\n"
    if not places:
        unmapped = f"{name}\t4\t*\t0\t0\t*\t*\t0\t0\t{letters or '*'}\t{marks}\tPG:Z:readmap\n"
        return {"sam": unmapped, "tsv": f"{name}\t0\t*\t*\t*\t*\n", "bed": ""}[format]
    lines, mapq = "", {1: 60, 2: 3, 3: 1, 4: 1}.get(total, 0)
    for number, (contig, start, strand) in enumerate(places[:most]):
        where, end, sign = contigs[contig], start + len(letters), "+" if strand == 1 else "-"
        shown = f"{letters}\t{marks}" if strand == 1 else f"{reverse_complement(letters)}\t{marks[::-1]}"
        shown = "*\t*" if number else shown
        flag = (256 if number else 0) + (16 if strand == -1 else 0)
        place = f"{where}\t{start + 1}\t{mapq}\t{len(letters)}M"
        tags = f"NM:i:0\tMD:Z:{len(letters)}\tNH:i:{total}\tHI:i:{number + 1}\tPG:Z:readmap"
        lines += {
            "tsv": f"{name}\t{total}\t{where}\t{start + 1}\t{end}\t{sign}\n",
            "bed": f"{where}\t{start}\t{end}\t{name}\t{mapq}\t{sign}\n",
            "sam": f"{name}\t{flag}\t{place}\t*\t0\t0\t{shown}\t{tags}\n",
        }[format]
    return lines


def expected_lines(reads: Sequence[Read], format: str, most: int | None = None, strand: str = "both") -> str:
    return "".join(lines_of(read, format, places_of(read.bases, strand), list(GENOME), most) for read in reads)


def search(world: World, tmp_path: Path, parameters: Parameters | None = None, **options: Any) -> str:
    """The bytes that a search of the world's reads writes."""
    search_files([world.reads], world.index, world.backend, tmp_path / "out", parameters or Parameters(), **options)
    return (tmp_path / "out").read_text()


# What is written.


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize(
    ("most", "strand"), [(None, "both"), (1, "both"), (2, "both"), (5, "both"), (None, "forward"), (None, "reverse")]
)
@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
def test_lines(world: World, tmp_path: Path, format: str, most: int | None, strand: str, structure: str) -> None:
    chosen = Parameters(Strand(strand), IndexStructure(structure), LineFormat(format), max_hits=most or exact.ALL)
    found, expected = search(world, tmp_path, chosen), expected_lines(READS, format, most, strand)
    assert found.splitlines() == expected.splitlines()
    assert found == expected


def test_reads_have_something_of_everything() -> None:
    totals = [len(places_of(read.bases)) for read in READS]
    assert {0, 1, 2, 3} <= set(totals)
    assert max(totals) > 1_000
    strands = {strand for read in READS for _, _, strand in places_of(read.bases)[:1]}
    assert strands == {1, -1}
    assert any(clean(read.bases) == reverse_complement(read.bases) and places_of(read.bases) for read in READS)
    assert any(set(read.bases) & set("NRy") for read in READS)
    assert any(not read.bases for read in READS)
    assert any("u" in read.bases and places_of(read.bases) for read in READS)


@pytest.mark.parametrize(
    ("format", "expected"),
    [("sam", b""), ("tsv", b"query\tcount\tcontig\tstart\tend\tstrand\n"), ("bed", b""), ("counts", b"query\tcount\n")],
)
def test_header_of_a_table(format: str, expected: bytes) -> None:
    assert LineFormat(format).header == expected
    columns = expected_lines(READS[:1], format).splitlines()[:1]
    assert not expected or [line.count("\t") for line in columns] == [expected.count(b"\t")]


def test_mapq_tells_how_many_there_are(world: World, tmp_path: Path) -> None:
    generator = random.Random(112)
    units = [random_bases(generator, 40) for _ in range(7)]
    contigs = {str(copy): "N".join(units[copy:]) for copy in range(7)}
    (tmp_path / "reads.fq").write_bytes(fastq([Read(str(i), unit, "I" * 40) for i, unit in enumerate(units)]))
    index = index_of(contigs).to_device(world.backend)
    search_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out", Parameters())
    rows = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert [(row[0], row[4]) for row in rows if row[1] == "0"] == [
        *(("0", "60"), ("1", "3"), ("2", "1"), ("3", "1"), ("4", "0"), ("5", "0"), ("6", "0"))
    ]
    assert all(row[13] == f"NH:i:{int(row[0]) + 1}" for row in rows)


@pytest.mark.parametrize("most", [exact.ALL, 3])
def test_bam_holds_what_sam_does(world: World, tmp_path: Path, most: int) -> None:
    """As htslib reads both, secondary records without letters included."""
    group = ReadGroup(b"@RG\tID:x", b"x")
    for format, encoding in ((LineFormat.SAM, SamEncoding.TEXT), (LineFormat.BAM, SamEncoding.BINARY)):
        parameters = Parameters(format=format, max_hits=most, read_group=group)
        search_files([world.reads], world.index, world.backend, tmp_path / "out", parameters)
        head = header(INDEX.reference.contigs, "0", "readmap search --exact", group.line, encoding)
        write_bgzf(tmp_path / encoding.name, head + (tmp_path / "out").read_bytes())
    records = check_same_records(tmp_path / SamEncoding.TEXT.name, tmp_path / SamEncoding.BINARY.name)
    assert any(record.is_secondary for record in records)


def test_read_group_is_on_every_record(world: World, tmp_path: Path) -> None:
    """And on no line of a table."""
    group = ReadGroup(b"", b"lane 1")
    grouped = search(world, tmp_path, Parameters(read_group=group))
    assert grouped == world.records.decode().replace("\tPG:Z:", "\tRG:Z:lane 1\tPG:Z:")
    for format in (LineFormat.TSV, LineFormat.BED, LineFormat.COUNTS):
        found = search(world, tmp_path, Parameters(format=format, read_group=group))
        assert found == search(world, tmp_path, Parameters(format=format))


def test_reads_without_quality(world: World, tmp_path: Path) -> None:
    """FASTA, in two lines a record or in many."""
    reads = [dataclasses.replace(read, quality=None) for read in READS if read.bases]
    (tmp_path / "two.fa").write_bytes(fasta_reads(reads))
    broken = "".join(f">{read.name}\n" + "\n".join(re.findall(".{1,50}", read.bases)) + "\n" for read in reads)
    (tmp_path / "many.fa").write_bytes(broken.encode())
    for name in ("two.fa", "many.fa"):
        search_files([tmp_path / name], world.index, world.backend, tmp_path / "out", Parameters())
        assert (tmp_path / "out").read_text() == expected_lines(reads, "sam")
        search_files([tmp_path / name], world.index, world.backend, tmp_path / "out", Parameters(format=LineFormat.TSV))
        assert (tmp_path / "out").read_text() == expected_lines(reads, "tsv")


# The same bytes.


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize(("batch", "threads"), [(1, 4), (7, 1), (1_000, 4), (None, 3)])
def test_same_bytes_for_any_batch_threads_and_structure(
    world: World, tmp_path: Path, batch: int | None, threads: int, structure: str
) -> None:
    backend = open_backend(world.backend.name, threads)
    parameters = Parameters(structure=IndexStructure(structure))
    search_files([world.reads], world.index, backend, tmp_path / "out", parameters, batch_reads=batch)
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize("lanes", [1, 8, 32])
def test_same_bytes_for_any_layout(world: World, tmp_path: Path, lanes: int, structure: str) -> None:
    backend = open_backend(world.backend.name)
    backend.warp_width = lanes
    parameters = Parameters(structure=IndexStructure(structure))
    search_files([world.reads], world.index, backend, tmp_path / "out", parameters)
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
@pytest.mark.parametrize(("lines", "most"), [(1, 9), (7, 100), (1_000, 300)])
def test_same_bytes_from_pieces(world: World, tmp_path: Path, lines: int, most: int, format: str) -> None:
    """Blocks have a limited number of lines and end anywhere within the lines of a read."""
    backend = open_backend(world.backend.name)
    backend.scratch_bytes = lines * exact.LINE_BYTES + 1
    pieces: list[int] = []
    chosen = Parameters(format=LineFormat(format), max_hits=most)
    progress: dict[str, Any] = {"progress": lambda: pieces.append(1)}
    search_files([world.reads], world.index, backend, tmp_path / "out", chosen, **progress)
    found = (tmp_path / "out").read_text()
    assert found == expected_lines(READS, format, most)
    assert len(pieces) == -(-found.count("\n") // lines)


@pytest.mark.parametrize("structure", ["array", "tree"])
def test_same_bytes_from_64_bit_places(world: World, tmp_path: Path, structure: str) -> None:
    used = IndexStructure(structure)
    index = index_of(GENOME, force_64_bits=True, structure="both").to_device(world.backend, used)
    search_files([world.reads], index, world.backend, tmp_path / "out", Parameters(structure=used))
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.gpu
@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
def test_same_bytes_on_cpu_and_gpu(tmp_path: Path, format: str) -> None:
    if reason := cuda_available():
        pytest.skip(f"no CUDA: {reason}")
    (tmp_path / "reads.fq").write_bytes(fastq(READS + draw_exact_reads(random.Random(115), GENOME, 3_000)))
    found = set()
    for name in ("cpu", "cuda"):
        backend = open_backend(name)
        index = INDEX.to_device(backend, IndexStructure.BOTH)
        for structure in (IndexStructure.ARRAY, IndexStructure.TREE):
            parameters = Parameters(structure=structure, format=LineFormat(format), max_hits=50)
            search_files([tmp_path / "reads.fq"], index, backend, tmp_path / "out", parameters)
            found.add((tmp_path / "out").read_bytes())
    assert len(found) == 1


# What is counted.


def counted(summary: ExactSummary) -> dict[str, int]:
    return {
        field.name: getattr(summary, field.name)
        for field in dataclasses.fields(summary)
        if field.name not in ("seconds", "waiting", "devices", "warnings")
    }


def expected_summary(reads: Sequence[Read], strand: str = "both") -> dict[str, int]:
    totals = [len(places_of(read.bases, strand)) for read in reads]
    return {
        "reads": len(reads),
        "found": sum(total > 0 for total in totals),
        "unique": sum(total == 1 for total in totals),
        "occurrences": sum(totals),
        "ambiguous": sum("N" in clean(read.bases) for read in reads),
        "replaced": sum(letter in "RYSWKMBDHV" for read in reads for letter in read.bases.upper()),
    }


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize(("format", "strand"), [("sam", "both"), ("bed", "forward"), ("counts", "reverse")])
def test_summary(world: World, tmp_path: Path, format: str, strand: str, structure: str) -> None:
    """All occurrences are counted, also those that are not written."""
    parameters = Parameters(Strand(strand), IndexStructure(structure), LineFormat(format), max_hits=2)
    for batch in (None, 40):
        summary = search_files(
            [world.reads], world.index, world.backend, tmp_path / "out", parameters, batch_reads=batch
        )
        assert counted(summary) == expected_summary(READS, strand)
        assert summary.seconds > 0


@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
@pytest.mark.parametrize("data", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
def test_no_reads(world: World, tmp_path: Path, data: bytes, format: str) -> None:
    (tmp_path / "reads.fq").write_bytes(data)
    parameters = Parameters(format=LineFormat(format))
    summary = search_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "out", parameters)
    assert counted(summary) == expected_summary([])
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
@pytest.mark.parametrize("contigs", [{"n": "N" * 70}, {"a": "A"}])
def test_reads_that_occur_nowhere(world: World, tmp_path: Path, contigs: dict[str, str], format: str) -> None:
    """BED has no line of them; in a reference without any base nothing else is possible."""
    reads = [Read("empty", "", ""), Read("n", "NNNN", "IIII"), Read("r", "ACRT", "IIII"), Read("x", "GTCA", "ABCD")]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    index = index_of(contigs, structure="both").to_device(world.backend, IndexStructure.BOTH)
    for structure in (IndexStructure.ARRAY, IndexStructure.TREE):
        parameters = Parameters(structure=structure, format=LineFormat(format))
        summary = search_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out", parameters)
        expected = "".join(lines_of(read, format, [], list(contigs)) for read in reads)
        assert (tmp_path / "out").read_text() == expected
        assert counted(summary) == {**dict.fromkeys(counted(summary), 0), "reads": 4, "ambiguous": 2, "replaced": 1}


# What stops a search.


@pytest.mark.parametrize(("stage", "limit"), [("pack_patterns", 60), ("find_occurrences", 60), ("find_occurrences", 1)])
def test_same_bytes_where_memory_makes_batches_smaller(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, limit: int
) -> None:
    """As if the device held `limit` reads and no more: the batch is halved until it fits."""
    backend, place = open_backend(world.backend.name), int(stage == "pack_patterns")
    refused = refuse(monkeypatch, backend, exact, stage, lambda *arguments: len(arguments[place]) > limit)
    summary = search_files([world.reads], world.index, backend, tmp_path / "out", Parameters())
    assert (tmp_path / "out").read_bytes() == world.records
    assert counted(summary) == expected_summary(READS)
    assert refused


def test_same_bytes_where_the_first_piece_does_not_fit(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are the last that a batch needs memory for; no read of it may be counted before and again after."""
    backend = open_backend(world.backend.name)
    limit = 1 + max(len(expected_lines([read], "sam")) for read in READS)
    refused = refuse(
        monkeypatch, backend, backend, "empty", lambda shape, dtype: np.dtype(dtype) == np.uint8 and shape > limit
    )
    summary = search_files([world.reads], world.index, backend, tmp_path / "out", Parameters())
    assert refused
    assert (tmp_path / "out").read_bytes() == world.records
    assert counted(summary) == expected_summary(READS)


def test_memory_that_ends_behind_the_first_block(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After part of a batch has been written, it continues with fewer lines at a time."""
    reads = [read for read in READS if len(places_of(read.bases)) < 20]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    backend = open_backend(world.backend.name)
    backend.memory_error = Full
    backend.scratch_bytes = 10 * exact.LINE_BYTES
    launch = backend.launch
    blocks: list[int] = []

    def limited(kernel: Any, items: int, **arguments: Any) -> None:
        if kernel.name == "write_lines":
            blocks.append(items)
            if len(blocks) > 3 and items > 2:
                raise Full
        launch(kernel, items, **arguments)

    monkeypatch.setattr(backend, "launch", limited)
    summary = search_files([tmp_path / "reads.fq"], world.index, backend, tmp_path / "out", Parameters())
    assert blocks[:8] == [10, 10, 10, 10, 5, 2, 2, 2]
    assert (tmp_path / "out").read_text() == expected_lines(reads, "sam")
    assert counted(summary) == expected_summary(reads)


# The golden file.

FOLDER = ROOT / "tests/golden"
MOST_HITS = 4


def demo_contigs() -> dict[str, str]:
    text = gzip.decompress((ROOT / "data/demo.fa.gz").read_bytes()).decode()
    records = [record.split("\n", 1) for record in text.split(">")[1:]]
    return {head.split()[0]: letters.replace("\n", "") for head, letters in records}


def make_reads() -> bytes:
    """Pieces of the demo genome: from anywhere, from its repeats, over an ambiguous base, and what it does not hold."""
    generator = random.Random(116)
    contigs = demo_contigs()
    pieces = []
    for length in (9, 10, 11, 12, 14, 18, 25, 36, 60, 100):
        name = list(contigs)[below(generator, len(contigs))]
        start = below(generator, len(contigs[name]) - length)
        pieces.append((name, start, length))
    pieces += [("chr1", 30_400 + 90 * i, 40 + 30 * i) for i in range(3)]
    pieces += [("chr2", 20_500, 70), ("chr1", 70_300, 50), ("chr4", 0, 30), ("chr4", 30_011 - 30, 30)]
    ambiguous = contigs["chr2"].index("N", 2_000)
    pieces += [("chr2", ambiguous - 20, 40), ("chr2", ambiguous - 20, 20)]
    reads = []
    for number, (name, start, length) in enumerate(pieces):
        bases = contigs[name][start : start + length]
        bases = reverse_complement(bases) if number % 3 == 1 else bases
        reads.append(Read(f"{name}:{start + 1}-{start + length}", bases, random_quality(generator, length)))
    others = {
        "poly-A": "A" * 14,
        "CA": "CA" * 12,
        "palindrome": "GAATTC",
        "random": random_bases(generator, 40),
        "none": "",
    }
    reads += [Read(name, bases, random_quality(generator, len(bases))) for name, bases in others.items()]
    return fastq(reads)


def make_sam(device: str, structure: IndexStructure, folder: Path) -> bytes:
    backend = open_backend(device)
    index = build_index(ROOT / "data/demo.fa.gz", structure=structure).to_device(backend, structure)
    parameters = Parameters(structure=structure, max_hits=MOST_HITS)
    search_files([FOLDER / "exact.fq"], index, backend, folder / "records", parameters)
    command = f"readmap search --exact --max-hits {MOST_HITS} -x demo.fa.gz exact.fq"
    return header(index.host.contigs, "golden", command) + (folder / "records").read_bytes()


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if request.config.getoption("--update-golden"):
        (FOLDER / "exact.fq").write_bytes(make_reads())
        (FOLDER / "exact.sam").write_bytes(make_sam("cpu", IndexStructure.ARRAY, tmp_path_factory.mktemp("golden")))
    return (FOLDER / "exact.sam").read_bytes()


def test_golden_reads_are_those_of_the_script(golden: bytes) -> None:
    assert (FOLDER / "exact.fq").read_bytes() == make_reads()


@pytest.mark.parametrize("structure", [IndexStructure.ARRAY, IndexStructure.TREE])
def test_sam_is_the_golden_one(golden: bytes, backends: str, structure: IndexStructure, tmp_path: Path) -> None:
    found = make_sam(backends, structure, tmp_path)
    hint = "if that is meant: pytest tests/run/test_exact.py --update-golden"
    assert found.decode().splitlines() == golden.decode().splitlines(), hint
    assert found == golden


def test_golden_sam_has_something_of_everything(golden: bytes) -> None:
    """All values of MAPQ, both strands, secondary records, caps, an ambiguous base, reads that occur nowhere."""
    with pysam.AlignmentFile(str(FOLDER / "exact.sam")) as file:
        records = list(file)
    assert {record.flag for record in records} == {0, 4, 16, 256, 272}
    assert {record.mapping_quality for record in records} == {60, 3, 1, 0}
    mapped = [record for record in records if not record.is_unmapped]
    assert max(record.get_tag("NH") for record in mapped) > 20
    assert max(record.get_tag("HI") for record in mapped) == MOST_HITS
    assert {record.reference_name for record in mapped} == set(demo_contigs())
    assert any(record.is_unmapped and "N" in (record.query_sequence or "") for record in records)
    assert any(record.query_sequence is None and record.is_unmapped for record in records)
