"""The environment of a command: closed and full streams, an early interrupt, system limits."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from alignment_files import records_of

from readmap.cli import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "readmap", "search", "--device", "cpu", "-q", "-x", "ref.fa"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("ref.fa").write_text(">c\n" + "ACGTTGCAAGTCCTAG" * 20 + "\n")
    Path("reads.fq").write_text("@r\nACGTTGCAAGTCCTAGACGTTGCAAGTCCTAGACGT\n+\n" + "I" * 36 + "\n")
    assert main(["index", "ref.fa", "-q"]) == 0
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the contents of all files in a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ended(*arguments: str, before: Callable[[], object] | None = None) -> tuple[int, str]:
    """Run a search as a separate process; return its exit code and standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment, preexec_fn=before, stderr=subprocess.PIPE, timeout=60
    )
    return done.returncode, done.stderr.decode()


def test_standard_input_is_closed(folder: Path) -> None:
    """No other file is opened as standard input."""
    assert ended("-", "-o", "out.sam", before=lambda: os.close(0)) == (
        1,
        "readmap: error: standard input: Bad file descriptor\n",
    )
    assert ended("reads.fq", "-o", "out.sam", before=lambda: os.close(0)) == (0, "")


def test_standard_output_is_closed(folder: Path) -> None:
    before = contents(folder)
    assert ended("reads.fq", before=lambda: os.close(1)) == (
        1,
        "readmap: error: standard output: Bad file descriptor\n",
    )
    assert contents(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        "search reads.fq -x ref.fa -o out.sam",
        "search reads.fq -x ref.fa -o out.bam --sort --unmapped no.fq",
        "search reads.fq -x ref.fa -o out.tsv --exact",
        "compare ref.fa reads.fq -o out.paf --plot out.png --checkpoint kept",
        "scan reads.fq ref.fa -o out.tsv --plot out.png",
        "index ref.fa -o new.readmap",
        "index ref.fa --force",
        "index --database ref.fa -o new.readmapdb",
        "index --database ref.fa --force",
    ],
)
def test_a_report_without_room_leaves_no_output(folder: Path, capfd: pytest.CaptureFixture[str], words: str) -> None:
    assert main(["index", "--database", "ref.fa", "-q"]) == 0
    before = contents(folder)
    assert main([*words.split(), "-q", "--json", "/dev/full"]) == 1
    assert capfd.readouterr().err == "readmap: error: /dev/full: No space left on device\n"
    left = contents(folder)
    assert {name: data for name, data in left.items() if name.parts[0] != "kept"} == before
    assert (left != before) == ("kept" in words)  # an interrupted comparison continues from it
    assert main([*words.split(), "-q", "--json", "report.json"]) == 0
    assert contents(folder).keys() > before.keys()


def test_an_interrupt_while_modules_are_loaded(folder: Path) -> None:
    """A module that the command imports sends the interrupt."""
    Path("typer.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"}
    reset = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # the caller may ignore it
    done = subprocess.run(COMMAND, env=environment, preexec_fn=reset, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.skipif(os.geteuid() == 0, reason="root has no limit of threads")
def test_too_many_threads(folder: Path) -> None:
    few = lambda: resource.setrlimit(resource.RLIMIT_NPROC, (30, 30))  # noqa: E731
    code, message = ended("reads.fq", "-t", "1024", "-o", "out.sam", before=few)
    assert (code, "more threads" in message or "unavailable" in message) == (1, True)


@pytest.mark.parametrize("option", ["-o", "--json", "--unmapped"])
def test_an_output_inside_the_index(folder: Path, capfd: pytest.CaptureFixture[str], option: str) -> None:
    before = sorted((folder / "ref.fa.readmap").iterdir())
    assert main(["search", "reads.fq", "-x", "ref.fa", option, "ref.fa.readmap/new", "-q"]) == 2
    message = f"readmap: error: {option} ref.fa.readmap/new is inside ref.fa.readmap, which is being read"
    assert capfd.readouterr().err.startswith(message)
    assert before == sorted((folder / "ref.fa.readmap").iterdir())


def test_a_report_inside_the_folder_that_is_replaced(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    assert main(["index", "ref.fa", "--force", "-q", "--json", "ref.fa.readmap/new"]) == 2
    message = "readmap: error: --json ref.fa.readmap/new is inside ref.fa.readmap, which is being replaced"
    assert capfd.readouterr().err.startswith(message)
    assert contents(folder) == before


@pytest.mark.parametrize("kind", ["sam", "bam", "cram"])
@pytest.mark.parametrize("options", [[], ["--sort"], ["--sort", "--sort-order", "queryname"]], ids=" ".join)
def test_formats_on_standard_output(folder: Path, kind: str, options: list[str]) -> None:
    """The records of a file of that name, without an index, which has no place; SAM is not sorted."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    call = [*COMMAND, "reads.fq", "--format", kind, *options]
    done = subprocess.run(call, env=environment, capture_output=True, timeout=60)
    if kind == "sam" and options:
        assert done.returncode == 2
        return
    assert (done.returncode, done.stderr) == (0, b"")
    Path("piped").write_bytes(done.stdout)
    assert ended("reads.fq", "-o", f"out.{kind}", *options) == (0, "")
    assert records_of(Path("piped"), Path("ref.fa")) == records_of(Path(f"out.{kind}"), Path("ref.fa"))
    with pysam.AlignmentFile("piped", reference_filename="ref.fa") as file:
        assert (file.is_bam, file.is_cram) == (kind == "bam", kind == "cram")
    assert not [*folder.glob("piped?*"), *folder.glob("standard*"), *folder.glob("-*")]


def test_endings_in_upper_case(folder: Path) -> None:
    assert ended("reads.fq", "-o", "OUT.BAM", "--sort") == (0, "")
    with pysam.AlignmentFile("OUT.BAM") as file:
        assert file.is_bam
        assert file.has_index()
    assert ended("reads.fq", "-o", "out.Sam.GZ") == (0, "")
    assert Path("out.Sam.GZ").read_bytes()[:2] == b"\x1f\x8b"


def test_an_unknown_ending(folder: Path) -> None:
    code, message = ended("reads.fq", "-o", "out.bma")
    assert code == 2
    assert "-o out.bma: expected a name that ends with .sam, .bam, .cram, .tsv, .bed, or --format" in message
    assert ended("reads.fq", "-o", "out.bma", "--format", "bam") == (0, "")
    assert ended("reads.fq", "-o", "out") == (0, "")
    os.mkfifo("pipe.x")
    reader = subprocess.Popen(["cat", "pipe.x"], stdout=subprocess.PIPE)
    assert ended("reads.fq", "-o", "pipe.x") == (0, "")
    assert reader.communicate(timeout=10)[0].startswith(b"@HD")
