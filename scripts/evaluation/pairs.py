"""Simulated pairs, judged mate by mate; and whether the order of the two files matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pysam
from numpy.typing import NDArray

from evaluation.figures import Result, figure, kept_figures, mapq_bins
from evaluation.records import Key, count_by_mapq, place, primaries
from evaluation.work_directory import WorkDirectory

# set: reference, first seed, seeds, options of the simulator
SIMULATED = {
    "PA": ("A10", 13, 5, "-n 50000"),
    "PB": ("A10", 23, 5, "-n 50000 -l 100 --snp 0.01 --indel 0.002 --err-scale 3 --random-frac 0.02"),
    "PC": ("human", 33, 5, "-n 50000 --snp 0.002 --indel 0.0003 --err-scale 2"),
    "PD": ("D100", 80, 1, "-n 500000 --err-scale 3 --snp 0.005 --indel 0.0005"),
}
SWAPPED = ("PA", "PB")
# Measured elsewhere on two million reads made as PD's are: share correct, and wrong with MAPQ >= 30 in a million.
PUBLISHED = {"PD": {"minibwa 0.7": (0.98650, 10), "bwa-mem2 2.3": (0.98839, 21.5)}}


def simulate(work: WorkDirectory, name: str, seed: int) -> list[Path]:
    reference, _, _, options = SIMULATED[name]
    template = "{python} {shared}/tools/simulate.py reads {ref} --seed {seed} -1 {part} -2 {second} " + options
    ref, second = work.reference(reference), f"{name}{seed}.2.fq"
    first = work.make(f"{name}{seed}.1.fq", template, ref=ref, seed=seed, second=work.part(second))
    if work.part(second).exists():
        work.part(second).replace(work.folder / second)
    return [first, work.folder / second]


def count(path: Path) -> tuple[NDArray[np.int64], list[int]]:
    """As count_by_mapq; and the reads, and those in proper pairs."""
    total = [0, 0]

    def counted() -> Iterator[tuple[Key, pysam.AlignedSegment]]:
        for read, record in primaries(path):
            total[0] += 1
            total[1] += record.is_proper_pair
            yield read, record

    return count_by_mapq(counted()), total


def simulated(work: WorkDirectory, name: str) -> Result:
    reference, first, most, _ = SIMULATED[name]
    counts, totals = [], []
    for seed in range(first, first + min(most, work.seeds)):
        files = work.align(reference, f"{name}{seed}", simulate(work, name, seed)).values()
        by_mapq, total = zip(*map(count, files), strict=True)
        counts.append(by_mapq)
        totals.append(total)
    seeds = np.array(counts).swapaxes(0, 1)  # mapper, seed, kind, MAPQ
    reads, proper = np.sum(totals, axis=0).T.tolist()
    pooled = seeds.sum(axis=1)
    bins = [mapq_bins(one) for one in pooled]
    correct = (pooled[:, 0] - pooled[:, 1]).sum(axis=1).tolist()
    wrong, random = pooled[:, 1, 30:].sum(axis=1).tolist(), pooled[:, 2, 10:].sum(axis=1).tolist()
    figures = [figure("reads", reads, 0, ">=", reads[0]), figure("correct", correct, reads[0], ">=", correct[0])]
    figures += kept_figures(seeds, reads[0], {1e-3: ">=", 1e-4: ">="})
    figures.append(figure("wrong with MAPQ >= 30", wrong, 0, "<=", wrong[0]))
    figures.append(figure("in proper pairs", proper, reads[0]))
    figures.append(figure("random reads with MAPQ >= 10", random, 0))
    figures.append(figure("MAPQ bins below their phred", [sum(b["short"] for b in one) for one in bins], 0))
    for system, (share, wrongs) in PUBLISHED.get(name, {}).items():
        limits = round(share * reads[0]), int(wrongs * reads[0] / 1e6)
        figures.append(figure(f"correct, beside {system}", correct, reads[0], "aim: >=", limits[0]))
        figures.append(figure(f"wrong with MAPQ >= 30, beside {system}", wrong, 0, "aim: <=", limits[1]))
    return {"figures": figures, "bins_bwa": bins[0], "bins_mapper": bins[1]}


def placements(path: Path, first: int) -> dict[tuple[str, bool], tuple[object, object]]:
    """Contig, start and strand, and CIGAR and MAPQ, by name and whether it is the mate `first`."""
    found = dict[tuple[str, bool], tuple[object, object]]()
    for (name, mate), record in primaries(path):
        here = place(record)
        spot, details = here and (here[0], here[1], here[3]), here and (record.cigarstring, record.mapping_quality)
        found[name, mate == first] = spot, details
    return found


def compare_swapped(straight: Path, turned: Path) -> tuple[int, int, int]:
    """Reads at another place when mate 1 is given as mate 2, those with another CIGAR or MAPQ only, and all."""
    one, other = placements(straight, 1), placements(turned, 2)
    both = [(at, other.get(read, ("lost", ""))) for read, at in one.items()]
    moved = sum(a[0] != b[0] for a, b in both)
    return moved, sum(a != b for a, b in both) - moved, len(one)


def swapped(work: WorkDirectory, _: str) -> Result:
    figures = []
    for name in SWAPPED:
        reference, seed = SIMULATED[name][:2]
        reads = simulate(work, name, seed)
        straight = work.align(reference, f"{name}{seed}", reads).values()
        turned = work.align(reference, f"{name}{seed}.swapped", reads[::-1]).values()
        moved, others, total = zip(*map(compare_swapped, straight, turned), strict=True)
        figures.append(figure(f"{name}: reads at another place", moved, total[0], "<="))
        figures.append(figure(f"{name}: with another CIGAR or MAPQ there", others, total[0]))
    return {"figures": figures}
