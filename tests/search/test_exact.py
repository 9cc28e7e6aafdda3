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
    search_files,
    small_genome,
)
from oracles.alignment import clean, occurrences, reverse_complement
from oracles.sam import exact_lines, exact_mapq, shown_name

from readmap.backend import Backend, cuda_available, open_backend
from readmap.errors import DataError
from readmap.formats.sam import Form, ReadGroup, header
from readmap.index.device import DeviceIndex, Structure
from readmap.index.index import Index, build_index
from readmap.search import exact, stream
from readmap.search.exact import ExactSummary, Format, Parameters
from readmap.strand import Strand

ROOT = Path(__file__).resolve().parents[2]
DRAW = random.Random(111)
GENOME = small_genome(DRAW)
READS = [
    *draw_exact_reads(DRAW, GENOME, 150),
    *(Read(f"{bases}x", bases, random_quality(DRAW, len(bases))) for bases in ("A", "c", "GU", "AATT", "A" * 12)),
    *(Read(f"whole!{name}", letters, "I" * len(letters)) for name, letters in GENOME.items()),
    Read("", GENOME["two"][30:90], "J" * 60),
    Read("", "NNN", "!!!"),
    Read("n" * 300, reverse_complement(GENOME["one"][30:90]), "#" * 60),
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
    index = INDEX.to_device(backend, Structure.BOTH)
    (folder / "reads.fq").write_bytes(fastq(READS))
    search_files([folder / "reads.fq"], index, backend, folder / "out", Parameters())
    return World(backend, index, folder / "reads.fq", (folder / "out").read_bytes())


@functools.cache
def places_of(bases: str, strand: str = "both") -> list[tuple[int, int, int]]:
    strands = {"both": (1, -1), "forward": (1,), "reverse": (-1,)}[strand]
    return occurrences(list(GENOME.values()), bases, strands)


def expected_lines(reads: Sequence[Read], format: str, most: int | None = None, strand: str = "both") -> str:
    lines = ""
    for read in reads:
        places = places_of(read.bases, strand)
        lines += exact_lines(format, read.name, read.bases, read.quality, places, list(GENOME), most)
    return lines


def search(world: World, tmp_path: Path, parameters: Parameters | None = None, **options: Any) -> str:
    """The bytes that a search of the world's reads writes."""
    search_files([world.reads], world.index, world.backend, tmp_path / "out", parameters or Parameters(), **options)
    return (tmp_path / "out").read_text()


# What is written.


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize("most", [None, 1, 2, 5])
@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
def test_lines(world: World, tmp_path: Path, format: str, most: int | None, structure: str) -> None:
    chosen = Parameters(structure=Structure(structure), format=Format(format), most_hits=most or exact.ALL)
    found = search(world, tmp_path, chosen)
    assert found.splitlines() == expected_lines(READS, format, most).splitlines()
    assert found == expected_lines(READS, format, most)


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize("strand", ["forward", "reverse"])
@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
def test_lines_of_one_strand(world: World, tmp_path: Path, format: str, strand: str, structure: str) -> None:
    chosen = Parameters(Strand(strand), Structure(structure), Format(format))
    assert search(world, tmp_path, chosen) == expected_lines(READS, format, strand=strand)


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
    assert Format(format).header == expected
    columns = expected_lines(READS[:1], format).splitlines()[:1]
    assert not expected or [line.count("\t") for line in columns] == [expected.count(b"\t")]


@pytest.mark.parametrize("most", [None, 3])
def test_sam_as_pysam_reads_it(world: World, tmp_path: Path, most: int | None) -> None:
    found = search(world, tmp_path, Parameters(most_hits=most or exact.ALL, read_group=ReadGroup(b"", b"x")))
    head = header(INDEX.reference.contigs, "0", "readmap search --exact", b"@RG\tID:x")
    (tmp_path / "out.sam").write_bytes(head + found.encode())
    with pysam.AlignmentFile(str(tmp_path / "out.sam")) as file:
        records = list(file)
    names = list(GENOME)
    at = 0
    for read in READS:
        places = places_of(read.bases)
        for number in range(max(1, min(len(places), most or len(places)))):
            record = records[at]
            at += 1
            assert record.query_name == shown_name(read.name)
            assert record.get_tag("RG") == "x"
            assert (record.next_reference_id, record.next_reference_start, record.template_length) == (-1, -1, 0)
            sequence, quality = clean(read.bases) or None, [ord(mark) - 33 for mark in read.quality or ""]
            shown = list(record.query_qualities or [])
            if not places:
                assert (record.flag, record.reference_id, record.reference_start) == (4, -1, -1)
                assert (record.mapping_quality, record.cigarstring) == (0, None)
                assert (record.query_sequence, shown) == (sequence, quality)
                assert {tag for tag, _ in record.get_tags()} == {"RG", "PG"}
                continue
            contig, start, strand = places[number]
            assert not record.is_unmapped
            assert record.is_secondary == (number > 0)
            assert record.is_reverse == (strand == -1)
            assert record.flag & ~(16 | 256) == 0
            assert (record.reference_name, record.reference_start) == (names[contig], start)
            assert record.reference_end == start + len(read.bases)
            assert record.cigarstring == f"{len(read.bases)}M"
            assert record.mapping_quality == exact_mapq(len(places))
            tags = {"NM": 0, "MD": str(len(read.bases)), "NH": len(places), "HI": number + 1}
            assert dict(record.get_tags()) == {**tags, "RG": "x", "PG": "readmap"}
            if number:
                assert (record.query_sequence, shown) == (None, [])
                continue
            assert record.get_forward_sequence() == sequence
            assert shown[::strand] == quality
            assert record.get_reference_sequence().upper() == GENOME[names[contig]][start : record.reference_end]
    assert at == len(records)


def test_mapq_tells_how_many_there_are(world: World, tmp_path: Path) -> None:
    generator = random.Random(112)
    units = [random_bases(generator, 40) for _ in range(7)]
    contigs = {str(copy): "N".join(units[copy:]) for copy in range(7)}
    (tmp_path / "reads.fq").write_bytes(fastq([Read(str(i), unit, "I" * 40) for i, unit in enumerate(units)]))
    index = index_of(contigs).to_device(world.backend)
    search_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out", Parameters())
    rows = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert [(row[0], row[4]) for row in rows if row[1] == "0"] == [
        *(("0", "60"), ("1", "3"), ("2", "1"), ("3", "1"), ("4", "0"), ("5", "0"), ("6", "0")),
    ]
    for row in rows:
        assert row[13] == f"NH:i:{int(row[0]) + 1}"
        assert row[4] == str(exact_mapq(int(row[0]) + 1))


@pytest.mark.parametrize("most", [exact.ALL, 3])
def test_bam_holds_what_sam_does(world: World, tmp_path: Path, most: int) -> None:
    """As htslib reads both, secondary records without letters included."""
    group = ReadGroup(b"@RG\tID:x", b"x")
    for format, form in ((Format.SAM, Form.TEXT), (Format.BAM, Form.BINARY)):
        parameters = Parameters(format=format, most_hits=most, read_group=group)
        search_files([world.reads], world.index, world.backend, tmp_path / "out", parameters)
        with pysam.BGZFile(str(tmp_path / format), "wb") as file:
            head = header(INDEX.reference.contigs, "0", "readmap search --exact", group.line, form)
            file.write(head + (tmp_path / "out").read_bytes())
    with pysam.AlignmentFile(str(tmp_path / "sam")) as text, pysam.AlignmentFile(str(tmp_path / "bam")) as binary:
        pairs = list(zip(text, binary, strict=True))
    assert any(record.is_secondary for record, _ in pairs)
    for expected, found in pairs:
        assert found.to_string() == expected.to_string()
        assert found.bin == expected.bin
        assert found.get_tags(with_value_type=True) == expected.get_tags(with_value_type=True)


def test_read_group_is_on_every_record(world: World, tmp_path: Path) -> None:
    """And on no line of a table."""
    group = ReadGroup(b"", b"lane 1")
    grouped = search(world, tmp_path, Parameters(read_group=group))
    assert grouped == world.records.decode().replace("\tPG:Z:", "\tRG:Z:lane 1\tPG:Z:")
    for format in (Format.TSV, Format.BED, Format.COUNTS):
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
        search_files([tmp_path / name], world.index, world.backend, tmp_path / "out", Parameters(format=Format.TSV))
        assert (tmp_path / "out").read_text() == expected_lines(reads, "tsv")


def test_names_of_many_contigs(world: World, tmp_path: Path) -> None:
    """The right name and place among thousands."""
    generator = random.Random(113)
    contigs = {f"contig_{number}|{'x' * (number % 9)}": random_bases(generator, 60) for number in range(3_000)}
    names = list(contigs)
    reads = [Read(str(number), contigs[names[number]][5:55], "I" * 50) for number in (0, 1, 2, 1_499, 2_998, 2_999)]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    index = index_of(contigs).to_device(world.backend)
    search_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out", Parameters(format=Format.BED))
    assert (tmp_path / "out").read_text().splitlines() == [
        f"{names[int(read.name)]}\t5\t55\t{read.name}\t60\t+" for read in reads
    ]


def test_reads_of_all_lengths(world: World, tmp_path: Path) -> None:
    """One base to ten thousand, the ones beside the others."""
    generator = random.Random(114)
    contigs = {"a": random_bases(generator, 21_000), "b": random_bases(generator, 5_000)}
    reads = []
    for number, length in enumerate([10_000, 1, 9_999, 6, 31, 32, 33, 4_096, 64, 2, 127, 128, 1_000, 100] * 2):
        start = below(generator, 21_000 - length)
        bases = contigs["a"][start : start + length]
        bases = reverse_complement(bases) if number % 2 else bases
        reads.append(Read(str(number), bases, random_quality(generator, length)))
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    index = index_of(contigs, structure="both").to_device(world.backend, Structure.BOTH)
    expected = ""
    for read in reads:
        places = occurrences(list(contigs.values()), read.bases)
        expected += exact_lines("sam", read.name, read.bases, read.quality, places[:], list(contigs), 20)
    for structure in (Structure.ARRAY, Structure.TREE):
        parameters = Parameters(structure=structure, most_hits=20)
        search_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out", parameters)
        assert (tmp_path / "out").read_text() == expected


# The same bytes.


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize(
    ("batch", "threads"), [(1, 1), (1, 4), (7, 1), (7, 4), (1_000, 1), (1_000, 4), (None, 1), (None, 3)]
)
def test_same_bytes_for_any_batch_threads_and_structure(
    world: World, tmp_path: Path, batch: int | None, threads: int, structure: str
) -> None:
    backend = open_backend(world.backend.name, threads)
    parameters = Parameters(structure=Structure(structure))
    search_files([world.reads], world.index, backend, tmp_path / "out", parameters, batch_reads=batch)
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize("lanes", [1, 8, 32])
def test_same_bytes_for_any_layout(world: World, tmp_path: Path, lanes: int, structure: str) -> None:
    backend = open_backend(world.backend.name)
    backend.lanes = lanes
    parameters = Parameters(structure=Structure(structure))
    search_files([world.reads], world.index, backend, tmp_path / "out", parameters)
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
@pytest.mark.parametrize(("lines", "most"), [(1, 9), (7, 100), (1_000, 300)])
def test_same_bytes_from_pieces(world: World, tmp_path: Path, lines: int, most: int, format: str) -> None:
    """Of at most so many lines each: a read's are cut anywhere."""
    backend = open_backend(world.backend.name)
    backend.scratch_bytes = lines * exact.LINE_BYTES + 1
    pieces: list[int] = []
    chosen = Parameters(format=Format(format), most_hits=most)
    progress: dict[str, Any] = {"progress": lambda: pieces.append(1)}
    search_files([world.reads], world.index, backend, tmp_path / "out", chosen, **progress)
    found = (tmp_path / "out").read_text()
    assert found == expected_lines(READS, format, most)
    assert len(pieces) == -(-found.count("\n") // lines)


def test_poly_a_streams_in_pieces(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One read's occurrences, of which no piece holds more than it may."""
    monkeypatch.setattr(exact, "LINE_BYTES", world.backend.scratch_bytes // 5_000)
    contigs = {"a": "A" * 30_000 + "C", "b": "T" * 12_000}
    index = index_of(contigs, structure="both").to_device(world.backend, Structure.BOTH)
    (tmp_path / "reads.fa").write_bytes(fasta_reads([Read("x", "AC"), Read("polyA", "A" * 20), Read("y", "GT")]))
    sizes: list[int] = []
    download = world.backend.download

    def measured(lines: Any, pool: Any) -> Any:
        sizes.append(len(lines))
        return download(lines, pool)

    monkeypatch.setattr(world.backend, "download", measured)
    for structure in (Structure.ARRAY, Structure.TREE):
        parameters = Parameters(structure=structure, format=Format.BED)
        summary = search_files([tmp_path / "reads.fa"], index, world.backend, tmp_path / "out", parameters)
        rows = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
        assert rows == [
            ["a", "29999", "30001", "x", "60", "+"],
            *(["a", str(start), str(start + 20), "polyA", "0", "+"] for start in range(30_000 - 19)),
            *(["b", str(start), str(start + 20), "polyA", "0", "-"] for start in range(12_000 - 20, -1, -1)),
            ["a", "29999", "30001", "y", "60", "-"],
        ]
        assert summary.occurrences == len(rows)
    assert len(sizes) == 2 * 9
    assert max(sizes) < 5_000 * 40


def test_same_bytes_from_chunks_smaller_than_a_record(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LEAST_CHUNK", 1)
    backend = open_backend(world.backend.name)
    backend.chunk_bytes = 500
    search_files([world.reads], world.index, backend, tmp_path / "out", Parameters())
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.parametrize("structure", ["array", "tree", "both"])
def test_same_bytes_from_an_index_on_disk(world: World, tmp_path: Path, structure: str) -> None:
    index_of(GENOME, structure=structure).write(tmp_path / "ref.readmap")
    used = Structure.ARRAY if structure == "array" else Structure.TREE
    index = Index.open(tmp_path / "ref.readmap").to_device(world.backend, used)
    search_files([world.reads], index, world.backend, tmp_path / "out", Parameters(structure=used))
    assert (tmp_path / "out").read_bytes() == world.records


def test_same_bytes_without_the_prefix_table(world: World, tmp_path: Path) -> None:
    index = INDEX.to_device(world.backend, prefix_table=False)
    search_files([world.reads], index, world.backend, tmp_path / "out", Parameters())
    assert (tmp_path / "out").read_bytes() == world.records


@pytest.mark.parametrize("structure", ["array", "tree"])
def test_same_bytes_from_64_bit_places(world: World, tmp_path: Path, structure: str) -> None:
    used = Structure(structure)
    index = index_of(GENOME, force_64_bits=True, structure="both").to_device(world.backend, used)
    search_files([world.reads], index, world.backend, tmp_path / "out", Parameters(structure=used))
    assert (tmp_path / "out").read_bytes() == world.records


def test_same_bytes_from_crlf_gzip_and_several_files(world: World, tmp_path: Path) -> None:
    (tmp_path / "one.fq").write_bytes(fastq(READS[:90]).replace(b"\n", b"\r\n"))
    (tmp_path / "empty.fq").write_bytes(b"")
    (tmp_path / "two.fq.gz").write_bytes(gzip.compress(fastq(READS[90:]).removesuffix(b"\n")))
    paths = [tmp_path / name for name in ("one.fq", "empty.fq", "two.fq.gz")]
    search_files(paths, world.index, world.backend, tmp_path / "out", Parameters(), batch_reads=50)
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
        index = INDEX.to_device(backend, Structure.BOTH)
        for structure in (Structure.ARRAY, Structure.TREE):
            parameters = Parameters(structure=structure, format=Format(format), most_hits=50)
            search_files([tmp_path / "reads.fq"], index, backend, tmp_path / "out", parameters)
            found.add((tmp_path / "out").read_bytes())
    assert len(found) == 1


# What is counted.


def counted(summary: ExactSummary) -> dict[str, int]:
    return {
        field.name: getattr(summary, field.name)
        for field in dataclasses.fields(summary)
        if field.name not in ("seconds", "waiting")
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
@pytest.mark.parametrize("strand", ["both", "forward", "reverse"])
@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
def test_summary(world: World, tmp_path: Path, format: str, strand: str, structure: str) -> None:
    """All that there is, whatever is written of it."""
    parameters = Parameters(Strand(strand), Structure(structure), Format(format), most_hits=2)
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
    parameters = Parameters(format=Format(format))
    summary = search_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "out", parameters)
    assert counted(summary) == expected_summary([])
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize("format", ["sam", "tsv", "bed", "counts"])
@pytest.mark.parametrize("contigs", [{"n": "N" * 70}, {"a": "A"}])
def test_reads_that_occur_nowhere(world: World, tmp_path: Path, contigs: dict[str, str], format: str) -> None:
    """BED has no line of them; in a reference without any base nothing else is possible."""
    reads = [Read("empty", "", ""), Read("n", "NNNN", "IIII"), Read("r", "ACRT", "IIII"), Read("x", "GTCA", "ABCD")]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    index = index_of(contigs, structure="both").to_device(world.backend, Structure.BOTH)
    for structure in (Structure.ARRAY, Structure.TREE):
        parameters = Parameters(structure=structure, format=Format(format))
        summary = search_files([tmp_path / "reads.fq"], index, world.backend, tmp_path / "out", parameters)
        expected = "".join(
            exact_lines(format, read.name, read.bases, read.quality, [], list(contigs)) for read in reads
        )
        assert (tmp_path / "out").read_text() == expected
        assert counted(summary) == {
            "reads": 4,
            "found": 0,
            "unique": 0,
            "occurrences": 0,
            "ambiguous": 2,
            "replaced": 1,
        }


# What stops a search.


class Full(Exception):
    """Stands for a device without memory."""


@pytest.mark.parametrize(
    ("stage", "limit"), [("find_reads", 41), ("pack_patterns", 60), ("find_occurrences", 60), ("find_occurrences", 1)]
)
def test_same_bytes_where_memory_makes_batches_smaller(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, limit: int
) -> None:
    """As if the device held `limit` reads and no more: the batch is halved until it fits."""
    backend = open_backend(world.backend.name)
    backend.memory_error = Full
    module: Any = stream if stage == "find_reads" else exact
    function = getattr(module, stage)
    refused: list[int] = []
    released: list[int] = []

    def limited(*arguments: Any) -> Any:
        first, second = arguments[:2]
        count = second if stage == "find_reads" else len(second if stage == "pack_patterns" else first)
        if count > limit:
            refused.append(count)
            raise Full
        return function(*arguments)

    monkeypatch.setattr(module, stage, limited)
    monkeypatch.setattr(backend, "release_memory", lambda: released.append(1))
    summary = search_files([world.reads], world.index, backend, tmp_path / "out", Parameters())
    assert (tmp_path / "out").read_bytes() == world.records
    assert counted(summary) == expected_summary(READS)
    assert refused
    assert len(released) == len(refused)


def test_same_bytes_where_the_first_piece_does_not_fit(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are the last that a batch needs memory for; no read of it may be counted before and again after."""
    backend = open_backend(world.backend.name)
    backend.memory_error = Full
    empty = backend.empty
    limit = 1 + max(
        len(exact_lines("sam", r.name, r.bases, r.quality, places_of(r.bases), list(GENOME))) for r in READS
    )
    refused: list[int] = []

    def limited(shape: Any, dtype: Any) -> Any:
        if np.dtype(dtype) == np.uint8 and shape > limit:
            refused.append(shape)
            raise Full
        return empty(shape, dtype)

    monkeypatch.setattr(backend, "empty", limited)
    summary = search_files([world.reads], world.index, backend, tmp_path / "out", Parameters())
    assert refused
    assert (tmp_path / "out").read_bytes() == world.records
    assert counted(summary) == expected_summary(READS)


def test_memory_that_ends_behind_the_first_block(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Part of the batch is written: it goes on with fewer lines at a time."""
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
    summary = search_files([world.reads], world.index, backend, tmp_path / "out", Parameters())
    assert blocks[:8] == [10, 10, 10, 10, 5, 2, 2, 2]
    assert (tmp_path / "out").read_bytes() == world.records
    assert counted(summary) == expected_summary(READS)


@pytest.mark.parametrize("batch", [None, 7])
@pytest.mark.parametrize("number", [1, 8, 100])
def test_lines_before_a_bad_record_are_written(world: World, tmp_path: Path, number: int, batch: int | None) -> None:
    reads = [*READS[: number - 1], Read("bad", "AC-T", "IIII"), *READS[number:]]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    for format in (Format.SAM, Format.TSV, Format.BED, Format.COUNTS):
        with pytest.raises(DataError, match=rf"record {number} \(bad\): expected a nucleotide at base 3, found '-'"):
            search_files(
                [tmp_path / "reads.fq"],
                world.index,
                world.backend,
                tmp_path / "out",
                Parameters(format=format),
                batch_reads=batch,
            )
        assert (tmp_path / "out").read_text() == expected_lines(READS[: number - 1], format.value)


def test_interrupt_in_the_middle_of_a_read(world: World, tmp_path: Path) -> None:
    backend = open_backend(world.backend.name)
    backend.scratch_bytes = 10 * exact.LINE_BYTES
    seen: list[int] = []

    def interrupt() -> None:
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_files([world.reads], world.index, backend, tmp_path / "out", Parameters(), progress=interrupt)
    assert world.records.startswith((tmp_path / "out").read_bytes())
    assert len(seen) == 3


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


def make_sam(device: str, structure: Structure, folder: Path) -> bytes:
    backend = open_backend(device)
    index = build_index(ROOT / "data/demo.fa.gz", structure=structure).to_device(backend, structure)
    parameters = Parameters(structure=structure, most_hits=MOST_HITS)
    search_files([FOLDER / "exact.fq"], index, backend, folder / "records", parameters)
    command = f"readmap search --exact --max-hits {MOST_HITS} -x demo.fa.gz exact.fq"
    return header(index.host.contigs, "golden", command) + (folder / "records").read_bytes()


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if request.config.getoption("--update-golden"):
        (FOLDER / "exact.fq").write_bytes(make_reads())
        (FOLDER / "exact.sam").write_bytes(make_sam("cpu", Structure.ARRAY, tmp_path_factory.mktemp("golden")))
    return (FOLDER / "exact.sam").read_bytes()


def test_golden_reads_are_those_of_the_script(golden: bytes) -> None:
    assert (FOLDER / "exact.fq").read_bytes() == make_reads()


@pytest.mark.parametrize("structure", [Structure.ARRAY, Structure.TREE])
def test_sam_is_the_golden_one(golden: bytes, backends: str, structure: Structure, tmp_path: Path) -> None:
    found = make_sam(backends, structure, tmp_path)
    hint = "if that is meant: pytest tests/search/test_exact.py --update-golden"
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
