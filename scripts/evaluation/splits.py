"""Simulate translocations inside reads, and count how often both parts are reported.

A pair is cut from a fragment that is one interval of the genome, or two joined intervals. In the second case one mate
contains both parts, each of 30 bases or more. The name contains the parts of mate 1 and of mate 2, in the read's order:

    split_<number>!<contig>:<start>:<end>:<strand>[,<contig>:<start>:<end>:<strand>]!<likewise for mate 2>
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pysam

from evaluation.figures import Result, Row, figure
from evaluation.records import Key, key, place, same_place
from evaluation.work_directory import WorkDirectory

REFERENCE, SEED = "A10", 91
PAIRS, SPLIT_EVERY = 50_000, 5  # every fifth pair is split; the other pairs give the insert size
LENGTH, SHORTEST_PIECE, ERROR, QUALITY = 150, 30, 0.003, 25
INSERT_MEAN, INSERT_SD = 400, 60
APART = 2_000  # minimum distance between the starts of two joined intervals
PIECE_EDGES = (30, 40, 50, 60, 76)  # length of the shorter part
COMPLEMENT = str.maketrans("ACGT", "TGCA")
Piece = tuple[str, int, int, str]  # contig, start, end, strand


def flip(pieces: list[Piece]) -> list[Piece]:
    """Return the parts of the reverse complement."""
    return [(contig, start, end, "+-"[strand == "+"]) for contig, start, end, strand in reversed(pieces)]


def cut(pieces: list[Piece], start: int, end: int) -> list[Piece]:
    """The part of a fragment from `start` to `end`, counted along the fragment."""
    parts, at = list[Piece](), 0
    for contig, low, high, strand in pieces:
        length = high - low
        first, last = max(start - at, 0), min(end - at, length)
        if first < last and strand == "+":
            parts.append((contig, low + first, low + last, strand))
        elif first < last:
            parts.append((contig, high - last, high - first, strand))
        at += length
    return parts


def bases(pieces: list[Piece], genome: dict[str, str]) -> str:
    forward = ((genome[contig][start:end], strand) for contig, start, end, strand in pieces)
    return "".join(one if strand == "+" else one.translate(COMPLEMENT)[::-1] for one, strand in forward)


def draw(rng: np.random.Generator, genome: dict[str, str], length: int) -> Piece:
    """Return a random interval without N."""
    names = list(genome)
    lengths = np.array([len(sequence) for sequence in genome.values()])
    while True:
        contig = names[int(rng.choice(len(names), p=lengths / lengths.sum()))]
        start = int(rng.integers(0, len(genome[contig]) - length))
        if set(genome[contig][start : start + length]) <= set("ACGT"):
            return contig, start, start + length, "+-"[int(rng.integers(2))]


def fragments(rng: np.random.Generator, genome: dict[str, str], pairs: int) -> Iterator[list[Piece]]:
    for number in range(pairs):
        size = max(2 * LENGTH, round(rng.normal(INSERT_MEAN, INSERT_SD)))  # so that only one mate is split
        if number % SPLIT_EVERY:
            yield [draw(rng, genome, size)]
            continue
        first = int(rng.integers(SHORTEST_PIECE, LENGTH - SHORTEST_PIECE + 1))
        first = first if rng.random() < 0.5 else size - first
        one = other = draw(rng, genome, first)
        while one[0] == other[0] and abs(one[1] - other[1]) < APART:
            other = draw(rng, genome, size - first)
        yield [one, other]


def name_of(pieces: list[Piece]) -> str:
    return ",".join(":".join(map(str, one)) for one in pieces)


def truth(read: Key) -> list[Piece]:
    parts = [one.rsplit(":", 3) for one in read[0].split("!")[read[1]].split(",")]
    return [(contig, int(start), int(end), strand) for contig, start, end, strand in parts]


def simulate(reference: Path, files: Sequence[Path], seed: int, pairs: int = PAIRS) -> None:
    with pysam.FastaFile(str(reference)) as fasta:
        genome = {name: fasta.fetch(name).upper() for name in fasta.references}
    rng = np.random.default_rng(seed)
    with open(files[0], "w") as one, open(files[1], "w") as two:
        for number, fragment in enumerate(fragments(rng, genome, pairs)):
            size = sum(end - start for _, start, end, _ in fragment)
            mates = [cut(fragment, 0, LENGTH), flip(cut(fragment, size - LENGTH, size))]
            name = f"split_{number}!" + "!".join(map(name_of, mates))
            for file, mate in zip((one, two), mates, strict=True):
                read = np.array(list(bases(mate, genome)))
                for i in np.flatnonzero(rng.random(LENGTH) < ERROR):
                    read[i] = "ACGT"[("ACGT".index(read[i]) + int(rng.integers(1, 4))) % 4]
                file.write(f"@{name}\n{''.join(read)}\n+\n{chr(33 + QUALITY) * LENGTH}\n")


def aligned(path: Path) -> dict[Key, list[pysam.AlignedSegment]]:
    """Return the primary and supplementary records of mapped reads."""
    records = defaultdict[Key, list[pysam.AlignedSegment]](list)
    with pysam.AlignmentFile(str(path)) as file:
        for record in file.fetch(until_eof=True):
            if not record.flag & 0x104:
                records[key(record)].append(record)
    return records


def names_the_others(records: list[pysam.AlignedSegment]) -> bool:
    """Return True if the tag SA of each record lists contig, position and strand of all other records."""
    for record in records:
        others = ((str(one.reference_name), one.reference_start + 1, one) for one in records if one is not record)
        spots = sorted(f"{contig},{start},{'-' if one.is_reverse else '+'}" for contig, start, one in others)
        listed = str(record.get_tag("SA")).split(";")[:-1] if record.has_tag("SA") else []
        if spots != sorted(",".join(one.split(",")[:3]) for one in listed):
            return False
    return True


def judge(path: Path) -> Counter[str]:
    """Count reads by outcome; split reads by the length of their shorter part."""
    counts = Counter[str]()
    for read, records in aligned(path).items():
        pieces, places = truth(read), [place(record) for record in records]
        hits = [[same_place(piece, one) for piece in pieces] for one in places]
        supplementary = [bool(record.flag & 0x800) for record in records]
        counts["untold"] += not names_the_others(records)
        if len(pieces) == 1:
            counts["needless"] += sum(supplementary)
            continue
        shorter = min(end - start for _, start, end, _ in pieces)
        edge = max(edge for edge in PIECE_EDGES if edge <= shorter)
        counts[f"found {edge}"] += all(any(hit) for hit in zip(*hits, strict=True))
        counts["stray"] += sum(extra and not any(hit) for extra, hit in zip(supplementary, hits, strict=True))
        counts["astray"] += any(not extra and not any(hit) for extra, hit in zip(supplementary, hits, strict=True))
    return counts


def split_sizes(reads: Path, mate: int) -> Iterator[int]:
    """Yield the lengths of the shorter parts of a file's split reads."""
    with pysam.FastxFile(str(reads)) as file:
        for record in file:
            if len(pieces := truth((str(record.name), mate))) > 1:
                yield min(end - start for _, start, end, _ in pieces)


