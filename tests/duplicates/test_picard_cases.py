"""The test cases of Picard's MarkDuplicates for records grouped by name, with Picard's expectations.

Not included: file formats, PG and DI tags, other patterns of read names, flow mode, UMIs of both strands, barcodes of
single mates, programs based on MC, command line options and errors, and merging of metrics.

Picard's cases score a fragment by its aligned bases, readmap by base qualities. If the score decides, the fragment that
stays has the higher qualities here; otherwise all fragments have a quality that does not count.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pysam
import pytest
import test_duplicates
from test_duplicates import Run, record

from readmap.backend import Backend, open_backend
from readmap.duplicates.marker import DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics, estimated_size

LENGTHS = [200_000_000] * 5
HEADER = pysam.AlignmentHeader.from_dict({
    "HD": {"VN": "1.6", "SO": "unsorted", "GO": "query"},
    "SQ": [{"SN": f"c{number}", "LN": length} for number, length in enumerate(LENGTHS)],
    "RG": [{"ID": "a", "SM": "s", "LB": "x"}],
})  # fmt: skip
PAIRED, UNMAPPED, MATE_UNMAPPED, REVERSE, FIRST, SECOND, SECONDARY, SUPPLEMENTARY = 1, 4, 8, 16, 64, 128, 256, 2048
OTHER = SECONDARY | SUPPLEMENTARY
POOR, GOOD, BEST = 10, 20, 30  # base qualities; POOR is below the minimum
BETTER = (GOOD, GOOD)


@dataclass(frozen=True)
class Read:
    """A record; place: 1-based position as in SAM."""

    flag: int
    contig: int
    place: int
    cigar: str = "50M"
    quality: int = POOR

    @property
    def length(self) -> int:
        return sum(int(count) for count in re.findall(r"(\d+)[MIS]", self.cigar))


@dataclass(frozen=True)
class Fragment:
    """Records with one name, and their expected marks."""

    reads: tuple[Read, ...]
    name: str = ""
    barcode: str = ""
    is_duplicate: bool = False
    is_optical: bool = False


def kept(fragment: Fragment) -> Fragment:
    return fragment


def duplicate(fragment: Fragment) -> Fragment:
    return replace(fragment, is_duplicate=True)


def twice(fragment: Fragment) -> list[Fragment]:
    return [fragment, duplicate(fragment)]


def optical(fragment: Fragment) -> Fragment:
    return replace(fragment, is_duplicate=True, is_optical=True)


def single(contig: int, place: int, cigar: str = "50M", quality: int = POOR, flag: int = 0) -> Fragment:
    return Fragment((Read(flag, contig, place, cigar, quality),))


def without_mate(contig: int, place: int, cigar: str) -> Fragment:
    """Return the first read of a pair whose mate is mapped but not in the input."""
    return single(contig, place, cigar, flag=PAIRED | FIRST)


def pair(
    contig: int,
    place: int,
    mate_place: int,
    cigar: str = "50M",
    mate_cigar: str = "50M",
    strands: str = "+-",
    name: str = "",
    qualities: tuple[int, int] = (POOR, POOR),
    mate_contig: int | None = None,
) -> Fragment:
    first, second = (REVERSE * (strand == "-") for strand in strands)
    mate_contig = contig if mate_contig is None else mate_contig
    reads = (
        Read(PAIRED | FIRST | first, contig, place, cigar, qualities[0]),
        Read(PAIRED | SECOND | second, mate_contig, mate_place, mate_cigar, qualities[1]),
    )
    return Fragment(reads, name)


def half_mapped(contig: int, place: int, cigar: str, mapped: int = FIRST, strand: str = "+") -> Fragment:
    """Return a pair with one mapped read; the other read is placed with it."""
    own = Read(PAIRED | MATE_UNMAPPED | mapped | REVERSE * (strand == "-"), contig, place, cigar)
    mate = Read(PAIRED | UNMAPPED | FIRST + SECOND - mapped, contig, place)
    return Fragment((own, mate) if mapped == FIRST else (mate, own))


def unmapped(*flags: int) -> Fragment:
    return Fragment(tuple(Read(UNMAPPED | flag, -1, 0) for flag in flags or (0,)))


def spot(tile: int, x: int, y: int) -> str:
    """Return a read name with tile and coordinates."""
    return f"R:7:{tile}:{x}:{y}"


UNMAPPED_PAIR = unmapped(PAIRED | MATE_UNMAPPED | FIRST, PAIRED | MATE_UNMAPPED | SECOND)
TWO_PAIRS = twice(pair(1, 1, 100))
PAIR_AT_10040 = pair(1, 10189, 10040, "41S35M", "65M11S", "-+")
ONE_CLUSTER = [
    pair(1, 485328, 485312, "55M46S", "30S71M", name=spot(2205, 17939, 39728), qualities=BETTER),
    optical(pair(1, 485328, 485328, "55M46S", "46S55M", name=spot(2205, 17949, 39745))),
]
CLUSTER_OF_THREE = [
    *ONE_CLUSTER,
    duplicate(pair(1, 485328, 485328, "55M46S", "46S55M", name=spot(2205, 27949, 39745))),
    duplicate(pair(1, 485328, 485328, "55M46S", "46S55M", name=spot(2205, 37949, 39745))),
    optical(pair(1, 485328, 485328, "55M46S", "46S55M", name=spot(2205, 17959, 39735))),
]
BOTH_REVERSED = [
    pair(2, 41212324, 41212310, "33S35M", "19S49M", "--", spot(1, 15993, 13361)),
    optical(pair(2, 41212324, 41212319, "33S35M", "28S40M", "--", spot(1, 16020, 13352))),
]


def pair_with_barcode(number: int, barcode: str) -> Fragment:
    """Return a pair with fixed ends and its own tile."""
    found = pair(2, 41212324, 41212310, "33S35M", "19S49M", "--", spot(number, 15993, 13361))
    return replace(found, barcode=barcode)


def set_of(place: int, *spots: tuple[int, int]) -> list[Fragment]:
    """Return pairs with the same ends, close to each other on the flow cell; the first has the best score."""
    first, *others = (pair(1, place, place, "45M", "45M", name=spot(1, *one)) for one in spots)
    better = tuple(replace(read, quality=BEST) for read in first.reads)
    return [replace(first, reads=better), *map(optical, others)]


def tied_by_tile(tile: int, x: int, y: int, other: tuple[int, int, int]) -> list[Fragment]:
    """Return two pairs with the same ends, one with swapped mates; the pair with the lower tile, x and y stays."""
    one = pair(1, 485253, 485253, "42M59S", "59S42M", "+-", spot(tile, x, y))
    turned = pair(1, 485253, 485253, "59S42M", "42M59S", "-+", spot(*other))
    return [one, duplicate(turned)] if (tile, x, y) < other else [duplicate(one), turned]


def grouped(tile: int, x: int, y: int) -> Fragment:
    """Return a pair with both 5' ends at one base, the reverse read first, and two more records of each read."""
    found = pair(0, 43092875, 43092875, "151M", "150S1M", "+-", spot(tile, x, y), BETTER)
    elsewhere = [(0, 0), (1, SUPPLEMENTARY), (2, SECONDARY)]
    reads = (replace(one, flag=one.flag | flag, contig=at) for one in found.reads[::-1] for at, flag in elsewhere)
    return replace(found, reads=tuple(reads))


