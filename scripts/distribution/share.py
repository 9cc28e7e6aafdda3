"""Write the manual pages and shell completions of readmap, with click-man and typer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from click_man.man import ManPage
from typer.completion import get_completion_script

from readmap.cli import COMMANDS, COMPLETION_VARIABLE, application
from readmap.version import __version__

#: Where each shell looks for the completions of a command, below a prefix's share/.
COMPLETIONS = {
    "bash": "bash-completion/completions/readmap",
    "zsh": "zsh/site-functions/_readmap",
    "fish": "fish/vendor_completions.d/readmap.fish",
}

#: Characters that roff would interpret.
ROFF = str.maketrans({"\\": r"\e", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})


def write_share(folder: Path) -> None:
    """Write share/man/man1/*.1 and the completion scripts of bash, zsh and fish below `folder`."""
    write_manual_pages(folder / "man/man1")
    for shell, name in COMPLETIONS.items():
        script = get_completion_script(prog_name="readmap", complete_var=COMPLETION_VARIABLE, shell=shell)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(script + "\n")


def write_manual_pages(folder: Path) -> None:
    """Write readmap.1 and readmap-COMMAND.1 of each command that the help lists into `folder`.

    click-man's write_man_pages does not recognize typer's options, because typer contains its own copy of click.
    """
    folder.mkdir(parents=True, exist_ok=True)
    group: Any = typer.main.get_command(application(COMMANDS))
    root = typer.Context(group, info_name="readmap", **group.context_settings)
    listed = {name: command for name, command in group.commands.items() if not command.hidden}
    pages = {"readmap": page(root)}
    pages["readmap"].commands = [(name, summary(command)) for name, command in listed.items()]
    for name, command in listed.items():
        pages[f"readmap-{name}"] = page(typer.Context(command, parent=root, info_name=name, **command.context_settings))
    for name, one in pages.items():
        (folder / f"{name}.1").write_text(str(one))


def page(context: Any) -> ManPage:
    """Return the page of the command of a typer context."""
    command = context.command
    one = ManPage(context.command_path)
    one.version, one.short_help = __version__, summary(command)
    one.synopsis = " ".join(command.collect_usage_pieces(context))
    one.description = command.help.translate(ROFF)
    records = [parameter.get_help_record(context) for parameter in command.get_params(context) if not parameter.hidden]
    one.options = [(names.translate(ROFF), text.translate(ROFF)) for names, text in records]
    return one


def summary(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return str(command.help.split("\n\n")[0].rstrip(".").translate(ROFF))
