"""The metrics of duplicates as a page of a report shows them."""

from __future__ import annotations

from collections.abc import Sequence

from readmap.duplicates.metrics import LibraryMetrics
from readmap.formats.wording import format_percent
from readmap.qc.page import Table

_COLUMNS = (
    "Library",
    "Pairs",
    "Duplicate pairs",
    "Optical",
    "Other reads",
    "Duplicates of these",
    "Share",
    "Library size",
)


def duplicates_table(libraries: Sequence[LibraryMetrics]) -> Table:
    """A row a library."""
    rows = [
        (
            one.name,
            f"{one.pairs:,}",
            f"{one.pair_duplicates:,}",
            f"{one.optical_duplicates:,}",
            f"{one.unpaired:,}",
            f"{one.unpaired_duplicates:,}",
            format_percent(one.share),
            f"{one.size:,}" if one.size else "unknown",
        )
        for one in libraries
    ]
    return Table("Duplicates", "By library", _COLUMNS, rows)
