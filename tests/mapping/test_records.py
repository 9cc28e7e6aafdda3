"""SAM and BAM records, compared with their alignments, pysam, samtools calmd and the specification."""

import dataclasses
import random
import re
from dataclasses import dataclass
from pathlib import Path

import pysam
import pytest
from examples import Read, draw_reads, fasta, fasta_reads, fastq, index_of, random_bases, small_genome
from oracles.sam import by_read, check_read, check_same_records, write_bgzf
from search_runs import map_files

from readmap.backend import Backend, open_backend
from readmap.errors import UsageError
from readmap.formats.sam import NO_READ_GROUP, ReadGroup, SamEncoding, common_tags, header, parse_read_group
from readmap.index.device import DeviceIndex
from readmap.mapping.parameters import Scoring
from readmap.mapping.records import RecordStyle

DRAW = random.Random(81)
GENOME = {
    **small_genome(DRAW),
    "iupac": random_bases(DRAW, 1_500, "ACGT" * 12 + "NRYKMSWBDHV"),
    "a": random_bases(DRAW, 60),
    "name|with:all~kinds=of;marks!#$%&+./?^_-": random_bases(DRAW, 400),
}
READS = [
    *draw_reads(DRAW, GENOME, 500),
    Read("empty", "", ""),
    Read("one", "A", "I"),
    Read("x" * 254, GENOME["one"][:80], "I" * 80),
    Read("y" * 254 + "/2", GENOME["one"][:80], "~" * 80),
    Read("*", GENOME["one"][10:90], "!" * 80),
    Read("all_N", "N" * 60, "#" * 60),
    Read("u", GENOME["one"][200:280].replace("T", "U"), "I" * 80),
]
READ_GROUP = ReadGroup(b"@RG\tID:lane 1\tSM:sample", b"lane 1")


@dataclass(frozen=True)
class World:
    """The output of a search with its header and its index."""

    backend: Backend
    index: DeviceIndex
    sam: Path
    records: list[str]


def write_sam(path: Path, index: DeviceIndex, records: bytes, read_group: bytes = b"") -> Path:
    text = header(index.host.contigs, "1.0", "readmap search reads.fq", read_group)
    path.write_bytes(text + records)
    return path


@pytest.fixture(scope="module")
def world(backends: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("sam")
    backend = open_backend(backends)
    index = index_of(GENOME).to_device(backend)
    (folder / "reads.fq").write_bytes(fastq(READS))
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    map_files([folder / "reads.fq"], index, backend, folder / "records", style=RecordStyle(read_groups=(READ_GROUP,)))
    records = (folder / "records").read_bytes()
    sam = write_sam(folder / "out.sam", index, records, READ_GROUP.line)
    return World(backend, index, sam, records.decode().splitlines(keepends=True))


def check_records(records: list[str], reads: list[Read], tags: str = "PG:Z:readmap") -> None:
    for lines, read in zip(by_read(records), reads, strict=True):
        check_read(lines, read, GENOME, Scoring())
        assert all(line.endswith(f"\t{tags}\n") and line.count("RG:Z:") == tags.count("RG:Z:") for line in lines)


def test_records_match_their_alignments(world: World) -> None:
    check_records(world.records, READS, "RG:Z:lane 1\tPG:Z:readmap")
    flags = [line.split("\t")[1] for line in world.records]
    assert min(flags.count("0"), flags.count("16")) > 100
    assert flags.count("4") > 10
    tags = "".join(world.records)
    assert re.search(r"MD:Z:\S*\^[A-Z]+[1-9]", tags)
    assert re.search(r"MD:Z:\S*\^[A-Z]+0[A-Z]", tags)
    assert re.search(r"MD:Z:0[A-Z]", tags)
    assert re.search(r"MD:Z:\S*[A-Z]0\t", tags)
    assert re.search(r"MD:Z:\S*[1-9][A-Z]0[A-Z][1-9]", tags)
    assert re.search(r"MD:Z:\S*[RYKMSWBDHVN]", tags)
    assert re.search(r"\t\d+M\d+I\d+M\t", tags)


@pytest.mark.parametrize(("letter", "expected"), [("N", "81N0^TTGACGC81"), ("T", "81^TTTGACG0C81")])
def test_mismatch_next_to_a_deletion(tmp_path: Path, backends: str, letter: str, expected: str) -> None:
    """A mismatch is placed after the deletion if that costs nothing; an ambiguous letter costs less before it.

    Either way 0 bases are equal between the two.
    """
    draw, backend = random.Random(84), open_backend(backends)
    left, right = random_bases(draw, 80) + "C", "G" + random_bases(draw, 80)
    contigs = {"one": f"{random_bases(draw, 100)}{left}{letter}TTGACGC{right}{random_bases(draw, 100)}"}
    read = Read("x", f"{left}A{right}", "I" * 163)
    (tmp_path / "reads.fq").write_bytes(fastq([read]))
    map_files([tmp_path / "reads.fq"], index_of(contigs).to_device(backend), backend, tmp_path / "out")
    (line,) = (tmp_path / "out").read_text().splitlines()
    check_read([line], read, contigs, Scoring())
    assert f"MD:Z:{expected}\t" in line


def test_reads_without_qualities(world: World, tmp_path: Path) -> None:
    reads = [dataclasses.replace(read, quality=None) for read in READS]
    (tmp_path / "reads.fa").write_bytes(fasta_reads(reads))
    map_files([tmp_path / "reads.fa"], world.index, world.backend, tmp_path / "records")
    check_records((tmp_path / "records").read_text().splitlines(keepends=True), reads)


def test_fields_are_those_of_the_specification(world: World) -> None:
    """SAM specification, section 1.4."""
    name, contig = r"[!-?A-~]{1,254}", r"\*|[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*"
    alignment = "0|4|16", r"\*|\S+", r"\d+", r"\d+", r"\*|(\d+[MIDS])+"
    patterns = name, *alignment, r"\*", "0", "0", r"\*|[ACGTN]+", "[!-~]+"
    assert re.fullmatch(contig, "*")
    for line in world.records:
        fields = line.rstrip("\n").split("\t")
        for pattern, field in zip(patterns, fields, strict=False):
            assert re.fullmatch(pattern, field), line
        assert all(re.fullmatch(r"[A-Z]{2}:[iZ]:[ -~]+", tag) for tag in fields[11:])
        names = [tag[:5] for tag in fields[11:]]
        assert names[-2:] == ["RG:Z:", "PG:Z:"]
        assert names[:4] == (["RG:Z:", "PG:Z:"] if fields[1] == "4" else ["NM:i:", "MD:Z:", "AS:i:", "XS:i:"])
        assert names[4:-2] == [name for name in ("SA:Z:", "XA:Z:") if name in names]
        assert int(fields[4]) <= 60


def test_samtools_converts_to_bam(world: World, tmp_path: Path) -> None:
    pysam.view("-b", "-o", str(tmp_path / "out.bam"), str(world.sam), catch_stdout=False)
    assert pysam.view(str(tmp_path / "out.bam")) == "".join(world.records)


def test_samtools_calmd_changes_nothing(world: World) -> None:
    text = pysam.calmd(str(world.sam), str(world.sam.parent / "ref.fa"))
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("@")]
    assert [sorted(line.split("\t")) for line in lines] == [sorted(line.split("\t")) for line in world.records]


