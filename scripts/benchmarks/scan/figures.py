"""Draw scan-gcups.png: the speed of a scan by the length of the query, with published results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.common import Row
from benchmarks.compare.figures import TITLE, caption, lines_of, save
from benchmarks.exact.figures import GREY, label_ends
from benchmarks.scan.bars import BAR_LENGTH, CUDASW
from benchmarks.scan.checks import BLOSUM50, BLOSUM62, called

# The highest published GCUPS.
MARKS = {
    "CUDASW++ 4.0, H200": CUDASW,
    "Ligowski, Rudnicki, 9800 GX2": 14.5,
    "Manavski, Valle, two 8800 GTX": 3.6,
}
NOTE = (
    f"{called(BLOSUM62)}; hollow: {called(BLOSUM50)}, the papers' 10/2; dotted: the papers' best, CUDASW++ as by others"
)


def draw(reports: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the PNG for all reports of `scan` together."""
    return save(_by_length, reports, folder / "scan-gcups.png")


def _by_length(reports: Sequence[Row]) -> Figure:
    """Draw GCUPS over the query's length by device and threads, with hollow points for the papers' gap costs."""
    figure = Figure(figsize=(9, 5.6))
    axes = figure.add_axes((0.075, 0.12, 0.635, 0.77))
    lines = lines_of(_groups(reports, called(BLOSUM62)), "query_letters")
    points = [point for line in lines for point in line.points]
    lengths, rates = [length for length, _ in points], [*(rate for _, rate in points), *MARKS.values()]
    axes.set(xscale="log", yscale="log", xlabel="letters of the query")
    axes.set(xlim=(min(lengths) / 1.2, max(lengths) * 1.2), ylim=(min(rates) / 1.5, max(rates) * 2))
    ends = list[tuple[float, float, str, str]]()
    for line in lines:
        look = {"markersize": 5, "linewidth": 1.6, **line.style}
        axes.plot(*zip(*line.points, strict=True), color=line.colour, **look)
        ends.append((*line.points[-1], line.name, line.colour))
    for line in lines_of(_groups(reports, called(BLOSUM50)), "query_letters"):
        look = {**line.style, "linestyle": "", "markersize": 9, "markerfacecolor": "none"}
        axes.plot(*zip(*line.points, strict=True), color=line.colour, **look)
    for name, rate in MARKS.items():
        axes.axhline(rate, color=GREY, linestyle=":", linewidth=1.4)
        ends.append((axes.get_xlim()[1], rate, name, GREY))
    axes.plot(BAR_LENGTH, CUDASW, "D", color=GREY, markersize=6)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(visible=True)
    label_ends(axes, ends)
    figure.text(0.075, 0.95, "Scores of a protein database: GCUPS, billions of cells a second", **TITLE)
    figure.text(0.075, 0.915, NOTE, fontsize=8, color=GREY)
    sizes = dict.fromkeys(f"{report['inputs']['sequences']:,}" for report in reports)
    caption(figure, reports, f"{' and '.join(sizes)} proteins as long as SwissProt's")
    return figure


def _groups(reports: Sequence[Row], costs: str) -> list[tuple[Row, list[Row]]]:
    """Return the speeds of each report with the given costs, by the query's length."""
    speeds = [(report, [row for row in report["speeds"] if row["costs"] == costs]) for report in reports]
    return [(report, sorted(rows, key=lambda row: row["query_letters"])) for report, rows in speeds]
