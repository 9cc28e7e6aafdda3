"""Scores -> a histogram of them, with those of the hits in another colour: a panel a query, or one for many.

Needs matplotlib, which readmap[plot] brings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from readmap.formats.figures import GREY, RED, label_text, render_figure
from readmap.formats.wording import pluralize

Counts = NDArray[np.int64]

ALL, HITS = "#AFC3D4", RED

#: More queries are drawn together, in one panel.
MAX_PANELS = 12

#: Bins of a histogram, of which narrow ranges of scores have less.
BINS = 50

#: Beyond the lowest and the highest bar, a factor.
MARGIN = 1.03

#: A scale that is longer has numbers at powers of ten alone.
MANY_POWERS = 1e4

#: Where bars begin: on a logarithmic axis one sequence is to be seen too.
FLOOR = 0.5

#: Inches, of a panel alone and of one among others.
ALONE, AMONG = (6.0, 3.4), (2.7, 1.6)
#: Between panels, for the words of the lower one and the names of the left one's scale.
ROOM = (0.35, 0.75)


def count_scores(scores: NDArray[np.int32]) -> Counts:
    """How many have each score, int64 [best score + 1]; none is below 0."""
    return np.bincount(scores)


@dataclass(frozen=True)
class _Panel:
    """A histogram. name: of what. counts, hits: by the score. threshold: the least score of a hit, if it is known."""

    name: str
    counts: Counts
    hits: Counts
    threshold: float | None

    @property
    def facts(self) -> str:
        best = f", the best {len(self.counts) - 1:,}" if len(self.counts) else ""
        scores = pluralize(int(self.counts.sum()), "score")
        return f"{scores}, {pluralize(int(self.hits.sum()), 'hit', 'hits')}{best}"


class Histograms:
    """Collects the scores of all queries, and draws them. As many numbers are kept as the best score is large."""

    def __init__(self, threshold_name: str = "") -> None:
        """threshold_name: what makes a score a hit's, as "E = 10"."""
        self._threshold_name = threshold_name
        self._panels: list[_Panel] = []
        self._queries = 0
        self._counts = self._hits = np.zeros(0, np.int64)

    def add(self, name: bytes, counts: Counts, hits: NDArray[np.int32], threshold: float | None = None) -> None:
        """Take in a query.

        counts: int64, the sequences by their scores, as count_scores gives them. hits: int32 [hits], their scores.
        threshold: the least score of a hit, where there is one for the whole database.
        """
        panel = _Panel(label_text(name), counts, count_scores(hits), threshold)
        self._queries += 1
        self._counts, self._hits = _sum(self._counts, panel.counts), _sum(self._hits, panel.hits)
        if self._queries <= MAX_PANELS:
            self._panels.append(panel)
        else:
            self._panels = []

    def draw(self, form: str) -> bytes:
        """The picture. form: png, svg or pdf."""
        return render_figure(self._figure, form)

    def _figure(self) -> Figure:
        together = _Panel(pluralize(self._queries, "query", "queries"), self._counts, self._hits, None)
        panels = self._panels or [together]
        is_alone = len(panels) == 1
        columns = 1 if is_alone else 2 if len(panels) <= 4 else 3
        rows = -(-len(panels) // columns)
        width, height = ALONE if is_alone else AMONG
        size = width * columns + ROOM[0] * (columns - 1), height * rows + ROOM[1] * (rows - 1)
        # The words have their room outside, for which the picture grows.
        figure = Figure(figsize=size)
        edges = score_bins(self._counts)
        top = max(_binned(panel.counts, edges).max() for panel in panels)
        for number, panel in enumerate(panels):
            row, column = divmod(number, columns)
            left, bottom = column * (width + ROOM[0]), size[1] - height - row * (height + ROOM[1])
            axes = figure.add_axes((left / size[0], bottom / size[1], width / size[0], height / size[1]))
            # A bar at either end is not to be taken for the frame.
            axes.set(xscale="log", xlim=(edges[0] / MARGIN, edges[-1] * MARGIN))
            axes.set(yscale="log", ylim=(FLOOR, max(2 * top, 20)))
            _draw(axes, panel, edges, self._threshold_name, height, is_alone)
            _mark_axes(axes, column == 0, number + columns >= len(panels), is_alone)
        legend = [Patch(color=ALL, label="all sequences"), Patch(color=HITS, label="hits")]
        place = 1.0, 1.0 + (0.0 if is_alone else 0.45) / size[1]
        figure.legend(handles=legend, loc="lower right", bbox_to_anchor=place, ncols=2, borderaxespad=0.4)
        return figure


def score_bins(counts: Counts) -> Counts:
    """The borders of bins that hold all scores: about as wide as they are high, of whole scores; none is below 1."""
    known = np.flatnonzero(counts)
    low, high = (max(1, int(known[0])), max(1, int(known[-1]))) if len(known) else (1, 1)
    growth = ((high + 1) / low) ** (1 / BINS) - 1
    edges = [low]
    # Widths that never fall: where they would go up and down, so would the counts.
    while edges[-1] <= high:
        edges.append(edges[-1] + max(1, round(edges[-1] * growth)))
    return np.array(edges)


def _sum(some: Counts, others: Counts) -> Counts:
    """Two histograms together."""
    total = np.zeros(max(len(some), len(others)), np.int64)
    total[: len(some)] += some
    total[: len(others)] += others
    return total


def _binned(counts: Counts, edges: Counts) -> Counts:
    """The counts of bins; scores of 0 are in the first."""
    scores = np.maximum(np.arange(len(counts)), edges[0])
    binned, _ = np.histogram(scores, edges, weights=counts)
    return binned.astype(np.int64)


def _draw(axes: Axes, panel: _Panel, edges: Counts, threshold_name: str, height: float, is_alone: bool) -> None:
    for counts, colour in ((panel.counts, ALL), (panel.hits, HITS)):
        bars = np.maximum(_binned(counts, edges), FLOOR)
        axes.stairs(bars, edges, baseline=FLOOR, fill=True, color=colour)
    inch = 1 / height
    if panel.threshold is not None and edges[0] < panel.threshold < edges[-1]:
        axes.axvline(panel.threshold, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
        place, size = (panel.threshold, 1 - 0.06 * inch), 9 if is_alone else 8
        label = f" {threshold_name}"
        axes.text(*place, label, transform=axes.get_xaxis_transform(), color=GREY, fontsize=size, va="top")
    # Two lines over the panel.
    large, small, upper, lower = (12, 9, 0.42, 0.18) if is_alone else (9, 8, 0.26, 0.09)
    axes.text(0, 1 + upper * inch, panel.name, transform=axes.transAxes, fontsize=large, fontweight="bold")
    axes.text(0, 1 + lower * inch, panel.facts, transform=axes.transAxes, fontsize=small, color=GREY)


def _mark_axes(axes: Axes, is_left: bool, is_lowest: bool, is_alone: bool) -> None:
    """Scales, of which only the outer ones among several panels are named."""
    low, high = axes.get_xlim()
    # Three numbers a power of ten have no room among several panels, or beside many powers.
    are_dense = is_alone and high < MANY_POWERS * low
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if are_dense or high < 30 * low else (1,)))
    axes.yaxis.set_major_locator(LogLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
        axis.set_tick_params(which="minor", length=0)
    axes.grid(visible=True, axis="y")
    axes.tick_params(labelleft=is_left, labelbottom=True)
    if is_lowest:
        axes.set_xlabel("score")
    if is_left:
        axes.set_ylabel("sequences")
