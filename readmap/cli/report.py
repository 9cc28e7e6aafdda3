"""What a command tells: lines and progress on standard error, and a record for programs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from readmap.backend import Backend
from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.formats.output import Output, open_output
from readmap.index.index import Index
from readmap.search.stream import Summary
from readmap.version import __version__

#: Of the records that --json writes; a field that changes its meaning or goes makes it grow.
SCHEMA = 1

STANDARD_OUTPUT = (None, "-")


@dataclass(frozen=True)
class Session:
    """One call of readmap: the command line as it was typed, and when it began (time.perf_counter)."""

    command_line: str
    began: float


class Report:
    """What one command tells; a context manager, which drops the record of a command that fails.

    The record's file is opened first, so that a place that cannot be written is told before the work.
    """

    def __init__(self, session: Session, quiet: bool, record_path: str | None) -> None:
        self._session = session
        self._quiet = quiet
        self._record: Output | None = open_output(record_path) if record_path is not None else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._record:
            self._record.abort()

    @property
    def command_line(self) -> str:
        """As it was typed."""
        return self._session.command_line

    @property
    def seconds(self) -> float:
        """Since the call began."""
        return time.perf_counter() - self._session.began

    def say(self, line: str) -> None:
        """Print a line on standard error, unless that is to be quiet, closed or full."""
        if not self._quiet and sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(line, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def progress(self, shares_terminal: bool = False) -> Iterator[Callable[[str], None]]:
        """A function that shows where the work is, on a terminal that shows nothing else."""
        if self._quiet or shares_terminal or sys.stderr is None or not sys.stderr.isatty():
            yield lambda text: None
            return
        columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task("starting", total=None)
            yield lambda text: shown.update(task, description=text)

    def finish(self, record: dict[str, Any]) -> None:
        """Write the record, with what all commands tell, to its file if one is wanted."""
        if self._record is None:
            return
        common = {
            "schema": SCHEMA,
            "command": self._session.command_line,
            "versions": versions(),
            "total_seconds": round(self.seconds, 4),
            "peak_memory_bytes": peak_memory(),
        }
        self._record.write(json.dumps(common | record, indent=1).encode() + b"\n")
        self._record.commit()

    def cost(self) -> str:
        """The time since the call began and the most memory, in words."""
        return f"{self.seconds:.2f} s in all, peak memory {in_bytes(peak_memory())}"


def is_terminal(output: str | None) -> bool:
    """Whether what is written there appears on the terminal."""
    return output in STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()


def refuse_same_output(option: str, path: str | None, output: str | None, what: str = "the output goes") -> None:
    """Raise UsageError where an option names the file that something else, told by `what`, goes to."""
    if path is None:
        return
    both_stdout = path == "-" and output in STANDARD_OUTPUT
    if both_stdout or (output and os.path.realpath(path) == os.path.realpath(output)):
        raise UsageError(f"{option} {path} is where {what}: name another file")


def versions() -> dict[str, str | None]:
    """CuPy's is told where it was loaded."""
    cupy = getattr(sys.modules.get("cupy"), "__version__", None)
    return {"readmap": __version__, "python": platform.python_version(), "numpy": np.__version__, "cupy": cupy}


def peak_memory() -> int:
    """The most bytes of memory that this process held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reference_checksum(contigs: Sequence[Contig]) -> str:
    """BLAKE2b (128 bits) of the contigs' MD5s in order, a line each: equal where all sequences are."""
    return hashlib.blake2b("".join(f"{contig.md5}\n" for contig in contigs).encode(), digest_size=16).hexdigest()


def structure_record(index: Index) -> dict[str, Any]:
    """What an index has beside its suffix array, for programs."""
    return {
        "structure": str(index.structure),
        "table_bases": index.table_bases if index.structure.has_array else 0,
        "nodes": index.nodes,
        "suffix_tree_bytes": 0 if index.edges is None else index.edges.nbytes,
    }


def in_bytes(count: float) -> str:
    """A number of bytes in words."""
    for unit in ("bytes", "KiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} MiB" if count < 1024 else f"{count / 1024:.2f} GiB"


def counted(count: int, what: str, several: str = "") -> str:
    """A number of things in words; several: of more or less than one, where that is not `what` with an s."""
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def share(part: int, whole: int) -> str:
    """A part of a whole in percent."""
    return f"{part / max(whole, 1):.2%}"


def rate(summary: Summary) -> float:
    """Reads a second."""
    return summary.reads / max(summary.seconds, 1e-9)


def speed(summary: Summary, backend: Backend) -> str:
    """How fast a search was, and on what."""
    threads = f" with {backend.threads} threads" if backend.name == "cpu" and backend.threads > 1 else ""
    return f"{rate(summary):,.0f} reads/s on {backend.name}{threads}"


def printable(text: str) -> str:
    """Text that any stream takes: file names may hold bytes that are no UTF-8."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def table(rows: Sequence[tuple[str, ...]], alignments: str) -> str:
    """Rows in columns. Not by rich, which takes 40 s for 100,000 contigs and finds markup in their names."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(alignments, widths, strict=True))
    return "\n".join(form.format(*row).rstrip() for row in rows)
