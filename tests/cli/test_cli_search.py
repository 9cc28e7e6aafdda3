"""readmap search in this process: outputs, reports and warnings."""

import dataclasses
import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pysam
import pytest
from bgzf_examples import EOF_BLOCK, blocked
from commands import after_log_start, standard_input

import readmap
from readmap.backend import open_backend
from readmap.cli import main
from readmap.cli.common.options import parse_size
from readmap.cli.common.report import Report, ReportOptions, Session
from readmap.errors import UsageError
from readmap.index.device import IndexStructure
from readmap.index.folder import find_alternates_file
from readmap.index.index import Index
from readmap.mapping.parameters import Scoring
from readmap.run.config import SearchConfig
from readmap.run.file_checks import is_older_than_source
from readmap.run.index_loading import load_index

DATA = Path(__file__).resolve().parents[2] / "data"
READS = DATA / "demo.fq.gz"
GROUP = r"@RG\tID:a\tSM:b"


def run(*arguments: str | Path) -> int:
    return main(
        [*map(str, arguments), "--device", "cpu"] if arguments[0] in ("search", "map") else [*map(str, arguments)]
    )


def records(sam: str) -> list[str]:
    return [line for line in sam.splitlines() if not line.startswith("@")]


def test_file_and_standard_output_are_the_same(
    demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("search", few_reads, "-x", demo_index, "-o", "out.sam", "-q") == 0
    assert capfd.readouterr() == ("", "")
    assert run("map", few_reads, "-x", demo_index) == 0
    captured = capfd.readouterr()
    assert records(captured.out) == records(Path("out.sam").read_text())
    assert len(records(captured.out)) == 100
    assert "\x1b" not in captured.err
    assert "\r" not in captured.err
    assert run("search", few_reads, "-x", demo_index, "-o", "-", "-t", "1", "--batch-reads", "7", "-q") == 0
    assert records(capfd.readouterr().out) == records(captured.out)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_bam_and_compressed_sam_are_the_same(demo_index: Path, few_reads: str, threads: str) -> None:
    names = ("out.sam", "out.sam.gz", "out.bam")
    for name in names:
        assert run("search", few_reads, "-x", demo_index, "-o", name, "-t", threads, "-R", GROUP, "-q") == 0
    files = [pysam.AlignmentFile(name) for name in names]
    assert [file.is_bam for file in files] == [False, False, True]
    assert len({file.header.to_dict()["RG"][0]["SM"] for file in files}) == 1
    plain, compressed, binary = ([record.to_string() for record in file] for file in files)
    assert plain == compressed == binary
    assert len(plain) == 100


def test_pairs_from_two_files_and_from_one(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Either file may be standard input. Records are in the order R1, R2, R1, R2."""
    lines = Path(few_reads).read_bytes().splitlines(keepends=True)
    first = [b"".join(lines[i : i + 4]) for i in range(0, len(lines), 4)]
    second = [b"".join([lines[i], *lines[(i + 41) % 400 : (i + 41) % 400 + 3]]) for i in range(0, len(lines), 4)]
    Path("r1.fq").write_bytes(b"".join(first))
    Path("r2.fq.gz").write_bytes(gzip.compress(b"".join(second)))
    Path("r.fq").write_bytes(b"".join(record for pair in zip(first, second, strict=True) for record in pair))
    found = []
    for arguments, given in (
        (["r1.fq", "r2.fq.gz"], "r.fq"),
        (["r.fq", "-p"], "r.fq"),
        (["-", "--interleaved"], "r.fq"),
        (["r1.fq", "-"], "r2.fq.gz"),
        (["-", "r2.fq.gz"], "r1.fq"),
        (["r1.fq", "r2.fq.gz", "--batch-reads", "6"], "r.fq"),
    ):
        with standard_input(given):
            assert run("search", *arguments, "-x", demo_index, "-q") == 0
        found.append(records(capfd.readouterr().out))
    assert all(each == found[0] for each in found)
    names = [record.split(b"\n")[0].split()[0][1:].decode() for record in first]
    assert [line.split("\t")[0] for line in found[0]] == [name for name in names for _ in range(2)]


def test_log_starts_with_command_and_device(
    demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("search", few_reads, "-x", demo_index, "-o", "out.sam", "-t", "2") == 0
    command, device, *_ = capfd.readouterr().err.splitlines()
    assert command.startswith(f"readmap {readmap.__version__}: readmap search {few_reads} -x ")
    assert device == f"index {demo_index}; device cpu; 2 threads"


def test_header_has_the_command_as_typed(demo_index: Path, few_reads: str) -> None:
    arguments = ["map", few_reads, "-x", str(demo_index), "-o", "out of it.sam", "-q", "-R", GROUP]
    assert main(arguments) == 0
    with pysam.AlignmentFile("out of it.sam") as sam:
        header: Any = sam.header.to_dict()
        assert header["HD"] == {"VN": "1.6", "SO": "unsorted", "GO": "query"}
        assert [line["SN"] for line in header["SQ"]] == ["chr1", "chr2", "chr3", "chr4"]
        assert header["RG"] == [{"ID": "a", "SM": "b"}]
        expected = f"readmap map {few_reads} -x {demo_index} -o 'out of it.sam' -q -R '{GROUP}'"
        assert header["PG"][0]["CL"] == expected
        assert {record.get_tag("RG") for record in sam} == {"a"}


def test_summary_and_report_agree(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("search", READS, "-x", demo_index, "-o", "out.sam", "--json", "report.json", "-t", "2") == 0
    messages = capfd.readouterr().err
    report = json.loads(Path("report.json").read_text())
    counts = report["counts"]
    assert counts["reads"] == 5000
    assert counts["mapped"] + counts["unmapped"] == 5000
    assert f"5,000 reads, {counts['mapped']:,} mapped" in messages
    assert sum(report["mapq_histogram"]) == counts["mapped"]
    assert len(report["mapq_histogram"]) == 61
    shown = re.search(r"^MAPQ  0: ([\d,]+)  1-9: ([\d,]+) .*  60: ([\d,]+)$", messages, re.MULTILINE)
    assert shown is not None
    histogram = report["mapq_histogram"]
    assert [int(count.replace(",", "")) for count in shown.groups()] == [
        histogram[0],
        sum(histogram[1:10]),
        histogram[60],
    ]
    assert "peak memory" in messages
    with pysam.AlignmentFile("out.sam") as sam:
        assert sum(not record.is_unmapped for record in sam) == counts["mapped"]


def test_json_report(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["search", few_reads, "-x", str(demo_index), "-o", "out.sam", "--json", "-", "-q", "--device=cpu"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["schema"] == 2
    assert report["command"] == f"readmap search {few_reads} -x {demo_index} -o out.sam --json - -q --device=cpu"
    assert set(report["versions"]) == {"readmap", "python", "numpy", "cupy"}
    assert (report["device"], report["output"], report["reads"]) == ("cpu", "out.sam", [few_reads])
    assert set(report["reference"]) == {"source", "contigs", "alternates", "bases", "checksum"}
    assert re.fullmatch("[0-9a-f]{32}", report["reference"]["checksum"])
    assert report["scoring"]["min_score"] == 30
    assert {"load_index", "search"} <= set(report["seconds"])
    assert report["total_seconds"] >= report["seconds"]["search"] > 0
    assert report["peak_memory_bytes"] > 1 << 20
    work, reads = report["work"], report["counts"]["reads"]
    assert 0 < work["resolved"] + work["searched"] <= reads <= work["resolved"] + work["searched"] + work["divergent"]
    assert run("info", demo_index, "--json", "-") == 0
    assert json.loads(capfd.readouterr().out)["reference_checksum"] == report["reference"]["checksum"]


def test_short_reads_and_ambiguous_letters_are_counted(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("reads.fa").write_text(">short\nACGTACGTAC\n>empty\n\n>letters\n" + "ACGTRYN" * 10 + "\n")
    assert run("search", "reads.fa", "-x", demo_index, "-o", "out.sam", "--json", "report.json") == 0
    messages = capfd.readouterr().err
    assert "2 reads are too short to reach the score 30 (-T)" in messages
    assert "20 ambiguous letters of the reads are written as N" in messages
    counts = json.loads(Path("report.json").read_text())["counts"]
    assert (counts["reads"], counts["too_short"], counts["replaced_letters"]) == (3, 2, 20)


@pytest.mark.parametrize("content", [b"", gzip.compress(b""), b"\n\n"], ids=["empty", "empty gzip", "blank"])
def test_no_reads_give_a_header(demo_index: Path, capfd: pytest.CaptureFixture[str], content: bytes) -> None:
    Path("reads.fq").write_bytes(content)
    assert run("search", "reads.fq", "-x", demo_index) == 0
    captured = capfd.readouterr()
    assert [line[:3] for line in captured.out.splitlines()] == ["@HD", *["@SQ"] * 4, "@PG"]
    assert after_log_start(captured.err).startswith("no reads\n")


def scoring_of(*options: str, index: Path, reads: str) -> dict[str, int]:
    assert run("search", reads, "-x", index, "-o", "/dev/null", "-q", "--json", "report.json", *options) == 0
    scoring: dict[str, int] = json.loads(Path("report.json").read_text())["scoring"]
    return scoring


def test_match_score_multiplies_other_defaults(demo_index: Path, few_reads: str) -> None:
    names = [field.name for field in dataclasses.fields(Scoring)]
    expected = {
        (): (1, 4, 6, 1, 22, 5, 30, 17),
        ("-A", "2"): (2, 8, 12, 2, 44, 10, 60, 34),
        ("-A", "2", "-B", "3", "-T", "20"): (2, 3, 12, 2, 44, 10, 20, 34),
        ("-O", "5", "-E", "2", "-L", "0"): (1, 4, 5, 2, 22, 0, 30, 17),
    }
    for options, values in expected.items():
        assert scoring_of(*options, index=demo_index, reads=few_reads) == dict(zip(names, values, strict=True))


def test_index_is_found(
    demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo_index, "ref.fa.readmap")
    Path("ref.fa").write_text(">a\nACGT\n")
    os.utime("ref.fa", (0, 0))
    outputs = []
    for options in (["-x", "ref.fa.readmap"], ["-x", "ref.fa.readmap/"], ["-x", "ref.fa"], ["-x", "ref.fa.gz"], []):
        assert run("search", few_reads, *options, "-q") == 0
        outputs.append(capfd.readouterr().out)
    shutil.copytree(demo_index, "other.readmap")
    for name in ("ref.fa", "ref.fa.readmap"):
        monkeypatch.setenv("READMAP_INDEX", name)
        assert run("search", few_reads, "-q") == 0
        outputs.append(capfd.readouterr().out)
    assert len({tuple(records(output)) for output in outputs}) == 1


def test_a_changed_reference_is_reported(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(demo_index, "ref.fa.readmap")
    Path("ref.fa").write_text(">a\nACGT\n")
    assert not is_older_than_source(Path("ref.fa.readmap"), "ref.fa.readmap")
    os.utime("ref.fa", (2_000_000_000, 2_000_000_000))
    assert run("search", few_reads, "-x", "ref.fa", "-o", "/dev/null") == 0
    assert "warning: ref.fa is newer than ref.fa.readmap" in capfd.readouterr().err


def test_alt_contigs_are_reported(demo_index: Path, few_reads: str, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(demo_index, "ref.fa.readmap")
    Path("ref.fa").write_text(">a\nACGT\n")
    assert run("search", few_reads, "-x", "ref.fa.readmap", "-o", "/dev/null") == 0
    assert "ALT" not in capfd.readouterr().err
    Path("ref.fa.alt").write_text("@SQ\tSN:a\nb\n")
    for name in ("ref.fa", "ref.fa.readmap"):
        assert run("search", few_reads, "-x", name, "-o", "/dev/null") == 0
        assert "warning: ref.fa.alt names no contig of the index: none is an ALT contig" in capfd.readouterr().err
    contigs = Index.open("ref.fa.readmap").reference.contigs
    Path("ref.fa.alt").write_text(f"{contigs[1].name}\t0\t{contigs[0].name}\n\n")
    assert run("search", few_reads, "-x", "ref.fa", "-o", "out.sam") == 0
    assert f"1 ALT contig of {len(contigs)} (ref.fa.alt)" in capfd.readouterr().err
    assert [line for line in Path("out.sam").read_text().splitlines() if line.endswith("\tAH:*")] == [
        f"@SQ\tSN:{contigs[1].name}\tLN:{contigs[1].length}\tM5:{contigs[1].md5}\tAH:*"
    ]
    assert run("search", few_reads, "-x", "ref.fa", "-o", "out.sam", "-j") == 0
    assert "ref.fa.alt is ignored (-j)" in capfd.readouterr().err
    assert "AH:*" not in Path("out.sam").read_text()
    assert find_alternates_file(Path("elsewhere.readmap"), "ref.fa.gz") == "ref.fa.alt"


def test_reads_that_may_be_cut_short_are_reported(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file that ends after a whole record is mapped with a warning: software of sequencers writes such files."""
    data = b"@a\nACGT\n+\nIIII\n" * 9
    Path("whole.gz").write_bytes(blocked(data))
    Path("cut.gz").write_bytes(blocked(data).removesuffix(EOF_BLOCK))
    outputs = []
    for name, warned in (("whole.gz", False), ("cut.gz", True)):
        assert run("search", name, "-x", demo_index) == 0
        found = capfd.readouterr()
        outputs.append(records(found.out))
        assert ("warning: cut.gz: unexpected end of the compressed data after 135 inflated" in found.err) is warned
    assert outputs[0] == outputs[1]
    Path("cut.gz").write_bytes(blocked(data[:-3]).removesuffix(EOF_BLOCK))
    assert run("search", "cut.gz", "-x", demo_index, "-o", "out.sam") == 1
    assert "error: cut.gz: unexpected end of the compressed data after 132 inflated bytes" in capfd.readouterr().err
    assert not Path("out.sam").exists()


def test_header_lines_of_the_user(demo_index: Path, few_reads: str) -> None:
    Path("lines.txt").write_text("@PG\tID:readmap\tPN:fastp\n\n@CO\tfrom a file\r\n")
    lines = ("-H", r"@CO\tmade\tby hand", "-H", "lines.txt")
    for name in ("out.sam", "out.bam"):
        assert run("search", few_reads, "-x", demo_index, "-o", name, *lines, "-q", "-R", GROUP) == 0
        with pysam.AlignmentFile(name) as file:
            header: Any = file.header.to_dict()
            assert {record.get_tag("PG") for record in file} == {"readmap.1"}
        assert header["CO"] == ["made\tby hand", "from a file"]
        assert header["RG"] == [{"ID": "a", "SM": "b"}]
        assert [(line["ID"], line.get("PP")) for line in header["PG"]] == [("readmap", None), ("readmap.1", "readmap")]
        assert header["HD"] == {"VN": "1.6", "SO": "unsorted", "GO": "query"}


def test_comments_without_tags(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("reads.fq").write_text("@a RX:Z:AC\nACGT\n+\nIIII\n@b 1:X:0:ACGT\nACGT\n+\nIIII\n")
    assert run("search", "reads.fq", "-x", demo_index, "-o", "out.sam") == 0
    assert run("search", "reads.fq", "-x", demo_index, "-o", "none.sam", "-C") == 1
    expected = "expected SAM tags such as RX:Z:ACGT, or an Illumina comment such as 1:N:0:ACGT, after the name"
    message = f"reads.fq, record 2 (b): {expected}, found '1:X:0:ACGT'"
    assert message in capfd.readouterr().err
    assert not Path("none.sam").exists()


def test_device_memory_is_reported(
    demo_index: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Device:
        name = "cuda:0"
        max_table_bases = 15
        chunk_bytes = 128 << 20
        concurrent_chunks = 2

        def memory(self) -> tuple[int, int]:
            return 3 << 30, 4 << 30

        def synchronize(self) -> None: ...

    report: Any = Report(Session("readmap", 0.0), ReportOptions())
    device: Any = Device()
    monkeypatch.setattr(Index, "to_device", lambda *_: None)
    assert main(["index", str(DATA / "demo.fa.gz"), "-o", "both", "--structure", "both", "-q"]) == 0
    both = Index.open("both")
    for index in (Index.open(demo_index), both):  # structures that mapping does not read are not loaded
        load_index(SearchConfig(), Path("both"), index, IndexStructure.ARRAY, [device], report.say)
        messages = capfd.readouterr().err
        assert "cuda:0 needs 5.2 MiB of its memory for the index and up to 2.99 GiB for reads" in messages
        assert "3.00 GiB of 4.00 GiB are free" in messages
    load_index(SearchConfig(), Path("both"), both, IndexStructure.ARRAY, [open_backend("cpu")], report.say)
    assert capfd.readouterr().err == ""


def test_memory_of_searched_structures() -> None:
    assert main(["index", str(DATA / "demo.fa.gz"), "-o", "both", "--structure", "both", "-q"]) == 0
    both, backend = Index.open("both"), open_backend("cpu")
    assert both.edges is not None
    held = both.reference.nbytes + both.suffixes.nbytes
    entries = 16 * 4 ** (both.table_bases - 1)  # entry points of tree walks
    root, table = 64, 2 * 4  # empty structures, and tables of zero bases
    assert both.host_index(backend, IndexStructure.TREE).nbytes == held + both.edges.nbytes + entries + table
    assert both.host_index(backend, IndexStructure.ARRAY, prefix_table=False).nbytes == held + root + 16 + table


def test_sizes() -> None:
    expected = {"8G": 8 << 30, "500M": 500 << 20, "1.5g": 3 << 29, "2GiB": 2 << 30, "64kb": 64 << 10, "4096": 4096}
    assert {text: parse_size("--gpu-memory", text) for text in expected} == expected
    for wrong in ("", "0", "G", "-1G", "8 apples"):
        with pytest.raises(UsageError):
            parse_size("--gpu-memory", wrong)
