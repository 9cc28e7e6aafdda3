"""Draw a dot plot of alignments: targets to the right, queries upwards, concatenated if there are several.

Needs matplotlib, which readmap[plot] installs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from readmap.formats.figures import BLUE, GREEN, GREY, RED, SILVER, YELLOW, label_text, render_figure
from readmap.formats.wording import pluralize
from readmap.pairwise.alignments import DELETED, INSERTED
from readmap.pairwise.results import Result, Results
from readmap.reads.sequences import Sequences


@dataclass(frozen=True)
class Paths:
    """Alignments as polylines: the corners of each alignment, followed by NaN, at which a line breaks.

    x, y: float64 [corners], letters of the targets and of the queries before the corner; NaN for empty alignments.
    reverse: bool [corners]. gaps: int64 [corners], length of the gap that starts at the corner: positive for a gap in
    the query (to the right), negative for a gap in the target (up or down). boxes: float64 [4, alignments], minimum and
    maximum x, minimum and maximum y, without empty alignments.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    reverse: NDArray[np.bool_]
    gaps: NDArray[np.int64]
    boxes: NDArray[np.float64]


def find_paths(results: Results, queries: Sequences, targets: Sequences) -> Paths:
    """Return the polylines of alignments. queries, targets: all sequences of the two files."""
    count = len(results.queries)
    across = targets.offsets[results.first_target :][:count]
    up = queries.offsets[results.first_query :][:count]
    low_y, high_y, low_x, high_x = results.ranges
    is_empty = low_x < 0
    starts_x: NDArray[np.float64] = np.where(is_empty, np.nan, across + low_x)
    starts_y: NDArray[np.float64] = np.where(is_empty, np.nan, up + np.where(results.reverse, high_y, low_y))

    ends = results.alignments.operation_ends
    sizes = np.diff(ends, prepend=0)
    # Each alignment has a corner before each operation, one after the last operation, and the break.
    pair = np.repeat(np.arange(count), sizes + 2)
    operation = np.arange(len(pair)) - 2 * pair
    lengths, kinds = results.lengths, results.operations
    shift_x = _sum_steps(lengths * (kinds != INSERTED), operation, (ends - sizes)[pair])
    shift_y = _sum_steps(lengths * (kinds != DELETED), operation, (ends - sizes)[pair])
    x: NDArray[np.float64] = starts_x[pair] + shift_x
    x[ends + 2 * np.arange(count) + 1] = np.nan
    signs = (kinds == DELETED).astype(np.int64) - (kinds == INSERTED)
    gaps = np.append(lengths * signs, [0, 0])[operation] * (operation < ends[pair])
    y: NDArray[np.float64] = starts_y[pair] + shift_y * np.where(results.reverse, -1, 1)[pair]
    boxes = np.stack([across + low_x, across + high_x, up + low_y, up + high_y])[:, ~is_empty]
    return Paths(x, y, results.reverse[pair], gaps, boxes.astype(np.float64))


