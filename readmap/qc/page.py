"""The HTML report: one file without scripts or network access."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from readmap.formats.wording import format_percent, format_si
from readmap.qc.coverage import BREADTHS
from readmap.qc.plots import Plot, Row, sample_plots
from readmap.qc.tally import Depths, SampleTally, Tally, share
from readmap.version import __version__

#: Maximum number of rows of a table.
MAX_ROWS = 5_000


@dataclass(frozen=True)
class ReportTable:
    """A further section of the report, such as the duplicates."""

    title: str
    description: str
    columns: Row
    rows: Sequence[Row]


def write_page(samples: Sequence[SampleTally], tables: Sequence[ReportTable], output: str, command: str) -> str:
    """Return the HTML report. tables: after the samples. output: name of the output file; command: that wrote it."""
    names = [sample.name for sample in samples]
    title = f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
    links = "".join(f'<li><a href="#s{number}">{escape(name)}</a></li>' for number, name in enumerate(names))
    style = files("readmap.qc").joinpath("page.css").read_text("utf-8")
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)} - readmap</title>\n<style>\n{style}</style></head>\n<body>\n",
        f"<header><h1>{escape(title)}</h1>",
        f"<p>Records of <code>{escape(output)}</code>, counted as they were written by readmap {__version__}.</p>",
        f"<p><code>{escape(command)}</code></p>" if command else "",
        f'<nav aria-label="Samples"><ul>{links}</ul></nav>' if len(names) > 1 else "",
        "</header>\n<main>\n",
        *(_section(sample, number, len(samples) == 1) for number, sample in enumerate(samples)),
        *map(_table_section, tables),
        "</main>\n</body></html>\n",
    ]
    return "".join(parts)


def _section(sample: SampleTally, number: int, is_only: bool) -> str:
    """Return the HTML of a sample; number: for links to it. is_only: no heading."""
    heading = "" if is_only else f"<h2>{escape(sample.name)}</h2>"
    plots = "".join(map(_figure, sample_plots(sample)))
    return (
        f'<section id="s{number}" aria-label="{escape(sample.name)}">{heading}\n'
        f'{_facts(sample)}\n{_lanes(sample)}\n<div class="plots">\n{plots}</div>\n'
        f"{_contigs(sample.depths) if sample.depths else ''}</section>\n"
    )


def _facts(sample: SampleTally) -> str:
    """Return the HTML of a sample's main totals and shares."""
    tally, depths = sample.tally, sample.depths
    facts = [
        ("Reads", format_si(tally.reads), ""),
        ("Bases", format_si(tally.bases_read), ""),
        ("Q30", format_percent(share(tally.good_bases, tally.bases_with_quality)), "of the bases"),
        ("GC", format_percent(tally.gc), "of the bases"),
        ("Mapped", format_percent(share(tally.mapped, tally.reads)), "of the reads"),
        ("Proper pairs", format_percent(share(tally.proper, tally.paired)), "of the paired reads"),
        ("Duplicates", format_percent(share(tally.duplicates, tally.reads)), "of the reads"),
        ("Error rate", f"{100 * tally.error_rate:.3f}%", "of the aligned bases"),
        ("Insert size", f"{tally.median_insert:,}", "median, inward"),
    ]
    if depths:
        facts.append(("Coverage", f"{depths.mean:.2f}x", "mean"))
        facts += [(f"Covered {depth}x", format_percent(x), "of the bases") for depth, x in depths.breadths.items()]
    items = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd>{f'<small>{of}</small>' if of else ''}</div>" for name, value, of in facts
    )
    return f'<dl class="facts">{items}</dl>'


_LANE_COLUMNS = (
    *("Lane", "Library", "Reads", "Bases", "Q30", "GC"),
    *("Mapped", "Proper", "Duplicates", "Errors", "Insert", "Adapters"),
)


def _lanes(sample: SampleTally) -> str:
    """Return the HTML table of lanes, and of libraries if there are several lanes."""
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
        format_percent(share(tally.good_bases, tally.bases_with_quality)),
        format_percent(tally.gc),
        format_percent(share(tally.mapped, tally.reads)),
        format_percent(share(tally.proper, tally.paired)),
        format_percent(share(tally.duplicates, tally.reads)),
        f"{100 * tally.error_rate:.3f}%",
        f"{tally.median_insert:,}",
        format_percent(share(tally.with_adapter, tally.reads)),
    )


def _contigs(depths: Depths) -> str:
    """Return the HTML table of coverage by contig."""
    rows = []
    for number, (name, length) in enumerate(depths.contigs[:MAX_ROWS]):
        mean, breadths = depths.of_contig(number)
        rows.append((name, f"{length:,}", f"{mean:.2f}", *(format_percent(breadths[depth]) for depth in BREADTHS)))
    columns = ("Contig", "Bases", "Mean depth", *(f"Covered {depth}x" for depth in BREADTHS))
    more = len(depths.contigs) - len(rows)
    note = f"<p>{more:,} more contigs are in the report of --json.</p>" if more else ""
    return f'<div class="table"><h3>Coverage by contig</h3>{_table(columns, rows, tall=True)}{note}</div>\n'


def _table_section(table: ReportTable) -> str:
    return (
        f'<section aria-label="{escape(table.title)}"><h2>{escape(table.title)}</h2>'
        f'<div class="table"><h3>{escape(table.description)}</h3>{_table(table.columns, table.rows)}</div></section>\n'
    )


def _figure(plot: Plot) -> str:
    """Return the HTML of a plot: title, description, picture, and its numbers in a table that unfolds."""
    return (
        f"<figure><h3>{escape(plot.title)}</h3><p>{escape(plot.description)}</p>{plot.picture}"
        f"<details><summary>Numbers</summary>{_table(plot.columns, plot.rows, tall=True)}</details></figure>\n"
    )


def _table(columns: Row, rows: Sequence[Row], words: int = 1, tall: bool = False) -> str:
    """Return the HTML of a table. words: number of leading columns with text. tall: scrolls within a fixed height."""

    def cell(tag: str, at: int, text: str) -> str:
        return f"<{tag}{' class=words' if 0 < at < words else ''}>{escape(text)}</{tag}>"

    heads = (cell("th scope=col", at, name) for at, name in enumerate(columns))
    head = "".join(heads).replace("</th scope=col>", "</th>")
    body = "".join(f"<tr>{''.join(cell('td', at, text) for at, text in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="scroll{" tall" if tall else ""}" tabindex="0" role="region" aria-label="{escape(columns[0])}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
