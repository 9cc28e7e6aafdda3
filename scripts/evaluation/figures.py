"""Rows of measures: the peers' and the mapper's counts, the target and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = {2: ("bwa", "mapper"), 3: ("bwa", "minibwa", "mapper")}  # names of counts
Row = dict[str, Any]  # a row of a table, an object in the JSON
Result = dict[
    str, Any
]  # figures; for a simulated set also counts of reads, and of reads that one mapper alone places correctly


def figure(measure: str, counts: Sequence[int | None], of: int = 0, bar: str = "", limit: int = 0) -> Row:
    """Return a row. counts: the peers' and then the mapper's, as shares of `of`.

    bar: ">=" or "<=", which pass or miss `limit`, or "aim: >=" or "aim: <=", whose verdict is "ahead" or "behind". The
    limit is 99.9 % of `of` if bwa has no count.
    """
    mapper = counts[-1] or 0
    limit = -(-of * 999 // 1000) if counts[0] is None else limit
    reached = mapper <= limit if bar.endswith("<=") else mapper >= limit
    verdict = ("ahead" if reached else "behind") if bar.startswith("aim") else "PASS" if reached else "MISS"
    target = {"bar": bar and f"{bar} {limit:,}", "verdict": bar and verdict}
    return {"measure": measure} | dict(zip(NAMES[len(counts)], counts, strict=True)) | {"of": of, **target}


def skipped(measure: str, reason: str) -> Row:
    return {"measure": measure, "bwa": None, "mapper": None, "of": 0, "bar": "", "verdict": f"skipped: {reason}"}


def few(counts: Sequence[int]) -> int:
    """Return the maximum number of errors that is within chance of the better peer's: n + 2 sqrt(n + 1)."""
    better = min(counts[:-1])
    return better + isqrt(4 * (better + 1))


def many(counts: Sequence[int], of: int, errors: int = 1) -> int:
    """Return the minimum count that is within `errors` standard errors of the better peer's share."""
    most = max(counts[:-1])
    return most - int(errors * (most * (1 - most / max(of, 1))) ** 0.5)


def kept(counts: NDArray[np.int64], rate: float) -> int:
    """Return the number of reads above the lowest MAPQ threshold at which the share of wrong reads is at most `rate`.

    counts: mapped reads, and wrong reads, by MAPQ.
    """
    mapped, wrong = np.cumsum(counts[:, ::-1], axis=1)
    return int(mapped[wrong <= rate * mapped].max(initial=0))


def alone(peer: str, only: Sequence[int], peers: int, least: float, together: int = 1) -> Row:
    """Return a row of the reads that only the peer, and only the mapper, places correctly, with McNemar's z as target.

    peers: the number of peers. least: minimum z. together: reads that are correct or wrong together, such as mates.
    """
    z = (only[1] - only[0]) / max(1, together * sum(only)) ** 0.5
    counts = [only[0] if name == peer else None for name in NAMES[peers + 1][:-1]]
    row = figure(f"correct by {peer} alone; by the mapper alone", [*counts, only[1]])
    return row | {"z": round(z, 3), "bar": f"z >= {least:g}: {z:+.2f}", "verdict": "PASS" if z >= least else "MISS"}
