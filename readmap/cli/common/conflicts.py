"""Options that contradict each other, refused before any work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from readmap.cli.common.report import STANDARD_OUTPUT
from readmap.errors import UsageError

#: Names of options in their dataclasses, whether giving one of them is wrong, and why.
Conflict = tuple[Iterable[str], Any, str]


def refuse(context: typer.Context, conflicts: Iterable[Conflict]) -> None:
    """Raise UsageError for the first of the conflicts that the options of the command line are in."""
    given = {
        option.name: option.opts[0]
        for option in context.command.params
        if option.name and getattr(context.get_parameter_source(option.name), "name", "") == "COMMANDLINE"
    }
    for names, wrong, message in conflicts:
        if found := [given[name] for name in names if wrong and name in given]:
            raise UsageError(f"{', '.join(found)}: {message}")


def are_same(one: str, other: str) -> bool:
    """Whether two names are of one file."""
    try:
        return one == other or os.path.samefile(one, other)
    except OSError:
        return False


def refuse_same_output(option: str, path: str | None, output: str | None, what: str = "the output goes") -> None:
    """Raise UsageError where an option names the file that something else goes to; what: that, for the message."""
    if path is None:
        return
    both_stdout = path == "-" and output in STANDARD_OUTPUT
    if both_stdout or (output and os.path.realpath(path) == os.path.realpath(output)):
        raise UsageError(f"{option} {path} is where {what}: name another file")


def refuse_same_outputs(outputs: Mapping[str, str | None], told: Mapping[str, str]) -> None:
    """Raise UsageError where two options name one file.

    outputs: by options, that of the output first. told: what goes to some of the others, for the message.
    """
    (_, output), *others = outputs.items()
    for option, path in others:
        refuse_same_output(option, path, output)
    for number, (option, path) in enumerate(others):
        if path is not None and option in told:
            for later, same in others[number + 1 :]:
                refuse_same_output(later, same, path, told[option])


def refuse_inside(folder: Path, options: Mapping[str, str | None], use: str = "read") -> None:
    """Raise UsageError where an option names a file inside a folder that is being read, or what `use` says."""
    for option, path in options.items():
        if path is not None and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise UsageError(f"{option} {path} is inside {folder}, which is being {use}: name another place")


def refuse_inputs(outputs: Mapping[str, str | None], inputs: Iterable[str], what: str) -> None:
    """Raise UsageError where an option names a file of the inputs; outputs: by options. what: the inputs are of."""
    for option, path in outputs.items():
        if path is not None and os.path.isfile(path) and any(are_same(path, each) for each in inputs):
            raise UsageError(f"{option} {path} is a file of the {what}")