CASES = {
    # Unmapped or without duplicates.
    "an unmapped read": [unmapped()],
    "two unmapped reads": [unmapped(), unmapped()],
    "an unmapped pair": [UNMAPPED_PAIR],
    "a single": [single(1, 1)],
    "a pair": [pair(1, 1, 100)],
    # The same ends.
    "two singles": twice(single(0, 1)),
    "a single and a pair": [duplicate(single(1, 1)), pair(1, 1, 100)],
    "two pairs": TWO_PAIRS,
    "three pairs": [*TWO_PAIRS, duplicate(pair(1, 1, 100))],
    "a single and two pairs": [duplicate(single(1, 1)), *TWO_PAIRS],
    "two pairs, then an unmapped read": [*TWO_PAIRS, unmapped()],
    "two pairs, then an unmapped pair": [*TWO_PAIRS, UNMAPPED_PAIR],
    "two pairs, then a secondary record": [*TWO_PAIRS, single(1, 200, flag=SECONDARY)],
    "a single, then a secondary record whose mate is unmapped": [
        single(1, 1, "76M"),
        single(1, 200, "54M22S", flag=PAIRED | MATE_UNMAPPED | FIRST | SECONDARY),
    ],
    "singles on two contigs": [single(0, 1), duplicate(single(0, 1)), single(1, 1), duplicate(single(1, 1))],
    "pairs on two contigs": [pair(0, 1, 100), duplicate(pair(0, 1, 100)), *TWO_PAIRS],
    "three pairs on each of three contigs": [
        mark(pair(contig, 1, 100)) for contig in range(3) for mark in (kept, duplicate, duplicate)
    ],
    # Clipped ends.
    "mates of different ends": [pair(1, 10022, 10051, "76M", "8S68M"), pair(1, 10022, 10063, "76M", "5S71M")],
    "mates of the same end, clipped": [
        pair(1, 2, 46, "6S42M28S", "3S73M"),
        duplicate(pair(1, 2, 51, "6S42M28S", "8S68M")),
    ],
    "reads whose mates are without_mate": [without_mate(0, 12, "6S42M28S"), without_mate(0, 12, "6S42M28S")],
    "both mates clipped": [
        duplicate(pair(1, 10046, 10002, "3S73M", "6S42M28S", "-+")),
        pair(1, 10051, 10002, "8S68M", "6S48M22S", "-+", qualities=BETTER),
    ],
    "three pairs, two of one second end": [
        pair(1, 10181, 10058, "41S35M", "47M29S", "-+"),
        duplicate(pair(1, 10181, 10058, "37S39M", "44M32S", "-+")),
        pair(1, 10180, 10058, "36S40M", "50M26S", "-+", qualities=BETTER),
    ],
    "a second end in front of the first": [pair(0, 108855339, 108855323, "33S35M", "17S51M", "--")],
    # Pairs with one mapped read.
    "a second read unmapped": [half_mapped(1, 10049, "11M2I63M")],
    "a first read unmapped": [half_mapped(1, 10056, "54M22S", SECOND)],
    "a second read unmapped, and a single": [half_mapped(1, 10049, "11M2I63M"), duplicate(single(1, 10049, "36M"))],
    "a first read unmapped, and a single": [
        half_mapped(1, 10049, "11M2I63M", SECOND),
        duplicate(single(1, 10049, "36M")),
    ],
    "a second read unmapped, and a pair": [duplicate(half_mapped(1, 10040, "76M")), PAIR_AT_10040],
    "a first read unmapped, and a pair": [duplicate(half_mapped(1, 10040, "76M", SECOND)), PAIR_AT_10040],
    "a second read unmapped, a pair and a single": [
        duplicate(half_mapped(1, 10040, "76M")),
        PAIR_AT_10040,
        duplicate(single(1, 10040)),
    ],
    "a first read unmapped, a pair and a single": [
        duplicate(half_mapped(1, 10040, "76M", SECOND)),
        PAIR_AT_10040,
        duplicate(single(1, 10040)),
    ],
    "a second read unmapped, and a pair on the other strand": [
        half_mapped(1, 484071, "66S35M", strand="-"),
        pair(1, 484105, 484075, "35M66S", "30S71M"),
    ],
    # Strands.
    "mates in either order, the better pair last": [
        duplicate(pair(1, 10182, 10038, "32S44M", "66M10S", "-+")),
        pair(1, 10038, 10182, "70M6S", "32S44M", qualities=BETTER),
    ],
    "mates in either order, the better pair first": [
        pair(1, 10038, 10182, "70M6S", "32S44M", qualities=BETTER),
        duplicate(pair(1, 10182, 10038, "32S44M", "66M10S", "-+")),
    ],
    "both mates at one base": [pair(1, 4914, 4914, "37M39S", "73M3S", "++")],
    "both mates at one base, clipped alike": [pair(1, 4914, 4914, "37M39S", "37M39S", "++")],
    "two pairs at one base": twice(pair(0, 5604914, 5604914, "37M39S", "73M3S", "++")),
    "two pairs at one base, turned": [
        pair(0, 5604914, 5604914, strands="-+"),
        duplicate(pair(0, 5604914, 5604914, strands="+-")),
    ],
    "two pairs at neighbouring bases, turned": [
        pair(0, 5604914, 5604915, strands="-+"),
        duplicate(pair(0, 5604915, 5604914, strands="+-")),
    ],
    "two pairs of one same end": [
        pair(0, 5604914, 5605914, "37M39S", "73M3S", "++"),
        pair(0, 5604914, 5604914, "37M39S", "73M3S", "++"),
    ],
    # Many.
    "many singles": [single(0, place, "100M") for place in range(1, 2001)],
    "many pairs": [pair(0, place, end, "100M", "100M") for place in range(1, 41) for end in range(200, 241)],
    "many singles, each 21 times": [
        one
        for place in range(1, 101)
        for one in [single(0, place, "100M", GOOD), *[duplicate(single(0, place, "99M1S"))] * 20]
    ],
    "many pairs, each 11 times": [
        one
        for place in range(1, 6)
        for end in range(200, 231)
        for one in [
            pair(0, place, end, "100M", "100M", qualities=BETTER),
            *[duplicate(pair(0, place, end, "99M1S", "99M1S"))] * 10,
        ]
    ],
    # Optical duplicates.
    "one near, one far": [
        pair(1, 1, 100, name="R0:1:1:1:1"),
        duplicate(pair(1, 1, 100, name="R1:1:1:1:300")),
        optical(pair(1, 1, 100, name="R2:1:1:1:50")),
    ],
    "two near, one far": [
        pair(1, 1, 100, name="R0:1:1:1:1"),
        duplicate(pair(1, 1, 100, name="R1:1:1:1:300")),
        optical(pair(1, 1, 100, name="R1:1:1:1:50")),
        optical(pair(1, 1, 100, name="R2:1:1:2:50")),
    ],
    "near, but turned": tied_by_tile(1203, 2886, 16834, (1203, 2884, 16835)),
    "near": [
        optical(pair(1, 485253, 485253, "45M", "45M", name=spot(1203, 2886, 16834))),
        pair(1, 485253, 485253, "45M", "45M", name=spot(1203, 2884, 16835)),
    ],
    "near, of clipped ends": ONE_CLUSTER,
    "two near, two far": CLUSTER_OF_THREE,
    "near, of both mates reversed": BOTH_REVERSED,
    "near, but none looked for": [BOTH_REVERSED[0], replace(BOTH_REVERSED[1], is_optical=False)],
    "near, with the same sums of qualities": [
        pair(0, 129384554, 129384554, "68M", "68M", "++", spot(1, 15013, 113051), (30, 40)),
        optical(pair(0, 129384554, 129384554, "68M", "68M", "++", spot(1, 15029, 113060), (20, 50))),
    ],
    "near, mates on two contigs": [
        optical(pair(0, 123989, 18281, "37S64M", "52M49S", "++", spot(101, 17642, 6835), mate_contig=1)),
        pair(1, 18281, 123989, "52M49S", "37S64M", "++", spot(101, 17616, 6888), mate_contig=0),
    ],
    "near, of names with five fields": [
        mark(pair(0, 1, 302, "101M", "101M", "-+", f"C4N4WACXX140821:8:1112:2344:{y}"))
        for y, mark in ((1984, kept), (1985, optical))
    ],
    "near, of names with seven fields": [
        mark(pair(0, 1, 302, "101M", "101M", "-+", f"instr:run:C4N4WACXX140821:8:1112:2344:{y}"))
        for y, mark in ((1984, kept), (1985, optical))
    ],
    "near, beyond 16 bits": [
        mark(pair(0, 1000, 1100, "100M", "100M", name=spot(2214, x, y)))
        for x, y, mark in ((32579, 36746, kept), (32588, 36761, optical), (32768, 36824, optical))
    ],
    **{
        f"tile {tile}, x {x}, y {y}": tied_by_tile(tile, x, y, other)
        for tile, x, y, other in [
            *((tile, 2886, 16756, (1205, 3886, 16756)) for tile in (1204, 1205, 1206)),
            *((1203, x, 16756, (1203, 4886, 26756)) for x in (3886, 4886, 5886)),
            *((1203, 2886, y, (1203, 2886, 36756)) for y in (35756, 37756)),
        ]
    },
    "names with five fields on two tiles": [
        pair(1, 1, 100, name="000000000-ZZZZZ:1:1105:17981:23325"),
        duplicate(pair(1, 1, 100, name="000000000-ZZZZZ:1:1109:22981:17995")),
    ],
    "names with seven fields on two tiles": [
        pair(1, 1, 100, name="M01234:123:000000000-ZZZZZ:1:1105:17981:23325"),
        duplicate(pair(1, 1, 100, name="M01234:123:000000000-ZZZZZ:1:1109:22981:17995")),
    ],
    "6 records of a name, the better one last": [duplicate(grouped(2214, 10145, 57038)), grouped(1218, 20812, 27591)],
    "6 records of a name, the better one first": [grouped(1218, 20812, 27591), duplicate(grouped(2214, 10145, 57038))],
    # Barcodes.
    "singles of one barcode": twice(replace(single(2, 41212324), barcode="GACT")),
    "pairs of one barcode": [pair_with_barcode(1, "ATGC"), duplicate(pair_with_barcode(2, "ATGC"))],
    "pairs of two barcodes": [
        pair_with_barcode(1, "AAAA"),
        duplicate(pair_with_barcode(2, "AAAA")),
        pair_with_barcode(3, "CCCC"),
    ],
    "pairs of different barcodes": [pair_with_barcode(1, "ATC"), pair_with_barcode(2, "GCG")],
    # Sizes of sets.
    "a set of two": set_of(485253, (16020, 13352), (15993, 13361)),
    "a set of four": [
        *set_of(485253, (16020, 13352), (15993, 13361), (15994, 13364)),
        duplicate(pair(1, 485253, 485253, "45M", "45M", name=spot(1, 25993, 23361))),
    ],
    "a set of one": set_of(485255, (15993, 13375)),
    "sets of one to three": [
        *set_of(485253, (16020, 13352), (15993, 13361)),
        *set_of(485299, (15993, 13360), (15993, 13365), (15993, 13370)),
        *set_of(485255, (15993, 13375)),
    ],
}
RULES = {name: DuplicateRules(barcode_tag="BC") for name, case in CASES.items() if any(one.barcode for one in case)}
RULES |= {"near, but none looked for": DuplicateRules(0), "near, beyond 16 bits": DuplicateRules(2500)}


