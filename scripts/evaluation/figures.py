"""A measure of the peers and of the mapper, its bar and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = {2: ("bwa", "mapper"), 3: ("bwa", "minibwa", "mapper")}  # of counts
Row = dict[str, Any]  # of a table, and an object in the JSON
Result = dict[str, Any]  # figures; of a simulated set also counts of reads, and who alone is right


def figure(measure: str, counts: Sequence[int | None], of: int = 0, bar: str = "", limit: int = 0) -> Row:
    """Counts are the peers' and then the mapper's, shares of `of`; where bwa has none, the bar is 99.9 % of `of`.

    A bar is >= or <=, which are passed or missed; behind "aim: " they only tell who is ahead.
    """
    mapper = counts[-1] or 0
    limit = -(-of * 999 // 1000) if counts[0] is None else limit
    reached = mapper <= limit if bar.endswith("<=") else mapper >= limit
    verdict = ("ahead" if reached else "behind") if bar.startswith("aim") else "PASS" if reached else "MISS"
    told = {"bar": bar and f"{bar} {limit:,}", "verdict": bar and verdict}
    return {"measure": measure} | dict(zip(NAMES[len(counts)], counts, strict=True)) | {"of": of, **told}


def skipped(measure: str, reason: str) -> Row:
    return {"measure": measure, "bwa": None, "mapper": None, "of": 0, "bar": "", "verdict": f"skipped: {reason}"}


def few(counts: Sequence[int]) -> int:
    """The most that differs from the fewer of the peers' errors by luck: n + 2 sqrt(n + 1)."""
    fewest = min(counts[:-1])
    return fewest + isqrt(4 * (fewest + 1))


def many(counts: Sequence[int], of: int, errors: int = 1) -> int:
    """The least that differs from the better of the peers by luck, so many standard errors of its share."""
    most = max(counts[:-1])
    return most - int(errors * (most * (1 - most / max(of, 1))) ** 0.5)


def kept(counts: NDArray[np.int64], rate: float) -> int:
    """The most reads that one MAPQ threshold keeps with at most this share of them wrong.

    counts: mapped reads, and wrong ones, by MAPQ.
    """
    mapped, wrong = np.cumsum(counts[:, ::-1], axis=1)
    return int(mapped[wrong <= rate * mapped].max(initial=0))


def alone(peer: str, only: Sequence[int], peers: int, least: float, together: int = 1) -> Row:
    """Reads that only the peer and only the mapper has right, and McNemar's z of them, which has the bar.

    peers: how many there are. together: reads that go together, as mates do to another copy: that is luck once.
    """
    z = (only[1] - only[0]) / max(1, together * sum(only)) ** 0.5
    counts = [only[0] if name == peer else None for name in NAMES[peers + 1][:-1]]
    row = figure(f"right, and {peer}'s wrong; and the reverse", [*counts, only[1]])
    return row | {"z": round(z, 3), "bar": f"z >= {least:g}: {z:+.2f}", "verdict": "PASS" if z >= least else "MISS"}
