"""Records of a SAM or BAM file: their reads, positions, and comparison of positions."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path

import pysam

Key = tuple[str, int]  # the read's name, and 1 or 2 for a mate, 0 for a single read
Records = Iterable[tuple[Hashable, pysam.AlignedSegment]]  # pairs of read and record
Place = tuple[str, int, int, str] | None  # contig, start, end, strand


def key(record: pysam.AlignedSegment) -> Key:
    return str(record.query_name), record.flag >> 6 & 3


def primaries(path: Path) -> Iterator[tuple[Key, pysam.AlignedSegment]]:
    """Yield primary records in the file's order; exit if a read has two."""
    seen = set[Key]()
    with pysam.AlignmentFile(str(path)) as file:
        for record in file.fetch(until_eof=True):
            if record.flag & 0x900:
                continue
            if (read := key(record)) in seen:
                sys.exit(f"{path}: {read[0]}: mate {read[1]} has two primary records")
            seen.add(read)
            yield read, record


def place(record: pysam.AlignedSegment | None) -> Place:
    if record is None or record.is_unmapped or record.reference_name is None or record.reference_end is None:
        return None
    return record.reference_name, record.reference_start, record.reference_end, "-" if record.is_reverse else "+"


def same_place(a: Place, b: Place) -> bool:
    """Apply mapeval.py's rule: equal contig and strand, and an overlap of more than a tenth of the union."""
    if a is None or b is None or a[0] != b[0] or a[3] != b[3]:
        return False
    return (min(a[2], b[2]) - max(a[1], b[1])) / (max(a[2], b[2]) - min(a[1], b[1])) > 0.1


def agreement(bwa: Records, mapper: Records) -> tuple[int, int]:
    """Count the reads that bwa maps with MAPQ >= 30; return how often the mapper agrees, and the count."""
    sure = {read: place(one) for read, one in bwa if place(one) and one.mapping_quality >= 30}
    return sum(same_place(sure[read], place(one)) for read, one in mapper if read in sure), len(sure)
