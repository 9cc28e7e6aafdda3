"""Which lines prove true by their CIGARs, their flags and tallies: against plain Python, on lines that are made up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from examples import below
from oracles.alignment import parse_cigar
from oracles.pairs import rivals_for, size_penalty

from readmap.backend import Backend, Kernel, open_backend
from readmap.search.alignments import MAPQS, NO_TALLY, PROPER_TALLY, SECONDARY_TALLY, SUPPLEMENTARY_TALLY
from readmap.search.inserts import InsertSize, place_inserts
from readmap.search.record_plan import MENTION, NOTHING, PIECE, PLACE, PRIMARY
from readmap.search.windows import WINDOW

SETTLE, FLAG = Kernel("search/alignments", "settle_lines"), Kernel("search/alignments", "flag_lines")
SETTLE_PLACES = Kernel("search/alignments", "settle_places")
LIBRARY = [InsertSize("FR", 300, 40, 140, 460), InsertSize("RF", 200, 30, 100, 320), InsertSize("FF", 90, 20, 10, 170)]


@dataclass
class Line:
    """Of one read; owner is a number among the read's lines. Without a contig it has no place."""

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
    def span(self) -> set[int]:
        """The bases that it aligns, as the read was sequenced."""
        operations = parse_cigar(self.cigar)
        length = sum(length for length, operation in operations if operation != "D")
        left, right = (length if operation == "S" else 0 for length, operation in (operations[0], operations[-1]))
        return set(range(right, length - left) if self.reverse else range(left, length - right))


@dataclass
class Read:
    length: int
    lines: list[Line] = field(default_factory=list)


def settled(read: Read) -> list[int]:
    """The roles of a read's lines, where those that are nothing of their own have come to nothing."""
    primary, roles = read.lines[0], [line.role for line in read.lines]
    own = [(number, line) for number, line in enumerate(read.lines) if number and line.role != PLACE]
    for number, line in own:
        before = [(other, role) for other, role in zip(read.lines[:number], roles, strict=False) if role != NOTHING]
        twice = any(are_twins(line, other) for other, _ in before)
        parts = [other for other, role in before if role in (PRIMARY, PIECE)]
        overlaps = line.role == PIECE and any(rivals_for(line.span, other.span) for other in parts)
        placed = primary.contig >= 0 and line.contig >= 0 and roles[line.owner] != NOTHING
        if not placed or twice or overlaps:
            roles[number] = NOTHING
    parts = [line for line, role in zip(read.lines, roles, strict=True) if role in (PRIMARY, PIECE)]
    places = [line for line in read.lines if line.role == PLACE]
    for number, line in enumerate(read.lines):
        # Of places that score the same the first stays.
        better = [other for other in places if other.score > line.score]
        better += [other for other in read.lines[:number] if other.role == PLACE and other.score == line.score]
        twice = any(are_twins(line, other) for other in [*parts, *better])
        if line.role == PLACE and (primary.contig < 0 or line.contig < 0 or twice):
            roles[number] = NOTHING
    return roles


def are_twins(one: Line, other: Line) -> bool:
    """Whether they begin or end at the same place."""
    same = (other.contig, other.reverse) == (one.contig, one.reverse)
    return same and (other.start == one.start or other.end == one.end)


