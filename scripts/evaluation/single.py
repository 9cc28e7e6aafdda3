"""Single ends: simulated sets judged by the truth in the reads' names, real ones by where bwa puts them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pysam

from evaluation.figures import Result, figure, kept_figures, mapq_bins
from evaluation.records import agreement, count_by_mapq, place
from evaluation.work_directory import WorkDirectory

# set: reference, first seed, options of the simulator
SIMULATED = {
    "A": ("A10", 12, "-n 100000"),
    "B": ("A10", 22, "-n 100000 -l 100 --snp 0.01 --indel 0.002 --err-scale 3 --random-frac 0.02"),
    "C": ("human", 32, "-n 100000 --snp 0.002 --indel 0.0003 --err-scale 2"),
    "D": ("A10", 42, "-n 100000 -l 36 --snp 0.001 --random-frac 0.02"),
    "E": ("A10", 47, "-n 50000 -l 300 --err-scale 3 --snp 0.002 --indel 0.0005"),
}
REAL = {
    "ecoli": ("mg1655", "gzip -dc {shared}/data/ecoli/reads_1.fq.gz"),
    "yeast": ("sacCer3", "gzip -dc {shared}/data/yeast/srr800764_se.fq.gz"),
    "na12878": ("human", "gzip -dc {shared}/data/human/na12878_chr20_1.fq.gz"),
    "ecoli_on_human": ("human", "gzip -dc {shared}/data/ecoli/reads_1.fq.gz"),
}
MATCH, MISMATCH, AMBIGUOUS, GAP_OPEN, GAP_EXTEND, LONG_GAP, CLIP, LEAST = 1, 4, 1, 6, 1, 22, 5, 30
Records = dict[str, pysam.AlignedSegment]


def read_sam(path: Path) -> Records:
    """Primary records by name."""
    with pysam.AlignmentFile(str(path)) as sam:
        primary = [record for record in sam if not record.flag & 0x900]
    records = {str(record.query_name).removesuffix("/1"): record for record in primary}
    return records if len(records) == len(primary) else sys.exit(f"{path}: a read has two primary records")


def clipped(record: pysam.AlignedSegment) -> int:
    """The ends that an alignment does not reach."""
    return sum(operation in (pysam.CSOFT_CLIP, pysam.CHARD_CLIP) for operation, _ in record.cigartuples or [])


def score(record: pysam.AlignedSegment, genome: pysam.FastaFile) -> int:
    """What an alignment is chosen by, from CIGAR, sequence and reference: AS lacks what a clipped end costs."""
    reference = genome.fetch(record.reference_name, record.reference_start, record.reference_end)
    columns = np.array(record.get_aligned_pairs(matches_only=True)) - [0, record.reference_start]
    query = np.array(list(str(record.query_sequence).upper()))[columns[:, 0]]
    ref = np.array(list(reference.upper()))[columns[:, 1]]
    known = np.isin(query, list("ACGT")) & np.isin(ref, list("ACGT"))
    total = int(np.where(known, np.where(query == ref, MATCH, -MISMATCH), -AMBIGUOUS).sum())
    cigar = record.cigartuples or []
    gaps = [length for operation, length in cigar if operation in (pysam.CINS, pysam.CDEL)]
    return total - sum(min(GAP_OPEN + GAP_EXTEND * length, LONG_GAP) for length in gaps) - CLIP * clipped(record)


def compare_scores(bwa: Records, mapper: Records, reference: Path) -> tuple[int, int]:
    """How many reads the mapper scores no lower than bwa, of how many that both map.

    bwa reports a CIGAR that goes on to the read's end although it then scores less than -T, by which bwa means the best
    part of it. A mapper that reports none such has no alignment to compare with that.
    """
    both = [(one, mapper[name]) for name, one in bwa.items() if place(one) and place(mapper.get(name))]
    moved = [(a, b) for a, b in both if (place(a), a.cigarstring) != (place(b), b.cigarstring)]
    with pysam.FastaFile(str(reference)) as genome:
        scores = [(score(ours, genome), score(theirs, genome), CLIP * clipped(theirs)) for theirs, ours in moved]
    below = sum(ours < theirs for ours, theirs, cost in scores if theirs + cost >= LEAST)
    beyond = sum(theirs + cost < LEAST for _, theirs, cost in scores)
    return len(both) - beyond - below, len(both) - beyond


def align(
    work: WorkDirectory, reference: str, stem: str, template: str, seed: int = 0
) -> tuple[Path, Records, Records]:
    """The reference, and the records of bwa and of the mapper; the template writes the reads."""
    ref = work.reference(reference)
    reads = work.make(f"{stem}.fq", template, ref=ref, seed=seed)
    bwa, mapper = work.align(reference, stem, [reads]).values()
    return ref, read_sam(bwa), read_sam(mapper)


def simulated(work: WorkDirectory, name: str) -> Result:
    reference, first, options = SIMULATED[name]
    simulate = "{python} {shared}/tools/simulate.py reads {ref} --seed {seed} -1 {part} " + options
    counts, totals = [], []
    for seed in range(first, first + work.seeds):
        ref, bwa, mapper = align(work, reference, f"{name}{seed}", simulate, seed)
        keyed = [(((read, 0), record) for read, record in records.items()) for records in (bwa, mapper)]
        counts.append([count_by_mapq(records) for records in keyed])
        totals.append((len(bwa), len(mapper), *compare_scores(bwa, mapper, ref)))
    seeds = np.array(counts).swapaxes(0, 1)  # mapper, seed, kind, MAPQ
    pooled = seeds.sum(axis=1)
    bins = [mapq_bins(one) for one in pooled]
    correct = (pooled[:, 0] - pooled[:, 1]).sum(axis=1).tolist()
    wrong, random = pooled[:, 1, 30:].sum(axis=1).tolist(), pooled[:, 2, 10:].sum(axis=1).tolist()
    *total, not_below, compared = np.sum(totals, axis=0).tolist()
    figures = [figure("reads", total), figure("correct", correct, total[0], ">=", correct[0])]
    figures += kept_figures(seeds, total[0], {1e-3: ">=", 1e-4: "aim: >="})
    figures.append(figure("wrong with MAPQ >= 30", wrong, 0, "<=", wrong[0]))
    figures.append(figure("random reads with MAPQ >= 10", random, 0, "<="))
    figures.append(figure("MAPQ bins below their phred", [sum(b["short"] for b in one) for one in bins], 0, "<="))
    figures.append(figure("score of CIGAR >= bwa's", (None, not_below), compared, ">="))
    return {"figures": figures, "bins_bwa": bins[0], "bins_mapper": bins[1]}


def real(work: WorkDirectory, name: str) -> Result:
    reference, template = REAL[name]
    ref, bwa, mapper = align(work, reference, f"real_{name}", template)
    mapped = [[one for one in records.values() if place(one)] for records in (bwa, mapper)]
    counts, total = [len(records) for records in mapped], [len(bwa), len(mapper)]
    if name == "ecoli_on_human":
        trusted = [sum(one.mapping_quality >= 10 for one in records) for records in mapped]
        return {"figures": [figure("reads", total), figure("mapped with MAPQ >= 10", trusted, 0, "<=")]}
    same, sure = agreement(bwa.items(), mapper.items())
    scored = compare_scores(bwa, mapper, ref)
    figures = [figure("reads", total), figure("mapped", counts, total[0], ">=", counts[0])]
    figures.append(figure("same place as bwa's MAPQ >= 30", (None, same), sure, ">="))
    return {"figures": [*figures, figure("score of CIGAR >= bwa's", (None, scored[0]), scored[1], ">=")]}