def _sum_steps(steps: NDArray[np.int64], operations: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of `steps`, int64 [operations], between the start of an alignment and each of its corners.

    operations, firsts: int64 [corners], operation that starts at the corner, and first operation of its alignment.
    """
    sums = np.concatenate([[0], np.cumsum(steps)])
    found: NDArray[np.int64] = sums[np.minimum(operations, len(steps))] - sums[firsts]
    return found


def join_paths(paths: list[Paths]) -> Paths:
    """Concatenate one or more sets of polylines."""
    return Paths(**{name: np.concatenate([vars(each)[name] for each in paths], axis=-1) for name in vars(paths[0])})


FORWARD, REVERSE, ONLY_TARGET, ONLY_QUERY = BLUE, GREEN, YELLOW, RED

#: Longer side of the axes in inches, and the minimum of the shorter side as a fraction of it.
SIDE, MIN_SIDE = 6.0, 0.35

#: Fraction of an axis from which a gap is coloured; smaller gaps would not be seen.
VISIBLE_GAP = 1 / 300
#: Fraction of both axes below which an alignment is circled, unless there are more than MAX_CIRCLES.
VISIBLE_ALIGNMENT, MAX_CIRCLES = 1 / 80, 100
#: Maximum numbers of sequences whose names are shown and whose borders are drawn.
MAX_NAMES, MAX_BORDERS = 12, 300

#: Units of an axis: minimum length in bp, bp per unit, name.
UNITS = ((2_000_000, 1_000_000, "Mbp"), (20_000, 1_000, "kbp"), (0, 1, "bp"))


class DotPlot:
    """Collects the results of all pairs, and draws them."""

    def __init__(self, queries: Sequences, targets: Sequences) -> None:
        self._queries, self._targets = queries, targets
        self._paths: list[Paths] = []
        self._last: Result | None = None

    def add(self, results: Results) -> None:
        """Add results that have operations."""
        self._paths.append(find_paths(results, self._queries, self._targets))
        if len(self._queries) == len(self._targets) == 1:
            self._last = next(iter(results))

    def draw(self, form: str) -> bytes:
        """Return the picture as a png, svg or pdf file."""
        return render_figure(self._figure, form)

    def _figure(self) -> Figure:
        width, height = max(len(self._targets.letters), 1), max(len(self._queries.letters), 1)
        shares = np.maximum(np.array([width, height]) / max(width, height), MIN_SIDE) * SIDE
        # Text lies outside the axes; the saved picture is enlarged to contain it.
        figure = Figure(figsize=(float(shares[0]), float(shares[1])))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(0, height))
        _mark_axis(axes.xaxis, self._targets, "target", axes.axvline)
        _mark_axis(axes.yaxis, self._queries, "query", axes.axhline)
        inch = 1 / float(shares[1])
        if self._paths:
            legend = _draw_paths(axes, join_paths(self._paths))
            axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(-0.012, -0.55 * inch), ncols=2)
        title, line = self._titles()
        axes.text(0, 1 + 0.42 * inch, title, transform=axes.transAxes, fontsize=12, fontweight="bold")
        axes.text(0, 1 + 0.18 * inch, line, transform=axes.transAxes, color=GREY)
        return figure

    def _titles(self) -> tuple[str, str]:
        """Return the two title lines: what is compared, and what was found."""
        if self._last is None:
            found = sum(paths.boxes.shape[1] for paths in self._paths)
            queries = pluralize(len(self._queries), "query", "queries")
            return f"{queries} and {pluralize(len(self._targets), 'target')}", pluralize(found, "alignment")
        result = self._last
        title = f"{label_text(result.query_name)} and {label_text(result.target_name)}"
        if result.identity is None:
            return title, "nothing aligned"
        facts = [f"score {result.score:,}", f"identity {result.identity:.2%}", pluralize(result.gap_openings, "gap")]
        return title, ", ".join([*facts, *(["reverse strand"] if result.reverse else [])])


def _mark_axis(axis: Axis, sequences: Sequences, what: str, draw_border: Any) -> None:
    """Label an axis with names or positions, and draw borders of sequences; what: "query" or "target"."""
    length = len(sequences.letters)
    scale, unit = next((scale, unit) for minimum, scale, unit in UNITS if length >= minimum)
    plural = "queries" if what == "query" else ""
    name = label_text(sequences.names[0]) if len(sequences) == 1 else pluralize(len(sequences), what, plural)
    if 1 < len(sequences) <= MAX_NAMES:
        middles = (sequences.offsets[:-1] + sequences.offsets[1:]) / 2
        axis.set_ticks(middles.tolist(), [label_text(each) for each in sequences.names])
        axis.set_tick_params(length=0)
        axis.set_label_text(f"{name}, {length / scale:,.4g} {unit}")
    else:
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10], integer=scale == 1))
        axis.grid(visible=True)
        axis.set_major_formatter(FuncFormatter(lambda position, _: f"{position / scale:,.6g}"))
        axis.set_label_text(f"{name} ({unit})")
    for border in sequences.offsets[1:-1] if len(sequences) <= MAX_BORDERS else ():
        draw_border(border, color=SILVER, linewidth=0.6, zorder=0)


def _draw_paths(axes: Axes, paths: Paths) -> list[Line2D]:
    """Draw alignments, long gaps in colours, and circles around alignments too small to be seen; return the legend."""
    legend = []
    for is_reverse, colour in ((False, FORWARD), (True, REVERSE)):
        chosen = paths.reverse == is_reverse
        if chosen.any():
            axes.plot(np.where(chosen, paths.x, np.nan), paths.y, color=colour, linewidth=1.6)
            legend.append(Line2D([], [], color=colour, label="reverse strand" if is_reverse else "forward strand"))
    if not paths.reverse.any():
        legend = []
    width, height = axes.get_xlim()[1], axes.get_ylim()[1]
    sides = ((ONLY_TARGET, paths.gaps, width, "target"), (ONLY_QUERY, -paths.gaps, height, "query"))
    for colour, sizes, whole, where in sides:
        minimum = _round_up(whole * VISIBLE_GAP)
        corners = np.flatnonzero(sizes >= minimum)
        if len(corners):
            points = np.stack([paths.x, paths.y], axis=1)
            lines = list(np.stack([points[corners], points[corners + 1]], axis=1))
            axes.add_collection(LineCollection(lines, colors=colour, linewidths=2.4, zorder=3, capstyle="butt"))
            label = f"only in the {where}, {minimum:,} bp or more ({len(corners):,})"
            legend.append(Line2D([], [], color=colour, linewidth=2.4, label=label))
    _circle_small(axes, paths, width, height)
    return legend


def _round_up(length: float) -> int:
    """Return a length rounded up to one significant digit."""
    digit = int("1".ljust(len(str(int(length))), "0"))
    return max(1, -int(-length // digit)) * digit


def _circle_small(axes: Axes, paths: Paths, width: float, height: float) -> None:
    """Circle alignments that are too small to be seen, unless there are too many."""
    left, right, low, high = paths.boxes
    small = (right - left < width * VISIBLE_ALIGNMENT) & (high - low < height * VISIBLE_ALIGNMENT)
    if 0 < small.sum() <= MAX_CIRCLES:
        centres = (left + right)[small] / 2, (low + high)[small] / 2
        form: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": GREY}
        axes.plot(*centres, "o", clip_on=False, zorder=3, markeredgewidth=0.8, **form)
