"""Draw mapq-calibration.png: the errors found and the errors expected from MAPQ, by class of reads."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import Any

from benchmarks.compare.figures import TITLE, save
from benchmarks.exact.figures import BLACK, GREEN, GREY, ORANGE, RED, SKY
from matplotlib.figure import Figure

from evaluation.calibration import MIN_READS
from evaluation.figures import Row

LOOKS = {"bwa": (ORANGE, "s"), "minibwa": (SKY, "^"), "readmap": (RED, "o")}
OTHER = (GREEN, "D")
APART = 0.16  # distance of the mappers' points of a bin, in bins
UNSEEN = 3  # upper 95 % confidence limit of the errors if none is found


def draw(report: Row, folder: Path) -> list[Path]:
    """Draw the PNG of a report with simulated sets."""
    return save(_panels, [report], folder / "mapq-calibration.png")


def phred(share: float) -> float:
    return -10 * log10(share)


def _panels(reports: Sequence[Row]) -> Figure:
    """Draw a panel for each class: phred of the errors found over MAPQ; points below the steps have too many errors."""
    calibration: dict[str, list[Row]] = reports[0]["sets"]["all sets"]["calibration"]
    classes = list(dict.fromkeys(row["class"] for rows in calibration.values() for row in rows))
    figure = Figure(figsize=(11, 7))
    panels = figure.subplots(2, -(-len(classes) // 2), sharex=True, sharey=True, squeeze=False).ravel()
    figure.subplots_adjust(left=0.06, right=0.985, bottom=0.1, top=0.83, hspace=0.28, wspace=0.08)
    for axes, name in zip(panels, classes, strict=False):
        _panel(axes, {mapper: [row for row in rows if row["class"] == name] for mapper, rows in calibration.items()})
        axes.set_title(name, pad=6, fontsize=10)
    for axes in panels[-(-len(classes) // 2) :]:
        axes.set_xlabel("MAPQ")
    for axes in panels[:: -(-len(classes) // 2)]:
        axes.set_ylabel("phred of the errors found")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="upper right", ncols=4, frameon=False, fontsize=9)
    figure.text(0.06, 0.95, "MAPQ: expected and found errors", **TITLE)
    note = f"bins of {MIN_READS:,} reads and more, with a standard error; hollow: no errors, phred is a lower limit"
    figure.text(0.06, 0.915, note, fontsize=8, color=GREY)
    simulated = [name for name, one in reports[0]["sets"].items() if "bins" in one]
    figure.text(0.985, 0.012, f"{len(simulated)} simulated sets", ha="right", fontsize=7, color=GREY)
    return figure


def _panel(axes: Any, mappers: dict[str, list[Row]]) -> None:
    promised = [phred(row["promised"]) for row in next(iter(mappers.values()))]
    axes.step(range(len(promised)), promised, where="mid", color=BLACK, linewidth=1, label="expected")
    labels = [row["mapq"] for row in next(iter(mappers.values()))]
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    for number, (mapper, rows) in enumerate(mappers.items()):
        colour, marker = LOOKS.get(mapper, OTHER)
        shift = (number - (len(mappers) - 1) / 2) * APART
        style: Row = {"color": colour, "marker": marker, "markersize": 5, "linestyle": "", "capsize": 2}
        axes.errorbar([], [], label=mapper, **style)
        for place, row in enumerate(rows):
            if row["reads"] >= MIN_READS:
                found, spread = _found(row)
                face = {} if row["wrong"] else {"markerfacecolor": "white"}
                axes.errorbar(place + shift, found, yerr=spread, **style, **face)
    axes.grid(visible=True, axis="y")


def _found(row: Row) -> tuple[float, list[list[float]] | None]:
    """Return the phred of a bin's errors, and the lengths of its error bar below and above."""
    wrong, reads = row["wrong"], row["reads"]
    if not wrong:
        return phred(UNSEEN / reads), None
    error = (wrong * (1 - wrong / reads)) ** 0.5
    found, most, least = phred(wrong / reads), min(wrong + error, reads), max(wrong - error, 0.5)
    return found, [[found - phred(most / reads)], [phred(least / reads) - found]]
