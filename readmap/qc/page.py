"""What was counted, as a page that a lab looks at: one file of HTML, without scripts and without a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.duplicates.metrics import LibraryMetrics
from readmap.qc.charts import Axis, Line, Values, bar_chart, line_chart
from readmap.qc.counts import INSERTS
from readmap.qc.coverage import BREADTHS
from readmap.qc.programs import BASE_NAMES, ORIENTATION_NAMES
from readmap.qc.tally import ADAPTER_NAMES, Depths, Sample, Tally, share
from readmap.version import __version__

#: Bars of a histogram, contigs of a plot, and rows of a table at most.
MOST_BARS, MOST_CONTIGS, MOST_ROWS = 120, 60, 5_000

#: Of a histogram with a long tail, the part that is shown.
SHOWN = 0.999

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


def write_page(samples: Sequence[Sample], libraries: Sequence[LibraryMetrics], output: str, command: str) -> str:
    """The page. libraries: of which duplicates were marked. output: what it is about; command: that made it."""
    names = [sample.name for sample in samples]
    title = f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
    links = "".join(f'<li><a href="#s{number}">{escape(name)}</a></li>' for number, name in enumerate(names))
    style = files("readmap.qc").joinpath("page.css").read_text("utf-8")
    return "".join(
        [
            "<!doctype html>\n",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)} - readmap</title>\n<style>\n{style}</style></head>\n<body>\n",
            f"<header><h1>{escape(title)}</h1>",
            f"<p>Records of <code>{escape(output)}</code>, counted as they were written by readmap {__version__}.</p>",
            f"<p><code>{escape(command)}</code></p>" if command else "",
            f'<nav aria-label="Samples"><ul>{links}</ul></nav>' if len(names) > 1 else "",
            "</header>\n<main>\n",
            *(_section(sample, number, len(samples) == 1) for number, sample in enumerate(samples)),
            _duplicates(libraries),
            "</main>\n</body></html>\n",
        ]
    )


def _section(sample: Sample, number: int, is_only: bool) -> str:
    heading = "" if is_only else f"<h2>{escape(sample.name)}</h2>"
    plots = "".join(map(_figure, _plots(sample)))
    return (
        f'<section id="s{number}" aria-label="{escape(sample.name)}">{heading}\n'
        f'{_facts(sample)}\n{_lanes(sample)}\n<div class="plots">\n{plots}</div>\n'
        f"{_contigs(sample.depths) if sample.depths else ''}</section>\n"
    )


def _facts(sample: Sample) -> str:
    """The numbers that are looked at first."""
    tally, depths = sample.tally, sample.depths
    facts = [
        ("Reads", _short(tally.reads), ""),
        ("Bases", _short(tally.bases_read), ""),
        ("Q30", _percent(share(tally.good_bases, tally.bases_with_quality)), "of the bases"),
        ("GC", _percent(tally.gc), "of the bases"),
        ("Mapped", _percent(share(tally.mapped, tally.reads)), "of the reads"),
        ("Proper pairs", _percent(share(tally.proper, tally.paired)), "of the paired reads"),
        ("Duplicates", _percent(share(tally.duplicates, tally.reads)), "of the reads"),
        ("Error rate", f"{100 * tally.error_rate:.3f}%", "of the aligned bases"),
        ("Insert size", f"{tally.median_insert:,}", "median, inward"),
    ]
    if depths:
        facts.append(("Coverage", f"{depths.mean:.2f}x", "mean"))
        facts += [(f"Covered {depth}x", _percent(part), "of the bases") for depth, part in depths.breadths.items()]
    told = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd>{f'<small>{of}</small>' if of else ''}</div>" for name, value, of in facts
    )
    return f'<dl class="facts">{told}</dl>'


_LANE_COLUMNS = (
    "Lane",
    "Library",
    "Reads",
    "Bases",
    "Q30",
    "GC",
    "Mapped",
    "Proper",
    "Duplicates",
    "Errors",
    "Insert",
    "Adapters",
)


def _lanes(sample: Sample) -> str:
    """Lanes, then libraries of several ones, as a table."""
    rows = [_lane_row(lane.name or "no read group", lane.library, lane.tally) for lane in sample.lanes]
    libraries = sample.libraries
    if len(sample.lanes) > 1:
        rows += [_lane_row("all of the library", name, tally) for name, tally in libraries.items() if name]
        rows.append(_lane_row("all", "", sample.tally))
    return f'<div class="table"><h3>Lanes and libraries</h3>{_table(_LANE_COLUMNS, rows, words=2)}</div>'


def _lane_row(name: str, library: str, tally: Tally) -> Row:
    return (
        name,
        library,
        f"{tally.reads:,}",
        f"{tally.bases_read:,}",
        _percent(share(tally.good_bases, tally.bases_with_quality)),
        _percent(tally.gc),
        _percent(share(tally.mapped, tally.reads)),
        _percent(share(tally.proper, tally.paired)),
        _percent(share(tally.duplicates, tally.reads)),
        f"{100 * tally.error_rate:.3f}%",
        f"{tally.median_insert:,}",
        _percent(share(tally.with_adapter, tally.reads)),
    )


def _plots(sample: Sample) -> Iterator[Plot]:
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


def _by_cycle(sample: Sample, mates: Sequence[int]) -> Iterator[Plot]:
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
            Axis("Phred", _number, 0, 40),
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
            Axis("Phred", _number, 20, 40),
        )
    for name, mate in zip(names, mates, strict=True):
        bases = tally.base_shares(mate)
        yield plot(
            f"Bases by cycle, {name}",
            "Shares of the letters.",
            [Line(letter, bases[:, at], BASE_COLOURS[at]) for at, letter in enumerate(BASE_NAMES)],
            Axis("Share", _whole_percent, 0, 0.4),
        )
    if tally.mismatches.any():
        yield plot(
            "Mismatches by cycle",
            "Of the bases that are aligned, as the tag MD tells them.",
            [Line(name, tally.mismatch_shares(mate), colours[mate]) for name, mate in zip(names, mates, strict=True)],
            Axis("Share", _fine_percent, 0),
        )
    yield plot(
        "Adapters by cycle",
        "Reads in which twelve bases of an adapter have begun.",
        [
            Line(name, row, f"c{number + 1}")
            for number, (name, row) in enumerate(zip(ADAPTER_NAMES, tally.adapter_shares(), strict=True))
        ],
        Axis("Share", _fine_percent, 0, 0.001),
    )


def _histogram(title: str, about: str, counts: NDArray[np.int64], x: str, y: str) -> Plot:
    places, values = np.arange(len(counts), dtype=np.float64), counts.astype(np.float64)
    rows = [(f"{number:,}", f"{count:,}") for number, count in enumerate(counts) if count]
    return Plot(title, about, bar_chart(title, places, values, Axis(x), Axis(y, _short)), (x, y), rows)


def _inserts(tally: Tally) -> Plot:
    counted = tally.pairs_by_insert
    total = counted.sum(0)[: INSERTS - 1]
    end = int(np.searchsorted(np.cumsum(total), SHOWN * total.sum())) + 1 if total.any() else 1
    width = max(-(-end // MOST_BARS), 1)
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
    picture = line_chart(title, places, lines, Axis("Insert size, bases"), Axis("Pairs", _short, 0))
    return Plot(title, about, picture, ("Size", *(line.name for line in lines)), rows)


def _depths(depths: Depths) -> Iterator[Plot]:
    counts = depths.all_depths
    covered = counts[1:]
    end = int(np.searchsorted(covered.cumsum(), SHOWN * covered.sum())) + 2
    width = max(-(-end // MOST_BARS), 1)
    bins = -(-end // width)
    padded = np.zeros(bins * width)
    stretch = min(len(padded), len(covered))
    padded[:stretch] = covered[:stretch]
    places = np.arange(bins, dtype=np.float64) * width + 1
    binned = padded.reshape(bins, width).sum(1)
    lost = f" {depths.lost:,} reads have no MC: where their mates overlap, both count." if depths.lost else ""
    left_out = "Unmapped, secondary, failed and duplicate records are left out; mates that overlap count once."
    yield Plot(
        "Depth",
        f"Bases that are covered, by depth; {_percent(share(int(counts[0]), depths.length))} are not. {left_out}{lost}",
        bar_chart("Depth", places, binned, Axis("Depth"), Axis("Bases", _short)),
        ("Depth", "Bases"),
        [(f"{place:,.0f}", f"{count:,.0f}") for place, count in zip(places, binned, strict=True)],
    )
    reached = counts[::-1].cumsum()[::-1] / max(int(counts.sum()), 1)
    at, share_axis = np.arange(1, end, dtype=np.float64), Axis("Share", _whole_percent, 0, 1)
    yield Plot(
        "Breadth",
        "The share of the reference that reaches a depth.",
        line_chart("Breadth", at, [Line("bases", reached[1:end], "c1")], Axis("Depth"), share_axis),
        ("Depth", "Share"),
        [(f"{number:,}", _percent(float(reached[number]))) for number in range(1, end)],
    )


def _contigs(depths: Depths) -> str:
    """Coverage by contig."""
    rows = []
    for number, (name, length) in enumerate(depths.contigs[:MOST_ROWS]):
        mean, breadths = depths.of_contig(number)
        rows.append((name, f"{length:,}", f"{mean:.2f}", *(_percent(breadths[depth]) for depth in BREADTHS)))
    columns = ("Contig", "Bases", "Mean depth", *(f"Covered {depth}x" for depth in BREADTHS))
    more = len(depths.contigs) - len(rows)
    told = f"<p>{more:,} more contigs are in the report of --json.</p>" if more else ""
    return f'<div class="table"><h3>Coverage by contig</h3>{_table(columns, rows, tall=True)}{told}</div>\n'


def _duplicates(libraries: Sequence[LibraryMetrics]) -> str:
    """The metrics of the libraries whose duplicates were marked."""
    if not libraries:
        return ""
    columns = (
        "Library",
        "Pairs",
        "Duplicate pairs",
        "Optical",
        "Other reads",
        "Duplicates of these",
        "Share",
        "Library size",
    )
    rows = [
        (
            one.name,
            f"{one.pairs:,}",
            f"{one.pair_duplicates:,}",
            f"{one.optical_duplicates:,}",
            f"{one.unpaired:,}",
            f"{one.unpaired_duplicates:,}",
            _percent(one.share),
            f"{one.size:,}" if one.size else "unknown",
        )
        for one in libraries
    ]
    return (
        '<section aria-labelledby="duplicates"><h2 id="duplicates">Duplicates</h2>'
        f'<div class="table"><h3>By library</h3>{_table(columns, rows)}</div></section>\n'
    )


def _figure(plot: Plot) -> str:
    return (
        f"<figure><h3>{escape(plot.title)}</h3><p>{escape(plot.about)}</p>{plot.picture}"
        f"<details><summary>Numbers</summary>{_table(plot.columns, plot.rows, tall=True)}</details></figure>\n"
    )


def _table(columns: Row, rows: Sequence[Row], words: int = 1, tall: bool = False) -> str:
    """words: columns from the left that hold words. tall: within its own height."""

    def cell(tag: str, at: int, text: str) -> str:
        return f"<{tag}{' class=words' if 0 < at < words else ''}>{escape(text)}</{tag}>"

    head = "".join(
        cell("th scope=col", at, name).replace("</th scope=col>", "</th>") for at, name in enumerate(columns)
    )
    body = "".join(f"<tr>{''.join(cell('td', at, text) for at, text in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="scroll{" tall" if tall else ""}" tabindex="0" role="region" aria-label="{escape(columns[0])}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
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


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4g}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}%"


def _whole_percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.4g}%"


def _fine_percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.3g}%"


def _short(value: float) -> str:
    """A count in a few letters."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size if unit == "k" else abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.4g}"
