"""readmap split, and searches of shards: the records of all shards in order are the records of one run."""

import gzip
import json
import random
from pathlib import Path

import pysam
import pytest
from bgzf_examples import EOF_BLOCK, blocked
from commands import failures, standard_input
from examples import Read, fasta, fastq, random_bases
from oracles.alignment import reverse_complement

from readmap.cli import main
from readmap.reads import file_splitter

DRAW = random.Random(31)
GENOME = {"one": random_bases(DRAW, 30_000), "two": random_bases(DRAW, 9000)}
FIXED = ["-x", "ref.fa", "-I", "300,30", "--device", "cpu", "-q"]

failure = failures(lambda *arguments: main([*map(str, arguments)]))


def draw_pairs(count: int, name: str) -> tuple[list[Read], list[Read]]:
    """Return mates of different lengths."""
    files: tuple[list[Read], list[Read]] = ([], [])
    for number in range(count):
        contig = DRAW.choice([*GENOME])
        start = DRAW.randrange(len(GENOME[contig]) - 400)
        fragment = GENOME[contig][start : start + DRAW.randrange(250, 350)]
        for mates, bases in zip(files, (fragment[:90], reverse_complement(fragment)[:60]), strict=True):
            mates.append(Read(f"{name}:{number}", bases, "I" * len(bases)))
    return files


