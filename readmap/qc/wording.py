"""Numbers in the words of a report."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Four digits, - for what is not known."""
    return "-" if math.isnan(value) else f"{value:.4g}"


def percent(value: float) -> str:
    """A share with two digits behind the point."""
    return f"{100 * value:.2f}%"


def whole_percent(value: float) -> str:
    """A share with four digits."""
    return "-" if math.isnan(value) else f"{100 * value:.4g}%"


def fine_percent(value: float) -> str:
    """A share with three digits."""
    return "-" if math.isnan(value) else f"{100 * value:.3g}%"


def short(value: float) -> str:
    """A count in a few letters."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size if unit == "k" else abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.4g}"
