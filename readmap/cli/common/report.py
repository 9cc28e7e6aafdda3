"""Messages and progress of a command on standard error, and its JSON report."""

import contextlib
import json
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from readmap.cli.common.help import GENERAL
from readmap.cli.common.options import flag, option, option_group
from readmap.formats.output import Output, PendingOutput, commit_together, open_output
from readmap.formats.path_checks import STANDARD_OUTPUT
from readmap.formats.wording import format_bytes, format_duration
from readmap.version import __version__

#: Version of the JSON reports; it grows if a field is removed or changes its meaning.
SCHEMA = 2
#: Seconds between lines of progress in a log.
LOG_SECONDS = 60.0
#: Minimum columns of a terminal that shows a progress bar.
BAR_COLUMNS = 100


@dataclass(frozen=True)
class Session:
    """A call of readmap: the command line as it was typed, and the start time (time.perf_counter)."""

    command_line: str
    start: float


@option_group(GENERAL)
class ReportOptions:
    """Options of messages and reports. readmap.cli.main searches for --debug itself, because parsing may fail."""

    quiet: bool = flag("-q --quiet", "Print errors only.")
    json: str | None = option("--json", "Write a JSON report; - is standard output.", "FILE")
    debug: bool = flag("--debug", "Show the traceback of an error.", advanced=True)

    @property
    def prints(self) -> bool:
        """True if text for people may be printed on standard output."""
        return self.json != "-" and not self.quiet


class Show(Protocol):
    """Shows the current state of the work.

    share: share of the input that has been read, if known; shown before the text. bar: share of the work that is done,
    if the text contains it.
    """

    def __call__(self, text: str, share: float | None = None, bar: float | None = None) -> None: ...


class TimeLeft:
    """Estimates the remaining time from the share of the input that has been read."""

    def __init__(self) -> None:
        self._start: float | None = None

    def describe(self, share: float | None) -> str:
        """Return the share and the remaining time as the beginning of a line; "" if the share is unknown."""
        self._start = self._start or time.perf_counter()
        if not share:
            return ""
        left = (time.perf_counter() - self._start) * (1 - share) / share
        return f"{share:.0%} read" + (f", {format_duration(left)} left: " if share < 1 else ": ")


class _Log:
    """Prints the progress every LOG_SECONDS."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._printed, self._left = say, time.perf_counter(), TimeLeft()

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        """Print the current state as Show describes it, unless the last line is less than LOG_SECONDS old."""
        line = self._left.describe(share) + text
        if time.perf_counter() - self._printed >= LOG_SECONDS:
            self._printed = time.perf_counter()
            self._say(line)


class Report:
    """Messages, progress and JSON report of a command; a context manager that drops the JSON report if it fails.

    command_line: as it was typed.
    """

    def __init__(self, session: Session, options: ReportOptions) -> None:
        self.command_line, self._start = session.command_line, session.start
        self._quiet = options.quiet
        # Opened before the work, so that a path that cannot be written is reported first.
        self._json: Output | None = open_output(options.json) if options.json is not None else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._json:
            self._json.abort()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the command."""
        return time.perf_counter() - self._start

    def say(self, line: str) -> None:
        """Print a line on standard error; do nothing if --quiet is given, or if standard error is closed or full."""
        if not self._quiet and sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(line, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def progress(self, shares_terminal: bool = False) -> Iterator[Show]:
        """Yield a function that shows the progress on a terminal, or in a log every LOG_SECONDS.

        shares_terminal: the output appears on the same terminal, so no progress is shown.
        """
        if self._quiet or shares_terminal or sys.stderr is None:
            yield lambda text, share=None, bar=None: None
            return
        if not sys.stderr.isatty():
            yield _Log(self.say).show
            return
        from rich.console import Console  # importing rich takes half as long as a short command
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console, text_column = Console(stderr=True), TextColumn("{task.description}", markup=False)
        bar = [BarColumn(20)] if console.width >= BAR_COLUMNS else []
        columns = (SpinnerColumn("line"), *bar, text_column, TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as shown:
            task, left = shown.add_task("starting", total=None), TimeLeft()

            def show(text: str, share: float | None = None, bar: float | None = None) -> None:
                done = share or bar
                shown.update(task, description=left.describe(share) + text, total=done and 1.0, completed=done or 0.0)

            yield show

    def finish(self, record: dict[str, Any], outputs: Sequence[PendingOutput] = ()) -> None:
        """Write the outputs and the JSON report, if wanted, and commit them together.

        record: fields of the report, in addition to the fields of all commands. Raises OSError if an output cannot be
        written; then no output is committed.
        """
        for output in outputs:
            output.finish()  # before the report, which contains the time it takes
        if self._json is None:
            return commit_together(outputs)
        common = {
            "schema": SCHEMA,
            "command": self.command_line,
            "versions": versions(),
            "total_seconds": round(self.seconds, 4),
            "peak_memory_bytes": peak_memory(),
        }
        self._json.write(json.dumps(common | record, indent=1).encode() + b"\n")
        commit_together([*outputs, self._json])

    def cost(self) -> str:
        """Return the total time and the peak memory as text."""
        return f"{self.seconds:.2f} s in total, peak memory {format_bytes(peak_memory())}"


def is_terminal(output: str | None) -> bool:
    """Return True if the output appears on the terminal."""
    return output in STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()


def versions() -> dict[str, str | None]:
    """Return the versions of readmap, Python, NumPy and, if loaded, CuPy."""
    cupy = getattr(sys.modules.get("cupy"), "__version__", None)
    return {"readmap": __version__, "python": platform.python_version(), "numpy": np.__version__, "cupy": cupy}


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
