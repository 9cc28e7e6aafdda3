"""Samtools commands, and CRAM output: the records of the BAM; the file appears complete or not at all."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from alignment_files import file_size_limit, header_of, names_in, records_of, search_in, write_inputs
from examples import Read, draw_reads, fastq, index_of, random_bases, small_genome

from readmap.formats.fasta import Contig
from readmap.formats.sam import SamEncoding, header
from readmap.formats.samtools import SCRIPT, Samtools, SamtoolsOutput, open_samtools_output

DRAW = random.Random(91)
GENOME = {**small_genome(DRAW), "iupac": random_bases(DRAW, 900, "ACGT" * 9 + "NRYKM")}
#: Many reads at one position on both strands, for ties.
READS = [
    *draw_reads(DRAW, GENOME, 400),
    *(Read(f"same {number}", GENOME["one"][50:130], "I" * 80) for number in range(20)),
    Read("empty", "", ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, reads, and their BAM."""
    folder = write_inputs(tmp_path_factory.mktemp("samtools"), GENOME, READS)
    assert search_in(folder, "plain.bam") == 0
    return folder


def test_cram_has_the_records_of_bam(folder: Path) -> None:
    assert search_in(folder, "out.cram") == 0
    assert records_of(folder / "out.cram", folder / "ref.fa") == records_of(folder / "plain.bam")
    header = header_of(folder / "out.cram")
    assert header[:-1] == header_of(folder / "plain.bam")[:-1]
    assert not any("UR:" in line for line in header)
    assert (folder / "out.cram").stat().st_size < (folder / "plain.bam").stat().st_size
    assert "SO:unsorted" in header[0]


def test_exact_occurrences_as_cram(folder: Path) -> None:
    for name in ("exact.cram", "exact.bam"):
        assert search_in(folder, name, "--exact") == 0
    fields = [
        [(*line.split("\t")[:11], [tag for tag in line.split("\t") if tag.startswith("NH")]) for line in lines]
        for lines in (records_of(folder / "exact.cram", folder / "ref.fa"), records_of(folder / "exact.bam"))
    ]
    assert fields[0] == fields[1]
    assert len(fields[0]) > len(READS)


# The sink alone.

CONTIGS = [Contig("one", 1000, "0" * 32)]


def opened(path: Path, indexed: bool = True) -> SamtoolsOutput:
    letters = ([np.frombuffer(b"ACGT" * 250, np.uint8)] for _ in CONTIGS)
    return open_samtools_output(str(path), CONTIGS, letters, 1, indexed)


def bam(lines: int) -> bytes:
    """Return uncompressed BAM: a header and unmapped records of random bases, which compress little."""
    name, size = b"a read\0", 100
    fixed = np.array([-1, -1, len(name) | 4680 << 16, 4 << 16, 2 * size, -1, -1, 0], np.int32).tobytes() + name
    length = np.int32(len(fixed) + 3 * size).tobytes()
    draw = random.Random(lines)
    records = (length + fixed + draw.randbytes(size) + b"\xff" * (2 * size) for _ in range(lines))
    return header(CONTIGS, "1", "x", b"", SamEncoding.BINARY) + b"".join(records)


def write_all(out: SamtoolsOutput, data: bytes) -> None:
    for begin in range(0, len(data), 100_000):
        out.write(data[begin : begin + 100_000])
    out.commit()


