"""Signals interrupt the main thread everywhere, and leave no lock taken."""

import contextlib
import functools
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from readmap.cli import main
from readmap.cli.common.guard import FAILED, OUT_OF_MEMORY, SIGNALLED, SIGNALS, in_background, run_guarded
from readmap.errors import IndexFolderError
from readmap.formats.array_folder import FolderKind

SECONDS = 20


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """Restore signals that the caller of the tests ignores, because an ignored signal stays ignored."""
    before = [signal.signal(number, signal.SIG_DFL) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def test_a_signal_that_does_not_end_a_wait(capfd: pytest.CaptureFixture[str]) -> None:
    """Another thread receives the signal, so the main thread does not notice it, as just before a wait."""

    def wait(catcher: threading.Thread, wait: functools.partial[object]) -> None:
        catcher.start()
        wait()

    lock = threading.Lock()
    lock.acquire()
    waits = [
        functools.partial(lock.acquire, timeout=SECONDS),
        functools.partial(queue.Queue().get, timeout=SECONDS),
        functools.partial(queue.SimpleQueue().get, timeout=SECONDS),
        functools.partial(in_background, lambda: time.sleep(SECONDS)),
    ]
    for number in SIGNALS:
        for each in waits:
            began = time.monotonic()

            def catch() -> None:
                time.sleep(0.05)
                signal.pthread_kill(threading.get_ident(), number)  # noqa: B023

            assert (
                run_guarded(functools.partial(wait, threading.Thread(target=catch), each), debug=True)
                == SIGNALLED + number
            )
            assert time.monotonic() - began < SECONDS / 2
    told = ["interrupted", *(f"interrupted by {number.name}" for number in SIGNALS[1:])]
    assert capfd.readouterr().err == "".join(f"readmap: {line}\n" * len(waits) for line in told)


def test_a_signal_while_threads_write_many_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The main thread does not stop between two blocks."""
    write, block = os.pwrite, 8

    def slowly(*arguments: Any) -> int:
        time.sleep(0.001)
        return write(*arguments)

    def work() -> None:
        with FolderKind("index", "readmap index", 1, IndexFolderError, len, block).writing(
            tmp_path / "x", 1, False
        ) as output:
            output.add("blocks", np.zeros(SECONDS * 1000, np.uint64))
            threading.Timer(0.05, signal.raise_signal, [signal.SIGTERM]).start()
            output.finish()

    monkeypatch.setattr(os, "pwrite", slowly)
    began = time.monotonic()
    assert run_guarded(work, debug=True) == SIGNALLED + signal.SIGTERM
    assert time.monotonic() - began < SECONDS / 2
    assert not [*tmp_path.iterdir()]


def test_a_signal_while_a_lock_is_taken() -> None:
    """An exception after `acquire` and before the block would leave the lock taken."""
    left = []
    lock = SimpleNamespace(
        acquire=None,
        release=None,
        __enter__=functools.partial(signal.raise_signal, signal.SIGTERM),
        __exit__=lambda *_: left.append("the lock"),
    )

    def work() -> None:
        with threading.Condition(lock):  # type: ignore[arg-type]
            time.sleep(SECONDS)

    began = time.monotonic()
    assert run_guarded(work, debug=True) == SIGNALLED + signal.SIGTERM
    assert left == ["the lock"]
    assert time.monotonic() - began < SECONDS / 2


def test_an_exception_after_an_interrupt_is_an_interrupt(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            raise RuntimeError("release unlocked lock")

    assert run_guarded(work, debug=True) == SIGNALLED + signal.SIGTERM
    assert capfd.readouterr().err == "readmap: interrupted by SIGTERM\n"


class WithoutMemory(threading.Thread):
    """A thread without memory for its first line."""

    def _bootstrap(self) -> None:
        raise MemoryError


def test_a_thread_that_cannot_start(capfd: pytest.CaptureFixture[str]) -> None:
    """The starter waits for the thread: the main thread, or a thread for which the main thread waits."""

    def caught() -> int:
        with contextlib.suppress(KeyboardInterrupt):
            WithoutMemory().start()
        return 0

    hook = sys.unraisablehook
    for begin in (lambda: WithoutMemory().start(), lambda: in_background(lambda: WithoutMemory().start()), caught):
        assert run_guarded(begin, debug=False) == OUT_OF_MEMORY == 137
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 3
    expected = "readmap: error: not enough memory: to start a thread; .+ are available"
    assert all(re.fullmatch(expected, line) for line in lines)
    assert sys.unraisablehook is hook


def test_memory_of_the_device(capfd: pytest.CaptureFixture[str]) -> None:
    """Exhausted device memory has exit code 1: more host memory would not help."""
    error = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})("8 bytes")

    def follow() -> None:
        raise MemoryError from error

    def fail() -> None:
        raise error

    assert run_guarded(fail, debug=False) == run_guarded(follow, debug=False) == FAILED
    assert capfd.readouterr().err == (
        "readmap: error: not enough GPU memory: 8 bytes\nreadmap: error: not enough GPU memory\n"
    )


@pytest.mark.parametrize("number", SIGNALS)
def test_the_process_ends_by_the_signal(number: signal.Signals) -> None:
    """Shells, make and schedulers see which signal ended the process."""
    code = "import time; from readmap.cli.common import guard; guard.exit_process(guard.run_guarded(work, False))"
    work = "import sys\ndef work():\n    print(flush=True)\n    time.sleep(60)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{work}{code}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_usual
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == -number
    assert errors.startswith(b"readmap: interrupted")


def _usual() -> None:
    """Python handles a signal that its parent no longer ignores."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def test_handlers_are_restored() -> None:
    handlers = [signal.getsignal(number) for number in SIGNALS]
    threads = set(threading.enumerate())

    def fail() -> None:
        raise ValueError

    assert run_guarded(lambda: 0, debug=False) == 0
    assert run_guarded(fail, debug=False) == FAILED
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
    assert signal.set_wakeup_fd(-1) == -1
    assert set(threading.enumerate()) <= threads


def test_an_interrupt_before_the_command_begins(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.main.get_command", interrupted)
    assert main(["info"]) == 130
    assert capfd.readouterr().err == "readmap: interrupted\n"