def simulated(work: WorkDirectory, _: str) -> Result:
    ref = work.reference(REFERENCE)
    reads = work.write(("split.1.fq", "split.2.fq"), lambda parts: simulate(ref, parts, SEED))
    paths = work.align(REFERENCE, "split", reads, peers=[*work.peers]).values()
    sizes = [size for mate, path in enumerate(reads, 1) for size in split_sizes(path, mate)]
    return {"figures": compare([judge(path) for path in paths], sizes)}


def compare(counts: list[Counter[str]], sizes: list[int]) -> list[Row]:
    """Return the figures. sizes: the lengths of the shorter parts."""

    def of(kind: str) -> list[int]:
        return [one[kind] for one in counts]

    bins = list(pairwise(PIECE_EDGES))
    found = [sum(one[f"found {low}"] for low, _ in bins) for one in counts]
    figures = [figure("both parts of a split read found", found, len(sizes), ">=", max(found[:-1]))]
    for low, end in bins:
        total = sum(low <= size < end for size in sizes)
        figures.append(figure(f"    the shorter part of {low} to {end - 1} bases", of(f"found {low}"), total))
    figures.append(figure("primary record at neither part", of("astray"), len(sizes)))
    for measure, kind in (
        ("split reads: supplementary elsewhere", "stray"),
        ("other reads: supplementary", "needless"),
    ):
        figures.append(figure(measure, of(kind), 0, "aim: <=", min(of(kind)[:-1])))
    return [*figures, figure("reads whose SA tags miss a record", of("untold"), 0, "<=")]
