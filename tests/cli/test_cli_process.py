"""readmap as a separate process: pipes, signals, terminals, and several processes at once."""

import contextlib
import gzip
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import after_log_start

ROOT = Path(__file__).resolve().parents[2]
READS = ROOT / "data/demo.fq.gz"
READMAP = [sys.executable, "-m", "readmap"]
SECONDS = 60

Process = subprocess.Popen[bytes]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return environment variables with which a process finds this readmap, and no index."""
    monkeypatch.delenv("READMAP_INDEX", raising=False)
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "TERM": "xterm"}


def started(environment: dict[str, str], folder: Path, *arguments: str | Path, **streams: Any) -> Process:
    def restore_signals() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):  # the caller of the tests may ignore them
            signal.signal(number, signal.SIG_DFL)

    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    command = [*READMAP, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, cwd=folder, preexec_fn=restore_signals, **streams)


def ended(process: Process, data: bytes | None = None) -> tuple[int, bytes, bytes]:
    """Wait for a process; return its exit code, standard output and standard error."""
    try:
        out, err = process.communicate(data, timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, out, err


def records(sam: bytes) -> list[bytes]:
    return [line for line in sam.splitlines() if not line.startswith(b"@")]


@contextlib.contextmanager
def deadline() -> Iterator[Any]:
    """Yield a function that sleeps briefly, and fails the test after SECONDS."""
    end = time.monotonic() + SECONDS

    def wait() -> None:
        assert time.monotonic() < end
        time.sleep(0.01)

    yield wait


def test_reference_and_reads_from_standard_input(environment: dict[str, str], tmp_path: Path, demo_index: Path) -> None:
    plain = gzip.decompress((ROOT / "data/demo.fa.gz").read_bytes())
    index = started(environment, tmp_path, "index", "-", "-o", "a.readmap", "-q", stdin=subprocess.PIPE)
    assert ended(index, plain) == (0, b"", b"")
    outputs = []
    for data, name in ((READS.read_bytes(), demo_index), (gzip.decompress(READS.read_bytes()), "a.readmap")):
        search = started(environment, tmp_path, "search", "-", "-x", name, "-q", "--device=cpu", stdin=subprocess.PIPE)
        code, out, err = ended(search, data)
        assert (code, err) == (0, b"")
        outputs.append(records(out))
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 5000


@pytest.mark.parametrize(
    ("number", "packed"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, True)],
    ids=["INT, plain", "INT, gzip", "TERM, plain", "HUP, gzip"],
)
def test_a_signal_ends_a_search_that_waits(
    environment: dict[str, str], tmp_path: Path, demo_index: Path, number: int, packed: bool
) -> None:
    """The input stops in the middle; the temporary file of the output shows that the work has started."""
    (tmp_path / "out.sam").write_text("before")
    arguments = ("search", "-", "-x", demo_index, "-o", "out.sam", "--device", "cpu", "--json", "report.json")
    process = started(environment, tmp_path, *arguments, stdin=subprocess.PIPE)
    data = READS.read_bytes()
    assert process.stdin is not None
    process.stdin.write(data[: len(data) // 2] if packed else gzip.decompress(data)[:300_000])
    process.stdin.flush()
    with deadline() as wait:
        while not list(tmp_path.glob(".out.sam.*")):
            wait()
    time.sleep(0.1)
    began = time.monotonic()
    process.send_signal(number)
    process.wait(SECONDS)
    assert time.monotonic() - began < 2
    process.stdin.close()
    assert process.stderr is not None
    by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    message = after_log_start(process.stderr.read().decode())
    assert (process.returncode, message) == (-number, f"readmap: interrupted{by}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out.sam"]
    assert (tmp_path / "out.sam").read_text() == "before"


def test_an_ignored_signal_stays_ignored(environment: dict[str, str], tmp_path: Path, demo_index: Path) -> None:
    search = [*READMAP, "search", "-", "-x", str(demo_index), "-o", "out.sam", "--device", "cpu", "-q"]
    process = subprocess.Popen(
        search,
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    with deadline() as wait:
        while not list(tmp_path.glob(".out.sam.*")):
            wait()
    process.send_signal(signal.SIGHUP)
    process.communicate(READS.read_bytes(), timeout=SECONDS)
    assert process.returncode == 0
    assert len(records((tmp_path / "out.sam").read_bytes())) == 5000


def test_a_signal_ends_a_build_in_the_middle_of_sorting(environment: dict[str, str], tmp_path: Path) -> None:
    """The sorter is one C call of some seconds; the progress shows that it runs."""
    (tmp_path / "ref.fa").write_bytes(b">a\n" + b"ACGTTGCA" * 4_000_000 + b"\n")
    reader, terminal = pty.openpty()
    process = started(environment, tmp_path, "index", "ref.fa", stderr=terminal)
    shown = b""
    while b"sorting suffixes" not in shown:
        shown += os.read(reader, 1 << 16)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == -signal.SIGTERM
    assert time.monotonic() - began < 1.5
    os.close(terminal)
    os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["ref.fa"]


def test_a_closed_pipe_is_quiet(environment: dict[str, str], tmp_path: Path, demo_index: Path) -> None:
    process = started(environment, tmp_path, "search", READS, "-x", demo_index, "--device", "cpu")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"@HD")
    process.stdout.close()
    assert process.wait(SECONDS) == 1
    assert after_log_start(process.stderr.read().decode()) == ""
    reader, writer = os.pipe()
    os.close(reader)
    assert ended(started(environment, tmp_path, "info", demo_index, stdout=writer))[::2] == (1, b"")
    os.close(writer)


def test_full_and_closed_streams(environment: dict[str, str], tmp_path: Path, demo_index: Path) -> None:
    with open("/dev/full", "wb") as full:
        search = started(environment, tmp_path, "search", READS, "-x", demo_index, "--device", "cpu", stdout=full)
        code, _, err = ended(search)
        message = after_log_start(err.decode())
        assert (code, message) == (1, "readmap: error: standard output: No space left on device\n")
        code, _, err = ended(started(environment, tmp_path, "info", demo_index, stdout=full))
        assert (code, err.count(b"\n")) == (1, 1)
        assert b"No space left on device" in err
        # Messages that cannot be printed do not stop the work.
        arguments = ("search", READS, "-x", demo_index, "-o", "out.sam", "--device", "cpu")
        assert ended(started(environment, tmp_path, *arguments, stderr=full))[0] == 0
    assert len(records((tmp_path / "out.sam").read_bytes())) == 5000
    closed = subprocess.run(
        f'"{sys.executable}" -m readmap search "{READS}" -x "{demo_index}" --device cpu >&-',
        shell=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
    )
    message = after_log_start(closed.stderr.decode())
    assert (closed.returncode, message) == (1, "readmap: error: standard output: Bad file descriptor\n")


def on_terminal(environment: dict[str, str], folder: Path, *arguments: str | Path, stdout: Any) -> bytes:
    """Return the text on a terminal: standard error and, if `stdout` is missing, standard output of a command."""
    reader, terminal = pty.openpty()
    process = started(environment, folder, *arguments, stdout=terminal if stdout is None else stdout, stderr=terminal)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the other end of the terminal is closed
        while part := os.read(reader, 1 << 16):
            shown += part
    os.close(reader)
    assert process.wait(SECONDS) == 0
    return shown


def test_progress_is_for_terminals(environment: dict[str, str], tmp_path: Path, demo_index: Path) -> None:
    search = ("search", READS, "-x", demo_index, "--device", "cpu")
    shown = on_terminal(environment, tmp_path, *search, "-o", "out.sam", stdout=subprocess.DEVNULL)
    assert b"\x1b[" in shown
    assert b"5,000 reads, 4,9" in shown
    assert b"% mapped " in shown
    assert on_terminal(environment, tmp_path, *search, "-o", "out.sam", "-q", stdout=subprocess.DEVNULL) == b""
    shown = on_terminal(environment, tmp_path, *search, "--exact", "-o", "out.bed", stdout=subprocess.DEVNULL)
    assert re.search(rb"5,000 reads, [\d,]+ a second, [\d.]+% found, [\d,]+ occurrences ", shown)
    assert b"100% read: 5,000 reads, " in shown
    # No progress is shown if SAM goes to the same terminal.
    shown = on_terminal(environment, tmp_path, *search, stdout=None)
    assert b"\x1b[" not in shown
    assert b"@PG\t" in shown
    shown = on_terminal(environment, tmp_path, "index", ROOT / "data/demo.fa.gz", "-o", "x", stdout=subprocess.DEVNULL)
    assert b"writing" in shown


def test_many_start_with_an_empty_cache(environment: dict[str, str], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment["READMAP_CACHE"] = str(cache)
    (tmp_path / "ref.fa").write_text(">a\n" + "ACGTTGCA" * 100 + "\n")
    names = [f"{number}.readmap" for number in range(3)]
    processes = [started(environment, tmp_path, "index", "ref.fa", "-o", name, "-q") for name in names]
    assert [ended(process) for process in processes] == [(0, b"", b"")] * len(names)
    libraries = sorted(library.name.rsplit("-", 2)[0] for library in cache.iterdir())
    assert libraries == ["common-checksums", "common-host_threads", "index-codes", "index-fasta", "index-index"]
    arrays = {(tmp_path / name / "suffix_array.npy").read_bytes() for name in names}
    assert len(arrays) == 1
