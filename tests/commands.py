"""Helpers for tests that run commands in this process."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def after_log_start(text: str) -> str:
    """Return the standard error of a command without the first lines of the log of work that has started."""
    return re.sub(r"\A(building needs .+\n|readmap \S+: readmap .+\nindex .+\n)", "", text)


def failures(run: Callable[..., int]) -> Callable[..., str]:
    """Return a function that runs a failing command and returns its error message.

    It asserts the exit code, a message of one line after the start of the log, no other output and no new file.
    """

    def failure(capfd: pytest.CaptureFixture[str], *arguments: str | Path, code: int) -> str:
        before = sorted(os.listdir())
        assert run(*arguments) == code
        captured = capfd.readouterr()
        message = after_log_start(captured.err)
        assert re.fullmatch(r"readmap: error: .+\n", message), message
        assert captured.out == ""
        assert sorted(os.listdir()) == before
        return message.removeprefix("readmap: error: ").strip()

    return failure


@contextlib.contextmanager
def standard_input(file: str | int) -> Iterator[None]:
    """Make a file, or an open descriptor, which is then closed, the standard input inside the context."""
    saved, descriptor = os.dup(0), os.open(file, os.O_RDONLY) if isinstance(file, str) else file
    os.dup2(descriptor, 0)
    os.close(descriptor)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