def draw_cigar(generator: random.Random, length: int) -> str:
    """With or without clips on either side, and a gap."""
    left, right = (below(generator, length // 2) if below(generator, 2) else 0 for _ in range(2))
    inside, gap = length - left - right, 1 + below(generator, 5)
    middle = f"{inside}M"
    if inside > 12 and below(generator, 2):
        middle = f"{inside - 6}M{gap}D6M" if below(generator, 2) else f"{inside - 6 - gap}M{gap}I6M"
    return "".join((f"{left}S" if left else "", middle, f"{right}S" if right else ""))


def draw_places(generator: random.Random, length: int) -> list[Line]:
    """Ordered by strand and place, as the windows are."""
    places = []
    for _ in range((0, 0, 1, 9)[below(generator, 4)]):
        contig, start, score = below(generator, 2), 10 * below(generator, 30), 30 + below(generator, 9)
        strand, cigar = bool(below(generator, 2)), draw_cigar(generator, length)
        places.append(Line(PLACE, 0, contig if below(generator, 6) else -1, start, strand, cigar, score))
    return sorted(places, key=lambda line: (line.reverse, line.start))


def draw_reads(generator: random.Random, count: int) -> list[Read]:
    reads = []
    for _ in range(count):
        read = Read(30 + below(generator, 100))
        for number in range(1 + below(generator, 7)):
            parts = [i for i, line in enumerate(read.lines) if line.role <= PIECE]
            role = (PIECE, PIECE, MENTION)[below(generator, 3)] if number else PRIMARY
            owner = parts[below(generator, len(parts))] if role > PIECE else number
            contig = below(generator, 2) if below(generator, 6) else -1
            cigar, start = draw_cigar(generator, read.length), 10 * below(generator, 12)
            read.lines.append(Line(role, owner, contig, start, bool(below(generator, 2)), cigar))
        read.lines += draw_places(generator, read.length)
        reads.append(read)
    return reads


class Arrays:
    """Reads' lines on a device; the reads lie in slots in some order."""

    def __init__(self, reads: list[Read], backend: Backend, generator: random.Random) -> None:
        count, lines = len(reads), [line for read in reads for line in read.lines]
        slot_of = sorted(range(count), key=lambda _: generator.random())
        offsets = np.cumsum([0, *(len(read.lines) for read in reads)])
        operations, ends, rooms, counts = [], [], [], []
        for line in lines:
            own = [length << 4 | "MIDNS".index(operation) for length, operation in parse_cigar(line.cigar)]
            operations += [*own, *[0] * below(generator, 3)]
            rooms.append(len(operations) - (ends[-1] if ends else 0))
            ends.append(len(operations))
            counts.append(len(own))

        def put(values: Any, dtype: Any) -> Any:
            return backend.to_device(np.array(values, dtype))

        lengths, order = np.zeros(count, np.int32), np.zeros(count, np.int32)
        lengths[slot_of], order[slot_of] = [read.length for read in reads], range(count)
        self.count, self.lines = count, len(lines)
        self.order, self.lengths = put(order, np.int32), put(lengths, np.int32)
        self.offsets = put(offsets, np.int64)
        self.slots = put([slot_of[number] for number, read in enumerate(reads) for _ in read.lines], np.int32)
        self.windows, self.roles = put(range(len(lines)), np.int64), put([line.role for line in lines], np.uint8)
        rows = np.zeros(len(lines), WINDOW)
        rows["diagonal"], rows["orientation"] = [line.start for line in lines], [line.reverse for line in lines]
        self.rows, self.scores = (
            put(rows.view(np.int64).reshape(-1, 5), np.int64),
            put([x.score for x in lines], np.int32),
        )
        begins = [begin for read, begin in zip(reads, offsets.tolist(), strict=False) for _ in read.lines]
        self.owners = put([begin + line.owner for begin, line in zip(begins, lines, strict=True)], np.int32)
        self.cigars = (
            *(put(ends, np.int64), put(rooms, np.int64)),
            *(put(operations, np.uint32), put(counts, np.int32)),
        )
        self.starts = put([line.start for line in lines], np.int64)
        self.ends = put([line.end for line in lines], np.int64)
        self.contigs = put([line.contig for line in lines], np.int32)
        self.reversed = put([line.reverse for line in lines], np.uint8)


def settle(reads: list[Read], backend: Backend) -> list[list[int]]:
    arrays = Arrays(reads, backend, random.Random(1))
    backend.launch(
        *(SETTLE, arrays.count, arrays.lengths, arrays.offsets, arrays.slots, arrays.roles, arrays.owners),
        *(*arrays.cigars, arrays.starts, arrays.ends, arrays.contigs, arrays.reversed),
    )
    settled = backend.empty(arrays.lines, np.uint8)
    backend.launch(
        *(SETTLE_PLACES, arrays.lines, arrays.order, arrays.rows, arrays.offsets, arrays.slots, arrays.windows),
        *(arrays.roles, arrays.owners, arrays.starts, arrays.ends, arrays.contigs, arrays.reversed, arrays.scores),
        settled,
    )
    roles = iter(backend.to_host(settled).tolist())
    return [[next(roles) for _ in read.lines] for read in reads]


def test_lines_that_prove_true(backends: str) -> None:
    reads = draw_reads(random.Random(141), 600)
    found = settle(reads, open_backend(backends))
    assert found == [settled(read) for read in reads]
    assert {role for roles in found for role in roles} == {PRIMARY, PIECE, PLACE, MENTION, NOTHING}


A, B = Line(PRIMARY, 0, 0, 100, False, "60M40S"), Line(PIECE, 1, 0, 500, True, "45M55S")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([A], [PRIMARY]),
        ([A, B], [PRIMARY, PIECE]),
        # Without a primary alignment there is none.
        ([Line(PRIMARY, 0, -1, 0, False, "100S"), B], [PRIMARY, NOTHING]),
        # A part without a place, and what belongs to it; but another place of the read's stays.
        (
            [A, Line(PIECE, 1, -1, 0, True, "45M55S"), Line(MENTION, 1, 0, 900, True, "45M55S")],
            [PRIMARY, NOTHING, NOTHING],
        ),
        (
            [A, Line(PIECE, 1, -1, 0, True, "45M55S"), Line(PLACE, 1, 0, 900, True, "45M55S")],
            [PRIMARY, NOTHING, PLACE],
        ),
        # Of two places that begin at the same base the better one, and of two that are as good the first.
        (
            [A, Line(PLACE, 0, 0, 300, False, "50M50S", 40), Line(PLACE, 0, 0, 300, False, "60M40S", 44)],
            [PRIMARY, NOTHING, PLACE],
        ),
        (
            [A, Line(PLACE, 0, 0, 300, False, "50M50S", 40), Line(PLACE, 0, 0, 300, False, "60M40S", 40)],
            [PRIMARY, PLACE, NOTHING],
        ),
        # The primary alignment once more, and one that begins or ends where it does; on the other strand it is another.
        ([A, Line(PLACE, 0, 0, 100, False, "60M40S")], [PRIMARY, NOTHING]),
        ([A, Line(PLACE, 0, 0, 110, False, "10S50M40S")], [PRIMARY, NOTHING]),
        ([A, Line(MENTION, 0, 0, 100, False, "70M30S")], [PRIMARY, NOTHING]),
        ([A, Line(PLACE, 0, 0, 100, True, "40S60M")], [PRIMARY, PLACE]),
        ([A, Line(PLACE, 0, 1, 100, False, "60M40S")], [PRIMARY, PLACE]),
        # Of the shorter part half is in the primary one, or a base less.
        ([A, Line(PIECE, 1, 1, 0, False, "40S40M20S")], [PRIMARY, NOTHING]),
        ([A, Line(PIECE, 1, 1, 0, False, "41S39M20S")], [PRIMARY, PIECE]),
        ([A, Line(PIECE, 1, 1, 0, True, "20S40M40S")], [PRIMARY, NOTHING]),
        ([A, Line(PIECE, 1, 1, 0, True, "20S39M41S")], [PRIMARY, PIECE]),
        # Of two parts that are the same the first holds.
        ([A, B, Line(PIECE, 2, 1, 7, False, "50S50M")], [PRIMARY, PIECE, NOTHING]),
    ],
)
def test_settling_by_hand(backends: str, lines: list[Line], expected: list[int]) -> None:
    assert settled(Read(100, lines)) == expected
    assert settle([Read(100, lines)], open_backend(backends)) == [expected]


