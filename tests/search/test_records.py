"""SAM: every record as the oracle writes it, and as pysam, samtools calmd and the specification read it."""

import dataclasses
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pysam
import pytest
from examples import Read, draw_reads, fasta, fasta_reads, fastq, index_of, map_files, random_bases, small_genome
from oracles.alignment import reverse_complement
from oracles.sam import Book, reported

from readmap.backend import Backend, open_backend
from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.formats.sam import NO_READ_GROUP, Form, ReadGroup, common_tags, header, parse_read_group
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.search.parameters import Scoring
from readmap.search.records import Style

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
    Read("y" * 300 + "/2", GENOME["one"][:80], "~" * 80),
    Read("", GENOME["one"][10:90], "!" * 80),
    Read("all_N", "N" * 60, "#" * 60),
    Read("u", GENOME["one"][200:280].replace("T", "U"), "I" * 80),
]
READ_GROUP = ReadGroup(b"@RG\tID:lane 1\tSM:sample", b"lane 1")


@dataclass(frozen=True)
class World:
    """A search's output with header, and what it took."""

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
    map_files([folder / "reads.fq"], index, backend, folder / "records", style=Style(read_group=READ_GROUP))
    records = (folder / "records").read_bytes()
    sam = write_sam(folder / "out.sam", index, records, READ_GROUP.line)
    return World(backend, index, sam, records.decode().splitlines(keepends=True))


def check_records(records: list[str], reads: list[Read], read_group: str = "") -> None:
    """From the places, CIGARs, MAPQ and XS of a read's records the oracle writes the rest of them."""
    book = Book(GENOME, read_group=read_group)
    lines = iter(records)
    for read in reads:
        own = [next(lines)]
        own += [next(lines) for _ in range(own[0].partition("SA:Z:")[2].partition("\t")[0].count(";"))]
        assert own == book.records(reported(own, read.name, read.bases, read.quality))
    assert not list(lines)


def test_records_are_those_of_the_oracle(world: World) -> None:
    check_records(world.records, READS, "RG:Z:lane 1")
    flags = [line.split("\t")[1] for line in world.records]
    assert min(flags.count("0"), flags.count("16")) > 100
    assert flags.count("4") > 10
    tags = "".join(world.records)
    assert re.search(r"MD:Z:\S*\^", tags)
    assert re.search(r"MD:Z:\S*[RYKMSWBDHVN]", tags)
    assert re.search(r"\t\d+M\d+I\d+M\t", tags)


def test_reads_without_qualities(world: World, tmp_path: Path) -> None:
    reads = [dataclasses.replace(read, quality=None) for read in READS]
    (tmp_path / "reads.fa").write_bytes(fasta_reads(reads))
    map_files([tmp_path / "reads.fa"], world.index, world.backend, tmp_path / "records")
    check_records((tmp_path / "records").read_text().splitlines(keepends=True), reads)


def test_fields_are_those_of_the_specification(world: World) -> None:
    """SAM specification, section 1.4."""
    name, contig = r"[!-?A-~]{1,254}", r"\*|[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*"
    patterns = (
        name,
        "0|4|16",
        r"\*|\S+",
        r"\d+",
        r"\d+",
        r"\*|(\d+[MIDS])+",
        r"\*",
        "0",
        "0",
        r"\*|[ACGTN]+",
        "[!-~]+",
    )
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


def test_pysam_reads_all_records(world: World) -> None:
    with pysam.AlignmentFile(str(world.sam)) as sam:
        assert list(sam.references) == list(GENOME)
        assert list(sam.lengths) == [len(letters) for letters in GENOME.values()]
        records = list(sam)
        names = [sam.get_reference_name(record.reference_id) if not record.is_unmapped else None for record in records]
    assert len(records) == len(READS)
    for record, contig, read in zip(records, names, READS, strict=True):
        assert record.get_tag("RG") == "lane 1"
        if not read.bases:
            assert (record.query_sequence, record.query_qualities) == (None, None)
            continue
        assert record.query_length == len(read.bases)
        if record.is_unmapped:
            continue
        assert contig is not None
        assert record.infer_query_length() == len(read.bases)
        assert record.reference_end is not None
        assert 0 <= record.reference_start < record.reference_end <= len(GENOME[contig])
        aligned = record.get_reference_sequence().upper()
        assert aligned == GENOME[contig][record.reference_start : record.reference_end]


