"""A simple version of Picard's MarkDuplicates for records grouped by name."""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pysam

Record = pysam.AlignedSegment


@dataclass
class Found:
    """Names of duplicate and of optical duplicate fragments, and Picard's counts by library."""

    duplicates: set[str] = field(default_factory=set)
    optical: set[str] = field(default_factory=set)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    set_sizes: list[tuple[int, int]] = field(default_factory=list)  # pairs in each set: all, and optical duplicates


@dataclass(frozen=True)
class Fragment:
    name: str
    number: int
    library: str
    barcode: Any
    group: str
    ends: tuple[tuple[int, int, bool], ...]  # contig, position, is_reverse
    has_mate: bool
    score: int
    strands: tuple[bool, ...]
    cluster: tuple[int, int, int]

    @property
    def rank(self) -> Any:
        return (-self.score, *self.cluster, self.number)


def find(records: Iterable[Record], distance: int = 100, barcode_tag: str | None = None) -> Found:
    """Mark duplicates as Picard with ASSUME_SORT_ORDER=queryname; all fragments have different names."""
    found, fragments = Found(), list[Fragment]()
    for number, (name, grouped) in enumerate(itertools.groupby(records, lambda record: record.query_name)):
        primary = list[Record]()
        for record in grouped:
            counts = found.counts[library_of(record)]
            if record.is_unmapped:
                counts["unmapped"] += 1
            elif record.is_secondary or record.is_supplementary:
                counts["others"] += 1
            else:
                primary.append(record)
                counts["paired" if has_mate(record) else "unpaired"] += 1
        if primary:
            fragments.append(fragment_of(str(name), number, primary, barcode_tag))
    pairs, by_end = defaultdict(list), defaultdict(list)
    for one in fragments:
        if len(one.ends) == 2:
            pairs[one.library, one.barcode, one.ends].append(one)
        for end in one.ends:
            by_end[one.library, one.barcode, end].append(one)
    for several in pairs.values():
        best = min(several, key=lambda one: one.rank)
        clusters = optical(several, best, distance)
        found.set_sizes.append((len(several), len(clusters)))
        found.duplicates |= {one.name for one in several if one is not best}
        found.optical |= clusters
        found.counts[best.library]["pair duplicates"] += len(several) - 1
        found.counts[best.library]["optical"] += len(clusters)
    for there in by_end.values():
        alone = [one for one in there if len(one.ends) == 1 and not one.has_mate]
        kept = {min(alone, key=lambda one: one.rank).name} if alone and len(alone) == len(there) else set()
        marked = {one.name for one in alone} - kept
        found.duplicates |= marked
        if marked:
            found.counts[alone[0].library]["unpaired duplicates"] += len(marked)
    return found


def has_mate(record: Record) -> bool:
    return record.is_paired and not record.mate_is_unmapped


def library_of(record: Record) -> str:
    groups = record.header.to_dict().get("RG", [])
    name = record.get_tag("RG") if record.has_tag("RG") else None
    return next((group.get("LB", "Unknown Library") for group in groups if group["ID"] == name), "Unknown Library")


def fragment_of(name: str, number: int, primary: list[Record], barcode_tag: str | None) -> Fragment:
    first, ends = primary[0], [end_of(record) for record in primary]
    by_mate = sorted(primary, key=lambda record: not record.is_read1)
    return Fragment(
        name,
        number,
        library_of(first),
        first.get_tag(barcode_tag) if barcode_tag and first.has_tag(barcode_tag) else None,
        str(first.get_tag("RG")) if first.has_tag("RG") else "",
        tuple(sorted(ends)),
        has_mate(first),
        sum(map(score_of, primary)),
        tuple(record.is_reverse for record in by_mate),
        cluster_of(name),
    )


def end_of(record: Record) -> tuple[int, int, bool]:
    cigar = record.cigartuples or []
    clipped = [
        sum(count for kind, count in itertools.takewhile(lambda one: one[0] in (4, 5), way))
        for way in (cigar, cigar[::-1])
    ]
    place = record.reference_end + clipped[1] if record.is_reverse else record.reference_start - clipped[0] + 1
    return record.reference_id, place, record.is_reverse


def score_of(record: Record) -> int:
    counted = sum(quality for quality in record.query_qualities or () if quality >= 15)
    return min(counted, 16383) - (16384 if record.is_qcfail else 0)


def cluster_of(name: str) -> tuple[int, int, int]:
    fields = name.split(":")
    at = {5: 2, 7: 4, 8: 4}.get(len(fields))
    found = [re.match(r"-?\d+", one) for one in fields[at : at + 3]] if at is not None else [None]
    if not all(found):
        return -1, -1, -1
    tile, x, y = (int(one[0]) for one in found if one)
    return (tile + 32768) % 65536 - 32768, x, y


def optical(several: list[Fragment], best: Fragment, distance: int) -> set[str]:
    """Return the optical duplicates: in each group of nearby clusters, all but `best` or else the first."""
    marked = set[str]()
    if distance and len(several) > 1:
        for strands in {one.strands for one in several}:
            left = sorted((one for one in several if one.strands == strands and one.cluster[0] != -1), key=place_of)
            while left:
                joined, reached = [left[0]], [left.pop(0)]
                while reached:
                    here = reached.pop()
                    near = [one for one in left if are_near(here, one, distance)]
                    left = [one for one in left if one not in near]
                    joined, reached = joined + near, reached + near
                kept = best if best in joined else min(joined, key=place_of)
                marked |= {one.name for one in joined if one is not kept}
    return marked


def place_of(one: Fragment) -> Any:
    return (*one.cluster, one.number)


def are_near(one: Fragment, other: Fragment, distance: int) -> bool:
    apart = [abs(a - b) for a, b in zip(one.cluster, other.cluster, strict=True)]
    return one.group == other.group and apart[0] == 0 and max(apart[1:]) <= distance