@pytest.fixture(autouse=True)
def _long_contigs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_duplicates, "HEADER", HEADER)
    monkeypatch.setattr(test_duplicates, "LENGTHS", LENGTHS)


def named(fragments: Sequence[Fragment]) -> list[Fragment]:
    return [replace(one, name=one.name or f"read{number}") for number, one in enumerate(fragments)]


def records_of(fragments: Sequence[Fragment]) -> list[pysam.AlignedSegment]:
    """Return the records of the fragments, with mate fields."""
    found = []
    for fragment in fragments:
        tags = {"RG": "a"} | ({"BC": fragment.barcode} if fragment.barcode else {})
        made = [
            record(fragment.name, one.flag, one.contig, one.place - 1, one.cigar, [one.quality] * one.length, **tags)
            for one in fragment.reads
        ]
        mates = [one for one in made if not one.flag & OTHER]
        if len(mates) == 2:
            for one, other in zip(mates, reversed(mates), strict=True):
                one.next_reference_id, one.next_reference_start = other.reference_id, other.reference_start
        elif mates and mates[0].flag & PAIRED:
            mates[0].next_reference_id = mates[0].reference_id
        found += made
    return found


def counted(fragments: Sequence[Fragment]) -> LibraryMetrics:
    """Return Picard's counters, from the flags of the records."""
    pairs = pair_duplicates = unpaired = unpaired_duplicates = others = unmapped = 0
    for one in fragments:
        for flag in (read.flag for read in one.reads):
            if flag & OTHER:
                others += 1
            elif flag & UNMAPPED:
                unmapped += 1
            elif flag & PAIRED and not flag & MATE_UNMAPPED:
                pairs += 1
                pair_duplicates += one.is_duplicate
            else:
                unpaired += 1
                unpaired_duplicates += one.is_duplicate
    seen_twice = sum(one.is_optical for one in fragments)
    return LibraryMetrics(
        "x", unpaired, pairs // 2, others, unmapped, unpaired_duplicates, pair_duplicates // 2, seen_twice
    )


