"""The speed of a search."""

from __future__ import annotations

from readmap.backend import Backend
from readmap.cli.common.wording import device_in_words
from readmap.search.stream import RunSummary


def rate(summary: RunSummary) -> float:
    """Reads a second."""
    return summary.reads / max(summary.seconds, 1e-9)


def speed(summary: RunSummary, backend: Backend) -> str:
    """The speed of a search and its device, in words."""
    return f"{rate(summary):,.0f} reads/s on {device_in_words(backend)}"
