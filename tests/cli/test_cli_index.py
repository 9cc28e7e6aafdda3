"""readmap index and readmap info; version, help and exit codes of all commands."""

import errno
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import failures

import readmap
from readmap.backend.cpu import CpuBackend
from readmap.cli import COMMANDS, index, main
from readmap.database.database import Database
from readmap.formats.wording import format_bytes
from readmap.index.building import FIXED_BYTES, build_index
from readmap.index.index import Index

DATA = Path(__file__).resolve().parents[2] / "data"
FASTA = ">a one\nACGTACGTNN\nACGT\n>b\nTTTTCCCC\n"


@pytest.fixture(autouse=True)
def reference(elsewhere: None) -> None:
    """Write a small reference."""
    Path("ref.fa").write_text(FASTA)


failure = failures(lambda *arguments: main([*arguments]))


def memory_of_building() -> int:
    """Return the memory for building the index of ref.fa: the prefix table, and a fixed part."""
    reported: list[int] = []
    build_index("ref.fa", report_memory=reported.append)
    assert FIXED_BYTES + 4 * 4**6 < reported[0] < FIXED_BYTES + 4 * 4**6 + 10_000
    return reported[0]


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capfd.readouterr() == (f"readmap {readmap.__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """-h without a value prints the help of every command, also if -h N is one of its options."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    printed = capfd.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "Example" in printed
    assert "<" not in printed  # a type of Python
    assert main([command, "-h"]) == 0
    assert capfd.readouterr().out == printed


def test_common_and_advanced_options(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--help ends with the number of options that only --help-all shows."""
    monkeypatch.setenv("COLUMNS", "400")
    option = re.compile(r"^│ +(?:--?[\w-]+,?)+", re.MULTILINE)
    for command in ("search", "mem", "compare", "scan"):
        assert main([command, "--help"]) == 0
        common = capfd.readouterr().out
        assert main([command, "--help-all"]) == 0
        complete = capfd.readouterr().out
        found = re.search(r"(\d+) more options: readmap \w+ --help-all\s+$", common)
        assert found is not None
        assert len(option.findall(complete)) - len(option.findall(common)) == int(found[1])
        assert "--help-all" in common
        assert "more options: " not in complete
        if command == "search":
            assert 24 <= len(option.findall(common)) <= 28
            assert common.index("--index") < common.index("--output") < common.index("--threads")
            assert "--dask" not in common
            assert "--dask" in complete


def test_no_command_is_a_usage_error_with_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capfd.readouterr()
    assert "search" in captured.out
    assert captured.err == ""


def test_unknown_commands_and_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert "'frobnicate'" in failure(capfd, "frobnicate", code=2)
    assert "--frobnicate" in failure(capfd, "index", "ref.fa", "--frobnicate", code=2)
    assert "'--structure': expected array, tree or both" in failure(
        capfd, "index", "ref.fa", "--structure", "trie", code=2
    )
    assert failure(capfd, "index", "ref.fa", "--device", "gpu", code=2).startswith("--device gpu: expected auto, cpu")
    assert failure(capfd, "index", code=2) == "Missing argument 'REF'. (readmap index --help shows the options)"


def test_index_reports_time_and_memory(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "ref.fa", "--json", "report.json", "-t", "1"]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0].startswith(f"building needs up to {format_bytes(memory_of_building())} of memory")
    assert re.fullmatch(r"ref.fa.readmap: 2 contigs, 22 bases, 2 of them ambiguous; \d+ KiB on disk", lines[1])
    assert re.search(r"\d s in total, peak memory [\d.]+ [MG]iB\n$", captured.err)
    report = json.loads(Path("report.json").read_text())
    size = sum(file.stat().st_size for file in Path("ref.fa.readmap").iterdir())
    expected = {
        "schema": 2,
        "index": "ref.fa.readmap",
        "contigs": 2,
        "bases": 22,
        "ambiguous_bases": 2,
        "bytes": size,
        "structure": "array",
        "table_bases": 6,
        "nodes": 0,
        "suffix_tree_bytes": 0,
        "memory_bytes": memory_of_building(),
    }
    assert {name: report[name] for name in expected} == expected
    assert report["command"] == "readmap index ref.fa --json report.json -t 1"
    assert report["peak_memory_bytes"] > 1 << 20
    assert list(report["seconds"]) == ["read", "sort_suffixes", "gather_suffixes", "prefix_table", "build", "write"]
    *stages, build, _ = report["seconds"].values()
    assert sum(stages) <= build + 0.01
    assert Index.open("ref.fa.readmap").suffixes.dtype == np.uint32


@pytest.mark.parametrize("structure", ["tree", "both"])
def test_a_suffix_tree_is_built_reported_and_checked(capfd: pytest.CaptureFixture[str], structure: str) -> None:
    assert main(["index", "ref.fa", "--structure", structure, "--device", "cpu", "--json", "report.json"]) == 0
    messages = capfd.readouterr().err
    edges = np.load("ref.fa.readmap/edges.npy")
    nodes = len(edges) // 4
    assert f" of them ambiguous; a suffix tree of {nodes} nodes; " in messages
    report = json.loads(Path("report.json").read_text())
    facts = (report["structure"], report["nodes"], report["suffix_tree_bytes"], report["table_bases"])
    assert facts == (structure, nodes, edges.nbytes, 6 if structure == "both" else 0)
    assert Path("ref.fa.readmap/prefix_table.npy").exists() == (structure == "both")
    assert main(["info", "--check"]) == 0
    shown = capfd.readouterr()
    assert shown.err == "intact: all checksums are correct, the suffixes are in order, and the tree agrees with them\n"
    assert re.search(rf"^suffix tree   {nodes} nodes, \d+ (bytes|KiB)$", shown.out, re.MULTILINE)
    assert re.search(rf"^structure     {structure}", shown.out, re.MULTILINE)
    assert ("\nprefix table " in shown.out) == (structure == "both")
    assert main(["info", "--json", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["nodes"] == nodes


def test_damage_of_the_tree_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "ref.fa", "--structure", "tree", "-q"]) == 0
    path = Path("ref.fa.readmap/edges.npy")
    whole = path.read_bytes()
    path.write_bytes(whole[:-16])
    assert failure(capfd, "info", code=1).startswith("ref.fa.readmap: edges.npy has ")
    path.write_bytes(whole[:-1] + b"\x7f")
    assert "edges.npy was altered" in failure(capfd, "info", "--check", code=1)
    path.unlink()
    assert "edges.npy is missing" in failure(capfd, "info", code=1)
    Path("ref.fa").write_text(">a\nACGTTGCA\n")
    assert main(["index", "ref.fa", "--structure", "tree", "-q", "--force"]) == 0
    right = Index.open("ref.fa.readmap")
    assert right.edges is not None
    edges = np.array(right.edges)
    edges[2, 3] += 1
    Index(right.reference, right.suffixes, None, right.table_bases, edges, "ref.fa").write("x.readmap")
    assert failure(capfd, "info", "x.readmap", "--check", code=1) == "edges contradicts suffix_array at node 0"


@pytest.mark.parametrize(
    ("available", "line"),
    [
        (2 << 30, "building needs up to {} of memory; 2.00 GiB are available"),
        (0, "warning: building needs up to {} of memory, and 0 bytes are available"),
        (None, "building needs up to {} of memory"),
    ],
    ids=["enough", "too little", "unknown"],
)
def test_memory_is_reported_before_it_is_taken(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, available: int | None, line: str
) -> None:
    monkeypatch.setattr(index, "available_memory", lambda: available)
    assert main(["index", "ref.fa"]) == 0
    assert capfd.readouterr().err.splitlines()[0] == line.format(format_bytes(memory_of_building()))
    assert main(["index", "ref.fa", "--force", "-q"]) == 0
    assert capfd.readouterr().err == ""


def test_progress_has_the_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shown = iter([0, 1, 4, 12, 72, 1080]), list[str]()
    monkeypatch.setattr("readmap.cli.index.time.monotonic", lambda: next(clock))
    stages = index._Stages(lambda text, share=None, bar=None: shown.append(text))
    for reported in (("read", 0, 0), ("read", 3 << 20, 0), ("sort suffixes", 0, 100), ("sort suffixes", 10, 100)):
        stages(*reported)
    stages("sort suffixes", 25, 100)
    expected = ["reading", "reading 3.0 MiB", "sorting suffixes", "sorting suffixes 10.00%, 72 s left"]
    assert shown == [*expected, "sorting suffixes 25.00%, 3 min left"]
    assert stages.seconds() == {"read": 4, "sort_suffixes": 1076}


@pytest.mark.parametrize("structure", ["array", "tree", "both"])
def test_a_gpu_that_is_too_small(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, structure: str
) -> None:
    """The CPU builds the index if no device was requested, and a message gives the reason."""

    class Device(CpuBackend):
        name = "cuda:0"

        def memory(self) -> tuple[int, int]:
            return 1000, 1000

    def open_backend(name: str, threads: int | None, memory_limit: int | None = None) -> CpuBackend:
        asked.append((name, memory_limit))
        return CpuBackend(threads) if name == "cpu" else Device(threads)

    asked: list[tuple[str, int | None]] = []
    monkeypatch.setattr("readmap.backend.team.device_names", lambda device, gpus: [device])
    monkeypatch.setattr("readmap.backend.team.open_backend", open_backend)
    assert main(["index", "ref.fa", "--structure", structure, "--gpu-memory", "500M"]) == 0
    assert asked == [("auto", 500 << 20), ("cpu", None)]
    reason = r"cuda:0 has too little memory to index 22 bases: 1000 bytes are free, [\d.]+ \w+ are needed"
    assert re.match(f"{reason}: the CPU builds the index\n", capfd.readouterr().err)
    message = failure(capfd, "index", "ref.fa", "--structure", structure, "--device", "cuda", "--force", code=1)
    assert re.fullmatch(reason, message)


def test_several_gpus(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--gpus selects GPUs; one GPU gives the same index."""
    assert failure(capfd, "index", "ref.fa", "--gpus", "2", "--device", "cpu", code=2) == (
        "--gpus 2: not with --device cpu, which is one device"
    )
    assert "--gpus 0: expected a number of GPUs" in failure(capfd, "index", "ref.fa", "--gpus", "0", code=2)
    assert main(["index", "ref.fa", "-q", "-o", "one"]) == 0
    asked: list[object] = []

    def device_names(device: str, gpus: list[int]) -> list[str]:
        asked.append(gpus)
        return ["cpu"] * len(gpus)

    monkeypatch.setattr("readmap.index.suffix_array.SMALL", 0)
    monkeypatch.setattr("readmap.backend.team.device_names", device_names)
    assert main(["index", "ref.fa", "-q", "-o", "three", "--gpus", "0,2,3", "-t", "2"]) == 0
    assert asked == [[0, 2, 3]]
    one, three = ({path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("one", "three"))
    assert one == three


def test_gzip_and_output_folder(capfd: pytest.CaptureFixture[str]) -> None:
    Path("ref.fa.gz").write_bytes(gzip.compress(FASTA.encode()))
    assert main(["index", "ref.fa.gz", "-q"]) == 0
    assert main(["index", "ref.fa", "-o", "own", "--64-bit", "-q"]) == 0
    assert capfd.readouterr() == ("", "")
    assert Index.open("own").suffixes.dtype == np.uint64
    assert np.array_equal(Index.open("own").suffixes, Index.open("ref.fa.readmap").suffixes)


def test_existing_folders_are_refused_before_the_work(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["index", "ref.fa", "-q"]) == 0

    def work(*_: object, **__: object) -> None:
        raise AssertionError("it began to build")

    Path("folder").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(index, "build_index", work)
        message = failure(capfd, "index", "ref.fa", code=1)
        assert message == "ref.fa.readmap exists already: --force replaces it"
        assert "is not replaced" in failure(capfd, "index", "ref.fa", "-o", "ref.fa", "--force", code=1)
        assert "is not replaced" in failure(capfd, "index", "ref.fa", "-o", "folder", "--force", code=1)
        assert failure(capfd, "index", "ref.fa", "-o", "no/index", code=1).startswith("no: ")
        assert failure(capfd, "index", "no.fa", code=1) == "no.fa: No such file or directory"
        assert failure(capfd, "index", "-", code=2).endswith("give its folder with -o")
        assert failure(capfd, "index", "ref.fa", "-o", "x", "--json", "no/j", code=1).startswith("no/j: ")
    before = (Path("ref.fa.readmap") / "manifest.json").stat().st_ino
    assert main(["index", "ref.fa", "--force", "-q"]) == 0
    assert (Path("ref.fa.readmap") / "manifest.json").stat().st_ino != before


def test_folders_and_files_without_permission(capfd: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir(0o555)
    if os.access("folder", os.W_OK):
        pytest.skip("this user, as root does, may write everywhere")
    assert failure(capfd, "index", "ref.fa", "-o", "folder/x", code=1).startswith("folder: no permission")
    Path("ref.fa").chmod(0)
    assert failure(capfd, "index", "ref.fa", code=1) == "ref.fa: Permission denied"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ref.fa: expected FASTA, found no sequence"),
        (b"@a\nACGT\n+\nIIII\n", "ref.fa: expected FASTA, which starts with '>', found '@'; this looks like FASTQ"),
        (b">a\n>b\nACGT\n", "ref.fa, record 1 (a): expected a sequence, found an empty contig"),
        (b">a\nACGT\n>a\nACGT\n", "ref.fa, record 2 (a): record 1 has the same name"),
        (b">a\nAC*T\n", "ref.fa, record 1 (a), position 3: expected a nucleotide (IUPAC), found '*'"),
        (gzip.compress(b">a\n" + b"ACGT\n" * 99)[:-9], "ref.fa: unexpected end of the compressed data"),
    ],
    ids=["empty", "FASTQ", "empty contig", "two of one name", "protein", "broken gzip"],
)
def test_bad_references(capfd: pytest.CaptureFixture[str], content: bytes, message: str) -> None:
    Path("ref.fa").write_bytes(content)
    assert failure(capfd, "index", "ref.fa", code=1).startswith(message)


def test_a_full_disk_and_an_interrupt_leave_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: BaseException) -> Any:
        def write(*_: object) -> None:
            raise error

        return write

    monkeypatch.setattr(os, "pwrite", fail(OSError(errno.ENOSPC, "No space left on device")))
    message = failure(capfd, "index", "ref.fa", code=1)
    assert message == "ref.fa.readmap: No space left on device, while writing the index"
    monkeypatch.setattr(os, "pwrite", fail(KeyboardInterrupt()))
    assert main(["index", "ref.fa", "-q"]) == 130
    assert capfd.readouterr().err == "readmap: interrupted\n"
    assert os.listdir() == ["ref.fa"]


def test_info(capfd: pytest.CaptureFixture[str]) -> None:
    contigs = "".join(f">HLA*01:02:{number}\nACGTACGT\n" for number in range(23))
    Path("ref.fa").write_text(contigs)
    assert main(["index", "ref.fa", "-q"]) == 0
    assert main(["info"]) == 0
    captured = capfd.readouterr()
    assert f"ref.fa.readmap (format 3, made from ref.fa by readmap {readmap.__version__})" in captured.out
    assert "184 in 23 contigs" in captured.out
    assert "HLA*01:02:19 " in captured.out
    assert "HLA*01:02:20 " not in captured.out
    assert captured.out.endswith("... and 3 more: --contigs lists all\n")
    assert captured.err == ""
    assert main(["info", "ref.fa", "--contigs"]) == 0
    assert "HLA*01:02:22 " in capfd.readouterr().out
    assert main(["info", "ref.fa.readmap", "--check", "--json", "-"]) == 0
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert captured.err.startswith("intact: ")
    assert (report["schema"], report["checked"], report["bases"], report["suffix_bits"]) == (2, True, 184, 32)
    assert report["contigs"][22]["name"] == "HLA*01:02:22"
    assert report["bytes"] == sum(report["files"].values())


def test_equal_sequences_have_equal_checksums(capfd: pytest.CaptureFixture[str]) -> None:
    sums = []
    for content in (FASTA, FASTA.lower(), FASTA.replace(">b", ">other"), FASTA.replace("CCCC", "CCCG")):
        Path("ref.fa").write_text(content)
        assert main(["index", "ref.fa", "-q", "--force", "--json", "-"]) == 0
        sums.append(json.loads(capfd.readouterr().out)["reference_checksum"])
    assert len(set(sums[:3])) == 1
    assert sums[3] != sums[0]


def test_damage_is_reported(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(demo_index, "x.readmap")
    path = Path("x.readmap/suffix_array.npy")
    data = bytearray(path.read_bytes())
    data[-8:-4], data[-4:] = data[-4:], data[-8:-4]
    path.write_bytes(data)
    assert main(["info", "x.readmap", "-q"]) == 0
    assert "suffix_array.npy was altered" in failure(capfd, "info", "x.readmap", "--check", code=1)
    path.unlink()
    assert "suffix_array.npy is missing" in failure(capfd, "info", "x.readmap", code=1)


def test_a_wrong_suffix_order(demo_index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    opened = Index.open(demo_index)
    suffixes = np.array(opened.suffixes)
    suffixes[[10, 11]] = suffixes[[11, 10]]
    wrong = Index(opened.reference, suffixes, opened.prefix_table, opened.table_bases, None, opened.source)
    wrong.write("x.readmap")
    assert "out of order at rank 11" in failure(capfd, "info", "x.readmap", "--check", code=1)


PROTEINS = ">one first\nMKVLAW\n>two\n\n>three third one\nMKVLAWMKV*\n"


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_a_database(capfd: pytest.CaptureFixture[str], compressed: bool) -> None:
    name = "db.fa.gz" if compressed else "db.fa"
    Path(name).write_bytes(gzip.compress(PROTEINS.encode()) if compressed else PROTEINS.encode())
    assert main(["index", "--database", name, "--json", "report.json", "-t", "1"]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert re.fullmatch(
        r"db.fa.readmapdb: 3 protein sequences, 16 letters, longest 10; \d+ (bytes|KiB) on disk", lines[0]
    )
    assert re.fullmatch(r"[\d.]+ s in total, peak memory [\d.]+ [MG]iB", lines[1])
    report = json.loads(Path("report.json").read_text())
    expected = {
        "schema": 2,
        "database": "db.fa.readmapdb",
        "format_version": 3,
        "source": name,
        "molecule": "protein",
        "sequences": 3,
        "letters": 16,
        "longest": 10,
        "bytes": sum(file.stat().st_size for file in Path("db.fa.readmapdb").iterdir()),
    }
    assert {name: report[name] for name in expected} == expected
    assert set(report["seconds"]) == {"build", "write"}
    opened = Database.open("db.fa.readmapdb")
    assert list(opened.titles) == [b"one first", b"two", b"three third one"]
    assert opened.order.tolist() == [2, 0, 1]


def test_a_database_of_standard_input_and_of_a_given_molecule(capfd: pytest.CaptureFixture[str]) -> None:
    def piped(data: str, *options: str) -> int:
        command = [sys.executable, "-m", "readmap", "index", "--database", "-", "-q", *options]
        return subprocess.run(command, input=data.encode()).returncode

    assert piped(PROTEINS, "-o", "own") == 0
    assert (Database.open("own").molecule, len(Database.open("own"))) == ("protein", 3)
    assert piped(FASTA, "-o", "own", "--force") == 0
    assert (Database.open("own").molecule, len(Database.open("own"))) == ("nucleotide", 2)
    assert piped(FASTA, "-o", "own", "--force", "--molecule", "protein") == 0
    assert Database.open("own").molecule == "protein"
    assert capfd.readouterr() == ("", "")
    message = failure(capfd, "index", "--database", "-", code=2)
    assert message == "-: standard input has no name for the database: give its folder with -o"
    Path("db.fa").write_text(PROTEINS)
    message = failure(capfd, "index", "--database", "db.fa", "--molecule", "nucleotide", code=1)
    assert message == "db.fa, record 1 (one), position 4: expected a nucleotide (IUPAC), found 'L'"


def test_options_that_a_database_does_not_have(capfd: pytest.CaptureFixture[str]) -> None:
    for options in (["--structure", "tree"], ["--device", "cpu"], ["--gpus", "2"], ["--64-bit"]):
        message = failure(capfd, "index", "--database", "ref.fa", *options, code=2)
        assert message == f"{options[0]}: not with --database, which sorts no suffixes and needs no device"
    assert failure(capfd, "index", "ref.fa", "--molecule", "auto", code=2) == "--molecule: only with --database"
    message = failure(capfd, "index", "--database", "ref.fa", "--molecule", "dna", code=2)
    assert "'--molecule': expected auto, nucleotide or protein, found 'dna'" in message


def test_existing_databases_are_refused_before_the_work(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["index", "--database", "ref.fa", "-q"]) == 0
    assert main(["index", "ref.fa", "-q"]) == 0

    def work(*_: object, **__: object) -> None:
        raise AssertionError("it began to build")

    with monkeypatch.context() as patch:
        patch.setattr("readmap.cli.index.build_database", work)
        message = failure(capfd, "index", "--database", "ref.fa", code=1)
        assert message == "ref.fa.readmapdb exists already: --force replaces it"
        options = ["--database", "ref.fa", "--force", "-o"]
        assert "is not replaced" in failure(capfd, "index", *options, "ref.fa.readmap", code=1)
        assert failure(capfd, "index", *options, "no/db", code=1).startswith(
            "no: the folder for the database is missing"
        )
        assert failure(capfd, "index", "--database", "no.fa", code=1) == "no.fa: No such file or directory"
    assert "is not replaced" in failure(capfd, "index", "ref.fa", "--force", "-o", "ref.fa.readmapdb", code=1)
    assert main(["index", "--database", "ref.fa", "-q", "--force"]) == 0


def test_a_search_does_not_take_a_database_for_an_index(capfd: pytest.CaptureFixture[str]) -> None:
    Path("reads.fa").write_text(">r\nACGT\n")
    assert main(["index", "--database", "ref.fa", "-q"]) == 0
    assert "no index: " in failure(capfd, "search", "reads.fa", code=2)
    message = failure(capfd, "search", "reads.fa", "-x", "ref.fa.readmapdb", code=1)
    assert message == "ref.fa.readmapdb is a readmap database and no readmap index"
    assert main(["index", "ref.fa", "-q"]) == 0
    assert main(["search", "reads.fa", "-q", "--device", "cpu", "-o", "out.sam"]) == 0
    assert main(["info", "-q"]) == 0


def test_info_of_a_database(capfd: pytest.CaptureFixture[str]) -> None:
    Path("db.fa").write_text(PROTEINS)
    assert main(["index", "--database", "db.fa", "-q"]) == 0
    for named in ("db.fa.readmapdb", "db.fa.readmapdb/", "db.fa"):
        assert main(["info", named]) == 0
        captured = capfd.readouterr()
        origin = f"format 3, made from db.fa by readmap {readmap.__version__}"
        facts = "molecule  protein\nletters   16 in 3 sequences\n"
        assert f"db.fa.readmapdb ({origin})\n{facts}" in captured.out
        assert re.search(r"^codes\.npy +\d+ bytes$", captured.out, re.MULTILINE)
        assert captured.err == ""
    assert main(["info", "db.fa.readmapdb", "--check", "--json", "-"]) == 0
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert captured.err == "intact: all checksums are correct\n"
    assert (report["checked"], report["molecule"], report["longest"]) == (True, "protein", 10)
    assert report["bytes"] == sum(report["files"].values())
    assert failure(capfd, "info", "db.fa.readmapdb", "--contigs", code=2) == "--contigs: a database has no contigs"
    assert main(["index", "--database", "ref.fa", "-q"]) == 0
    assert main(["index", "ref.fa", "-q"]) == 0
    assert main(["info", "ref.fa"]) == 0
    assert "suffix array" in capfd.readouterr().out


def test_damage_of_a_database_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    Path("db.fa").write_text(PROTEINS)
    assert main(["index", "--database", "db.fa", "-q"]) == 0
    codes = Path("db.fa.readmapdb/codes.npy")
    data = bytearray(codes.read_bytes())
    data[128] ^= 1
    codes.write_bytes(data)
    assert main(["info", "db.fa.readmapdb", "-q"]) == 0
    assert "codes.npy was altered" in failure(capfd, "info", "db.fa.readmapdb", "--check", code=1)
    codes.unlink()
    assert "codes.npy is missing" in failure(capfd, "info", "db.fa.readmapdb", code=1)
