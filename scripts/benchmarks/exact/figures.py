"""Draw Figures 3, 4 and 5 of the paper by Encarnação, Sebastião and Roma from the report of `exact`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.common import Row

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, SKY, RED, ORANGE, GREEN = "#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73"
PINK, BLACK, GREY, SILVER = "#CC79A7", "#000000", "#666666", "#BBBBBB"
# colour and marker of each kind of line
LOOKS = {
    "array": (BLUE, "o"),
    "array without table": (SKY, "v"),
    "tree": (RED, "s"),
    "tree without table": (ORANGE, "P"),
    "bowtie": (GREEN, "D"),
    "mummer": (PINK, "^"),
    "readmap": (BLACK, "X"),
}
# parts of Figure 5, from the bottom of a bar to its top
PARTS = {
    "index_transfer_seconds": ("index to GPU", SILVER),
    "query_transfer_seconds": ("queries to GPU", SKY),
    "kernel_seconds": ("kernel", RED),
    "result_transfer_seconds": ("results from GPU", GREEN),
}
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "savefig.dpi": 150,
}
Line = tuple[str, str, list[Row], str, Row]  # name, kind, rows, key of the seconds in a row, style
LABEL_HEIGHT = 0.042  # height of a label next to the axes, as a share of their height


def draw(report: Row, folder: Path) -> list[Path]:
    """Draw the PNGs for which a report of `exact` has figures; without a GPU only the first."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with mpl.rc_context(STYLE):
        for number, make in enumerate((figure_3, figure_4, figure_5), 3):
            if number == 3 or report["gpu"]:
                make(report).savefig(path := folder / f"exact-figure-{number}.png")
                drawn.append(path)
    return drawn


def figure_3(report: Row) -> Figure:
    """Draw the time of the search on the CPU by number of queries: array and tree by threads, and whole commands."""
    lines: list[Line] = []
    for structure, threads in dict.fromkeys((row["structure"], row["threads"]) for row in report["cpu"]):
        of = [row for row in report["cpu"] if (row["structure"], row["threads"]) == (structure, threads)]
        name = f"{structure}, {threads} thread{'s' if threads > 1 else ''}"
        lines.append((name, structure, of, "seconds", {"alpha": 1 if threads == 1 else 0.75}))
    return _by_queries("Time of the search on the CPU", lines + _commands(report), report, "cpu")


def figure_4(report: Row) -> Figure:
    """Draw the time on the GPU with all transfers, including the index, one CPU thread, and whole commands."""
    lines: list[Line] = []
    for structure in dict.fromkeys(row["structure"] for row in report["gpu"]):
        of = [row for row in report["gpu"] if row["structure"] == structure]
        lines.append((f"{structure}, GPU", structure, of, "total_seconds", {}))
        of = [row for row in report["cpu"] if row["structure"] == structure and row["threads"] == 1]
        lines.append((f"{structure}, 1 CPU thread", structure, of, "seconds", {"linestyle": "--"}))
    lines += _commands(report, "readmap array, GPU")
    return _by_queries("Time of the search on the GPU, all transfers included", lines, report, "gpu")


def _commands(report: Row, *more: str) -> list[Line]:
    """Return the whole commands on one CPU thread; readmap's only by array, and also on more devices."""
    lines: list[Line] = []
    for name in ("readmap array", *more, "bowtie", "mummer"):
        rows = [row for row in report["commands"] if row["command"] == name]
        kind = name.split()[0]
        style = {"linestyle": "-." if name in more else ":"}
        lines.append((f"{name.replace(' array', '')} (command)", kind, rows, "wall_seconds", style))
    return lines


