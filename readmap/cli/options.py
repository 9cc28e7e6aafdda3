"""Options that several commands share, and the values that need more than a type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from readmap.errors import UsageError

REPORTS = "Reports"
RESOURCES = "Resources"

#: The metavar of an option that takes no value, which typer would otherwise call <bool>.
FLAG = ""


def in_range(least: int, most: int) -> Callable[[int | None], int | None]:
    """A check of an option's value, which typer calls; its own min and max would crowd the help."""

    def check(value: int | None) -> int | None:
        if value is not None and not least <= value <= most:
            raise typer.BadParameter(f"{value} is not in the range {least} to {most}.")
        return value

    return check


def one_of(names: Iterable[str]) -> Callable[[str | None], str | None]:
    """A check of an option's value, which typer calls; an enumeration's names would crowd the help as well."""
    known = tuple(names)

    def check(value: str | None) -> str | None:
        if value is not None and value not in known:
            raise typer.BadParameter(f"expected {', '.join(known[:-1])} or {known[-1]}, found {value!r}.")
        return value

    return check


def given_options(context: typer.Context) -> dict[str, Any]:
    """The options that the command line names, by the names of their parameters."""
    return {
        option.name: option
        for option in context.command.params
        if option.name and getattr(context.get_parameter_source(option.name), "name", "") == "COMMANDLINE"
    }


def device_option(automatic: str) -> Any:
    """--device; automatic: what auto takes."""
    return typer.Option(
        "--device",
        metavar="NAME",
        help=f"cpu, cuda, cuda:N or auto, {automatic} (default: auto).",
        show_default=False,
        rich_help_panel=RESOURCES,
    )


Threads = Annotated[
    int | None,
    typer.Option(
        "-t",
        "--threads",
        metavar="N",
        callback=in_range(1, 1024),
        help="CPU threads (default: the processors that this process may use).",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "-q", "--quiet", metavar=FLAG, help="Errors and nothing else.", show_default=False, rich_help_panel=REPORTS
    ),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the report for programs there; - is standard output.",
        show_default=False,
        rich_help_panel=REPORTS,
    ),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug", metavar=FLAG, help="Show an error's traceback.", show_default=False, rich_help_panel=REPORTS
    ),
]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(option: str, text: str) -> int:
    """The bytes of a size such as 500M or 1.5G, in powers of 1024; raises UsageError where it is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if size < 1:
        raise UsageError(f"{option} {text}: expected a size such as 8G or 500M")
    return size