def check(fragments: Sequence[Fragment], folder: Path, rules: DuplicateRules, backend: Backend) -> Run:
    fragments = named(fragments)
    found = Run(records_of(fragments), folder, rules, backend, len(fragments))
    assert found.duplicates == {one.name for one in fragments if one.is_duplicate}
    assert found.optical == {one.name for one in fragments if one.is_optical}
    assert found.libraries == [counted(fragments)]
    return found


@pytest.mark.parametrize("name", CASES)
def test_cases(backends: str, tmp_path: Path, name: str) -> None:
    """Also with a barcode tag that no record has."""
    rules, backend = RULES.get(name, DuplicateRules()), open_backend(backends)
    check(CASES[name], tmp_path, rules, backend)
    if rules.barcode_tag is None:
        check(CASES[name], tmp_path, replace(rules, barcode_tag="BX"), backend)


@pytest.mark.parametrize("in_front", [False, True], ids=["behind", "in front"])
@pytest.mark.parametrize("of", [0, 1], ids=["of the best", "of a duplicate"])
@pytest.mark.parametrize("flag", [SECONDARY, SUPPLEMENTARY, OTHER])
@pytest.mark.parametrize("case", [BOTH_REVERSED, CLUSTER_OF_THREE], ids=["two", "five"])
def test_secondary_and_supplementary(
    backends: str, tmp_path: Path, case: list[Fragment], flag: int, of: int, in_front: bool
) -> None:
    """Secondary and supplementary records change nothing, at any position in the input."""
    fragments, reads, part = [*case], case[of].reads, Read(flag, 1, 400, "68M")
    fragments[of] = replace(case[of], reads=(part, *reads) if in_front else (*reads, part))
    check(fragments, tmp_path, DuplicateRules(), open_backend(backends))


