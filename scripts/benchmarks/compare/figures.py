"""Draw compare-gcups.png: the speed of a comparison by the size of its matrix, like Figure 10 of the paper by Sandes
and de Melo, with the paper's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.common import Row
from benchmarks.exact.figures import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE

# Table 4 of the paper, a GeForce GTX 280: sizes in thousands of bases, and MCUPS
PAPER_RANDOM = {128: 15277, 256: 17837, 512: 19147, 1000: 19773, 2000: 20106, 3000: 20189}
PAPER_REAL = {
    (162, 172): 16421,
    (543, 536): 19212,
    (1044, 1073): 19813,
    (3147, 3283): 20196,
    (5227, 5229): 20278,
    (7146, 5227): 20289,
    (23012, 24544): 20367,
    (32799, 46944): 20375,
}
TITLE: Row = {"fontweight": "bold", "fontsize": 12}
COLOURS, PEER_COLOURS, MARKERS = (RED, BLUE, GREEN, PINK), (ORANGE, SKY), "os^Dv"
LABEL_HEIGHT = 0.05  # height of a label, as a share of the axes' height
HALF = 0.6  # share of the axes' width; lines that end to its right have their names above their ends


class Line(NamedTuple):
    """A line of points (cells, GCUPS)."""

    name: str
    points: list[tuple[int, float]]
    colour: str
    style: Row


def draw(reports: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the PNG for all reports of `compare` together."""
    return save(figure_10, reports, folder / "compare-gcups.png")


def figure_10(reports: Sequence[Row]) -> Figure:
    """Draw GCUPS over cells, a line for each device and number of threads."""
    figure = Figure(figsize=(9, 5.6))
    axes = figure.add_axes((0.065, 0.12, 0.91, 0.7))
    lines = [*lines_of([(report, report["long_pairs"]) for report in reports], "cells"), paper()]
    points = [point for line in lines for point in line.points]
    cells, rates = [cell for cell, _ in points], [rate for _, rate in points]
    axes.set(xscale="log", yscale="log", xlabel="cells of the matrix")
    axes.set(xlim=(min(cells) / 2, max(cells) * 2), ylim=(min(rates) / 2, max(rates) * 3))
    for line in lines:
        look = {"marker": "o", "markersize": 5, "linewidth": 1.6, **line.style}
        axes.plot(*zip(*line.points, strict=True), color=line.colour, **look)
    random = [(size * size * 10**6, rate / 1e3) for size, rate in PAPER_RANDOM.items()]
    axes.plot(*zip(*random, strict=True), "o", color=GREY, markersize=5)
    _label(axes, lines)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,g}"))
    axes.grid(visible=True)
    above = axes.secondary_xaxis("top", functions=(lambda cells: abs(cells) ** 0.5, lambda bases: bases**2))
    above.set_xlabel("bases of each sequence", labelpad=6)
    above.xaxis.set_major_formatter(FuncFormatter(_bases))
    above.xaxis.set_minor_locator(NullLocator())
    above.spines["top"].set_visible(False)
    above.tick_params(length=0)
    figure.text(0.065, 0.95, "Score and end of two sequences: GCUPS, billions of cells a second", **TITLE)
    caption(figure, reports, "match 1, mismatch -3, gaps -5 and -2; no pruning; of the paper, filled: random DNA")
    return figure


def lines_of(groups: Sequence[tuple[Row, Sequence[Row]]], across: str) -> list[Line]:
    """Return readmap's lines, then parasail's, for each device and number of threads.

    groups: reports, and their rows to draw. across: the key of the horizontal coordinate.
    """
    lines, peers = list[Line](), list[Line]()
    for report, rows in groups:
        for device, threads in dict.fromkeys((row["device"], row["threads"]) for row in rows):
            of = [row for row in rows if (row["device"], row["threads"]) == (device, threads)]
            place, number = where(report, device, threads), len(lines)
            points = [(row[across], row["gcups"]) for row in of]
            style = {"marker": MARKERS[number % len(MARKERS)]}
            lines.append(Line(f"readmap, {place}", points, COLOURS[number % len(COLOURS)], style))
            if theirs := [(row[across], row["parasail_gcups"]) for row in of if "parasail_gcups" in row]:
                colour = PEER_COLOURS[len(peers) % len(PEER_COLOURS)]
                peers.append(Line(f"parasail, {place}", theirs, colour, {"linestyle": "--", "marker": "x"}))
    return lines + peers


def caption(figure: Figure, reports: Sequence[Row], words: str) -> None:
    """Write the caption at the lower right: what was measured, and the machines."""
    known = [report["machine"]["cpu" if report["device"] == "cpu" else "gpu"] for report in reports]
    text = "; ".join([words, *dict.fromkeys(filter(None, known))])
    figure.text(0.985, 0.012, text, ha="right", fontsize=7, color=GREY)


def save(figure: Callable[[Sequence[Row]], Figure], reports: Sequence[Row], path: Path) -> list[Path]:
    """Draw reports together in the style of all figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure(reports).savefig(path)
    return [path]


def paper() -> Line:
    sizes = {(size, size): rate for size, rate in PAPER_RANDOM.items()} | PAPER_REAL
    points = sorted((one * other * 10**6, rate / 1e3) for (one, other), rate in sizes.items())
    style = {"markerfacecolor": "white", "linestyle": ":"}
    return Line("CUDAlign 2010, GeForce GTX 280 (Table 4 of the paper)", points, GREY, style)


def where(report: Row, device: str, threads: int) -> str:
    """Return the report's label, or the name of the device."""
    if device != "cpu":
        return str(report["label"] or report["machine"]["gpu"] or device)
    called = f"{threads} CPU thread{'s' if threads > 1 else ''}"
    return f"{report['label']}, {called}" if report["label"] else called


def _label(axes: Any, lines: Sequence[Line]) -> None:
    """Write names at the ends of the lines: above the ends at the right, else next to them without overlap."""
    to_axes = axes.transData + axes.transAxes.inverted()
    lowest = -1.0
    for line in sorted(lines, key=lambda line: line.points[-1][1]):
        x, y = to_axes.transform(line.points[-1])
        style = {"color": line.colour, "transform": axes.transAxes, "fontsize": 9}
        if x > HALF:
            axes.text(x, y + 0.02, line.name, ha="right", va="bottom", **style)
        else:
            lowest = max(y - LABEL_HEIGHT / 4, lowest + LABEL_HEIGHT)
            axes.text(x + 0.015, lowest, line.name, va="center", **style)


def _bases(bases: float, _: Any) -> str:
    return f"{bases / 1e6:g} Mbp" if bases >= 1e6 else f"{bases / 1e3:g} kbp"