def test_samtools_view_and_bam(world: World, tmp_path: Path) -> None:
    """Without a word on standard error, and BAM holds the same."""
    samtools = shutil.which("samtools")
    if samtools is None:
        pytest.skip("samtools is not on PATH: apt install samtools")
    for arguments in (["-c"], ["-b", "-o", str(tmp_path / "out.bam")]):
        done = subprocess.run(
            [samtools, "view", *arguments, str(world.sam)], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert arguments != ["-c"] or int(done.stdout) == len(READS)
    back = subprocess.run([samtools, "view", str(tmp_path / "out.bam")], capture_output=True, text=True, check=True)
    assert back.stdout == "".join(world.records)


def test_samtools_calmd_changes_nothing(world: World) -> None:
    samtools = shutil.which("samtools")
    if samtools is None:
        pytest.skip("samtools is not on PATH: apt install samtools")
    command = [samtools, "calmd", str(world.sam), str(world.sam.parent / "ref.fa")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines(keepends=True) if not line.startswith("@")]
    assert done.stderr == ""
    assert [sorted(line.split("\t")) for line in lines] == [sorted(line.split("\t")) for line in world.records]


@pytest.mark.parametrize(
    ("edit", "differences"),
    [
        (lambda s: s, "100"),
        (lambda s: "C" + s[1:], "0A99"),
        (lambda s: s[:-1] + "C", "99T0"),
        (lambda s: s[:49] + "GG" + s[51:], "49A0C49"),
        (lambda s: s[:30] + s[33:], "30^GTA67"),
        (lambda s: s[:30] + s[33:34].replace("C", "A") + s[34:], "30^GTA0C66"),
        (lambda s: s[:60] + "TTG" + s[60:], "100"),
    ],
)
def test_md(backends: str, tmp_path: Path, edit: Callable[[str], str], differences: str) -> None:
    """By hand: differences at both ends of a read, next to each other, behind a deletion, around an insertion."""
    generator = random.Random(82)
    stretch = (
        "A"
        + random_bases(generator, 28)
        + "TGTACGG"
        + random_bases(generator, 12)
        + "TACA"
        + random_bases(generator, 47)
    )
    stretch = (stretch[:30] + "GTACGG" + stretch[36:48] + "TACA" + stretch[52:99] + "T")[:100]
    contigs = {"c": random_bases(generator, 200) + stretch + random_bases(generator, 200)}
    read = edit(stretch)
    backend = open_backend(backends)
    index = index_of(contigs).to_device(backend)
    for bases in (read, reverse_complement(read)):
        (tmp_path / "reads.fq").write_bytes(fastq([Read("r", bases, "I" * len(bases))]))
        map_files([tmp_path / "reads.fq"], index, backend, tmp_path / "out", Scoring(clip_penalty=12))
        fields = (tmp_path / "out").read_text().rstrip("\n").split("\t")
        assert (fields[3], fields[12]) == ("201", f"MD:Z:{differences}")


# The header.


def test_header() -> None:
    contigs = [Contig("one", 12, "0" * 32), Contig("two|x", 3_000_000_000, "f" * 32)]
    assert header(contigs, "0.1", "readmap search -x ref.fa reads.fq", b"@RG\tID:x\tSM:y").decode().splitlines() == [
        "@HD\tVN:1.6\tSO:unsorted\tGO:query",
        f"@SQ\tSN:one\tLN:12\tM5:{'0' * 32}",
        f"@SQ\tSN:two|x\tLN:3000000000\tM5:{'f' * 32}",
        "@RG\tID:x\tSM:y",
        "@PG\tID:readmap\tPN:readmap\tVN:0.1\tCL:readmap search -x ref.fa reads.fq",
    ]


def test_header_without_read_group_and_with_blanks() -> None:
    lines = header([Contig("a", 1, "")], "0.1", "readmap\tsearch\na b").decode().splitlines()
    assert [line[:3] for line in lines] == ["@HD", "@SQ", "@PG"]
    assert lines[-1].endswith("CL:readmap search a b")


def test_m5_is_that_of_samtools(world: World) -> None:
    samtools = shutil.which("samtools")
    if samtools is None:
        pytest.skip("samtools is not on PATH: apt install samtools")
    dictionary = subprocess.run(
        [samtools, "dict", str(world.sam.parent / "ref.fa")], capture_output=True, text=True, check=True
    ).stdout
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
    assert (group.line, common_tags(group, "readmap.1", Form.TEXT)) == (line, tag + b"\tPG:Z:readmap.1")


@pytest.mark.parametrize(
    "option",
    [
        "",
        "ID:x",
        "@RG",
        "RG\tID:x",
        r"@RG\tSM:y",
        r"@RG\tID:x\tID:y",
        r"@RG\tID:",
        r"@RG\tID:x\t",
        r"@RG\tID",
        "@RG\tID:x\nSM:y",
    ],
)
def test_read_group_that_is_none(option: str) -> None:
    with pytest.raises(UsageError, match="-R"):
        parse_read_group(option)


def test_common_tags_of_bam() -> None:
    assert common_tags(READ_GROUP, "readmap", Form.BINARY) == b"RGZlane 1\0PGZreadmap\0"
    assert common_tags(NO_READ_GROUP, "readmap", Form.BINARY) == b"PGZreadmap\0"


def test_no_read_group_no_tag(world: World, tmp_path: Path) -> None:
    (tmp_path / "reads.fq").write_bytes(fastq(READS))
    map_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "records")
    check_records((tmp_path / "records").read_text().splitlines(keepends=True), READS)


