"""Dropping of invalid entries by their CIGARs, on made-up entries."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from examples import below, index_of, queries_of
from oracles.alignment import parse_cigar
from oracles.placements import NOT_REPORTED, PRIMARY, SECONDARY, SUPPLEMENTARY, XA_HIT, overlaps_by_half

from readmap.backend import Backend, Kernel, open_backend
from readmap.mapping.alignments import Alignments
from readmap.mapping.batch import WINDOW, WINDOW_WORDS
from readmap.mapping.counters import MAPQS
from readmap.mapping.extension import Extensions
from readmap.mapping.record_plan import RecordPlan

DROP_INVALID = Kernel("mapping/alignments", "drop_invalid_entries")
DROP_SECONDARIES = Kernel("mapping/alignments", "drop_duplicate_secondaries")

#: The last contig is an ALT contig.
REFERENCE = index_of(["ACGT", "ACGT", "ACGT"], alternates=["2"]).reference
ALTERNATE = 2


@dataclass
class Entry:
    """An entry of a read; owner: index among the entries of the read; contig: -1 if unmapped."""

    role: int
    owner: int
    contig: int
    start: int
    reverse: bool
    cigar: str
    score: int = 0

    @property
    def end(self) -> int:
        return self.start + sum(length for length, operation in parse_cigar(self.cigar) if operation in "MD")

    @property
    def span(self) -> range:
        """The interval of the read as sequenced that the entry aligns."""
        operations = parse_cigar(self.cigar)
        length = sum(length for length, operation in operations if operation != "D")
        left, right = (length if operation == "S" else 0 for length, operation in (operations[0], operations[-1]))
        return range(right, length - left) if self.reverse else range(left, length - right)


@dataclass
class Read:
    length: int
    entries: list[Entry] = field(default_factory=list)


def are_two_parts(one: Entry, other: Entry) -> bool:
    """Return True if both entries are parts, and both or neither are on ALT contigs."""
    parts = max(one.role, other.role) <= SUPPLEMENTARY
    return parts and (one.contig == ALTERNATE) == (other.contig == ALTERNATE)


def are_duplicates(one: Entry, other: Entry) -> bool:
    """Return True if two entries start or end at the same position."""
    same = (other.contig, other.reverse) == (one.contig, one.reverse)
    return same and (other.start == one.start or other.end == one.end)


def draw_cigar(generator: random.Random, length: int) -> str:
    """Draw a CIGAR with or without clips on either side and a gap."""
    left, right = (below(generator, length // 2) if below(generator, 2) else 0 for _ in range(2))
    inside, gap = length - left - right, 1 + below(generator, 5)
    middle = f"{inside}M"
    if inside > 12 and below(generator, 2):
        middle = f"{inside - 6}M{gap}D6M" if below(generator, 2) else f"{inside - 6 - gap}M{gap}I6M"
    return "".join((f"{left}S" if left else "", middle, f"{right}S" if right else ""))


def draw_secondaries(generator: random.Random, length: int) -> list[Entry]:
    """Draw secondary entries, sorted by strand and position as windows are."""
    secondaries = []
    for _ in range((0, 0, 1, 9)[below(generator, 4)]):
        contig, start, score = below(generator, 2), 10 * below(generator, 30), 30 + below(generator, 9)
        strand, cigar = bool(below(generator, 2)), draw_cigar(generator, length)
        secondaries.append(Entry(SECONDARY, 0, contig if below(generator, 6) else -1, start, strand, cigar, score))
    return sorted(secondaries, key=lambda entry: (entry.reverse, entry.start))


def draw_reads(generator: random.Random, count: int) -> list[Read]:
    reads = []
    for _ in range(count):
        read = Read(30 + below(generator, 100))
        for number in range(1 + below(generator, 7)):
            parts = [i for i, entry in enumerate(read.entries) if entry.role <= SUPPLEMENTARY]
            role = (SUPPLEMENTARY, SUPPLEMENTARY, XA_HIT)[below(generator, 3)] if number else PRIMARY
            owner = parts[below(generator, len(parts))] if role > SUPPLEMENTARY else number
            contig = below(generator, 3 if number else 2) if below(generator, 6) else -1
            cigar, start = draw_cigar(generator, read.length), 10 * below(generator, 12)
            read.entries.append(Entry(role, owner, contig, start, bool(below(generator, 2)), cigar))
        read.entries += draw_secondaries(generator, read.length)
        reads.append(read)
    return reads


class Arrays:
    """Entries of reads and their alignments on a device."""

    def __init__(self, reads: list[Read], backend: Backend, generator: random.Random) -> None:
        entries = [entry for read in reads for entry in read.entries]
        self.queries = queries_of(["A" * read.length for read in reads], backend)
        slot_of, offsets = backend.to_host(self.queries.slot_of), np.cumsum([0, *(len(read.entries) for read in reads)])
        counts, begins = np.diff(offsets), np.repeat(offsets[:-1], np.diff(offsets))
        operations, ends, lengths = [], [], []
        for entry in entries:
            own = [length << 4 | "MIDNS".index(operation) for length, operation in parse_cigar(entry.cigar)]
            operations += [*own, *[0] * below(generator, 3)]
            ends.append(len(operations))
            lengths.append(len(own))
        rows = np.zeros(len(entries), WINDOW)
        rows["diagonal"], rows["orientation"] = [entry.start for entry in entries], [entry.reverse for entry in entries]

        def put(values: Any, dtype: Any = np.int32) -> Any:
            return backend.to_device(np.array(values, dtype))

        def column(name: str, dtype: Any) -> Any:
            return put([getattr(entry, name) for entry in entries], dtype)

        capacities = put(np.diff(ends, prepend=0), np.int64)
        self.plan = RecordPlan.allocate(
            backend,
            offsets=put(offsets, np.int64),
            slots=put(np.repeat(slot_of, counts)),
            windows=put(range(len(entries)), np.int64),
            owners=put(begins + [entry.owner for entry in entries]),
            cigar_capacities=capacities,
            entries=len(entries),
            window_rows=put(rows.view(np.int64).reshape(-1, WINDOW_WORDS), np.int64),
        )
        self.extensions = Extensions(
            capacity_ends=put(ends, np.int64),
            cigar_capacities=capacities,
            operations=put(operations, np.uint32),
            counts=put(lengths),
            reference_starts=column("start", np.int64),
        )
        self.alignments = Alignments.allocate(
            backend,
            plan=self.plan,
            roles=column("role", np.uint8),
            contigs=column("contig", np.int32),
            reference_starts=column("start", np.int64),
            reference_ends=column("end", np.int64),
            reversed=column("reverse", np.uint8),
            mapqs=put(np.arange(len(entries)) % MAPQS, np.uint8),
            scores=column("score", np.int32),
            extensions=self.extensions,
        )


def kept_roles(reads: list[Read], backend: Backend) -> list[list[int]]:
    arrays = Arrays(reads, backend, random.Random(1))
    new_roles = backend.empty(arrays.plan.entries, np.uint8)
    shared = {"queries": arrays.queries, "plan": arrays.plan, "alignments": arrays.alignments}
    more = {"extensions": arrays.extensions, "reference": REFERENCE.to_device(backend)}
    backend.launch(DROP_INVALID, len(reads), **more, **shared)
    backend.launch(DROP_SECONDARIES, len(new_roles), windows=arrays.plan.window_rows, new_roles=new_roles, **shared)
    roles = iter(backend.to_host(new_roles).tolist())
    return [[next(roles) for _ in read.entries] for read in reads]


def test_valid_entries_are_kept(backends: str) -> None:
    """Kept entries are no duplicates nor overlapping parts; each dropped entry is one of these, or unmapped."""
    reads = draw_reads(random.Random(141), 600)
    found = kept_roles(reads, open_backend(backends))
    for read, roles in zip(reads, found, strict=True):
        entries = list(zip(read.entries, roles, strict=True))
        kept = [(entry, role) for entry, role in entries if role != NOT_REPORTED]
        assert all(role == entry.role for entry, role in kept)
        assert kept[0][0] is read.entries[0]
        if read.entries[0].contig < 0:
            assert len(kept) == 1
            continue
        assert all(entry.contig >= 0 for entry, _ in kept)
        for (one, role), (other, other_role) in itertools.combinations(kept, 2):
            assert {role, other_role} == {XA_HIT, SECONDARY} or not are_duplicates(one, other)
            assert not are_two_parts(one, other) or not overlaps_by_half(one.span, other.span)
        for entry, role in entries:
            dropped_owner = entry.role == XA_HIT and roles[entry.owner] == NOT_REPORTED
            assert not dropped_owner or role == NOT_REPORTED
            if role == NOT_REPORTED and entry.contig >= 0 and not dropped_owner:
                others = [other for other in read.entries if other is not entry and other.contig >= 0]
                parts = [other for other in others if are_two_parts(entry, other)]
                assert any(are_duplicates(entry, other) for other in others) or any(
                    overlaps_by_half(entry.span, other.span) for other in parts
                )
    assert {role for roles in found for role in roles} == {PRIMARY, SUPPLEMENTARY, SECONDARY, XA_HIT, NOT_REPORTED}


A, B = Entry(PRIMARY, 0, 0, 100, False, "60M40S"), Entry(SUPPLEMENTARY, 1, 0, 500, True, "45M55S")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([A], [PRIMARY]),
        ([A, B], [PRIMARY, SUPPLEMENTARY]),
        # The primary entry is unmapped.
        ([Entry(PRIMARY, 0, -1, 0, False, "100S"), B], [PRIMARY, NOT_REPORTED]),
        # An unmapped part is dropped with its XA hits, but secondary entries stay.
        (
            [A, Entry(SUPPLEMENTARY, 1, -1, 0, True, "45M55S"), Entry(XA_HIT, 1, 0, 900, True, "45M55S")],
            [PRIMARY, NOT_REPORTED, NOT_REPORTED],
        ),
        (
            [A, Entry(SUPPLEMENTARY, 1, -1, 0, True, "45M55S"), Entry(SECONDARY, 1, 0, 900, True, "45M55S")],
            [PRIMARY, NOT_REPORTED, SECONDARY],
        ),
        # Two secondary entries with the same start: the better one stays, or the first of equal ones.
        (
            [A, Entry(SECONDARY, 0, 0, 300, False, "50M50S", 40), Entry(SECONDARY, 0, 0, 300, False, "60M40S", 44)],
            [PRIMARY, NOT_REPORTED, SECONDARY],
        ),
        (
            [A, Entry(SECONDARY, 0, 0, 300, False, "50M50S", 40), Entry(SECONDARY, 0, 0, 300, False, "60M40S", 40)],
            [PRIMARY, SECONDARY, NOT_REPORTED],
        ),
        # Duplicates of the primary entry: the same start or end on the same strand.
        ([A, Entry(SECONDARY, 0, 0, 100, False, "60M40S")], [PRIMARY, NOT_REPORTED]),
        ([A, Entry(SECONDARY, 0, 0, 110, False, "10S50M40S")], [PRIMARY, NOT_REPORTED]),
        ([A, Entry(XA_HIT, 0, 0, 100, False, "70M30S")], [PRIMARY, NOT_REPORTED]),
        ([A, Entry(SECONDARY, 0, 0, 100, True, "40S60M")], [PRIMARY, SECONDARY]),
        ([A, Entry(SECONDARY, 0, 1, 100, False, "60M40S")], [PRIMARY, SECONDARY]),
        # Half of the shorter part overlaps the primary entry, or one base less.
        ([A, Entry(SUPPLEMENTARY, 1, 1, 0, False, "40S40M20S")], [PRIMARY, NOT_REPORTED]),
        ([A, Entry(SUPPLEMENTARY, 1, 1, 0, False, "41S39M20S")], [PRIMARY, SUPPLEMENTARY]),
        ([A, Entry(SUPPLEMENTARY, 1, 1, 0, True, "20S40M40S")], [PRIMARY, NOT_REPORTED]),
        ([A, Entry(SUPPLEMENTARY, 1, 1, 0, True, "20S39M41S")], [PRIMARY, SUPPLEMENTARY]),
        # A better placement on an ALT contig may overlap the primary entry completely.
        ([A, Entry(SUPPLEMENTARY, 1, ALTERNATE, 0, False, "100M")], [PRIMARY, SUPPLEMENTARY]),
        (
            [A, *[Entry(SUPPLEMENTARY, number, ALTERNATE, 9 * number, False, "100M") for number in (1, 2)]],
            [PRIMARY, SUPPLEMENTARY, NOT_REPORTED],
        ),
        # The first of two overlapping parts stays.
        ([A, B, Entry(SUPPLEMENTARY, 2, 1, 7, False, "50S50M")], [PRIMARY, SUPPLEMENTARY, NOT_REPORTED]),
    ],
)
def test_dropped_entries_by_hand(backends: str, entries: list[Entry], expected: list[int]) -> None:
    assert kept_roles([Read(100, entries)], open_backend(backends)) == [expected]
