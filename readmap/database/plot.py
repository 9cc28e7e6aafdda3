"""Draw histograms of scores, hits highlighted: a panel per query, or one panel for many queries.

Needs matplotlib, which readmap[plot] installs.
"""

from dataclasses import dataclass
from typing import Any

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

#: Above this number of queries, all are drawn in one panel.
MAX_PANELS = 12

#: Maximum number of bins; narrow ranges of scores have fewer.
BINS = 50

#: Space beyond the lowest and the highest bar, as a factor.
MARGIN = 1.03

#: Ratio of the ends of a scale above which only powers of ten are labelled.
MANY_POWERS = 1e4

#: Lower end of bars, so that a single sequence is visible on a logarithmic axis.
FLOOR = 0.5

#: Size in inches of a single panel, and of one of several panels.
ALONE, AMONG = (6.0, 3.4), (2.7, 1.6)
#: Space in inches between panels, for titles and scales.
ROOM = (0.35, 0.75)


def count_scores(scores: NDArray[np.int32]) -> Counts:
    """Return the number of sequences by score, int64 [best score + 1]; scores are not negative."""
    return np.bincount(scores)


@dataclass(frozen=True)
class _Panel:
    """A histogram: title, counts of all sequences and of hits by score, and the minimum score of a hit, if known."""

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
    """Collects the scores of all queries and draws them; memory grows with the best score."""

    def __init__(self, threshold_name: str = "") -> None:
        """threshold_name: label of the minimum score of a hit, such as "E = 10"."""
        self._threshold_name = threshold_name
        self._panels: list[_Panel] = []
        self._queries = 0
        self._counts = self._hits = np.zeros(0, np.int64)

    def add(self, name: bytes, counts: Counts, hits: NDArray[np.int32], threshold: float | None = None) -> None:
        """Add a query: sequences by score, scores of hits, and the minimum score of a hit if it is known."""
        panel = _Panel(label_text(name), counts, count_scores(hits), threshold)
        self._queries += 1
        self._counts, self._hits = _sum(self._counts, panel.counts), _sum(self._hits, panel.hits)
        self._panels = [*self._panels, panel] if self._queries <= MAX_PANELS else []

    def draw(self, file_format: str) -> bytes:
        """Return the picture as a png, svg or pdf file."""
        return render_figure(self._figure, file_format)

    def _figure(self) -> Figure:
        together = _Panel(pluralize(self._queries, "query", "queries"), self._counts, self._hits, None)
        panels = self._panels or [together]
        is_alone = len(panels) == 1
        columns = 1 if is_alone else 2 if len(panels) <= 4 else 3
        rows = -(-len(panels) // columns)
        width, height = ALONE if is_alone else AMONG
        size = width * columns + ROOM[0] * (columns - 1), height * rows + ROOM[1] * (rows - 1)
        # Text lies outside the axes; the saved picture is enlarged to contain it.
        figure = Figure(figsize=size)
        edges = score_bins(self._counts)
        top = max(_binned(panel.counts, edges).max() for panel in panels)
        for index, panel in enumerate(panels):
            row, column = divmod(index, columns)
            left, bottom = column * (width + ROOM[0]), size[1] - height - row * (height + ROOM[1])
            axes = figure.add_axes((left / size[0], bottom / size[1], width / size[0], height / size[1]))
            axes.set(xscale="log", xlim=(edges[0] / MARGIN, edges[-1] * MARGIN))
            axes.set(yscale="log", ylim=(FLOOR, max(2 * top, 20)))
            _draw(axes, panel, edges, self._threshold_name, height, is_alone)
            _mark_axes(axes, column == 0, index + columns >= len(panels), is_alone)
        legend = [Patch(color=ALL, label="all sequences"), Patch(color=HITS, label="hits")]
        corner = 1.0, 1.0 + (0.0 if is_alone else 0.45) / size[1]
        figure.legend(handles=legend, loc="lower right", bbox_to_anchor=corner, ncols=2, borderaxespad=0.4)
        return figure


def score_bins(counts: Counts) -> Counts:
    """Return edges of bins for all scores: whole scores of at least 1, with equal ratios as far as possible."""
    known = np.flatnonzero(counts)
    low, high = (max(1, int(known[0])), max(1, int(known[-1]))) if len(known) else (1, 1)
    growth = ((high + 1) / low) ** (1 / BINS) - 1
    edges = [low]
    # Widths never decrease: alternating widths would make the counts alternate.
    while edges[-1] <= high:
        edges.append(edges[-1] + max(1, round(edges[-1] * growth)))
    return np.array(edges)


def _sum(some: Counts, others: Counts) -> Counts:
    total = np.zeros(max(len(some), len(others)), np.int64)
    total[: len(some)] += some
    total[: len(others)] += others
    return total


def _binned(counts: Counts, edges: Counts) -> Counts:
    """Return the counts by score summed by bin, int64 [bins]; the first bin includes scores of 0."""
    scores = np.maximum(np.arange(len(counts)), edges[0])
    binned, _ = np.histogram(scores, edges, weights=counts)
    return binned.astype(np.int64)


def _draw(axes: Axes, panel: _Panel, edges: Counts, threshold_name: str, height: float, is_alone: bool) -> None:
    """Draw the bars, the threshold and the titles of a panel; height: in inches."""
    for counts, colour in ((panel.counts, ALL), (panel.hits, HITS)):
        bars = np.maximum(_binned(counts, edges), FLOOR)
        axes.stairs(bars, edges, baseline=FLOOR, fill=True, color=colour)
    inch = 1 / height
    if panel.threshold is not None and edges[0] < panel.threshold < edges[-1]:
        axes.axvline(panel.threshold, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
        style: dict[str, Any] = {"color": GREY, "fontsize": 9 if is_alone else 8, "va": "top"}
        position = panel.threshold, 1 - 0.06 * inch
        axes.text(*position, f" {threshold_name}", transform=axes.get_xaxis_transform(), **style)
    large, small, upper, lower = (12, 9, 0.42, 0.18) if is_alone else (9, 8, 0.26, 0.09)
    axes.text(0, 1 + upper * inch, panel.name, transform=axes.transAxes, fontsize=large, fontweight="bold")
    axes.text(0, 1 + lower * inch, panel.facts, transform=axes.transAxes, fontsize=small, color=GREY)


def _mark_axes(axes: Axes, is_left: bool, is_lowest: bool, is_alone: bool) -> None:
    """Draw the scales; among several panels only the outer scales are labelled."""
    low, high = axes.get_xlim()
    # Three labels per power of ten fit only on a single panel with few powers.
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