@pytest.mark.parametrize(
    ("name", "sizes", "optical_sizes"),
    [
        ("a set of two", {2: 1}, {2: 1}),
        ("a set of four", {4: 1}, {3: 1}),
        ("a set of one", {1: 1}, {}),
        ("sets of one to three", {1: 1, 2: 1, 3: 1}, {2: 1, 3: 1}),
    ],
)
def test_set_sizes(
    backends: str, tmp_path: Path, name: str, sizes: dict[int, int], optical_sizes: dict[int, int]
) -> None:
    found = check(CASES[name], tmp_path, DuplicateRules(), open_backend(backends)).set_sizes
    assert found.all_sets == sizes
    assert found.optical_sets == optical_sizes


KEEPER_SPOTS = [(7, 1500, 1500), (7, 1501, 1501), (5, 1500, 1500), (7, 1490, 1502), (7, 2500, 2500), (7, 10, 10)]
TWO_CLUSTERS = [(1, 100, 190), (1, 100, 280), (1, 300, 500), (1, 300, 590), (1, 300, 670), (1, 300, 760)]

#: Distance, spots, which of them stays, and which are optical duplicates. Where none of them stays, a turned pair does.
CLUSTERS: dict[str, tuple[int, list[tuple[int, int, int]], int | None, set[int]]] = {
    "the first of its cluster": (100, KEEPER_SPOTS, 0, {1, 3}),
    "the second of its cluster": (100, KEEPER_SPOTS, 1, {0, 3}),
    "the last of its cluster": (100, KEEPER_SPOTS, 3, {0, 1}),
    "in no cluster": (100, KEEPER_SPOTS, None, {0, 1}),
    "elsewhere": (100, [(1, 100, 100), (1, 101, 101), (1, 99, 99), (1, 99, 102)], None, {0, 1, 3}),
    "at the end of a chain": (15, [(1, 10, 0), (1, 20, 0), (1, 30, 0)], 2, {0, 1}),
    "at the beginning of a chain": (100, [(1, 100, 190), (1, 100, 280), (1, 100, 370), (1, 100, 460)], 0, {1, 2, 3}),
    "in one of two chains": (100, TWO_CLUSTERS, 0, {1, 3, 4, 5}),
}