@pytest.mark.parametrize("library", [LIBRARY, []], ids=["library", "no library"])
@pytest.mark.parametrize("pieces_secondary", [False, True])
@pytest.mark.parametrize("paired", [False, True])
def test_flags(backends: str, paired: bool, pieces_secondary: bool, library: list[InsertSize]) -> None:
    backend, reads = open_backend(backends), draw_reads(random.Random(142), 1_000)
    arrays = Arrays(reads, backend, random.Random(2))
    flags, tallies = backend.empty(arrays.lines, np.uint16), backend.empty(arrays.lines, np.uint8)
    mapqs = np.arange(arrays.lines, dtype=np.uint8) % MAPQS
    backend.launch(
        *(FLAG, arrays.lines, arrays.order, arrays.offsets, arrays.slots, arrays.windows, arrays.roles, arrays.owners),
        *place_inserts(library, backend).arguments,
        *(arrays.contigs, arrays.starts, arrays.ends, arrays.reversed, backend.to_device(mapqs), flags, tallies),
        *(int(paired), int(pieces_secondary)),
    )
    ranges = {size.direction: (size.low, size.high, range(size.high - size.low + 1)) for size in library}
    expected, counted = [], []
    for number, read in enumerate(reads):
        mate, pair = reads[number ^ 1].lines[0], [reads[number & ~1].lines[0], reads[number | 1].lines[0]]
        ends = [(line.end if line.reverse else line.start, line.reverse) for line in pair]
        together = pair[0].contig == pair[1].contig >= 0
        proper = together and size_penalty(ends[0], ends[1], ranges) is not None
        for line in read.lines:
            flag = 4 if line.contig < 0 else 16 * line.reverse
            if line.role == PLACE:
                flag += 256
            if line.role == PIECE:
                flag += 256 if pieces_secondary else 2048
            if paired:
                flag += 1 + 2 * proper + (8 if mate.contig < 0 else 32 * mate.reverse) + (128 if number % 2 else 64)
            expected.append(flag)
            others = SUPPLEMENTARY_TALLY if flag & 2048 else SECONDARY_TALLY if flag & 256 else NO_TALLY
            mapq = int(mapqs[len(counted)]) + PROPER_TALLY * (flag & 2 > 0)
            counted.append(mapq if line.role == PRIMARY and line.contig >= 0 else others)
    assert backend.to_host(flags).tolist() == expected
    assert backend.to_host(tallies).tolist() == counted
    assert any(flag & 2 for flag in expected) == (paired and bool(library))
