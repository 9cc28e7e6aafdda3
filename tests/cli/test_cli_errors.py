"""Errors of readmap search: messages, exit codes, and no leftover files."""

import gzip
import os
import shutil
from pathlib import Path

import pytest
from commands import after_log_start, failures

from readmap.cli import main
from readmap.run import stream

DATA = Path(__file__).resolve().parents[2] / "data"
READS = DATA / "demo.fq.gz"


def run(*arguments: str | Path) -> int:
    return main(
        [*map(str, arguments), "--device", "cpu"] if arguments[0] in ("search", "map") else [*map(str, arguments)]
    )


failure = failures(run)


def test_no_index(few_reads: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("empty.readmap").mkdir()
    Path("ref.fa").write_text(">a\nACGT\n")
    message = failure(capfd, "search", few_reads, code=2)
    assert "-x" in message
    assert "$READMAP_INDEX" in message
    assert "*.readmap" in message
    assert failure(capfd, "search", few_reads, "-x", "x", code=1) == "there is no index x, nor x.readmap"
    assert "`readmap index ref.fa` makes it" in failure(capfd, "search", few_reads, "-x", "ref.fa", code=1)
    assert "has no manifest.json" in failure(capfd, "search", few_reads, "-x", "empty.readmap", code=1)
    monkeypatch.setenv("READMAP_INDEX", "gone")
    assert "gone ($READMAP_INDEX)" in failure(capfd, "search", few_reads, code=1)


def test_several_indexes(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("b.readmap", "a.readmap"):
        shutil.copytree(demo_index, name)
    message = failure(capfd, "search", few_reads, code=2)
    assert message.endswith("choose one by -x: a.readmap, b.readmap")
    assert failure(capfd, "info", code=2).endswith("choose one by INDEX: a.readmap, b.readmap")


def test_a_reference_instead_of_reads(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copy(DATA / "demo.fa.gz", "ref.fa.gz")
    message = failure(capfd, "search", "ref.fa.gz", code=2)
    assert "chr1, has over 10,000 bases" in message
    assert message.endswith("did you mean -x ref.fa.gz?")
    shutil.copytree(demo_index, "ref.fa.readmap")
    for arguments in (["ref.fa.gz", few_reads], ["ref.fa.readmap", few_reads]):
        message = failure(capfd, "search", *arguments, code=2)
        assert f"did you mean -x {arguments[0]}? (readmap search {few_reads} -x {arguments[0]})" in message
    # If an index is given, the file is taken for reads, which are too long.
    message = failure(capfd, "search", "ref.fa.gz", "-x", "ref.fa.readmap", "-o", "out.sam", code=1)
    assert message == "ref.fa.gz, record 1 (chr1): the read has 120007 bases; at most 10000 are supported"


def test_files_without_pairs(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("r1.fq", "r2.fq", "r3.fq"):
        shutil.copy(few_reads, name)
    os.symlink("r1.fq", "link.fq")
    for arguments, message in (
        (["r1.fq", "r2.fq", "r3.fq"], "3 files of reads are given, and a search takes one, or two of pairs: join"),
        (["r1.fq", "r2.fq", "-p"], "2 files of reads are given, and -p takes one: leave out -p"),
        (["r1.fq", "r2.fq", "--exact"], "2 files of reads are given, and --exact takes one: join them with cat"),
        (["r1.fq", "-p", "--exact"], "-p: not with --exact, which takes every read for itself: leave it out"),
        (["r1.fq", "r1.fq"], "r1.fq and r1.fq are one file: name the file of the mates, or -p where mates alternate"),
        (["r1.fq", "link.fq"], "r1.fq and link.fq are one file"),
        (["-", "-"], "- and - are one file"),
        (["r1.fq", "r2.fq", "-o", "r2.fq"], "-o r2.fq is a file of the reads"),
    ):
        assert failure(capfd, "search", *arguments, "-x", demo_index, code=2).startswith(message)
    assert failure(capfd, "search", "r1.fq", "no.fq", "-x", demo_index, code=1) == "no.fq: No such file or directory"


def test_bad_pairs(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("one").write_text("@a\nA\n+\nI\n")
    Path("two").write_text("@b\nA\n+\nI\n")
    message = failure(capfd, "search", "one", "two", "-x", demo_index, "-o", "out.sam", code=1)
    assert message == "two, record 1 (b): its mate in one is named a; mates must have the same name"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-R", "ID:a"], "-R ID:a: expected a line that begins with '@RG\\t'"),
        (["--device", "gpu"], "--device gpu: expected auto, cpu, cuda or cuda:N"),
        (["--gpu-memory", "8X"], "--gpu-memory 8X: expected a size such as 8G or 500M"),
        (["-t", "0"], "0 is not in the range 1 to 1024"),
        (["-t", "many"], "'-t' / '--threads'"),
        (["-A", "0"], "0 is not in the range 1 to 33"),
        (["-T", "-1"], "-1 is not in the range 0 to 1000"),
        (["--batch-reads", "0"], "0 is not in the range"),
        (["--frobnicate"], "--frobnicate"),
        (["--sort"], "--sort: only for BAM and CRAM: -o out.bam; SAM is not sorted"),
        (["--sort", "-o", "out.sam.gz"], "--sort: only for BAM and CRAM: -o out.bam"),
        (["--sort", "-o", "out.bam", "--exact"], "--sort: not with --exact"),
        (["--sort", "-o", "out.bam", "--sort-memory", "2X"], "--sort-memory 2X: expected a size such as 8G or 500M"),
        (["--sort-memory", "2G", "-o", "out.bam"], "--sort-memory: only with --sort"),
        (["-H", r"@XX"], "-H @XX: expected a line such as '@CO\\ttext' or '@PG\\tID:x', found '@XX'"),
        (["-H", r"@HD\tVN:1.6\tSO:coordinate"], "readmap sets the order of the records (--sort), found '@HD"),
        (["-H", r"@SQ\tSN:chr1\tLN:7"], "-H: found 1 @SQ lines, and the index has 4 contigs"),
        (["-H", r"@RG\tID:a", "-R", r"@RG\tID:a"], "the header has two lines @RG ID:a"),
        (["--replace-rg"], "--replace-rg: only with -R"),
        (["-o", "out.bed"], "-o: out.bed is a name for bed, which is written only with --exact"),
        (["-o", "same", "--json", "./same"], "--json ./same is where the output goes"),
        (["--json", "-"], "--json - is where the output goes"),
    ],
)
def test_usage_errors(
    demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    before = sorted(os.listdir())
    assert main(["search", few_reads, "-x", str(demo_index), *options]) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert (after_log_start(captured.err).count("\n"), captured.out) == (1, "")
    assert sorted(os.listdir()) == before


def test_output_is_not_the_reads(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copy(few_reads, "reads.fq")
    os.link("reads.fq", "again.fq")
    message = failure(capfd, "search", "reads.fq", "-x", demo_index, "-o", "again.fq", code=2)
    assert message == "-o again.fq is a file of the reads"


GOOD = b"@a\nACGT\n+\nIIII\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + b"@b x\nACGT\n+\nIII\n", "reads, record 2 (b): quality has 3 characters, sequence has 4"),
        (gzip.compress(GOOD * 99)[:-9], "reads: unexpected end of the compressed data"),
    ],
    ids=["quality", "broken gzip"],
)
def test_bad_reads(demo_index: Path, capfd: pytest.CaptureFixture[str], content: bytes, message: str) -> None:
    Path("reads").write_bytes(content)
    found = failure(capfd, "search", "reads", "-x", demo_index, "-o", "out.sam", "--json", "report.json", code=1)
    assert found.startswith(message)


def test_paths_that_cannot_be_read_or_written(
    demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    search = ("search", few_reads, "-x", demo_index)
    assert failure(capfd, "search", "no.fq", "-x", demo_index, code=1) == "no.fq: No such file or directory"
    assert failure(capfd, "search", "folder", "-x", demo_index, code=1) == "folder: Is a directory"
    assert failure(capfd, *search, "-o", "folder", code=1) == "folder: Is a directory"
    assert failure(capfd, *search, "-o", "no/out.sam", code=1).startswith("no/out.sam: No such file or directory")
    assert failure(capfd, *search, "-o", "/dev/full", code=1) == "/dev/full: No space left on device"
    assert failure(capfd, *search, "-o", "out.sam", "--json", "no/j", code=1).startswith("no/j: No such file")


def test_a_folder_without_permission(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir(0o555)
    if os.access("folder", os.W_OK):
        pytest.skip("this user, as root does, may write everywhere")
    message = failure(capfd, "search", few_reads, "-x", demo_index, "-o", "folder/out.sam", code=1)
    assert message.startswith("folder/out.sam: Permission denied")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "readmap: interrupted\n"),
        (BrokenPipeError(32, "Broken pipe", "standard output"), 1, ""),
        (MemoryError(), 137, "readmap: error: not enough memory"),
        (OSError(5, "Input/output error", "/dev/tape"), 1, "readmap: error: /dev/tape: Input/output error\n"),
        (
            ValueError("\x1b[31m"),
            1,
            "readmap: error: this is a bug in readmap, please report it with the output of --debug: "
            "ValueError: \\x1b[31m\n",
        ),
    ],
)
def test_failing_work_leaves_no_file(
    demo_index: Path,
    few_reads: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(stream, "run", fail)
    assert run("search", few_reads, "-x", demo_index, "-o", "out.sam", "--json", "report.json") == code
    shown = after_log_start(capfd.readouterr().err)
    assert shown.startswith(message) if message else not shown
    assert os.listdir() == []
    assert run("search", few_reads, "-x", demo_index, "-o", "out.sam", "--debug") == code
    assert ("Traceback" in capfd.readouterr().err) == (code in (1, 137) and message != "")
