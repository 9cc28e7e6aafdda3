"""Check that the order of the two files of mates does not matter."""

from __future__ import annotations

from pathlib import Path

from evaluation.figures import Result, figure
from evaluation.records import place, primaries
from evaluation.sets import SIMULATED
from evaluation.simulated import simulate
from evaluation.work_directory import WorkDirectory

SWAPPED = ("PA", "PB")


def placements(path: Path, first: int) -> dict[tuple[str, bool], tuple[object, object]]:
    """Return (contig, start, strand) and (CIGAR, MAPQ) by read name and whether the read is mate `first`."""
    found = dict[tuple[str, bool], tuple[object, object]]()
    for (name, mate), record in primaries(path):
        here = place(record)
        spot, details = here and (here[0], here[1], here[3]), here and (record.cigarstring, record.mapping_quality)
        found[name, mate == first] = spot, details
    return found


def compare_swapped(straight: Path, turned: Path) -> tuple[int, int, int]:
    """Compare mates given in both orders; return reads at another position, with another CIGAR or MAPQ, and all."""
    one, other = placements(straight, 1), placements(turned, 2)
    both = [(at, other.get(read, ("lost", ""))) for read, at in one.items()]
    moved = sum(a[0] != b[0] for a, b in both)
    return moved, sum(a != b for a, b in both) - moved, len(one)


def swapped(work: WorkDirectory, _: str) -> Result:
    figures = []
    for name in SWAPPED:
        reference, seed = SIMULATED[name].reference, SIMULATED[name].seed
        reads = simulate(work, name, seed)
        straight = work.align(reference, f"{name}-{seed}", reads).values()
        turned = work.align(reference, f"{name}-{seed}.swapped", reads[::-1]).values()
        moved, others, total = zip(*map(compare_swapped, straight, turned), strict=True)
        figures.append(figure(f"{name}: reads at another place", moved, total[0], "<="))
        figures.append(figure(f"{name}: with another CIGAR or MAPQ there", others, total[0]))
    return {"figures": figures}
