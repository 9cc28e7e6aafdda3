"""The speed of a search."""

from __future__ import annotations

from collections.abc import Sequence

from readmap.backend import Backend
from readmap.cli.common.wording import devices_in_words
from readmap.search.stream import RunSummary


def rate(summary: RunSummary) -> float:
    """Reads a second."""
    return summary.reads / max(summary.seconds, 1e-9)


def speed(summary: RunSummary, backends: Sequence[Backend]) -> str:
    """The speed of a search and its devices, in words."""
    return f"{rate(summary):,.0f} reads/s on {devices_in_words(backends)}"
