"""readmap search --exact in this process: formats, reports and errors."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pysam
import pytest
from commands import failures

from readmap.cli import main

CONTIGS = {"one": "ACGTTACGTTTTNACGTTA", "two": "CCCAACGTGGG"}
#: A repeat, one on the reverse strand alone, a palindrome, one over the reference's N, two with other letters, none.
READS = {
    "repeat": "ACGTT",
    "back": "CCCACGTTG",
    "palindrome": "ACGT",
    "over": "TTTTAACG",
    "unknown": "ACGTN",
    "letters": "ACRYT",
    "absent": "GGGGGG",
    "empty": "",
}
COMPLEMENT = str.maketrans("ACGT", "TGCA")

#: query, contig, start, end, strand; 0-based and half-open.
Place = tuple[str, str, int, int, str]


def find(strands: str = "+-") -> set[Place]:
    """Return the occurrences of the reads, by a search at every position."""
    places = set()
    for name, read in READS.items():
        for strand in strands if read and set(read) <= set("ACGT") else "":
            wanted = read if strand == "+" else read[::-1].translate(COMPLEMENT)
            for contig, bases in CONTIGS.items():
                ends = [end for end in range(len(bases) + 1) if bases[:end].endswith(wanted)]
                places |= {(name, contig, end - len(wanted), end, strand) for end in ends}
    return places


def in_counts(places: set[Place]) -> dict[str, int]:
    return {name: sum(place[0] == name for place in places) for name in READS}


@pytest.fixture(autouse=True)
def files(elsewhere: None) -> None:
    """Write a reference and reads."""
    Path("ref.fa").write_text("".join(f">{name}\n{bases}\n" for name, bases in CONTIGS.items()))
    Path("reads.fq").write_text("".join(f"@{name}\n{read}\n+\n{'I' * len(read)}\n" for name, read in READS.items()))


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build an index of each structure; return the folders."""
    folder = tmp_path_factory.mktemp("indexes")
    (folder / "ref.fa").write_text("".join(f">{name}\n{bases}\n" for name, bases in CONTIGS.items()))
    paths = {structure: str(folder / f"{structure}.readmap") for structure in ("array", "tree", "both")}
    for structure, path in paths.items():
        assert main(["index", str(folder / "ref.fa"), "-o", path, "--structure", structure, "-q"]) == 0
    return paths


def run(index: str, *arguments: str, device: str = "cpu") -> int:
    return main(["search", "reads.fq", "-x", index, "--device", device, "--exact", *arguments])


def rows(path: str) -> Iterator[list[str]]:
    for line in Path(path).read_text().splitlines():
        yield line.split("\t")


failure = failures(lambda index, *arguments: main(["search", "reads.fq", "-x", index, "--device", "cpu", *arguments]))


@pytest.mark.parametrize("structure", ["array", "tree"])
@pytest.mark.parametrize(("strand", "strands"), [("both", "+-"), ("forward", "+"), ("reverse", "-")])
def test_every_format_has_all_occurrences(
    backends: str, indexes: dict[str, str], structure: str, strand: str, strands: str
) -> None:
    options = ("--structure", structure, "--strand", strand, "-q")
    for name in ("out.sam", "out.tsv", "out.bed"):
        assert run(indexes["both"], "-o", name, *options, device=backends) == 0
    assert run(indexes["both"], "-o", "counts.tsv", "--count-only", *options, device=backends) == 0
    places = find(strands)
    counts = in_counts(places)
    assert counts["palindrome"] == 4 * len(strands)

    bed = [(name, contig, int(start), int(end), way) for contig, start, end, name, _, way in rows("out.bed")]
    assert set(bed) == places
    assert len(bed) == len(places)

    header, *table = rows("out.tsv")
    assert header == ["query", "count", "contig", "start", "end", "strand"]
    assert [(q, c, int(start) - 1, int(end), way) for q, _, c, start, end, way in table if c != "*"] == bed
    assert {query: int(count) for query, count, *_ in table} == counts
    assert [row[2:] for row in table if row[1] == "0"] == [["*"] * 4] * list(counts.values()).count(0)

    assert list(rows("counts.tsv")) == [["query", "count"], *([name, str(count)] for name, count in counts.items())]

    with pysam.AlignmentFile("out.sam") as sam:
        records: Any = list(sam)
    mapped = [record for record in records if not record.is_unmapped]
    ways = ["-" if record.is_reverse else "+" for record in mapped]
    named = [(r.query_name, r.reference_name, r.reference_start, r.reference_end) for r in mapped]
    assert [(*name, way) for name, way in zip(named, ways, strict=True)] == bed
    assert [r.query_name for r in records if not r.is_secondary] == list(READS)
    assert all(r.get_tag("NH") == counts[r.query_name] for r in mapped)