# BAM.


def test_bam_holds_what_sam_does(world: World, tmp_path: Path) -> None:
    """Field by field as htslib reads both, and each record in the bin and with the small tags that htslib writes."""
    (tmp_path / "reads.fq").write_bytes(fastq(READS))
    (tmp_path / "reads.fa").write_bytes(fasta_reads([read for read in READS if read.bases]))
    for name in ("reads.fq", "reads.fa"):
        for form, out in ((Form.TEXT, "text"), (Form.BINARY, "binary")):
            style = Style(form, READ_GROUP)
            map_files([tmp_path / name], world.index, world.backend, tmp_path / out, style=style, batch_reads=100)
            head = header(world.index.host.contigs, "1.0", "readmap search", READ_GROUP.line, form)
            data = head + (tmp_path / out).read_bytes()
            with pysam.BGZFile(str(tmp_path / f"{out}.gz"), "wb") as file:
                file.write(data)
        with (
            pysam.AlignmentFile(str(tmp_path / "text.gz")) as text,
            pysam.AlignmentFile(str(tmp_path / "binary.gz")) as binary,
        ):
            assert text.header.to_dict() == binary.header.to_dict()
            pairs = list(zip(text, binary, strict=True))
        assert len(pairs) > 300
        for expected, found in pairs:
            assert found.to_string() == expected.to_string()
            assert found.bin == expected.bin
            assert found.get_tags(with_value_type=True) == expected.get_tags(with_value_type=True)


# Names that would spoil the file.


@pytest.mark.parametrize("name", ["@r", "@HD", "r@x"])
def test_names_with_an_at_sign(world: World, tmp_path: Path, name: str) -> None:
    """A line that begins with '@' is one of the header: no record may."""
    (tmp_path / "reads.fq").write_bytes(fastq([Read(name, GENOME["one"][:80], "I" * 80)]))
    map_files([tmp_path / "reads.fq"], world.index, world.backend, tmp_path / "records")
    records = (tmp_path / "records").read_bytes()
    assert not records.startswith(b"@")
    with pysam.AlignmentFile(str(write_sam(tmp_path / "out.sam", world.index, records))) as sam:
        assert len(list(sam)) == 1


def test_large_places(tmp_path: Path, backends: str) -> None:
    """Numbers of seven digits, and each length of digits below."""
    generator = random.Random(83)
    contig = random_bases(generator, 1_000_200)
    starts = [0, 8, 9, 98, 99, 998, 999, 9_998, 9_999, 99_998, 99_999, 999_998, 999_999, 1_000_100]
    reads = [Read(str(start), contig[start : start + 100], "I" * 100) for start in starts]
    (tmp_path / "reads.fq").write_bytes(fastq(reads))
    backend = open_backend(backends)
    map_files([tmp_path / "reads.fq"], index_of([contig]).to_device(backend), backend, tmp_path / "out")
    found = [line.split("\t")[3] for line in (tmp_path / "out").read_text().splitlines()]
    assert found == [str(start + 1) for start in starts]


def test_index_for_the_header_is_the_one_on_disk(world: World, tmp_path: Path) -> None:
    index_of(GENOME).write(tmp_path / "ref.readmap")
    opened = Index.open(tmp_path / "ref.readmap")
    assert header(opened.reference.contigs, "1", "x") == header(world.index.host.contigs, "1", "x")
    assert np.array_equal(opened.reference.contig_starts, world.index.host.contig_starts)
