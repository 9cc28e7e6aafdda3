"""Options that contradict each other, refused before any work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer

from readmap.errors import UsageError

#: Names of options in their dataclasses, whether giving one of them is wrong, and why.
Conflict = tuple[Iterable[str], Any, str]


def given_options(context: typer.Context) -> dict[str, str]:
    """Return the options of the command line: their first spelling by the name of their parameter."""
    return {
        option.name: option.opts[0]
        for option in context.command.params
        if option.name and getattr(context.get_parameter_source(option.name), "name", "") == "COMMANDLINE"
    }


@contextlib.contextmanager
def spelling_options(context: typer.Context, groups: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Replace names of options in a UsageError by the spelling of the command line, such as -o for `output`.

    groups: names of parameters that stand for one name; those on the command line are shown.
    """
    spelled = {option.name: option.opts[0] for option in context.command.params if option.name}
    given = given_options(context)

    def spell(name: str) -> str:
        members = groups.get(name, [name])
        shown = [given[one] for one in members if one in given] or [spelled[one] for one in members if one in spelled]
        return ", ".join(shown) or f"--{name.replace('_', '-')}"

    try:
        yield
    except UsageError as error:
        raise UsageError(error.spelled(spell)) from None


def refuse(context: typer.Context, conflicts: Iterable[Conflict]) -> None:
    """Raise UsageError for the first of the conflicts that the options of the command line are in."""
    given = given_options(context)
    for names, wrong, message in conflicts:
        if found := [given[name] for name in names if wrong and name in given]:
            raise UsageError(f"{', '.join(found)}: {message}")
