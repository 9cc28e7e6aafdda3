"""Medians of several works that take turns, so that what else the machine does slows all of them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.common import timed
from readmap.backend import Backend


def seconds_in_turn(works: dict[str, Callable[[], Any]], runs: int, backend: Backend) -> dict[str, float]:
    taken: list[dict[str, float]] = []
    for _ in range(runs):
        taken.append({})
        for name, work in works.items():
            with timed(taken[-1], name, backend):
                work()
    return {name: median(seconds[name] for seconds in taken) for name in works}


def gcups(cells: int, seconds: float) -> float:
    """Billions of cells of the matrix a second."""
    return float(f"{cells / seconds / 1e9:.4g}")
