"""Parts of compare and scan: files of sequences, the outputs, progress and speed."""

import contextlib
import datetime
import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.bam.codecs import BAM_ENDING, open_by_ending
from readmap.cli.common.options import Conflict, option
from readmap.cli.common.report import Show, is_terminal
from readmap.errors import ReadmapError, UsageError
from readmap.formats.output import ByteSink, RecordWriter, open_output
from readmap.formats.path_checks import refuse_inputs, refuse_inside, refuse_same_output
from readmap.formats.samtools import CRAM_ENDING
from readmap.formats.wording import format_ratio, printable

#: Endings of plots.
ENDINGS = (".png", ".svg", ".pdf")

Item = TypeVar("Item")


def output_option() -> Any:
    """Declare -o."""
    return option("-o --output", "Output file (default: standard output); .gz is compressed with bgzip.", "FILE")


def plot_option(content: str) -> Any:
    """Declare --plot; content: what is drawn."""
    return option("--plot", f"Draw {content}: .png, .svg or .pdf (needs matplotlib).", "FILE")


class Timer:
    """Measures the time that iterators take; seconds: the total."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the items, and add the time that each takes to `seconds`, without the caller's time between them."""
        while True:
            start = time.perf_counter()
            item = next(items, None)
            self.seconds += time.perf_counter() - start
            if item is None:
                return
            yield item


class DelayedOutput(ByteSink):
    """An output on a terminal, written at the end because the terminal shows the progress until then."""

    def __init__(self, output: ByteSink) -> None:
        self.name = output.name
        self._output = output
        self._parts: list[bytes] = []

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        self._parts.append(bytes(data))

    def finish(self) -> None:
        for data in self._parts:
            self._output.write(data)
        self._parts.clear()
        self._output.finish()

    def commit(self) -> None:
        self.finish()
        self._output.commit()

    def abort(self) -> None:
        self._output.abort()


@contextlib.contextmanager
def open_outputs(output: str | None, plot: str | None, threads: int) -> Iterator[dict[str, ByteSink]]:
    """Open -o and --plot and yield them as "output" and "plot"; on exit abort those that have not been committed."""
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(open_by_ending(output, threads))
        outputs = {"output": DelayedOutput(plain) if is_terminal(output) else plain}
        if plot is not None:
            outputs["plot"] = stack.enter_context(open_output(plot))
        yield outputs


def write_results(
    results: Iterable[Item], records: RecordWriter[Item], outputs: dict[str, ByteSink], plot: Any, show: Show
) -> None:
    """Write all results, then the plot, if any, in the format by which the name of its output ends: png, svg or pdf."""
    write = outputs["output"].write
    write(records.start)
    for i, result in enumerate(results):
        records.write(result, i == 0, write)
    write(records.end)
    if plot is not None:
        show("drawing")
        outputs["plot"].write(plot.draw(os.path.splitext(outputs["plot"].name)[1][1:]))


def output_conflicts(output: str | None, plot: str | None) -> tuple[Conflict, ...]:
    """Return the conflicts, for refuse_conflicts, of the endings of -o and --plot with the formats that are written."""
    expected = f"expected a name that ends with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
    is_binary = (output or "").endswith((BAM_ENDING, CRAM_ENDING))
    return (
        (["plot"], plot is not None and not plot.endswith(ENDINGS), f"{plot}: {expected}"),
        (["path"], is_binary, f"{output}: SAM is written: name it so, or pipe --format sam to samtools view"),
    )


def check_files(query: str, target: str, output: str | None, plot: str | None, json: str | None) -> None:
    """Raise UsageError if two paths are the same file, OSError if an input is missing.

    output, plot, json: values of -o, --plot and --json. Raises ReadmapError if a plot needs matplotlib.
    """
    if query == target == "-":
        raise UsageError("- and - are one file: only one of the two can be standard input")
    outputs = {"-o": output, "--plot": plot, "--json": json}
    for path in (query, target):
        if path != "-":
            os.stat(path)
        if os.path.isdir(path):
            refuse_inside(Path(path), outputs)
    refuse_inputs(outputs, (query, target), "sequences")
    refuse_same_output("--json", json, output)
    refuse_same_output("--plot", plot, output)
    if plot is not None:
        refuse_same_output("--json", json, plot, "the plot goes")
        if importlib.util.find_spec("matplotlib") is None:
            raise ReadmapError(f"--plot {plot}: matplotlib is not installed: pip install 'readmap[plot]'")


def file_as_json(path: str, sequences: int, letters: int) -> dict[str, Any]:
    """Return the contents of a file of sequences for the JSON report."""
    return {"source": printable(path), "sequences": sequences, "letters": letters}


def gcups(cells: int, seconds: float) -> float:
    """Return the speed in 10^9 cells per second."""
    return cells / max(seconds, 1e-9) / 1e9


def cells_progress(show: Show) -> Callable[[int, int], None]:
    """Return a function that takes the numbers of computed cells and of all cells, and shows the progress."""
    start = time.perf_counter()
    return lambda done, total: show(progress_line(done, total, time.perf_counter() - start), bar=done / max(total, 1))


def progress_line(done: int, total: int, seconds: float) -> str:
    """Return the share of the cells that is computed, the speed and the remaining time as text."""
    left = datetime.timedelta(seconds=round(seconds * (total - done) / max(done, 1)))
    return f"{format_ratio(done, total)} of {total:.3g} cells, {gcups(done, seconds):,.1f} GCUPS, {left} left"


def cells_line(cells: int, seconds: float, devices: str) -> str:
    """Return the number of computed cells, the speed and the devices as text."""
    return f"{cells:,} cells in {seconds:.2f} s, {gcups(cells, seconds):,.2f} GCUPS on {devices}"
