"""E-values and bit scores as BLAST writes them, without the blanks that it fills columns up with."""

from __future__ import annotations

import math

#: What stands for a number where the costs of gaps have no parameters.
UNKNOWN = "NA"


def format_evalue(evalue: float, decimals: int = 2) -> str:
    """An E-value; NaN is unknown. decimals: of a small one's mantissa: 2 in BLAST's tables, 0 in its pairwise text."""
    if math.isnan(evalue):
        return UNKNOWN
    if evalue < 1e-180:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.{decimals}e}"
    for end, digits in ((0.1, 3), (1, 2), (10, 1)):
        if evalue < end:
            return f"{evalue:.{digits}f}"
    return f"{evalue:.0f}"


def format_bit_score(bit_score: float) -> str:
    """A bit score; NaN is unknown. Whole bits of a large one are cut off and not rounded."""
    if math.isnan(bit_score):
        return UNKNOWN
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    return str(int(bit_score)) if bit_score > 99.9 else f"{bit_score:.1f}"
