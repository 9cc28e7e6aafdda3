"""Options that contradict each other, refused before any work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

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
