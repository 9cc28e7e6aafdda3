"""Quality counts of records by read group, and coverage by sample, in plain Python."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import pysam

ADAPTERS = ("AGATCGGAAGAG", "CTGTCTCTTATA", "TGGAATTCTCGG")
SECONDARY, SUPPLEMENTARY, LEFT_OUT = 256, 2048, 0x704


@dataclass
class Counts:
    """Counts of one read group; keys of counts by mate start with the mate: 0 (first or single read) or 1."""

    flags: Counter[tuple[int, int]] = field(default_factory=Counter)
    letters: Counter[tuple[int, int]] = field(default_factory=Counter)
    mapqs: Counter[int] = field(default_factory=Counter)
    mean_qualities: Counter[int] = field(default_factory=Counter)
    qualities: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    bases: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    mismatches: Counter[tuple[int, int]] = field(default_factory=Counter)
    adapters: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    inserts: Counter[tuple[int, int]] = field(default_factory=Counter)
    gc: list[float] = field(default_factory=list)
    aligned: int = 0
    differences: int = 0
    without_mapq: int = 0
    apart: int = 0


def count(records: Iterable[pysam.AlignedSegment]) -> dict[str | None, Counts]:
    """Count the records of each read group."""
    found: dict[str | None, Counts] = defaultdict(Counts)
    for one in records:
        counts = found[str(one.get_tag("RG")) if one.has_tag("RG") else None]
        mate = int(one.is_paired and one.is_read2 and not one.is_read1)
        counts.flags[mate, one.flag] += 1
        counts.letters[mate, one.flag] += one.query_length
        if one.is_paired and not one.flag & (4 | 8 | SECONDARY | SUPPLEMENTARY):
            counts.apart += one.reference_id != one.next_reference_id
        if one.query_length and not one.is_secondary:
            if not one.is_supplementary:
                _count_read(one, mate, counts)
            if not one.is_unmapped:
                _count_alignment(one, mate, counts)
    return found


def _count_read(one: pysam.AlignedSegment, mate: int, counts: Counts) -> None:
    letters = one.get_forward_sequence() or ""
    qualities = None if one.query_qualities is None else one.get_forward_qualities()
    known = [letter for letter in letters if letter in "ACGT"]
    counts.gc.append(sum(letter in "CG" for letter in known) / len(known) if known else -1)
    for cycle, letter in enumerate(letters):
        counts.bases[mate, cycle, letter if letter in "ACGT" else "N"] += 1
    if qualities is not None:
        counts.mean_qualities[int(sum(qualities) / len(qualities) + 0.5)] += 1
        for cycle, quality in enumerate(qualities):
            counts.qualities[mate, cycle, quality] += 1
    for number, adapter in enumerate(ADAPTERS):
        if (cycle := letters.find(adapter)) >= 0:
            counts.adapters[mate, number, cycle] += 1


def _count_alignment(one: pysam.AlignedSegment, mate: int, counts: Counts) -> None:
    counts.aligned += sum(length for kind, length in one.cigartuples or () if kind in (0, 1, 7, 8))
    counts.differences += int(one.get_tag("NM")) if one.has_tag("NM") else 0
    if one.is_supplementary:
        return
    counts.without_mapq += one.mapping_quality == 0
    if not one.flag & LEFT_OUT:
        counts.mapqs[one.mapping_quality] += 1
    if one.has_tag("MD"):
        for at, _, letter in one.get_aligned_pairs(matches_only=True, with_seq=True):
            if letter.islower() and (one.query_sequence or "")[at] != "N":
                cycle = one.query_length - 1 - at if one.is_reverse else at
                counts.mismatches[mate, cycle] += 1
    if one.is_paired and not one.mate_is_unmapped:
        _count_insert(one, counts)


def _count_insert(one: pysam.AlignedSegment, counts: Counts) -> None:
    size = abs(one.template_length)
    if not size and one.reference_id != one.next_reference_id:
        return
    ahead = one.next_reference_start - one.reference_start
    if one.is_reverse == one.mate_is_reverse:
        orientation = 2
    else:
        is_left = ahead > 0 or (ahead == 0 and not one.is_reverse)
        orientation = 0 if is_left != one.is_reverse else 1
    counts.inserts[orientation, min(size, 8000)] += 1


def depths(
    records: Iterable[pysam.AlignedSegment], samples: dict[str | None, str | None]
) -> dict[str | None, Counter[tuple[int, int]]]:
    """Return the depth at each (contig, position) by sample; overlapping mates of a proper pair count once.

    samples: the sample of each read group.
    """
    found: dict[str | None, Counter[tuple[int, int]]] = defaultdict(Counter)
    pairs: dict[str, list[set[int]]] = defaultdict(list)
    for one in records:
        if one.flag & LEFT_OUT or one.reference_id < 0:
            continue
        places = set(one.get_reference_positions())
        depth = found[samples[str(one.get_tag("RG")) if one.has_tag("RG") else None]]
        is_joined = one.is_proper_pair and not one.is_supplementary and one.reference_id == one.next_reference_id
        if is_joined and one.has_tag("MC"):
            for seen in pairs[str(one.query_name)]:
                places -= seen
            pairs[str(one.query_name)].append(places)
        for place in places:
            depth[one.reference_id, place] += 1
    return found