def pairs_at(spots: Sequence[tuple[int, int, int]], keeper: int | None, near: set[int]) -> list[Fragment]:
    """Return pairs with the same ends at these spots; scores decide which stays."""
    found = []
    for number, one in enumerate(spots):
        quality = BEST if number == keeper else GOOD
        made = pair(1, 1, 100, name=spot(*one), qualities=(quality, quality))
        found.append(optical(made) if number in near else made if number == keeper else duplicate(made))
    return found if keeper is not None else [*found, pair(1, 100, 1, "50M", "50M", "-+", spot(7, 5, 5), (BEST, BEST))]


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters(backends: str, tmp_path: Path, name: str) -> None:
    """In every input order."""
    distance, spots, keeper, near = CLUSTERS[name]
    fragments, draw = pairs_at(spots, keeper, near), random.Random(0)
    for _ in range(6):
        check(fragments, tmp_path, DuplicateRules(distance), open_backend(backends))
        draw.shuffle(fragments)


@pytest.mark.parametrize(
    ("name", "has_place"),
    [
        *(("7:1203:2886:82292", True), ("123:000000000-ZZZZZ:1:1105:17981:23325", True), ("7:1203:-100:0", True)),
        *(("7:1203A:2886ACGT:82292.1", True), ("7:1203:x2886:82292", False), ("7:1203:2886:f00", False)),
        *(("7:1203:-foo:82292", False), ("7:abc123:2886:82292", False), ("1203:2886:82292", False)),
        *(("17981:23325", False), ("000000000-ZZZZZ:1:1105:17981:23325", False), ("1:2:3:4:5:1105:17981:23325", False)),
    ],
)
def test_names(backends: str, tmp_path: Path, name: str, has_place: bool) -> None:
    """The last three of five or seven fields are numbers, which letters may follow."""
    fragments = [pair(1, 1, 100, name=f"R0:{name}"), pair(1, 1, 100, name=f"R1:{name}")]
    mark = optical if has_place else duplicate
    check([fragments[0], mark(fragments[1])], tmp_path, DuplicateRules(), open_backend(backends))


def test_metrics() -> None:
    assert LibraryMetrics("x", 0, 0, 0, 0, 0, 0, 0).share == 0
    for scale, size in ((1, 4564), (2, 9129)):
        counts = (1000, 1000, 1, 10, 100, 110, 10)
        library = LibraryMetrics("x", *(scale * one for one in counts))
        assert library.share == pytest.approx(320 / 3000)
        assert library.size == size


def test_size_of_a_very_large_library() -> None:
    """The bisections do not converge."""
    assert estimated_size(357_087_883, 357_087_881) == 17_854_394_228_543_940