@pytest.fixture(autouse=True)
def files(elsewhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a reference, its index, pairs in r1.fq.gz and r2.fq, interleaved pairs and single reads."""
    monkeypatch.setattr(file_splitter, "POINT_SPACING", 5000)
    Path("ref.fa").write_bytes(fasta(GENOME))
    first, second = draw_pairs(211, "pair")
    Path("r1.fq.gz").write_bytes(gzip.compress(fastq(first)))
    Path("r2.fq").write_bytes(fastq(second))
    both = [read for pair in zip(first, second, strict=True) for read in pair]
    Path("pairs.bgz").write_bytes(blocked(fastq(both), 3000))
    Path("mixed.fq").write_bytes(fastq([*first[:33], *both, *second[:40]]))
    Path("single.fq").write_bytes(fastq(draw_pairs(77, "single")[0]))
    assert main(["index", "ref.fa", "-q"]) == 0


def records(path: str) -> list[str]:
    return [line for line in Path(path).read_text().splitlines() if not line.startswith("@")]


def header(path: str, kind: str) -> list[str]:
    return [line for line in Path(path).read_text().splitlines() if line.startswith(kind)]


LANES = ["--lane", r"r1.fq.gz,r2.fq,@RG\tID:a\tSM:s\tLB:l", "--lane", r"single.fq,,@RG\tID:b\tSM:s\tLB:m"]
WAYS = {
    "pairs": ["r1.fq.gz", "r2.fq"],
    "single": ["single.fq"],
    "interleaved": ["pairs.bgz", "-p"],
    "mixed": ["mixed.fq", "--smart-pairing"],
    "lanes": LANES,
}


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("way", WAYS)
def test_all_shards_are_one_run(way: str, count: int) -> None:
    words = WAYS[way]
    assert main(["split", *[word for word in words if word not in ("-p", "--smart-pairing")], "-o", "table", "-q"]) == 0
    fixed = FIXED if way != "single" else [word for word in FIXED if word not in ("-I", "300,30")]
    assert main(["search", *words, *fixed, "-o", "whole.sam"]) == 0
    found, taken = [], 0
    for number in range(1, count + 1):
        shard = ["--split", "table", "--shard", f"{number}/{count}", "-o", "shard.sam", "--json", "shard.json"]
        assert main(["search", *words, *fixed, *shard]) == 0
        found += records("shard.sam")
        assert header("shard.sam", "@RG") == header("whole.sam", "@RG")
        told = json.loads(Path("shard.json").read_text())
        assert told["shard"]["number"] == number
        assert told["shard"]["records"] == told["counts"]["reads"]
        taken += told["shard"]["records"]
        assert told["shard"]["of_records"] == len(records("whole.sam"))
    assert found == records("whole.sam")
    assert taken == len(found)


def test_shards_of_an_exact_search() -> None:
    assert main(["split", "single.fq", "-o", "table", "-q"]) == 0
    words = ["search", "single.fq", "-x", "ref.fa", "--exact", "-q", "--device", "cpu"]
    assert main([*words, "-o", "whole.tsv"]) == 0
    lines = []
    for number in (1, 2, 3):
        assert main([*words, "--split", "table", "--shard", f"{number}/3", "-o", "shard.tsv"]) == 0
        lines += Path("shard.tsv").read_text().splitlines()[1:]
    assert lines == Path("whole.tsv").read_text().splitlines()[1:]


def test_samtools_joins_shards_and_empty_shards() -> None:
    Path("few.fq").write_bytes(b"".join(Path("single.fq").read_bytes().splitlines(keepends=True)[:12]))
    assert main(["split", "few.fq", "-o", "table", "-q"]) == 0
    names = [f"{number}.bam" for number in range(1, 6)]
    for number, name in enumerate(names, 1):
        shard = ["--split", "table", "--shard", f"{number}/5", "-o", name]
        assert main(["search", "few.fq", "-x", "ref.fa", "--device", "cpu", "-q", *shard]) == 0
    pysam.cat("-o", "all.bam", *names, catch_stdout=False)
    with pysam.AlignmentFile("all.bam") as file:
        assert [record.query_name for record in file.fetch(until_eof=True)] == ["single:0", "single:1", "single:2"]
        assert file.nreferences == 2


def test_messages(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["split", "r1.fq.gz", "r2.fq", "-o", "table", "--json", "-", "-t", "1"]) == 0
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert [(each["name"], each["records"]) for each in report["files"]] == [("r1.fq.gz", 211), ("r2.fq", 211)]
    assert report["bytes"] == Path("table").stat().st_size
    assert "r1.fq.gz: 211 records, " in captured.err
    shard = ["--split", "table", "--shard", "2/2", "-o", "o.sam"]
    assert main(["search", "r1.fq.gz", "r2.fq", *FIXED[:-1], *shard]) == 0
    assert "shard 2 of 2: 212 of 422 records" in capfd.readouterr().err


def test_a_table_of_more_files_under_other_names() -> None:
    """Files are recognized by their bytes."""
    Path("sheet.csv").write_text("sample,lane,fastq_1,fastq_2\ns,1,r1.fq.gz,r2.fq\ns,2,single.fq,\n")
    assert main(["split", "--sheet", "sheet.csv", "-o", "table", "-q"]) == 0
    Path("single.fq").rename("renamed.fq")
    assert main(["search", "renamed.fq", *FIXED[:2], "--split", "table", "--shard", "1/1", "-o", "o.sam", "-q"]) == 0
    assert len(records("o.sam")) == 77


def test_truncated_blocks(capfd: pytest.CaptureFixture[str]) -> None:
    Path("pairs.bgz").write_bytes(Path("pairs.bgz").read_bytes()[: -len(EOF_BLOCK)])
    assert main(["split", "pairs.bgz", "-o", "table"]) == 0
    assert "warning: pairs.bgz: unexpected end of the compressed data" in capfd.readouterr().err


def test_an_invalid_record_has_its_number_in_the_file(capfd: pytest.CaptureFixture[str]) -> None:
    lines = Path("single.fq").read_bytes().splitlines(keepends=True)
    lines[4 * 70 + 1] = b"!" + lines[4 * 70 + 1][1:]
    Path("single.fq").write_bytes(b"".join(lines))
    assert main(["split", "single.fq", "-o", "table", "-q"]) == 0
    words = ["search", "single.fq", "-x", "ref.fa", "-o", "o.sam", "--split", "table", "--device", "cpu", "-q"]
    assert main([*words, "--shard", "1/2"]) == 0
    assert "single.fq, record 71 (single:70)" in failure(capfd, *words, "--shard", "2/2", code=1)


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["single.fq", "--shard", "1/2"], "--shard: only with --split, a table that readmap split makes: ", 2),
        (["single.fq", "--split", "table"], "--split: only with --shard I/N", 2),
        *(
            (["single.fq", "--split", "table", "--shard", text], f"--shard {text}: expected I/N, with I from 1 to N", 2)
            for text in ("0/2", "3/2", "1", "1/", "a/b", "1/0", "-1/2", "1/2/3", "1.0/2", "")
        ),
        (["-", "--split", "table", "--shard", "1/2"], "standard input has no shards", 2),
        (["pairs.bgz", "--split", "table", "--shard", "1/2"], "table does not describe pairs.bgz as it is now: ", 1),
        (
            ["single.fq", "--split", "ref.fa", "--shard", "1/2"],
            "ref.fa: not a table of readmap split, or damaged",
            1,
        ),
        (["single.fq", "--split", "none", "--shard", "1/2"], "none", 1),
        (
            ["r2.fq", "single.fq", "--split", "table", "--shard", "1/2"],
            "single.fq has 77 records, r2.fq has 211",
            1,
        ),
        (["single.fq", "--collate", "--split", "table", "--shard", "1/2"], "--collate: not with --shard", 2),
        (["single.fq", "--split", "table", "--shard", "1/2", "-o", "table"], "-o table is a file of the split", 2),
    ],
)
def test_wrong_shards(capfd: pytest.CaptureFixture[str], words: list[str], message: str, code: int) -> None:
    assert main(["split", *LANES, "-o", "table", "-q"]) == 0
    given = ["search", *words, *([] if "-o" in words else ["-o", "o.sam"]), "-x", "ref.fa"]
    with standard_input("single.fq"):
        assert message in failure(capfd, *given, code=code)


def test_an_altered_file(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["split", "r1.fq.gz", "r2.fq", "-o", "table", "-q"]) == 0
    Path("r2.fq").write_bytes(Path("r2.fq").read_bytes()[:-1])
    message = failure(capfd, "search", "r1.fq.gz", "r2.fq", *FIXED, "--split", "table", "--shard", "2/2", code=1)
    assert message.startswith("table does not describe r2.fq as it is now: it was made from r1.fq.gz, r2.fq;")


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ([], "no reads: give files, --lane or --sheet", 2),
        (["-"], "standard input cannot be split: give files", 2),
        (["single.fq", *LANES], "not with --lane or --sheet", 2),
        (["r2.fq", "r2.fq", "r2.fq"], "3 files of reads, expected one, or two of pairs", 2),
        (
            ["r1.fq.gz", "single.fq"],
            "single.fq has 77 records, r1.fq.gz has 211: files of mates must have the same number of records",
            1,
        ),
        (["none.fq"], "none.fq", 1),
        (["."], "is not a regular file", 1),
        (["bam.bam"], "bam.bam is BAM or CRAM: expected FASTQ or FASTA", 1),
        (["cut.fq.gz"], "cut.fq.gz: unexpected end of the compressed data", 1),
        (["single.fq", "-o", "single.fq"], "-o single.fq is a file of the reads", 2),
    ],
)
def test_files_that_are_not_split(capfd: pytest.CaptureFixture[str], words: list[str], message: str, code: int) -> None:
    Path("bam.bam").write_bytes(blocked(b"BAM\1" + bytes(100)))
    Path("cut.fq.gz").write_bytes(Path("r1.fq.gz").read_bytes()[:-500])
    assert message in failure(capfd, "split", *words, *([] if "-o" in words else ["-o", "table"]), code=code)


def test_a_table_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """An existing table stays if a file cannot be read."""
    assert main(["split", "single.fq", "-o", "table", "-q"]) == 0
    before = Path("table").read_bytes()
    Path("single.fq").write_bytes(Path("single.fq").read_bytes()[:-9])
    assert main(["split", "single.fq", "-o", "table"]) == 1
    assert Path("table").read_bytes() == before
    assert not list(tmp_path.glob(".*unfinished"))
