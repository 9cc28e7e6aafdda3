"""Libraries and references that simulate.py cannot make, each derived from its output by a small step.

A change takes the fragments of a simulation (single reads or pairs) and yields changed fragments. The reads' names keep
simulate.py's format and contain the true positions of the changed reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pysam

COMPLEMENT = str.maketrans("ACGT", "TGCA")
ADAPTERS = (  # TruSeq adapters after mate 1 and mate 2
    "AGATCGGAAGAGCACACGTCTGAACTCCAGTCACATCACGATCTCGTATGCCGTCTTCTGCTTG",
    "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGTAGATCTCGGTGGTCGCCGTATCATT",
)
SHORT_INSERTS = range(70, 91)
READ_THROUGH_LENGTH = 150
CHIMERIC_EVERY = 25  # fragments per chimera: alternately mates from two positions, and a mate 1 from two positions
CHIMERIC_AT = 100  # bases of the read's own position, before the bases of another position
ORIGIN_MARGIN = 2_000  # bases on both sides of a circle's origin
SHORTEST_PART = 30  # minimum length of a part that can be mapped alone
GUEST_SHARE = 0.01
SEED = 1


class Read(NamedTuple):
    name: str
    sequence: str
    qualities: str


Fragments = Iterable[tuple[Read, ...]]  # one read, or mate 1 and mate 2
Change = Callable[[Fragments], Iterator[tuple[Read, ...]]]


def reverse_complement(sequence: str) -> str:
    return sequence.translate(COMPLEMENT)[::-1]


def places(name: str) -> list[list[str]]:
    """Return start, end and strand of each mate from a name of simulate.py."""
    fields = name.split("!")
    return [fields[2:5], fields[5:8]]


def renamed(name: str, contig: str, mates: list[list[str]]) -> str:
    fields = name.split("!")
    return "!".join([fields[0], contig, *mates[0], *mates[1], *fields[8:]])


def outward(fragments: Fragments) -> Iterator[tuple[Read, ...]]:
    """Turn mates outward (RF), as in mate-pair libraries."""
    for fragment in fragments:
        name = fragment[0].name
        mates = [[start, end, "+-"[strand == "+"]] for start, end, strand in places(name)]
        name = renamed(name, name.split("!")[1], mates)
        yield tuple(Read(name, reverse_complement(one.sequence), one.qualities) for one in fragment)


def read_through(fragments: Fragments) -> Iterator[tuple[Read, ...]]:
    """Shorten fragments below the read length, so that reads continue into the adapter.

    Both mates of the input must cover one whole fragment of the longest insert.
    """
    for number, fragment in enumerate(fragments):
        insert = SHORT_INSERTS[number % len(SHORT_INSERTS)]
        name = fragment[0].name
        start, end, strand = places(name)[0]
        here = (int(start), int(start) + insert) if strand == "+" else (int(end) - insert, int(end))
        mates = [[*map(str, here), mate[2]] for mate in places(name)]
        name = renamed(name, name.split("!")[1], mates)
        cuts = (slice(0, insert), slice(len(fragment[1].sequence) - insert, None))
        reads = []
        for one, cut, adapter in zip(fragment, cuts, ADAPTERS, strict=True):
            sequence = (one.sequence[cut] + adapter).ljust(READ_THROUGH_LENGTH, "A")[:READ_THROUGH_LENGTH]
            qualities = one.qualities[cut].ljust(READ_THROUGH_LENGTH, one.qualities[cut][-1])
            reads.append(Read(name, sequence, qualities))
        yield tuple(reads)


def chimeric(fragments: Fragments) -> Iterator[tuple[Read, ...]]:
    """Make some pairs from two positions, and some mates 1 from two positions; the true position is where they start.

    The other position is taken from the pair before, on the same contig, since a name contains one contig.
    """
    last = None
    for number, (one, two) in enumerate(fragments):
        made = one, two
        if last and number % (2 * CHIMERIC_EVERY) == 0:
            mates = [places(one.name)[0], places(last[1].name)[1]]
            name = renamed(one.name, one.name.split("!")[1], mates)
            made = one._replace(name=name), last[1]._replace(name=name)
        elif last and number % CHIMERIC_EVERY == 0:
            made = one._replace(sequence=one.sequence[:CHIMERIC_AT] + last[0].sequence[CHIMERIC_AT:]), two
        yield made
        last = one, two


def half_random(fragments: Fragments) -> Iterator[tuple[Read, ...]]:
    """Replace mate 2 of every second pair by random bases, which are wrong if mapped."""
    rng = np.random.default_rng(SEED)
    for number, (one, two) in enumerate(fragments):
        bases = "".join(rng.choice(list("ACGT"), len(two.sequence)))
        yield one, two._replace(sequence=bases) if number % 2 else two


def circular(fragments: Fragments) -> Iterator[tuple[Read, ...]]:
    """Convert positions on around_origin's contig to the circle; reads across the origin get their longer part's.

    Pairs are left out if both parts of a read could be mapped alone, since the name cannot describe both.
    """
    for fragment in fragments:
        contig, offset, length = fragment[0].name.split("!")[1].rsplit(":", 2)
        size, mates, shorter = int(length), [], 0
        for start, end, strand in places(fragment[0].name):
            first, last = int(start) + int(offset), int(end) + int(offset)
            if first < size < last:
                shorter = max(shorter, min(size - first, last - size))
                first, last = (first, size) if size - first >= last - size else (size, last)
            around = size * (first >= size)
            mates.append([str(first - around), str(last - around), strand])
        if shorter < SHORTEST_PART:
            name = renamed(fragment[0].name, contig, mates)
            yield tuple(one._replace(name=name) for one in fragment)


def foreign(fragments: Fragments) -> Iterator[tuple[Read, ...]]:
    """Rename reads of with_guest's contigs, so that they have no true position, like random reads."""
    for fragment in fragments:
        number, contig = fragment[0].name.split("!")[:2]
        name = f"{number}!*!0!0!+!.!.!.!0!." if contig.startswith("guest:") else fragment[0].name
        yield tuple(one._replace(name=name) for one in fragment)


