"""Checks that outputs are neither inputs nor each other, before a command does any work."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from readmap.errors import UsageError

#: Paths that stand for standard output.
STANDARD_OUTPUT = (None, "-")


def are_same(one: str, other: str) -> bool:
    """Return True if two paths name one file."""
    try:
        return one == other or os.path.samefile(one, other)
    except OSError:
        return False


def refuse_same_output(name: str, path: str | None, output: str | None, what: str = "the output goes") -> None:
    """Raise UsageError if the option `name` has the path `output`; what: the clause "... goes" of the message."""
    if path is None:
        return
    both_stdout = path == "-" and output in STANDARD_OUTPUT
    if both_stdout or (output and os.path.realpath(path) == os.path.realpath(output)):
        raise UsageError(f"{name} {path} is where {what}: name another file")


def refuse_same_outputs(outputs: Mapping[str, str | None], contents: Mapping[str, str]) -> None:
    """Raise UsageError if two options name one file. outputs: the main output first; contents: what goes to some."""
    (_, output), *others = outputs.items()
    for name, path in others:
        refuse_same_output(name, path, output)
    for index, (name, path) in enumerate(others):
        if path is not None and name in contents:
            for later, same in others[index + 1 :]:
                refuse_same_output(later, same, path, contents[name])


def refuse_inside(folder: Path, outputs: Mapping[str, str | None], use: str = "read") -> None:
    """Raise UsageError if an option names a file inside a folder that is being `use`."""
    for name, path in outputs.items():
        if path is not None and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise UsageError(f"{name} {path} is inside {folder}, which is being {use}: name another place")


def refuse_inputs(outputs: Mapping[str, str | None], inputs: Iterable[str], what: str) -> None:
    """Raise UsageError if an option names one of the input files; what: what the inputs contain."""
    paths = [*inputs]
    for name, path in outputs.items():
        if path is not None and os.path.isfile(path) and any(are_same(path, each) for each in paths):
            raise UsageError(f"{name} {path} is a file of the {what}")