def test_the_structures_write_the_same_bytes(indexes: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    choices = [
        (indexes["both"], "--structure", "array"),
        (indexes["both"], "--structure", "tree"),
        (indexes["both"], "--no-prefix-table"),
        (indexes["both"], "--no-prefix-table", "--structure", "tree"),
        (indexes["array"],),
        (indexes["tree"],),
        (indexes["tree"], "--no-prefix-table"),
        (indexes["both"], "--batch-reads", "2", "-t", "1"),
    ]
    for format in ("sam", "tsv", "bed"):
        outputs = set()
        for index, *options in choices:
            assert run(index, "--format", format, "-q", *options) == 0
            outputs.add(re.sub(r"@PG.*\n", "", capfd.readouterr().out))
        assert len(outputs) == 1


@pytest.mark.parametrize(
    ("index", "options", "structure", "prefix_table"),
    [
        ("array", [], "array", True),
        ("tree", [], "tree", True),
        ("both", [], "array", True),
        ("both", ["--structure", "tree"], "tree", True),
        ("both", ["--no-prefix-table"], "array", False),
        ("tree", ["--no-prefix-table"], "tree", False),
        ("tree", ["--no-prefix-table", "--structure", "array"], "array", False),
    ],
)
def test_default_structure(
    indexes: dict[str, str], index: str, options: list[str], structure: str, prefix_table: bool
) -> None:
    assert run(indexes[index], "-o", "out.bed", "-q", "--json", "report.json", *options) == 0
    report = json.loads(Path("report.json").read_text())
    assert (report["structure"], report["prefix_table"]) == (structure, prefix_table)


def test_a_missing_structure(indexes: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    message = failure(capfd, indexes["tree"], "-o", "out.sam", code=1)  # mapping
    assert message.startswith(f"{indexes['tree']}: ")
    assert "no prefix table" in message
    assert "--structure array" in message
    assert "no prefix table" in failure(capfd, indexes["tree"], "--exact", "--structure", "array", code=1)
    message = failure(capfd, indexes["array"], "--exact", "--structure", "tree", "-o", "out.sam", code=1)
    assert message.startswith(f"{indexes['array']}: ")
    assert "no suffix tree" in message
    assert "--structure tree" in message


def test_summary_and_report_agree(indexes: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(indexes["both"], "-o", "out.sam", "--json", "report.json", "--structure", "tree") == 0
    messages = capfd.readouterr().err
    counts = in_counts(find())
    found = sum(count > 0 for count in counts.values())
    once = sum(count == 1 for count in counts.values())
    total = sum(counts.values())
    assert 0 < once < found
    assert f"8 reads, {found} found ({found / 8:.2%}), {once} of them once; {total} occurrences\n" in messages
    assert re.search(r"^[\d,]+ reads/s on cpu.*, by the suffix tree$", messages, re.MULTILINE)
    assert "\n2 reads with an ambiguous base occur nowhere\n" in messages
    assert "\n2 ambiguous letters of the reads are written as N\n" in messages
    report = json.loads(Path("report.json").read_text())
    assert report["counts"] == {
        "reads": 8,
        "found": found,
        "unique": once,
        "occurrences": total,
        "ambiguous": 2,
        "replaced_letters": 2,
    }
    facts = {"device": "cpu", "structure": "tree", "strand": "both", "format": "sam", "max_hits": None}
    assert {name: report[name] for name in facts} == facts
    assert report["reads_per_second"] > 0
    assert {"load_index", "search"} <= set(report["seconds"])
    assert report["reference"]["bases"] == sum(map(len, CONTIGS.values()))
    # Tables do not contain the letters of reads.
    assert run(indexes["both"], "-o", "out.tsv", "--strand", "forward", "--no-prefix-table") == 0
    messages = capfd.readouterr().err
    assert "written as N" not in messages
    assert f"; {len(find('+'))} occurrences, forward strand only\n" in messages
    assert "by the suffix array without its prefix table" in messages


def test_max_hits_limits_written_but_not_counted_hits(
    indexes: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    counts = in_counts(find())
    assert max(counts.values()) > 2
    assert run(indexes["both"], "-o", "out.bed", "--max-hits", "2", "--json", "report.json") == 0
    assert f"{sum(counts.values())} occurrences" in capfd.readouterr().err
    report = json.loads(Path("report.json").read_text())
    assert (report["counts"]["occurrences"], report["max_hits"]) == (sum(counts.values()), 2)
    written = [query for _, _, _, query, *_ in rows("out.bed")]
    assert {name: written.count(name) for name in READS} == {name: min(count, 2) for name, count in counts.items()}


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (["-o", "out.tsv"], "query\tcount\tcontig"),
        (["-o", "out.bed"], "one\t"),
        (["-o", "out"], "@HD\t"),
        (["-o", "out.tsv", "--format", "sam"], "@HD\t"),
        (["-o", "out.sam", "--format", "bed"], "one\t"),
        (["-o", "out.tsv", "--count-only"], "query\tcount\n"),
        (["-o", "out.txt", "--count-only", "--format", "tsv"], "query\tcount\n"),
    ],
)
def test_format_by_option_or_ending(indexes: dict[str, str], options: list[str], first: str) -> None:
    assert run(indexes["both"], "-q", *options) == 0
    assert Path(options[1]).read_text().startswith(first)


def test_compressed_output_is_the_same(indexes: dict[str, str]) -> None:
    for name in ("out.sam", "out.tsv", "out.bed"):
        assert run(indexes["both"], "-o", name, "-q") == 0
        assert run(indexes["both"], "-o", f"{name}.gz", "-q") == 0
        compressed = gzip.decompress(Path(f"{name}.gz").read_bytes())
        assert compressed == Path(name).read_bytes().replace(f"-o {name}".encode(), f"-o {name}.gz".encode())
    assert run(indexes["both"], "-o", "out.bam", "-q") == 0
    with pysam.AlignmentFile("out.bam") as binary, pysam.AlignmentFile("out.sam") as text:
        assert [record.to_string() for record in binary] == [record.to_string() for record in text]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strand", "both"], "--strand: only with --exact"),
        (["--structure", "tree", "--max-hits", "3"], "--max-hits, --structure: only with --exact"),
        (["--no-prefix-table"], "--no-prefix-table: only with --exact"),
        (["--format", "tsv"], "--format: tsv is written only with --exact"),
        (["--count-only"], "--count-only: only with --exact"),
        (["-o", "out.tsv"], "-o: out.tsv is a name for tsv, which is written only with --exact"),
        (["--exact", "-A", "1"], "-A: not with --exact, which scores no alignments"),
        (["--exact", "-B", "4", "-O", "6", "-E", "1"], "-B, -O, -E: not with --exact"),
        (["--exact", "-L", "5", "--min-score", "30"], "-L, -T: not with --exact"),
        (["--exact", "-R", r"@RG\tID:a", "--format", "tsv"], "-R: only SAM, BAM and CRAM have read groups"),
        (["--exact", "-R", r"@RG\tID:a", "-o", "out.bed"], "-R: only SAM, BAM and CRAM have read groups"),
        (["--exact", "-R", r"@RG\tID:a", "--count-only"], "-R: only SAM, BAM and CRAM have read groups"),
        (["--exact", "--count-only", "--format", "sam"], "--count-only: counts are written as tsv, not as sam"),
        (["--exact", "--count-only", "--format", "bed"], "--count-only: counts are written as tsv, not as bed"),
        (["--exact", "--count-only", "-o", "out.bed"], "--count-only: counts are written as tsv, not as bed"),
        (["--exact", "--structure", "both"], "'--structure': expected array or tree, found 'both'"),
        (["--exact", "--strand", "+"], "'--strand': expected both, forward or reverse, found '+'"),
        (["--exact", "--format", "counts"], "'--format': expected sam, bam, cram, tsv or bed, found 'counts'"),
        (["--exact", "--max-hits", "0"], "0 is not in the range 1 to"),
        (["--exact", "--count-only", "-o", "out.bam"], "--count-only: counts are written as tsv, not as bam"),
        (["--exact", "--format", "sam", "-o", "out.bam"], "--format: out.bam is a name for bam"),
        (["--exact", "--format", "tsv", "-o", "out.cram"], "--format: out.cram is a name for cram, not for tsv"),
        (["--exact", "-H", r"@CO\ta", "-o", "out.bed"], "-H: only SAM, BAM and CRAM have such a header"),
        (["--exact", "--format", "tsv", "--json", "-"], "--json - is where the output goes"),
        (["reads.fq", "--exact"], "2 files of reads are given, and --exact takes one"),
        (["--exact", "-p"], "-p: not with --exact"),
    ],
)
def test_usage_errors(
    indexes: dict[str, str], capfd: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert message in failure(capfd, indexes["both"], *options, code=2)


def test_an_invalid_record(indexes: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("reads.fq").write_text("@a\nACGT\n+\nIIII\n@b\nAC\n+\nI\n")
    message = failure(capfd, indexes["both"], "--exact", "-o", "out.tsv", "--json", "report.json", code=1)
    assert message == "reads.fq, record 2 (b): quality has 1 characters, sequence has 2"