def children() -> set[int]:
    """Return the child processes that have not been waited for."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread of an earlier test may end now
            found |= {int(number) for number in (task / "children").read_text().split()}
    return found


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_an_uncommitted_output_leaves_no_file(tmp_path: Path, error: type[BaseException] | None) -> None:
    before = children()
    (tmp_path / "out.cram").write_bytes(b"old")
    try:
        with opened(tmp_path / "out.cram") as out:
            assert out.name == str(tmp_path / "out.cram")
            out.write(bam(100))
            assert len(names_in(tmp_path)) > 1
            if error:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    assert names_in(tmp_path) == ["out.cram"]
    assert (tmp_path / "out.cram").read_bytes() == b"old"
    assert children() == before


def test_invalid_bam(tmp_path: Path) -> None:
    for data in (b"no BAM at all", bam(3)[:-5]):
        with opened(tmp_path / "out.cram") as out, pytest.raises(OSError, match=r"samtools view failed; .") as error:
            write_all(out, data)
        assert error.value.filename == str(tmp_path / "out.cram")
        assert "\n" not in str(error.value)
        assert names_in(tmp_path) == []


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    before = children()
    with opened(tmp_path / "out.cram", indexed=False) as out:
        (number,) = children() - before
        os.kill(number, signal.SIGKILL)
        with pytest.raises(OSError, match=r"writing failed .*: samtools view ended by signal 9"):
            write_all(out, bam(5000))
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_a_full_disk_names_the_file(tmp_path: Path, indexed: bool) -> None:
    with file_size_limit(1 << 20), opened(tmp_path / "out.cram", indexed) as out:
        with pytest.raises(OSError, match=r"samtools \w+ failed") as error:
            write_all(out, bam(20_000))
        assert error.value.filename == str(tmp_path / "out.cram")
    assert names_in(tmp_path) == []


def test_scratch_goes_to_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    with opened(tmp_path / "out" / "out.cram") as out:
        assert len(names_in(tmp_path / "scratch")) == 1
        write_all(out, bam(10))
    assert names_in(tmp_path / "scratch") == []
    assert names_in(tmp_path / "out") == ["out.cram", "out.cram.crai"]


@pytest.mark.parametrize("options", [["--sort"], []])
def test_a_signal_in_the_middle_leaves_nothing(folder: Path, tmp_path: Path, options: list[str]) -> None:
    command = [sys.executable, "-m", "readmap", "search", "-", "-x", str(folder / "ref.fa"), "-o", "out.cram"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    environment.pop("TMPDIR", None)
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*command, "--device=cpu", "-q", *options], cwd=tmp_path, env=environment, **pipes)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(fastq(READS))
    process.stdin.flush()
    end = time.monotonic() + 60
    started: set[str] = set()
    while not started and time.monotonic() < end:
        started = set(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    process.stdin.close()
    assert process.stderr.read() == b"readmap: interrupted by SIGTERM\n"
    assert names_in(tmp_path) == []
    assert started
    assert not any(Path("/proc", number).exists() for number in started)


def test_letters_of_the_reference() -> None:
    reference = index_of(GENOME).reference
    draw = random.Random(5)
    for number, bases in enumerate(GENOME.values()):
        start = int(reference.contig_starts[number])
        for _ in range(100):
            begin = draw.randrange(len(bases))
            end = draw.randrange(begin, len(bases) + 1)
            assert reference.letters(start + begin, start + end).tobytes() == bases[begin:end].encode()


FAILING = """
import runpy, sys
import pysam
def view(*_, **__): raise OSError(5, "Input/output error")
pysam.samtools.view = view
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class SlowFile:
    """A pipe that takes a while to close; no other thread may close it meanwhile."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._one = threading.Lock()

    def close(self) -> None:
        assert self._one.acquire(blocking=False), "two threads at once"
        time.sleep(0.01)
        self._file.close()
        self._one.release()


def test_two_threads_do_not_close_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Samtools("head", "-") as command:
        for attribute in ("stdin", "stdout"):
            monkeypatch.setattr(command._process, attribute, SlowFile(getattr(command._process, attribute)))
        monkeypatch.setattr(command, "input", command._process.stdin)
        with ThreadPoolExecutor(4) as pool:
            for ended in [pool.submit(end) for end in (command.close, command.end_input) * 2]:
                ended.result()


def test_a_failure_of_pysam_is_one_line() -> None:
    command = [sys.executable, "-c", FAILING, str(SCRIPT), str(os.getpid()), "view", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "[Errno 5] Input/output error\n")
