"""The command line: parse, call, exit code."""

from __future__ import annotations

from readmap.cli.common import numerics as numerics  # isort: split

import gc
import importlib
import os
import shlex
import sys
import time
from collections.abc import Iterable
from typing import Annotated

import typer
from typer.completion import completion_init

from readmap.cli.common.guard import MISUSED, guarded, leave
from readmap.cli.common.help import Command, Group
from readmap.cli.common.options import FLAG
from readmap.cli.common.report import Session
from readmap.version import __version__

#: The modules of the commands, which have functions of their names.
COMMANDS = {
    "index": "readmap.cli.index",
    "search": "readmap.cli.search.command",
    "map": "readmap.cli.search.command",
    "estimate": "readmap.cli.estimate",
    "learn": "readmap.cli.estimate",
    "mem": "readmap.cli.mem",
    "compare": "readmap.cli.compare.command",
    "scan": "readmap.cli.scan.command",
    "split": "readmap.cli.split",
    "markdup": "readmap.cli.markdup",
    "merge": "readmap.cli.merge",
    "info": "readmap.cli.info",
    "compile": "readmap.cli.compile",
}

#: Further names of commands, which the help does not list.
ALIASES = {"map": "search", "learn": "estimate"}

#: The environment variable by which the completion scripts of the shells ask for words; typer's convention.
COMPLETION_VARIABLE = "_READMAP_COMPLETE"

EXAMPLES = """[bold]Start with[/]
  $ readmap index ref.fa
  $ readmap search reads.fq -x ref.fa -o out.sam
  $ readmap compare one.fa other.fa
  $ readmap scan query.fa proteins.fa"""


def _version(asked: bool) -> None:
    if asked:
        print(f"readmap {__version__}")
        raise typer.Exit


def readmap(
    version: Annotated[
        bool, typer.Option("--version", metavar=FLAG, callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Map short DNA reads to a reference, or align sequences, on a GPU where there is one, else on the CPU."""


def application(names: Iterable[str]) -> typer.Typer:
    """The command line with some of the commands, of which the modules are loaded."""
    settings = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(
        name="readmap", cls=Group, add_completion=False, rich_markup_mode="rich", context_settings=settings
    )
    app.callback(epilog=EXAMPLES)(readmap)
    for name in names:
        module = importlib.import_module(COMMANDS[name])
        function = getattr(module, ALIASES.get(name, name))
        # The -h of these is bwa mem's.
        own = {"help_option_names": ["--help"]} if name in ("search", "map", "mem") else None
        app.command(name, cls=Command, epilog=module.EXAMPLES, hidden=name in ALIASES, context_settings=own)(function)
    return app


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 (data, machine), 2 (usage), 137 (memory), 128 + n (a signal).

    argv: the arguments behind `readmap`; None takes the process's own, and ends the process.
    """
    arguments = sys.argv[1:] if argv is None else argv
    session = Session(shlex.join(["readmap", *arguments]), time.perf_counter())

    def command() -> object:
        # What a command does not need costs a tenth of a second.
        app = application(arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS)
        gc.enable()
        if COMPLETION_VARIABLE in os.environ:
            completion_init()
        return typer.main.get_command(app).main(arguments or ["--help"], "readmap", standalone_mode=False, obj=session)

    code = guarded(command, debug="--debug" in arguments)
    if not arguments:
        code = MISUSED
    if argv is None:
        leave(code)
    return code
