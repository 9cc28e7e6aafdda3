"""Help texts without the types of Python, which newer versions of typer show beside arguments and --help."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from readmap.cli.common.options import FLAG


def _without_types(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if one.param_type_name == "argument":
            one.display_type_rich = lambda ctx: None
        elif one.name == "help":
            one.metavar = FLAG
    return parameters


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:
        """Those that the help shows."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """The program, with its commands."""

    def get_params(self, ctx: Any) -> Any:
        """Those that the help shows."""
        return _without_types(super().get_params(ctx))
