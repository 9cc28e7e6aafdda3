"""The command line: parse the arguments, run the command, return its exit code."""

import gc
import importlib
import os
import shlex
import sys
import time
from collections.abc import Iterable
from typing import Annotated

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

from readmap.cli.common.guard import MISUSED, exit_process, run_guarded
from readmap.cli.common.help import FLAG, Command, Group
from readmap.cli.common.report import Session
from readmap.version import __version__

#: The module of each command, with a function of its name.
COMMANDS = {
    "index": "readmap.cli.index",
    "search": "readmap.cli.search.command",
    "map": "readmap.cli.search.command",
    "estimate": "readmap.cli.estimate",
    "learn": "readmap.cli.estimate",
    "mem": "readmap.cli.mem",
    "compare": "readmap.cli.compare",
    "scan": "readmap.cli.scan",
    "split": "readmap.cli.split",
    "markdup": "readmap.cli.markdup",
    "merge": "readmap.cli.merge",
    "info": "readmap.cli.info",
    "compile": "readmap.cli.compile",
}
#: Other names of commands; the help does not list them.
ALIASES = {"map": "search", "learn": "estimate"}
#: Environment variable with which the completion scripts of shells call readmap; typer's convention.
COMPLETION_VARIABLE = "_READMAP_COMPLETE"
EXAMPLES = """[bold]First steps[/]
  $ readmap index ref.fa
  $ readmap search reads.fq -x ref.fa -o out.sam
  $ readmap compare one.fa other.fa
  $ readmap scan query.fa proteins.fa"""


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"readmap {__version__}")
        raise typer.Exit


def readmap(
    version: Annotated[
        bool, typer.Option("--version", metavar=FLAG, callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Map short DNA reads to a reference, or align sequences, on a GPU if available, else on the CPU."""


def application(names: Iterable[str]) -> typer.Typer:
    """Return the program with the named commands; only their modules are imported."""
    settings = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(
        name="readmap", cls=Group, add_completion=False, rich_markup_mode="rich", context_settings=settings
    )
    app.callback(epilog=EXAMPLES)(readmap)
    for name in names:
        module = importlib.import_module(COMMANDS[name])
        function = getattr(module, ALIASES.get(name, name))
        app.command(name, cls=Command, epilog=module.EXAMPLES, hidden=name in ALIASES)(function)
    return app


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 (data, machine), 2 (usage), 137 (memory), 128 + n (a signal).

    argv: the arguments after `readmap`; None for the arguments of the process, which then ends.
    """
    arguments = sys.argv[1:] if argv is None else argv
    session = Session(shlex.join(["readmap", *arguments]), time.perf_counter())

    def command() -> object:
        # Importing the other commands would take 0.1 s.
        app = application(arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS)
        gc.enable()
        if COMPLETION_VARIABLE in os.environ:
            completion_init()
        return typer.main.get_command(app).main(arguments or ["--help"], "readmap", standalone_mode=False, obj=session)

    code = run_guarded(command, debug="--debug" in arguments)
    if not arguments:
        code = MISUSED
    if argv is None:
        exit_process(code)
    return code
