"""Commands in this process: what they read, and how they fail."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def failures(run: Callable[..., int]) -> Callable[..., str]:
    """A function: what a run that fails reports, one line; it writes nothing else, and leaves no file behind."""

    def failure(capfd: pytest.CaptureFixture[str], *arguments: str | Path, code: int) -> str:
        before = sorted(os.listdir())
        assert run(*arguments) == code
        captured = capfd.readouterr()
        message = re.sub(r"\Abuilding needs .+\n", "", captured.err)
        assert re.fullmatch(r"readmap: error: .+\n", message), message
        assert captured.out == ""
        assert sorted(os.listdir()) == before
        return message.removeprefix("readmap: error: ").strip()

    return failure


@contextlib.contextmanager
def standard_input(file: str | int) -> Iterator[None]:
    """A file by its name, or an open descriptor, which is closed, is standard input."""
    saved, descriptor = os.dup(0), os.open(file, os.O_RDONLY) if isinstance(file, str) else file
    os.dup2(descriptor, 0)
    os.close(descriptor)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
