"""The plots of a sample in the HTML report, each with its data as a table."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.formats.wording import format_number, format_percent, format_percent_3, format_percent_4, format_si
from readmap.qc.charts import Axis, Line, bar_chart, line_chart
from readmap.qc.counts import INSERTS
from readmap.qc.json_report import BASE_NAMES, ORIENTATION_NAMES
from readmap.qc.tally import ADAPTER_NAMES, Depths, SampleTally, Tally, share

#: Maximum number of bars of a histogram, and the share of the data shown of a histogram with a long tail.
MAX_BARS, SHOWN = 120, 0.999

MATES = ("read 1", "read 2")
BASE_COLOURS = ("c3", "c1", "c7", "c6", "c5")
LANE_COLOURS = 8

Row = tuple[str, ...]


@dataclass(frozen=True)
class Plot:
    """A plot and its data."""

    title: str
    description: str
    picture: str
    columns: Row
    rows: Sequence[Row]


def sample_plots(sample: SampleTally) -> Iterator[Plot]:
    """Yield the plots of a sample in the order of a lab's questions: sequencing, library, coverage."""
    tally = sample.tally
    mates = [mate for mate in range(2) if tally.bases[mate].any()]
    if tally.cycles and mates:
        yield from _by_cycle(sample, mates)
    yield _histogram("GC of reads", "Reads by share of G and C.", tally.gc_of_reads.sum(0), "GC, %", "Reads")
    if (counts := tally.quality_of_reads.sum(0)).any():
        shown = counts[: int(np.flatnonzero(counts)[-1]) + 1]
        yield _histogram("Mean quality of reads", "Reads by mean base quality.", shown, "Phred", "Reads")
    if tally.pairs_by_insert.any():
        yield _inserts(tally)
    if tally.mapqs.any():
        description = "Mapped reads without failed and duplicate reads."
        yield _histogram("Mapping quality", description, tally.mapqs[:61], "MAPQ", "Reads")
    if sample.depths and sample.depths.covered.any():
        yield from _depths(sample.depths)


def _by_cycle(sample: SampleTally, mates: Sequence[int]) -> Iterator[Plot]:
    """Yield the plots over sequencing cycles: qualities, bases, mismatches and adapters."""
    tally = sample.tally
    shown = tally.cycles - tally.is_last_cycle_more
    cycles = np.arange(1, shown + 1, dtype=np.float64)
    x = Axis("Cycle")

    def plot(title: str, description: str, lines: Sequence[Line], y: Axis) -> Plot:
        cut: list[dict[str, Any]] = [
            {name: value[:shown] if isinstance(value, np.ndarray) else value for name, value in vars(line).items()}
            for line in lines
        ]
        kept = [Line(**each) for each in cut]
        rows = [(f"{cycle:,.0f}", *(y.form(float(one.values[i])) for one in kept)) for i, cycle in enumerate(cycles)]
        picture = line_chart(title, cycles, kept, x, y)
        return Plot(title, description, picture, ("Cycle", *(line.name for line in kept)), rows)

    named, colours = [(MATES[mate] if len(mates) > 1 else "reads", mate) for mate in mates], ("c1", "c2")
    lines = []
    for name, mate in named:
        quantiles = (tally.quality_quantile(mate, quantile) for quantile in (0.1, 0.9))
        low, high = (np.where(values < 0, np.nan, values) for values in quantiles)
        lines.append(Line(name, tally.mean_quality(mate), colours[mate], low, high))
    if tally.qualities.any():
        description = "Mean, and a band with eight of ten bases."
        yield plot("Quality by cycle", description, lines, Axis("Phred", format_number, 0, 40))
    if len(sample.lanes) > 1 and tally.qualities.any():
        lines = []
        for (number, lane), mate in itertools.product(enumerate(sample.lanes), mates):
            name, colour = f"{lane.name or 'no read group'} {MATES[mate]}", f"c{number % LANE_COLOURS + 1}"
            padded = np.full(tally.cycles, np.nan)
            padded[: lane.tally.cycles] = lane.tally.mean_quality(mate)
            lines.append(Line(name, padded, colour, is_dashed=mate > 0))
        description, y = "Mean qualities; read 2 is dashed.", Axis("Phred", format_number, 20, 40)
        yield plot("Quality by cycle and lane", description, lines, y)
    for name, mate in named:
        bases = tally.base_shares(mate)
        lines = [Line(letter, bases[:, at], BASE_COLOURS[at]) for at, letter in enumerate(BASE_NAMES)]
        y = Axis("Share", format_percent_4, 0, 0.4)
        yield plot(f"Bases by cycle, {name}", "Shares of the letters.", lines, y)
    if tally.mismatches.any():
        lines = [Line(name, tally.mismatch_shares(mate), colours[mate]) for name, mate in named]
        description = "Share of the aligned bases, from the tag MD."
        yield plot("Mismatches by cycle", description, lines, Axis("Share", format_percent_3, 0))
    rows = zip(ADAPTER_NAMES, tally.adapter_shares(), strict=True)
    lines = [Line(name, row, f"c{number + 1}") for number, (name, row) in enumerate(rows)]
    description = "Share of reads in which twelve bases of an adapter have started."
    yield plot("Adapters by cycle", description, lines, Axis("Share", format_percent_3, 0, 0.001))


