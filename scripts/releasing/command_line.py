"""The commands of readmap and their options, as the command line itself declares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer
from rich.text import Text

from readmap.cli import COMMANDS, application

#: The panel of options that name none.
OPTIONS = "Options"

#: Endings of the metavars by which an option's value is known to be a file or a folder.
PATHS = ("FILE", "DIR", "FOLDER", "INDEX", "FILE.html", "REF")


@dataclass(frozen=True)
class Parameter:
    """An argument or an option.

    names: an option's, the short ones first; an argument's is its metavar. metavar: "" of an option without a value.
    """

    names: tuple[str, ...]
    metavar: str
    help: str
    panel: str
    required: bool
    repeated: bool

    @property
    def takes_path(self) -> bool:
        """Whether the value of an option is a file or a folder."""
        return self.metavar in PATHS


@dataclass(frozen=True)
class Command:
    """A command. name: "" is readmap without one. paragraphs: the first one is its summary; examples: its lines."""

    name: str
    paragraphs: tuple[str, ...]
    arguments: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    examples: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name of its page."""
        return f"readmap-{self.name}" if self.name else "readmap"


def commands() -> list[Command]:
    """readmap itself, then the commands that its help shows, in that order."""
    group: Any = typer.main.get_command(application(COMMANDS))
    context = typer.Context(group, info_name="readmap", **group.context_settings)
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    contexts = {
        name: typer.Context(command, parent=context, info_name=name, **command.context_settings)
        for name, command in shown.items()
    }
    return [_command("", group, context), *(_command(name, shown[name], each) for name, each in contexts.items())]


def plain(text: str) -> str:
    """Help text without rich's marks, in one line."""
    return " ".join(Text.from_markup(text).plain.split())


def _command(name: str, command: Any, context: typer.Context) -> Command:
    visible = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    lines = Text.from_markup(command.epilog or "").plain.splitlines()
    return Command(
        name,
        tuple(plain(paragraph) for paragraph in command.help.split("\n\n")),
        tuple(_argument(each) for each in visible if each.param_type_name == "argument"),
        tuple(_option(each) for each in visible if each.param_type_name == "option"),
        tuple(line.strip().removeprefix("$ ") for line in lines[1:] if line.strip()),
    )


def _argument(parameter: Any) -> Parameter:
    metavar = parameter.metavar or parameter.name.upper()
    repeated = parameter.nargs != 1
    return Parameter((metavar,), metavar, plain(parameter.help or ""), "Arguments", parameter.required, repeated)


def _option(parameter: Any) -> Parameter:
    names = sorted((*parameter.opts, *parameter.secondary_opts), key=lambda name: name.startswith("--"))
    text = plain(parameter.help or "")
    if parameter.show_default and parameter.default not in (None, False, True):
        text += f" (default: {parameter.default})"
    panel = getattr(parameter, "rich_help_panel", None) or OPTIONS
    return Parameter(
        tuple(names), parameter.metavar or "", text, panel, parameter.required, getattr(parameter, "multiple", False)
    )
