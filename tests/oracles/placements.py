"""Definitions of pair orientation, loss of pairs, overlap of alignments, and mapping quality."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from readmap.backend.compilation.declarations import constant

NEGLIGIBLE, GENE_CONVERSION_PHRED, COPIES_PER_MISSED, PHRED_ONE_OF_THREE = (
    constant("mapping/mapping_quality.cuh", name)
    for name in ("NEGLIGIBLE", "GENE_CONVERSION_PHRED", "COPIES_PER_MISSED", "PHRED_ONE_OF_THREE")
)
NO_DEFICIT = constant("mapping/placement.cuh", "NO_DEFICIT")
MAX_SEED_WINDOWS, SPREAD, NARROW_BAND = (
    constant("mapping/windows.cuh", name) for name in ("MAX_SEED_WINDOWS", "SPREAD", "NARROW_BAND")
)
#: enum Role.
PRIMARY, SUPPLEMENTARY, SECONDARY, XA_HIT, NOT_REPORTED = (
    constant("mapping/record_plan.cuh", name)
    for name in ("PRIMARY_ALIGNMENT", "SUPPLEMENTARY_ALIGNMENT", "SECONDARY_ALIGNMENT", "XA_HIT", "NOT_REPORTED")
)

#: A read's 5' end: the position of its first base (one more if the read is reversed), and whether it is reversed.
End = tuple[int, bool]


def fragment(first: End, second: End) -> tuple[str, int]:
    """Return direction and size of a pair; FF: the second read is downstream on the common strand, RR: upstream."""
    (here, reversed_here), (there, reversed_there) = first, second
    size = abs(there - here)
    if reversed_here != reversed_there:
        forward, backward = (there, here) if reversed_here else (here, there)
        return "FR" if forward <= backward else "RF", size
    ahead = there <= here if reversed_here else there >= here
    return "FF" if ahead else "RR", size


def joint_loss(losses: tuple[int, int], fragment: tuple[str, int], lengths: tuple[int, int]) -> int:
    """Return the loss of a pair: where mates overlap, their common loss counts once, in proportion to the overlap."""
    direction, size = fragment
    if direction != "FR" or not size:
        return sum(losses)
    covered = range(min(lengths[0], size)), range(size - min(lengths[1], size), size)
    shared = len(set(covered[0]) & set(covered[1]))
    return sum(losses) - min(losses) * shared // min(map(len, covered))


def overlaps_by_half(one: Collection[int], other: Collection[int]) -> bool:
    """Return True if two ranges of a read overlap by at least half of the shorter one."""
    return 2 * len(set(one) & set(other)) >= min(len(one), len(other))


def phred(chance: float) -> float:
    return -10 * math.log10(chance)


def chance(phred: float) -> float:
    return float(10 ** (-phred / 10))


def placement_phred(deficits: Sequence[float]) -> float:
    """Return the phred-scaled error probability of a placement; deficits: of the alternatives, in phred."""
    error = sum(chance(max(deficit, 0)) for deficit in deficits if deficit < NEGLIGIBLE) * (1 + 1 / COPIES_PER_MISSED)
    error += chance(GENE_CONVERSION_PHRED) if error else 0
    return min(phred(error / (1 + error)), 60) if error else 60
