"""A measure of bwa and of the mapper, its bar and the verdict; counts by MAPQ, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAPQ_EDGES = (0, 1, 3, 10, 20, 30, 40, 50, 60, 256)
Row = dict[str, Any]  # of a table, and an object in the JSON
Result = dict[str, list[Row]]  # figures, and the MAPQ bins of bwa and of the mapper


def figure(measure: str, counts: Sequence[int | None], of: int = 0, bar: str = "", limit: int = 0) -> Row:
    """Counts are bwa's and the mapper's, shares of `of`; where bwa has none, the bar is 99.9 % of `of`.

    A bar is >= or <=, which are passed or missed; behind "aim: " they only tell who is ahead.
    """
    bwa, mapper = counts[0], counts[1] or 0
    limit = -(-of * 999 // 1000) if bwa is None else limit
    reached = mapper <= limit if bar.endswith("<=") else mapper >= limit
    verdict = ("ahead" if reached else "behind") if bar.startswith("aim") else "PASS" if reached else "MISS"
    told = {"bar": bar and f"{bar} {limit:,}", "verdict": bar and verdict}
    return {"measure": measure, "bwa": bwa, "mapper": mapper, "of": of, **told}


def skipped(measure: str, reason: str) -> Row:
    return {"measure": measure, "bwa": None, "mapper": None, "of": 0, "bar": "", "verdict": f"skipped: {reason}"}


def kept(counts: NDArray[np.int64], rate: float) -> int:
    """The most reads that one MAPQ threshold keeps with at most this share of them wrong."""
    mapped, wrong = np.cumsum(counts[:2, ::-1], axis=1)
    return int(mapped[wrong <= rate * mapped].max(initial=0))


def kept_figures(seeds: NDArray[np.int64], reads: int, bars: dict[float, str]) -> list[Row]:
    """For each rate the sum over the seeds, which has the bar, and what one threshold keeps of all.

    The counts have the axes mapper, seed, kind, MAPQ.
    """
    figures, pooled = [], seeds.sum(axis=1)
    for rate, bar in bars.items():
        sums = [sum(kept(seed, rate) for seed in one) for one in seeds]
        figures.append(figure(f"kept at wrong/kept <= {rate:g}", sums, reads, bar, sums[0]))
        figures.append(figure("    the seeds pooled", [kept(one, rate) for one in pooled], reads))
    return figures


def mapq_bins(counts: NDArray[np.int64]) -> list[Row]:
    """phred is absent where no read is wrong; `short` tells a bin below its lower edge, or below 40."""
    bins = []
    for low, end in pairwise(MAPQ_EDGES):
        reads, wrong = counts[:2, low:end].sum(axis=1).tolist()
        phred = round(-10 * float(np.log10(wrong / reads)), 1) if wrong else None
        short = wrong > reads * 10 ** (-min(low, 40) / 10)
        bins.append({"mapq": f"{low}-{end - 1}", "reads": reads, "wrong": wrong, "phred": phred, "short": short})
    return bins
