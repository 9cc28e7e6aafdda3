"""Synthetic genomes and reads, their files and indexes, and searches. Random numbers come from seeded generators."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.alignment import clean, reverse_complement

from readmap.backend import Array, Backend, open_backend
from readmap.backend.team import Team
from readmap.formats.array_folder import FolderKind
from readmap.formats.byte_source import GeneratorSource
from readmap.index import suffix_array
from readmap.index.building import build_index
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.index.reference import DeviceReference
from readmap.mapping.batch import Batch, Context
from readmap.reads.chunks import PairLayout
from readmap.reads.packing import Queries, pack_queries
from readmap.reads.parsing import Reads, parse_reads


@dataclass(frozen=True)
class Read:
    """A record of a read file; without a quality it can only be written as FASTA."""

    name: str
    bases: str
    quality: str | None = None


def team_of(device: str, devices: int) -> Team:
    """Open a team of `devices` backends of the same name; several backends of one GPU behave like several GPUs."""
    return Team([functools.partial(open_backend, device, 1)] * devices)


def below(generator: random.Random, limit: int) -> int:
    """Return an integer in [0, limit), by the only method of Random whose results are stable across Python versions."""
    return int(generator.random() * limit)


def fasta_source(data: bytes) -> GeneratorSource:
    """Return a source of the bytes of a FASTA file ref.fa."""

    def pieces() -> Generator[bytes, None, None]:
        if data:
            yield data

    return GeneratorSource("ref.fa", pieces())


def random_bases(generator: random.Random, length: int, letters: str = "ACGT") -> str:
    return "".join(letters[below(generator, len(letters))] for _ in range(length))


def random_quality(generator: random.Random, length: int) -> str:
    return random_bases(generator, length, "#,5:AFI")


def substitute(generator: random.Random, bases: str, count: int) -> str:
    """Substitute `count` bases, fewer if a position is drawn twice."""
    letters = list(bases)
    for _ in range(count if letters else 0):
        place = below(generator, len(letters))
        letters[place] = random_bases(generator, 1, "ACGT".replace(letters[place], ""))
    return "".join(letters)


def insert(generator: random.Random, bases: str, place: int, length: int) -> str:
    return bases[:place] + random_bases(generator, length) + bases[place:]


def delete(bases: str, place: int, length: int) -> str:
    return bases[:place] + bases[place + length :]


def fibonacci(length: int, letters: str = "AC") -> str:
    """Return the Fibonacci word, which has the most self-overlapping repeats of its length."""
    before, word = letters[1], letters[0]
    while len(word) < length:
        before, word = word, word + before
    return word[:length]


def fasta(contigs: dict[str, str], width: int = 60) -> bytes:
    lines = []
    for name, letters in contigs.items():
        lines += [f">{name}", *(letters[i : i + width] for i in range(0, len(letters), width))]
    return "".join(f"{line}\n" for line in lines).encode()


def fastq(reads: Sequence[Read]) -> bytes:
    return "".join(f"@{read.name}\n{read.bases}\n+\n{read.quality or ''}\n" for read in reads).encode()


def fasta_reads(reads: Sequence[Read]) -> bytes:
    """Return FASTA with two lines per record."""
    return "".join(f">{read.name}\n{read.bases}\n" for read in reads).encode()


def small_genome(generator: random.Random) -> dict[str, str]:
    """Return short contigs that are hard to map to: near and exact repeats on both strands, tandems, runs of N."""
    repeat = random_bases(generator, 420)
    tandem = random_bases(generator, 23) * 9
    exact = random_bases(generator, 500)
    one = (
        random_bases(generator, 700)
        + repeat
        + random_bases(generator, 300)
        + "N" * 120
        + random_bases(generator, 900)
        + tandem
        + random_bases(generator, 400)
        + "CA" * 60
        + exact
        + random_bases(generator, 500)
    )
    two = (
        "NNNN"
        + random_bases(generator, 500)
        + substitute(generator, repeat, 6)
        + random_bases(generator, 250)
        + "R"
        + reverse_complement(substitute(generator, repeat, 14))
        + random_bases(generator, 600)
        + exact
        + "A" * 70
        + random_bases(generator, 800)
        + "NN"
    )
    return {"one": one, "two": two, "plasmid": exact[:200] + random_bases(generator, 130), "short": two[60:95]}


def draw_reads(generator: random.Random, contigs: dict[str, str], count: int) -> list[Read]:
    """Draw reads of many lengths from both strands with errors, variants, clipped ends, N; some random, some empty.

    The name contains the origin: number, contig, start, strand.
    """
    names = [name for name, letters in contigs.items() for _ in range(1 + len(letters) // 300)]
    reads = []
    for number in range(count):
        contig = names[below(generator, len(names))]
        letters = contigs[contig]
        length = min(30 + below(generator, 200) + (400 * below(generator, 3) if number % 50 == 7 else 0), len(letters))
        start = below(generator, len(letters) - length + 1)
        bases = letters[start : start + length]
        kind = below(generator, 12)
        if kind < 6:
            bases = substitute(generator, clean(bases), below(generator, 1 + length // 25))
        elif kind < 8:
            at = 5 + below(generator, length - 9)
            bases = insert(generator, bases, at, 1 + below(generator, 12)) if kind < 7 else delete(bases, at, 7)
        elif kind == 8:
            bases = random_bases(generator, 25) + bases[25:]
        elif kind == 9:
            at = below(generator, length)
            bases = bases[:at] + "NRy"[below(generator, 3)] + bases[at + 1 :].lower()
        elif number % 6 == 0:
            contig, bases = "*", random_bases(generator, (0, 1, 12, 60, 100, 151)[below(generator, 6)])
        strand = "+-"[below(generator, 2)]
        bases = reverse_complement(bases) if strand == "-" else bases
        name = f"{number}!{contig}!{start}!{strand}" + ("/1 comment" if number % 4 == 0 else "")
        reads.append(Read(name, bases, random_quality(generator, len(bases))))
    return reads


#: Kinds of drawn pairs: orientation and alteration of the mates; the last part of their names.
KINDS = (
    *("plain", "plain", "plain", "variants", "short", "split", "poor", "random", "both_random", "far"),
    *("through", "outward", "one_strand", "gap", "empty"),
)


def draw_pairs(generator: random.Random, contigs: dict[str, str], count: int) -> list[tuple[Read, Read]]:
    """Draw pairs with inserts of about 300 bases, of all KINDS in turn.

    The name contains number, contig, start, the strand of the first read, and the kind.
    """
    names = [name for name, letters in contigs.items() if len(letters) >= 600 for _ in range(1 + len(letters) // 1_000)]
    pairs = []
    for number in range(count):
        contig, kind = names[below(generator, len(names))], KINDS[number % len(KINDS)]
        size = 300 + sum(below(generator, 31) - 15 for _ in range(4)) - (220 if kind == "through" else 0)
        start = below(generator, len(contigs[contig]) - size + 1)
        insert_bases = clean(contigs[contig][start : start + size])
        lengths = (40, 60) if kind == "short" else (100, 120)
        bases = [insert_bases[: lengths[0]], reverse_complement(insert_bases)[: lengths[1]]]
        if kind == "through":
            bases = [(read + "AGATCGGAAGAGC" * 9)[:length] for read, length in zip(bases, lengths, strict=True)]
        mates = _altered_mates(generator, contigs, kind, bases, lengths)
        strand = "+-"[below(generator, 2)]
        if strand == "-":
            mates = mates[::-1]
        name = f"{number}!{contig}!{start}!{strand}!{kind}"
        first, second = (
            Read(f"{name}/{i}", read, random_quality(generator, len(read))) for i, read in enumerate(mates, 1)
        )
        pairs.append((first, second))
    return pairs


def _altered_mates(
    generator: random.Random, contigs: dict[str, str], kind: str, bases: list[str], lengths: tuple[int, int]
) -> list[str]:
    """Return the forward and the reverse read, altered as the kind requires."""
    forward, reverse = bases
    contig = list(contigs)[below(generator, 2)]
    place = below(generator, len(contigs[contig]) - 200)
    other = clean(contigs[contig][place : place + lengths[1]])
    if kind == "variants":
        return [substitute(generator, forward, 4), substitute(generator, reverse, 5)]
    if kind == "split":
        return (
            [forward[:55] + other[: lengths[0] - 55], reverse]
            if below(generator, 2)
            else [forward, other[:60] + reverse[60:]]
        )
    if kind == "poor":
        return [forward, "".join(substitute(generator, reverse[i : i + 9], 1) for i in range(0, len(reverse), 9))]
    if kind in ("random", "empty"):
        lost = random_bases(generator, 110) if kind == "random" else ("", "A", "N" * 70)[below(generator, 3)]
        return [forward, lost] if below(generator, 2) else [lost, reverse]
    if kind == "both_random":
        return [random_bases(generator, length) for length in lengths]
    if kind == "far":
        return [forward, other if below(generator, 2) else reverse_complement(other)]
    if kind == "outward":
        return [reverse_complement(forward), reverse_complement(reverse)]
    if kind == "one_strand":
        mates = [forward, reverse_complement(reverse)]
        return mates if below(generator, 2) else [reverse_complement(mate) for mate in mates]
    if kind == "gap":
        return [forward[:45] + forward[53:], insert(generator, reverse, 60, 25)[: lengths[1]]]
    return bases


def write_pairs(folder: Path, pairs: Sequence[tuple[Read, Read]], layout: PairLayout) -> list[Path]:
    """Write the files of a layout, r1 and r2 or r; return their paths."""
    if layout is PairLayout.INTERLEAVED:
        (folder / "r").write_bytes(fastq([read for pair in pairs for read in pair]))
        return [folder / "r"]
    for mate, name in enumerate(("r1", "r2")):
        (folder / name).write_bytes(fastq([pair[mate] for pair in pairs]))
    return [folder / "r1", folder / "r2"]


def draw_exact_reads(generator: random.Random, contigs: dict[str, str], count: int) -> list[Read]:
    """Draw substrings of the contigs from both strands, mostly short; some cross contigs or contain N or U."""
    text = "".join(contigs.values())
    reads = []
    for number in range(count):
        length = (1, 2, 4, 5, 6, 7, 9, 12, 20, 31, 32, 33, 50, 64, 65, 100, 150, 400)[below(generator, 18)]
        start = below(generator, len(text) - length)
        bases = text[start : start + length]
        if below(generator, 2):
            bases = reverse_complement(bases)
        kind = below(generator, 12)
        if kind == 0:
            bases = substitute(generator, bases, 1)
        elif kind == 1:
            bases = bases[: length // 2] + "NRy"[below(generator, 3)] + bases[length // 2 :]
        elif kind == 2:
            bases = bases.lower().replace("t", "Uu"[below(generator, 2)])
        elif kind == 3 and number % 3 == 0:
            bases = ""
        name = f"{number}!{length}" + ("", "/2", "/1 comment", "\tcomment")[number % 4]
        reads.append(Read(name, bases, random_quality(generator, len(bases))))
    return reads


def _texts() -> dict[str, list[str]]:
    draw = random.Random(2)
    spacer = random_bases(draw, 90)
    return {
        "random": [random_bases(draw, 700)],
        "one base": ["G"],
        "one letter": ["T" * 400],
        "one letter, contigs": ["A" * length for length in range(1, 25)],
        "two letters": [random_bases(draw, 500, "AT")],
        "fibonacci": [fibonacci(600)],
        "fibonacci, contigs": [fibonacci(144, "GT"), fibonacci(233, "GT"), fibonacci(89, "TG")],
        "period of three": ["CAG" * 150],
        "copies": [spacer, spacer, spacer[1:], "N" + spacer, spacer + "A"],
        "N at both ends": ["N" * 70 + random_bases(draw, 200) + "N" * 70],
        "runs of N": [random_bases(draw, 800, "ACGT" * 5 + "N").replace("NA", "N" * 40)],
        "many N": [random_bases(draw, 300, "AN")],
        "only N": ["N" * 100, "A"],
        "ambiguous letters": [random_bases(draw, 400, "ACGTACGTACGTRYKM")],
        "many contigs": [random_bases(draw, 1 + i % 7) for i in range(200)],
        "contigs of one base": list("ACGTTGCAAACC" * 10),
        "no base": ["NN", "R"],
    }


#: References that are hard to sort and search: lists of contigs by name.
TEXTS = _texts()


@functools.cache
def indexed(name: str, force_64_bits: bool = False) -> Index:
    """Return the index of one of TEXTS with both structures, built once: do not change it."""
    return index_of(TEXTS[name], force_64_bits, "both")


def held(index: Index, backend: Backend) -> tuple[DeviceReference, int, Array]:
    """Return the reference on a device, its length, and the suffix array on the device."""
    return index.reference.to_device(backend), index.reference.length, backend.to_device(index.suffixes)


def index_of(
    contigs: Sequence[str] | dict[str, str],
    force_64_bits: bool = False,
    structure: str = "array",
    alternates: Collection[str] = (),
) -> Index:
    """Build the index of contigs, named 0, 1, 2 ... unless names are given; alternates: names of ALT contigs."""
    named = contigs if isinstance(contigs, dict) else {str(number): letters for number, letters in enumerate(contigs)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.fa"
        path.write_bytes(fasta(named))
        index = build_index(path, structure=structure, threads=1, force_64_bits=force_64_bits)
    return index.with_alternates(alternates)


def write_folder(
    kind: FolderKind,
    path: Path,
    facts: dict[str, Any],
    arrays: dict[str, np.ndarray[Any, Any]],
    lists: dict[str, Any] | None = None,
) -> None:
    """Write a folder of arrays with their checksums."""
    with kind.writing(path, 2, False) as output:
        output.describe(facts, lists)
        for name, array in arrays.items():
            output.add(name, array)
        output.commit()


def reads_of(data: bytes, backend: Backend, lines: int = 4) -> Reads:
    """Parse the records of a chunk."""
    records = data.count(b"\n") // lines
    return parse_reads(backend.to_device(np.frombuffer(data, np.uint8)), records, lines, backend)


def queries_of(sequences: Sequence[str], backend: Backend) -> Queries:
    return pack_queries(reads_of(fasta_reads([Read("r", bases) for bases in sequences]), backend, 2), backend)


def context_of(
    contigs: Sequence[str] | dict[str, str], name: str, threads: int | None = None, force_64_bits: bool = False
) -> Context:
    """Return a context with the contigs' index on a backend and the default parameters."""
    backend = open_backend(name, threads)
    return Context(index_of(contigs, force_64_bits).to_device(backend), backend)


def with_table(index: Index, bases: int, backend: Backend, patch: pytest.MonkeyPatch) -> DeviceIndex:
    """Load the index on a device with a prefix table of `bases` bases, although it has few suffixes."""
    patch.setattr(suffix_array, "SUFFIXES_PER_ENTRY", 1e-9)
    patch.setattr(backend, "max_table_bases", bases)
    found = index.to_device(backend)
    assert found.table_bases == bases > index.table_bases
    return found


def batch_of(sequences: Sequence[str], context: Context) -> Batch:
    reads = reads_of(fasta_reads([Read("r", bases) for bases in sequences]), context.backend, 2)
    return Batch.of(reads, context)
