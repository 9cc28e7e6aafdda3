"""What was counted of a sample, as plots, and as the numbers behind each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.formats.wording import format_number, format_percent, format_percent_3, format_percent_4, format_si
from readmap.qc.charts import Axis, Line, Values, bar_chart, line_chart
from readmap.qc.counts import INSERTS
from readmap.qc.json_report import BASE_NAMES, ORIENTATION_NAMES
from readmap.qc.tally import ADAPTER_NAMES, Depths, SampleTally, Tally, share

#: Bars of a histogram at most; of one with a long tail, the part that is shown.
MAX_BARS, SHOWN = 120, 0.999

MATES = ("read 1", "read 2")
BASE_COLOURS = ("c3", "c1", "c7", "c6", "c5")
LANE_COLOURS = 8

Row = tuple[str, ...]


@dataclass(frozen=True)
class Plot:
    """A plot, and the same as numbers."""

    title: str
    about: str
    picture: str
    columns: Row
    rows: Sequence[Row]


def sample_plots(sample: SampleTally) -> Iterator[Plot]:
    """The plots of a sample, in the order in which a lab asks: is the sequencing good, the library, the coverage."""
    tally = sample.tally
    mates = [mate for mate in range(2) if tally.bases[mate].any()]
    if tally.cycles and mates:
        yield from _by_cycle(sample, mates)
    yield _histogram(
        "GC of reads", "Reads by the share of G and C among their bases.", tally.gc_of_reads.sum(0), "GC, %", "Reads"
    )
    if tally.quality_of_reads.any():
        yield _histogram(
            "Mean quality of reads",
            "Reads by the mean of their base qualities.",
            _shown(tally.quality_of_reads.sum(0)),
            "Phred",
            "Reads",
        )
    if tally.pairs_by_insert.any():
        yield _inserts(tally)
    if tally.mapqs.any():
        yield _histogram(
            "Mapping quality", "Mapped reads that neither fail nor are duplicates.", tally.mapqs[:61], "MAPQ", "Reads"
        )
    if sample.depths and sample.depths.covered.any():
        yield from _depths(sample.depths)


def _by_cycle(sample: SampleTally, mates: Sequence[int]) -> Iterator[Plot]:
    tally = sample.tally
    shown = tally.cycles - tally.is_last_cycle_more
    cycles = np.arange(1, shown + 1, dtype=np.float64)
    x = Axis("Cycle")

    def plot(title: str, about: str, lines: Sequence[Line], y: Axis) -> Plot:
        kept = [
            Line(
                line.name,
                _cut(line.values, shown),
                line.colour,
                _cut(line.low, shown),
                _cut(line.high, shown),
                line.is_dashed,
            )
            for line in lines
        ]
        rows = [
            (f"{number:,.0f}", *(y.form(float(line.values[at])) for line in kept)) for at, number in enumerate(cycles)
        ]
        picture = line_chart(title, cycles, kept, x, y)
        return Plot(title, about, picture, ("Cycle", *(line.name for line in kept)), rows)

    names, colours = [MATES[mate] if len(mates) > 1 else "reads" for mate in mates], ("c1", "c2")
    qualities = [
        Line(
            name,
            tally.mean_quality(mate),
            colours[mate],
            _known(tally.quality_quantile(mate, 0.1)),
            _known(tally.quality_quantile(mate, 0.9)),
        )
        for name, mate in zip(names, mates, strict=True)
    ]
    if tally.qualities.any():
        yield plot(
            "Quality by cycle",
            "The mean, and the band that holds eight of ten bases.",
            qualities,
            Axis("Phred", format_number, 0, 40),
        )
    if len(sample.lanes) > 1 and tally.qualities.any():
        yield plot(
            "Quality by cycle and lane",
            "Mean qualities; read 2 is dashed.",
            [
                Line(
                    f"{lane.name or 'no read group'} {MATES[mate]}",
                    _long(lane.tally.mean_quality(mate), tally.cycles),
                    f"c{number % LANE_COLOURS + 1}",
                    is_dashed=mate > 0,
                )
                for number, lane in enumerate(sample.lanes)
                for mate in mates
            ],
            Axis("Phred", format_number, 20, 40),
        )
    for name, mate in zip(names, mates, strict=True):
        bases = tally.base_shares(mate)
        yield plot(
            f"Bases by cycle, {name}",
            "Shares of the letters.",
            [Line(letter, bases[:, at], BASE_COLOURS[at]) for at, letter in enumerate(BASE_NAMES)],
            Axis("Share", format_percent_4, 0, 0.4),
        )
    if tally.mismatches.any():
        yield plot(
            "Mismatches by cycle",
            "Of the bases that are aligned, as the tag MD tells them.",
            [Line(name, tally.mismatch_shares(mate), colours[mate]) for name, mate in zip(names, mates, strict=True)],
            Axis("Share", format_percent_3, 0),
        )
    yield plot(
        "Adapters by cycle",
        "Reads in which twelve bases of an adapter have begun.",
        [
            Line(name, row, f"c{number + 1}")
            for number, (name, row) in enumerate(zip(ADAPTER_NAMES, tally.adapter_shares(), strict=True))
        ],
        Axis("Share", format_percent_3, 0, 0.001),
    )


def _histogram(title: str, about: str, counts: NDArray[np.int64], x: str, y: str) -> Plot:
    places, values = np.arange(len(counts), dtype=np.float64), counts.astype(np.float64)
    rows = [(f"{number:,}", f"{count:,}") for number, count in enumerate(counts) if count]
    return Plot(title, about, bar_chart(title, places, values, Axis(x), Axis(y, format_si)), (x, y), rows)


def _inserts(tally: Tally) -> Plot:
    counted = tally.pairs_by_insert
    total = counted.sum(0)[: INSERTS - 1]
    end = int(np.searchsorted(np.cumsum(total), SHOWN * total.sum())) + 1 if total.any() else 1
    width = max(-(-end // MAX_BARS), 1)
    bins = -(-end // width)
    binned = np.zeros((3, bins * width))
    stretch = min(bins * width, INSERTS - 1)
    binned[:, :stretch] = counted[:, :stretch]
    binned = binned.reshape(3, bins, width).sum(2)
    places = np.arange(bins, dtype=np.float64) * width
    lines = [
        Line(name, row, colour)
        for name, row, colour in zip(ORIENTATION_NAMES, binned, ("c1", "c2", "c5"), strict=True)
        if row.any()
    ]
    title, about = "Insert sizes", f"Pairs by orientation and size, {width} bases a point."
    far = int(counted[:, INSERTS - 1].sum())
    if far:
        about += f" {far:,} pairs are of {INSERTS - 1:,} bases and more."
    rows = [(f"{place:,.0f}", *(f"{line.values[at]:,.0f}" for line in lines)) for at, place in enumerate(places)]
    picture = line_chart(title, places, lines, Axis("Insert size, bases"), Axis("Pairs", format_si, 0))
    return Plot(title, about, picture, ("Size", *(line.name for line in lines)), rows)


def _depths(depths: Depths) -> Iterator[Plot]:
    counts = depths.all_depths
    covered = counts[1:]
    end = int(np.searchsorted(covered.cumsum(), SHOWN * covered.sum())) + 2
    width = max(-(-end // MAX_BARS), 1)
    bins = -(-end // width)
    padded = np.zeros(bins * width)
    stretch = min(len(padded), len(covered))
    padded[:stretch] = covered[:stretch]
    places = np.arange(bins, dtype=np.float64) * width + 1
    binned = padded.reshape(bins, width).sum(1)
    lost = f" {depths.missing_mc:,} reads have no MC: where their mates overlap, both count." if depths.missing_mc else ""
    left_out = "Unmapped, secondary, failed and duplicate records are left out; mates that overlap count once."
    uncovered = format_percent(share(int(counts[0]), depths.length))
    yield Plot(
        "Depth",
        f"Bases that are covered, by depth; {uncovered} are not. {left_out}{lost}",
        bar_chart("Depth", places, binned, Axis("Depth"), Axis("Bases", format_si)),
        ("Depth", "Bases"),
        [(f"{place:,.0f}", f"{count:,.0f}") for place, count in zip(places, binned, strict=True)],
    )
    reached = counts[::-1].cumsum()[::-1] / max(int(counts.sum()), 1)
    at, share_axis = np.arange(1, end, dtype=np.float64), Axis("Share", format_percent_4, 0, 1)
    yield Plot(
        "Breadth",
        "The share of the reference that reaches a depth.",
        line_chart("Breadth", at, [Line("bases", reached[1:end], "c1")], Axis("Depth"), share_axis),
        ("Depth", "Share"),
        [(f"{number:,}", format_percent(float(reached[number]))) for number in range(1, end)],
    )


def _cut(values: Values | None, end: int) -> Any:
    return None if values is None else values[:end]


def _long(values: Values, size: int) -> Values:
    """The values, and NaN behind them."""
    return np.concatenate([values, np.full(size - len(values), np.nan)])


def _shown(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts up to the last that is not 0."""
    return counts[: int(np.flatnonzero(counts)[-1]) + 1]


def _known(values: NDArray[np.int64]) -> Values:
    return np.where(values < 0, np.nan, values)
