"""Parts that compare and scan share: files of sequences, the output and the plot, and the speed of cells."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.bam.codecs import BAM_ENDING, open_by_ending
from readmap.cli.common.conflicts import Conflict
from readmap.cli.common.options import option
from readmap.cli.common.report import is_terminal
from readmap.errors import ReadmapError, UsageError
from readmap.formats.output import ByteSink, open_output
from readmap.formats.path_checks import refuse_inputs, refuse_inside, refuse_same_output
from readmap.formats.samtools import CRAM_ENDING
from readmap.formats.wording import format_ratio, printable

#: Endings of plots.
ENDINGS = (".png", ".svg", ".pdf")

Item = TypeVar("Item")


def output_option() -> Any:
    """-o."""
    return option("-o --output", "The output file (default: standard output); .gz compresses with bgzip.", "FILE")


class Timer:
    """The seconds that iterators took to give their items."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, items: Iterator[Item]) -> Iterator[Item]:
        """The items; the time between them, which the caller takes, does not count."""
        while True:
            began = time.perf_counter()
            item = next(items, None)
            self.seconds += time.perf_counter() - began
            if item is None:
                return
            yield item


class HeldOutput(ByteSink):
    """An output that is written in the end: its terminal shows the progress meanwhile."""

    def __init__(self, output: ByteSink) -> None:
        self.name = output.name
        self._output = output
        self._held: list[bytes] = []

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Keep a copy."""
        self._held.append(bytes(data))

    def finish(self) -> None:
        """Write all, and finish the output behind."""
        for data in self._held:
            self._output.write(data)
        self._held.clear()
        self._output.finish()

    def commit(self) -> None:
        """Commit the output behind, which is finished."""
        self.finish()
        self._output.commit()

    def abort(self) -> None:
        """Abort the output behind."""
        self._output.abort()


@contextlib.contextmanager
def open_outputs(output: str | None, plot: str | None, threads: int) -> Iterator[dict[str, ByteSink]]:
    """The outputs by their names in the record. What has not been committed in the end is aborted."""
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(open_by_ending(output, threads))
        outputs = {"output": HeldOutput(plain) if is_terminal(output) else plain}
        if plot is not None:
            outputs["plot"] = stack.enter_context(open_output(plot))
        yield outputs


def write_plot(draw: Callable[[str], bytes], sink: ByteSink, show: Callable[[str], None]) -> None:
    """Write what `draw` makes of the form by which the output's name ends: png, svg or pdf."""
    show("drawing")
    sink.write(draw(os.path.splitext(sink.name)[1][1:]))


def output_conflicts(output: str | None, plot: str | None) -> tuple[Conflict, ...]:
    """Names of outputs by which something else would be written than is."""
    return (
        (
            ["plot"],
            plot is not None and not plot.endswith(ENDINGS),
            f"{plot}: expected a name that ends with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
        ),
        (
            ["path"],
            (output or "").endswith((BAM_ENDING, CRAM_ENDING)),
            f"{output}: SAM is written: name it so, or pipe --format sam to samtools view",
        ),
    )


def check_files(query: str, target: str, output: str | None, plot: str | None, record: str | None) -> None:
    """Raise UsageError where one file is asked to be two, OSError where a file of sequences cannot be read.

    output, plot, record: what -o, --plot and --json name. Raises ReadmapError where nothing is there to draw a plot.
    """
    if query == target == "-":
        raise UsageError("- and - are one file: only one of the two can be standard input")
    outputs = {"-o": output, "--plot": plot, "--json": record}
    for path in (query, target):
        if path != "-":
            os.stat(path)
        if os.path.isdir(path):
            refuse_inside(Path(path), outputs)
    refuse_inputs(outputs, (query, target), "sequences")
    refuse_same_output("--json", record, output)
    refuse_same_output("--plot", plot, output)
    if plot is not None:  # None is the standard output, where no plot goes
        refuse_same_output("--json", record, plot, "the plot goes")
        if importlib.util.find_spec("matplotlib") is None:
            raise ReadmapError(f"--plot {plot}: matplotlib is not installed: pip install 'readmap[plot]'")


def file_record(path: str, sequences: int, letters: int) -> dict[str, Any]:
    """The contents of a file of sequences, for programs."""
    return {"source": printable(path), "sequences": sequences, "letters": letters}


def gcups(cells: int, seconds: float) -> float:
    """Cells a second, in thousand millions."""
    return cells / max(seconds, 1e-9) / 1e9


def progress_line(done: int, total: int, seconds: float) -> str:
    """How many cells are done, how fast, and how long the rest takes."""
    left = datetime.timedelta(seconds=round(seconds * (total - done) / max(done, 1)))
    return f"{format_ratio(done, total)} of {total:.3g} cells, {gcups(done, seconds):,.1f} GCUPS, {left} left"


def cells_line(cells: int, seconds: float, devices: str) -> str:
    """The cells that were computed, the speed, and the devices, in words."""
    return f"{cells:,} cells in {seconds:.2f} s, {gcups(cells, seconds):,.2f} GCUPS on {devices}"
