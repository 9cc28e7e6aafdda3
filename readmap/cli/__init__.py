"""The command line: parse, call, exit code."""

from __future__ import annotations

from readmap.cli.common import numerics as numerics  # isort: split

import shlex
import sys
import time
from typing import Annotated

import typer

from readmap.cli import compile, index, info
from readmap.cli.common.guard import MISUSED, guarded, leave
from readmap.cli.common.options import FLAG
from readmap.cli.common.report import Session
from readmap.cli.compare import command as compare
from readmap.cli.scan import command as scan
from readmap.cli.search import command as search
from readmap.version import __version__

app = typer.Typer(
    name="readmap",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("index", epilog=index.EXAMPLES)(index.index)
for name in ("search", "map"):
    # Its -h is bwa mem's.
    settings = {"help_option_names": ["--help"]}
    app.command(name, epilog=search.EXAMPLES, hidden=name == "map", context_settings=settings)(search.search)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("scan", epilog=scan.EXAMPLES)(scan.scan)
app.command("info", epilog=info.EXAMPLES)(info.info)
app.command("compile", epilog=compile.EXAMPLES)(compile.compile)


EXAMPLES = """[bold]Start with[/]
  $ readmap index ref.fa
  $ readmap search reads.fq -x ref.fa -o out.sam
  $ readmap compare one.fa other.fa
  $ readmap scan query.fa proteins.fa"""


def _version(asked: bool) -> None:
    if asked:
        print(f"readmap {__version__}")
        raise typer.Exit


@app.callback(epilog=EXAMPLES)
def readmap(
    version: Annotated[
        bool, typer.Option("--version", metavar=FLAG, callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Map short DNA reads to a reference, or align sequences, on a GPU where there is one, else on the CPU."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 (data, machine), 2 (usage) or 130 (interrupt).

    argv: the arguments behind `readmap`; None takes the process's own and, after a failure, ends the process.
    """
    arguments = sys.argv[1:] if argv is None else argv
    session = Session(shlex.join(["readmap", *arguments]), time.perf_counter())

    def command() -> object:
        return typer.main.get_command(app).main(arguments or ["--help"], "readmap", standalone_mode=False, obj=session)

    code = guarded(command, debug="--debug" in arguments)
    if not arguments:
        code = MISUSED
    if argv is None and code:
        leave(code)
    return code