def _by_queries(title: str, lines: Sequence[Line], report: Row, device: str) -> Figure:
    """Draw lines over the number of queries, with their names at the ends."""
    figure = Figure(figsize=(9, 5.6))
    axes = figure.add_axes((0.075, 0.12, 0.645, 0.77))
    axes.set(xscale="log", yscale="log", xlabel="queries")
    ends = []
    for name, kind, rows, key, style in lines:
        if rows:
            x, y = [row["queries"] for row in rows], [row[key] for row in rows]
            colour, marker = LOOKS[kind]
            axes.plot(x, y, color=colour, **{"marker": marker, "markersize": 4, "linewidth": 1.4, **style})
            ends.append((x[-1], y[-1], name, colour))
    sizes = report["inputs"]["sizes"]
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _time(seconds)))
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(visible=True)
    axes.set_title(title)
    _caption(figure, report, device)
    label_ends(axes, ends)
    return figure


def label_ends(axes: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Write names next to the axes at the height of each line's end, or as near as other names allow."""
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [(*to_axes.transform((x, y)), name, colour) for x, y, name, colour in ends]
    places.sort(key=lambda place: place[1])
    groups: list[
        tuple[float, int]
    ] = []  # a group of touching labels, at the mean of the positions wanted for its lowest label
    for i, (_, y, _, _) in enumerate(places):
        mean, count = y - i * LABEL_HEIGHT, 1
        while groups and groups[-1][0] >= mean:
            other, others = groups.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        groups.append((mean, count))
    lowest = [mean for mean, count in groups for _ in range(count)]
    heights = [height + i * LABEL_HEIGHT for i, height in enumerate(lowest)]
    for (x, y, name, colour), height in zip(places, heights, strict=True):
        axes.plot([x + 0.01, 1.03], [y, height], transform=axes.transAxes, color=colour, linewidth=0.5, clip_on=False)
        axes.text(1.04, height, name, transform=axes.transAxes, color=colour, va="center", fontsize=9)


def figure_5(report: Row) -> Figure:
    """Draw the parts of the GPU's time: a bar for each number of queries, a panel for each structure."""
    structures = list(dict.fromkeys(row["structure"] for row in report["gpu"]))
    figure = Figure(figsize=(1.6 + 3.2 * len(structures), 4.8))
    panels = figure.subplots(1, len(structures), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(left=0.06, right=0.99, top=0.77, bottom=0.21, wspace=0.06)
    for axes, structure in zip(panels, structures, strict=True):
        rows = [row for row in report["gpu"] if row["structure"] == structure]
        bottoms = [0.0] * len(rows)
        for key, (name, colour) in PARTS.items():
            heights = [1e3 * row[key] for row in rows]
            axes.bar(range(len(rows)), heights, bottom=bottoms, color=colour, label=name, width=0.8)
            bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
        for i, total in enumerate(bottoms):
            axes.annotate(f"{total:.1f}", (i, total), (0, 2), textcoords="offset points", ha="center", fontsize=8)
        axes.set_xticks(range(len(rows)), [f"{row['queries']:,}" for row in rows], rotation=30, ha="right", fontsize=8)
        axes.set_title(structure, fontweight="normal", fontsize=11, pad=6)
        axes.set_axisbelow(True)
        axes.grid(visible=True, axis="y")
        axes.set_xlabel("queries")
    panels[0].set_ylabel("time, ms")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(
        *handles, ncols=4, loc="upper left", bbox_to_anchor=(0.06, 0.895), frameon=False, borderpad=0, borderaxespad=0
    )
    figure.suptitle("Parts of the time on the GPU", x=0.06, y=0.95, ha="left", fontweight="bold")
    _caption(figure, report, "gpu")
    return figure


def _caption(figure: Figure, report: Row, device: str) -> None:
    """Write the caption: what was searched, and on which machine."""
    inputs, machine = report["inputs"], report["machine"]
    words = [f"queries of {inputs['query_bases']} nt, {inputs['reference_bases'] / 1e6:g} Mbp", machine["cpu"]]
    words += [machine["gpu"]] if device == "gpu" else []
    figure.text(0.99, 0.012, "; ".join(filter(None, words)), ha="right", fontsize=7, color=GREY)


def _time(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 1e-6:.0f} µs"
