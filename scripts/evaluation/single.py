"""Real single reads, judged by bwa's positions; and a comparison of alignment scores with bwa's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pysam

from evaluation.figures import Result, figure
from evaluation.records import agreement, place
from evaluation.work_directory import WorkDirectory

REAL = {
    "ecoli": ("mg1655", "gzip -dc {shared}/data/ecoli/reads_1.fq.gz"),
    "yeast": ("sacCer3", "gzip -dc {shared}/data/yeast/srr800764_se.fq.gz"),
    "na12878": ("human", "gzip -dc {shared}/data/human/na12878_chr20_1.fq.gz"),
    "ecoli_on_human": ("human", "gzip -dc {shared}/data/ecoli/reads_1.fq.gz"),
}
MATCH, MISMATCH, AMBIGUOUS, GAP_OPEN, GAP_EXTEND, LONG_GAP, CLIP, MIN_SCORE = 1, 4, 1, 6, 1, 22, 5, 30
Records = dict[str, pysam.AlignedSegment]


def read_sam(path: Path) -> Records:
    """Return primary records by name."""
    with pysam.AlignmentFile(str(path)) as sam:
        primary = [record for record in sam if not record.flag & 0x900]
    records = {str(record.query_name).removesuffix("/1"): record for record in primary}
    return records if len(records) == len(primary) else sys.exit(f"{path}: a read has two primary records")


def clipped(record: pysam.AlignedSegment) -> int:
    """Return the number of clipped ends."""
    return sum(operation in (pysam.CSOFT_CLIP, pysam.CHARD_CLIP) for operation, _ in record.cigartuples or [])


def score(record: pysam.AlignedSegment, genome: pysam.FastaFile) -> int:
    """Return the score by which alignments are chosen, including clipping penalties, which AS lacks."""
    reference = genome.fetch(record.reference_name, record.reference_start, record.reference_end)
    columns = np.array(record.get_aligned_pairs(matches_only=True)) - [0, record.reference_start]
    query = np.array(list(str(record.query_sequence).upper()))[columns[:, 0]]
    ref = np.array(list(reference.upper()))[columns[:, 1]]
    known = np.isin(query, list("ACGT")) & np.isin(ref, list("ACGT"))
    total = int(np.where(known, np.where(query == ref, MATCH, -MISMATCH), -AMBIGUOUS).sum())
    cigar = record.cigartuples or []
    gaps = [length for operation, length in cigar if operation in (pysam.CINS, pysam.CDEL)]
    return total - sum(min(GAP_OPEN + GAP_EXTEND * length, LONG_GAP) for length in gaps) - CLIP * clipped(record)


def compare_scores(bwa_sam: Path, mapper_sam: Path, reference: Path) -> tuple[int, int]:
    """Count reads mapped by both mappers; return how many the mapper scores at least as high as bwa, and the count.

    Records of bwa are left out if their CIGAR, which extends to the end of the read, scores less than -T: bwa's
    threshold applies to the best part of the read, and other mappers do not report such an alignment.
    """
    bwa, mapper = read_sam(bwa_sam), read_sam(mapper_sam)
    both = [(one, mapper[name]) for name, one in bwa.items() if place(one) and place(mapper.get(name))]
    moved = [(a, b) for a, b in both if (place(a), a.cigarstring) != (place(b), b.cigarstring)]
    with pysam.FastaFile(str(reference)) as genome:
        scores = [(score(ours, genome), score(theirs, genome), CLIP * clipped(theirs)) for theirs, ours in moved]
    below = sum(ours < theirs for ours, theirs, cost in scores if theirs + cost >= MIN_SCORE)
    beyond = sum(theirs + cost < MIN_SCORE for _, theirs, cost in scores)
    return len(both) - beyond - below, len(both) - beyond


def real(work: WorkDirectory, name: str) -> Result:
    reference, template = REAL[name]
    reads = work.make(f"real_{name}.fq", template)
    sams = [*work.align(reference, f"real_{name}", [reads]).values()]
    bwa, mapper = map(read_sam, sams)
    mapped = [[one for one in records.values() if place(one)] for records in (bwa, mapper)]
    counts, total = [len(records) for records in mapped], [len(bwa), len(mapper)]
    if name == "ecoli_on_human":
        trusted = [sum(one.mapping_quality >= 10 for one in records) for records in mapped]
        return {"figures": [figure("reads", total), figure("mapped with MAPQ >= 10", trusted, 0, "<=")]}
    same, sure = agreement(bwa.items(), mapper.items())
    scored = compare_scores(*sams, work.reference(reference))
    figures = [figure("reads", total), figure("mapped", counts, total[0], ">=", counts[0])]
    figures.append(figure("same place as bwa's MAPQ >= 30", (None, same), sure, ">="))
    return {"figures": [*figures, figure("score of CIGAR >= bwa's", (None, scored[0]), scored[1], ">=")]}
