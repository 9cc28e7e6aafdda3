"""Reports of commands: lines and progress on standard error, and a record for programs."""

from __future__ import annotations

import contextlib
import json
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from readmap.cli.common.options import flag, option
from readmap.formats.output import Output, PendingOutput, commit_together, open_output
from readmap.formats.path_checks import STANDARD_OUTPUT
from readmap.formats.wording import format_bytes, format_duration
from readmap.version import __version__

#: Of the records that --json writes; a field that changes its meaning or goes makes it grow.
SCHEMA = 2

#: Between two lines of progress in a log.
LOG_SECONDS = 60.0

#: Columns of a terminal that has room for a bar beside the words.
WIDE = 100


@dataclass(frozen=True)
class Session:
    """One call of readmap: the command line as it was typed, and when it began (time.perf_counter)."""

    command_line: str
    began: float


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The reports that are wanted; readmap.cli.main looks for --debug itself, since parsing the options may fail."""

    panel: ClassVar = "Reports"

    quiet: bool = flag("-q --quiet", "Errors and nothing else.")
    json: str | None = option("--json", "Write the report for programs there; - is standard output.", "FILE")
    debug: bool = flag("--debug", "Show an error's traceback.")

    @property
    def prints(self) -> bool:
        """Whether standard output is for what people read."""
        return self.json != "-" and not self.quiet


class Show(Protocol):
    """Shows where the work is, in words.

    share: the part of the input that has been read, where that is known, which is told in front of the words. bar: the
    part that is done, where the words say so themselves.
    """

    def __call__(self, text: str, share: float | None = None, bar: float | None = None) -> None: ...


class TimeLeft:
    """How long the rest of some work takes, as the part that is done tells."""

    def __init__(self) -> None:
        self._began: float | None = None

    def told(self, share: float | None) -> str:
        """The part that is done and the time left, in words, in front of others; nothing where it is not known."""
        self._began = self._began or time.perf_counter()
        if not share:
            return ""
        left = (time.perf_counter() - self._began) * (1 - share) / share
        return f"{share:.0%} read" + (f", {format_duration(left)} left: " if share < 1 else ": ")


class _Log:
    """Says every minute where the work is."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._said, self._left = say, time.perf_counter(), TimeLeft()

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        """Say it, if it is time."""
        told = self._left.told(share) + text
        if time.perf_counter() - self._said >= LOG_SECONDS:
            self._said = time.perf_counter()
            self._say(told)


class Report:
    """The reports of one command; a context manager, which drops the record of a command that fails.

    command_line: as it was typed.

    The record's file is opened first, so that a place that cannot be written is known before the work.
    """

    def __init__(self, session: Session, options: ReportOptions) -> None:
        self.command_line, self._began = session.command_line, session.began
        self._quiet = options.quiet
        self._record: Output | None = open_output(options.json) if options.json is not None else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._record:
            self._record.abort()

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return time.perf_counter() - self._began

    def say(self, line: str) -> None:
        """Print a line on standard error, unless that is to be quiet, closed or full."""
        if not self._quiet and sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(line, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def progress(self, shares_terminal: bool = False) -> Iterator[Show]:
        """A function that shows where the work is: on a terminal that shows nothing else, or now and then in a log."""
        if self._quiet or shares_terminal or sys.stderr is None:
            yield lambda text, share=None, bar=None: None
            return
        if not sys.stderr.isatty():
            yield _Log(self.say).show
            return
        from rich.console import Console  # they take as long to load as half of a command
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console, words = Console(stderr=True), TextColumn("{task.description}", markup=False)
        bar = [BarColumn(20)] if console.width >= WIDE else []
        columns = (SpinnerColumn("line"), *bar, words, TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as shown:
            task, left = shown.add_task("starting", total=None), TimeLeft()

            def show(text: str, share: float | None = None, bar: float | None = None) -> None:
                done = share or bar
                shown.update(task, description=left.told(share) + text, total=done and 1.0, completed=done or 0.0)

            yield show

    def finish(self, record: dict[str, Any], outputs: Sequence[PendingOutput] = ()) -> None:
        """Write the outputs and the record, with what all commands report, if one is wanted; then they get their names.

        Raises OSError where one of them cannot be written; then none has its name.
        """
        for output in outputs:
            output.finish()  # so that the record has the time that this takes
        if self._record is None:
            return commit_together(outputs)
        common = {
            "schema": SCHEMA,
            "command": self.command_line,
            "versions": versions(),
            "total_seconds": round(self.seconds, 4),
            "peak_memory_bytes": peak_memory(),
        }
        self._record.write(json.dumps(common | record, indent=1).encode() + b"\n")
        commit_together([*outputs, self._record])

    def cost(self) -> str:
        """The time since the call began and the most memory, in words."""
        return f"{self.seconds:.2f} s in all, peak memory {format_bytes(peak_memory())}"


def is_terminal(output: str | None) -> bool:
    """Whether what is written there appears on the terminal."""
    return output in STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()


def versions() -> dict[str, str | None]:
    """Versions of readmap and of what its results or its speed depend on; CuPy's where it was loaded."""
    cupy = getattr(sys.modules.get("cupy"), "__version__", None)
    return {"readmap": __version__, "python": platform.python_version(), "numpy": np.__version__, "cupy": cupy}


def peak_memory() -> int:
    """The most bytes of memory that this process held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