def read_fragments(files: list[Path]) -> Iterator[tuple[Read, ...]]:
    with ExitStack() as stack:
        opened = [stack.enter_context(pysam.FastxFile(str(path))) for path in files]
        for fragment in zip(*opened, strict=True):
            yield tuple(Read(str(one.name), str(one.sequence), str(one.quality)) for one in fragment)


def write_fragments(fragments: Fragments, parts: list[Path]) -> None:
    with ExitStack() as stack:
        outputs = [stack.enter_context(open(path, "w")) for path in parts]
        for fragment in fragments:
            for out, one in zip(outputs, fragment, strict=True):
                out.write(f"@{one.name}\n{one.sequence}\n+\n{one.qualities}\n")


def mixed(fragments: Fragments, others: Fragments) -> list[tuple[Read, ...]]:
    """Return the fragments of two libraries in random order; the second library's names are changed."""
    renamed_others = (
        tuple(read._replace(name=read.name.replace("rm_", "rm_other", 1)) for read in one) for one in others
    )
    both = [*fragments, *renamed_others]
    return [both[number] for number in np.random.default_rng(SEED).permutation(len(both))]


def contigs(path: Path) -> dict[str, str]:
    with pysam.FastxFile(str(path)) as file:
        return {str(one.name): str(one.sequence).upper() for one in file}


def write_fasta(path: Path, sequences: dict[str, str]) -> None:
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in sequences.items()))


def around_origin(source: Path, part: Path) -> None:
    """Write the end and the start of a genome of one contig; its name contains the start and the circle's size."""
    [(name, circle)] = contigs(source).items()
    text = circle[-ORIGIN_MARGIN:] + circle[:ORIGIN_MARGIN]
    write_fasta(part, {f"{name}:{len(circle) - ORIGIN_MARGIN}:{len(circle)}": text})


def with_guest(host: Path, guest: Path, part: Path) -> None:
    """Write a genome and the start of another genome's first contig, which GUEST_SHARE of the reads come from."""
    sequences = contigs(host)
    wanted = round(sum(map(len, sequences.values())) * GUEST_SHARE / (1 - GUEST_SHARE))
    name, sequence = next(iter(contigs(guest).items()))
    write_fasta(part, sequences | {f"guest:{name}": sequence[:wanted]})


def mutated(rng: np.random.Generator, sequence: str, divergence: float) -> str:
    """Return a copy in which a share of the bases is substituted; N is kept."""
    bases = np.frombuffer(sequence.encode(), np.uint8).copy()
    codes = np.searchsorted(letters := np.frombuffer(b"ACGT", np.uint8), bases)
    differing = (rng.random(len(bases)) < divergence) & np.isin(bases, letters)
    bases[differing] = letters[(codes[differing] + rng.integers(1, 4, int(differing.sum()))) % 4]
    return bases.tobytes().decode()


def with_alternatives(source: Path, part: Path) -> None:
    """Write a genome with the additional contigs of reference genomes.

    40 alternatives of 50 kbp, 0.2 to 1 % diverged; 100 alleles of 5 kbp of one gene, 1 to 4 %; 20 decoys of 20 kbp made
    of pieces of all contigs, 5 to 15 %.
    """
    rng, primary = np.random.default_rng(SEED), contigs(source)
    long = {name: sequence for name, sequence in primary.items() if len(sequence) >= 100_000}

    def piece(length: int) -> tuple[str, str]:
        name = str(rng.choice(list(long)))
        start = int(rng.integers(0, len(long[name]) - length))
        return name, long[name][start : start + length]

    made = {}
    for number in range(40):
        name, sequence = piece(50_000)
        made[f"{name}_alternative{number}"] = mutated(rng, sequence, rng.uniform(0.002, 0.01))
    _, gene = piece(5_000)
    made |= {f"HLA-Z*{number:02}:01": mutated(rng, gene, rng.uniform(0.01, 0.04)) for number in range(100)}
    for number in range(20):
        pieces = (mutated(rng, piece(1_000)[1], rng.uniform(0.05, 0.15)) for _ in range(20))
        made[f"decoy{number}"] = "".join(pieces)
    write_fasta(part, primary | made)
