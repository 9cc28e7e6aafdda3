"""Signals are heard wherever the main thread is, and leave no lock locked."""

import contextlib
import functools
import os
import queue
import signal
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
from readmap.cli.common.guard import FAILED, INTERRUPTED, guarded, in_background
from readmap.errors import IndexFolderError
from readmap.formats.array_folder import FolderKind

SECONDS = 20
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """A process that runs tests may ignore a signal, and what the caller ignores stays ignored."""
    before = [signal.signal(number, signal.SIG_DFL) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def test_a_signal_that_does_not_end_a_wait(capfd: pytest.CaptureFixture[str]) -> None:
    """Another thread catches it, so that it reaches the main thread as one does just before a wait: not at all."""

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

            assert guarded(functools.partial(wait, threading.Thread(target=catch), each), debug=True) == INTERRUPTED
            assert time.monotonic() - began < SECONDS / 2
    assert capfd.readouterr().err == "readmap: interrupted\n" * 3 * len(waits)


def test_a_signal_while_threads_write_many_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Between two of which the main thread would not stand still."""
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
    assert guarded(work, debug=True) == INTERRUPTED
    assert time.monotonic() - began < SECONDS / 2
    assert not [*tmp_path.iterdir()]


def test_a_signal_while_a_lock_is_taken() -> None:
    """An exception behind the taking and in front of the block would leave the lock locked."""
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
    assert guarded(work, debug=True) == INTERRUPTED
    assert left == ["the lock"]
    assert time.monotonic() - began < SECONDS / 2


def test_what_comes_of_an_interrupt_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            raise RuntimeError("release unlocked lock")

    assert guarded(work, debug=True) == INTERRUPTED
    assert capfd.readouterr().err == "readmap: interrupted\n"


class WithoutMemory(threading.Thread):
    """One that finds none for its first line."""

    def _bootstrap(self) -> None:
        raise MemoryError


def test_a_thread_that_cannot_begin(capfd: pytest.CaptureFixture[str]) -> None:
    """What starts it waits until it has begun: the main thread, or another for which that waits."""

    def caught() -> int:
        with contextlib.suppress(KeyboardInterrupt):
            WithoutMemory().start()
        return INTERRUPTED

    hook = sys.unraisablehook
    for begin in (lambda: WithoutMemory().start(), lambda: in_background(lambda: WithoutMemory().start()), caught):
        assert guarded(begin, debug=False) == FAILED
    assert capfd.readouterr().err == "readmap: error: the memory does not suffice: to start a thread\n" * 3
    assert sys.unraisablehook is hook


def test_handlers_are_as_before() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    threads = threading.active_count()

    def fail() -> None:
        raise ValueError

    assert guarded(lambda: 0, debug=False) == 0
    assert guarded(fail, debug=False) == FAILED
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
    assert signal.set_wakeup_fd(-1) == -1
    assert threading.active_count() == threads


def test_an_interrupt_before_the_command_begins(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.main.get_command", interrupted)
    assert main(["info"]) == 130
    assert capfd.readouterr().err == "readmap: interrupted\n"