def test_m5_equals_samtools(world: World) -> None:
    dictionary = pysam.dict(str(world.sam.parent / "ref.fa"))
    expected = re.findall(r"SN:(\S+)\tLN:(\d+)\tM5:(\S+)", dictionary)
    found = re.findall(r"SN:(\S+)\tLN:(\d+)\tM5:(\S+)", world.sam.read_text())
    assert found == expected
    assert len(found) == len(GENOME)


# Read groups.


@pytest.mark.parametrize(
    ("option", "line", "tag"),
    [
        (r"@RG\tID:x\tSM:y", b"@RG\tID:x\tSM:y", b"\tRG:Z:x"),
        ("@RG\tID:x y\tPL:ILLUMINA", b"@RG\tID:x y\tPL:ILLUMINA", b"\tRG:Z:x y"),
        (r"@RG\tSM:y\tID:a:b", b"@RG\tSM:y\tID:a:b", b"\tRG:Z:a:b"),
    ],
)
def test_read_group(option: str, line: bytes, tag: bytes) -> None:
    group = parse_read_group(option)
    assert (group.line, common_tags(group, "readmap.1", SamEncoding.TEXT)) == (line, tag + b"\tPG:Z:readmap.1")


def test_invalid_read_groups() -> None:
    for fields in ("", r"\tSM:y", r"\tID:x\tID:y", r"\tID:", r"\tID:x\t", r"\tID", "\tID:x\nSM:y"):
        with pytest.raises(UsageError, match="-R"):
            parse_read_group(f"@RG{fields}")
    for option in ("", "ID:x", "RG\tID:x"):
        with pytest.raises(UsageError, match="-R"):
            parse_read_group(option)


def test_common_tags_of_bam() -> None:
    assert common_tags(READ_GROUP, "readmap", SamEncoding.BINARY) == b"RGZlane 1\0PGZreadmap\0"
    assert common_tags(NO_READ_GROUP, "readmap", SamEncoding.BINARY) == b"PGZreadmap\0"


# BAM.


def test_bam_equals_sam(world: World, tmp_path: Path) -> None:
    """All fields are equal as read by htslib; bins and tag types are those that htslib writes."""
    (tmp_path / "reads.fq").write_bytes(fastq(READS))
    (tmp_path / "reads.fa").write_bytes(fasta_reads([read for read in READS if read.bases]))
    for name in ("reads.fq", "reads.fa"):
        for encoding, out in ((SamEncoding.TEXT, "text"), (SamEncoding.BINARY, "binary")):
            style = RecordStyle(encoding, (READ_GROUP,))
            map_files([tmp_path / name], world.index, world.backend, tmp_path / out, style=style, batch_reads=100)
            head = header(world.index.host.contigs, "1.0", "readmap search", READ_GROUP.line, encoding)
            write_bgzf(tmp_path / f"{out}.gz", head + (tmp_path / out).read_bytes())
        assert len(check_same_records(tmp_path / "text.gz", tmp_path / "binary.gz")) > 300


def test_large_positions(tmp_path: Path, backends: str) -> None:
    """Positions of one to seven digits."""
    generator = random.Random(83)
    contig = random_bases(generator, 1_000_200)
    starts = [0, 8, 9, 98, 99, 998, 999, 9_998, 9_999, 99_998, 99_999, 999_998, 999_999, 1_000_100]
    reads = [Read(str(start), contig[start : start + 100], "I" * 100) for start in starts]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    backend = open_backend(backends)
    map_files([tmp_path / "reads.fq"], index_of([contig]).to_device(backend), backend, tmp_path / "out")
    found = [line.split("\t")[3] for line in (tmp_path / "out").read_text().splitlines()]
    assert found == [str(start + 1) for start in starts]