def _histogram(title: str, description: str, counts: NDArray[np.int64], x: str, y: str) -> Plot:
    x_values, values = np.arange(len(counts), dtype=np.float64), counts.astype(np.float64)
    rows = [(f"{number:,}", f"{count:,}") for number, count in enumerate(counts) if count]
    return Plot(title, description, bar_chart(title, x_values, values, Axis(x), Axis(y, format_si)), (x, y), rows)


def _inserts(tally: Tally) -> Plot:
    """Return the plot of insert sizes by orientation; the largest 0.1 % are not shown."""
    counted = tally.pairs_by_insert
    total = counted.sum(0)[: INSERTS - 1]
    end = int(np.searchsorted(np.cumsum(total), SHOWN * total.sum())) + 1 if total.any() else 1
    binned, width = _binned(counted[:, : INSERTS - 1], end)
    x_values = np.arange(binned.shape[1], dtype=np.float64) * width
    lines = [
        Line(name, row, colour)
        for name, row, colour in zip(ORIENTATION_NAMES, binned, ("c1", "c2", "c5"), strict=True)
        if row.any()
    ]
    title, description = "Insert sizes", f"Pairs by orientation and size, {width} bases per point."
    far = int(counted[:, INSERTS - 1].sum())
    if far:
        description += f" {far:,} pairs have {INSERTS - 1:,} bases or more."
    rows = [(f"{x_value:,.0f}", *(f"{line.values[at]:,.0f}" for line in lines)) for at, x_value in enumerate(x_values)]
    picture = line_chart(title, x_values, lines, Axis("Insert size, bases"), Axis("Pairs", format_si, 0))
    return Plot(title, description, picture, ("Size", *(line.name for line in lines)), rows)


def _depths(depths: Depths) -> Iterator[Plot]:
    """Yield the plots of coverage: depth and breadth."""
    counts = depths.all_depths
    covered = counts[1:]
    end = int(np.searchsorted(covered.cumsum(), SHOWN * covered.sum())) + 2
    (binned,), width = _binned(covered[np.newaxis], end)
    x_values = np.arange(len(binned), dtype=np.float64) * width + 1
    missing = f" {depths.missing_mc:,} reads have no MC: overlaps with their mates count twice."
    missing = missing if depths.missing_mc else ""
    left_out = "Unmapped, secondary, failed and duplicate records are left out; overlapping mates count once."
    uncovered = format_percent(share(int(counts[0]), depths.length))
    yield Plot(
        "Depth",
        f"Covered bases by depth; {uncovered} of the bases are not covered. {left_out}{missing}",
        bar_chart("Depth", x_values, binned, Axis("Depth"), Axis("Bases", format_si)),
        ("Depth", "Bases"),
        [(f"{x_value:,.0f}", f"{count:,.0f}") for x_value, count in zip(x_values, binned, strict=True)],
    )
    reached = counts[::-1].cumsum()[::-1] / max(int(counts.sum()), 1)
    at, share_axis = np.arange(1, end, dtype=np.float64), Axis("Share", format_percent_4, 0, 1)
    yield Plot(
        "Breadth",
        "Share of the reference that reaches a depth.",
        line_chart("Breadth", at, [Line("bases", reached[1:end], "c1")], Axis("Depth"), share_axis),
        ("Depth", "Share"),
        [(f"{number:,}", format_percent(float(reached[number]))) for number in range(1, end)],
    )


def _binned(counts: NDArray[np.int64], end: int) -> tuple[NDArray[np.float64], int]:
    """Return the first `end` counts of each row summed in up to MAX_BARS bins [rows, bins], and the width of a bin."""
    width = max(-(-end // MAX_BARS), 1)
    padded = np.zeros((len(counts), -(-end // width) * width))
    shown = min(padded.shape[1], counts.shape[1])
    padded[:, :shown] = counts[:, :shown]
    return padded.reshape(len(counts), -1, width).sum(2), width
