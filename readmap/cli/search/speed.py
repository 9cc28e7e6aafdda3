"""The speed of a search."""

from __future__ import annotations

from readmap.run.batch_processor import RunSummary


def rate(summary: RunSummary) -> float:
    """Reads a second."""
    return summary.reads / max(summary.seconds, 1e-9)


def speed(summary: RunSummary, devices: str) -> str:
    """The speed of a search and what did it, in words."""
    return f"{rate(summary):,.0f} reads/s on {devices}"
