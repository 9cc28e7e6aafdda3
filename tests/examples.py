"""Genomes and reads that tests make up, and the bytes of their files. Random numbers come from seeded generators."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readmap.backend import Backend
from readmap.index.index import Index, build_index
from readmap.search.queries import Queries, Reads, find_reads, pack_queries


@dataclass(frozen=True)
class Read:
    """A read as a file holds it; without a quality it can only be written as FASTA."""

    name: str
    bases: str
    quality: str | None = None


def below(generator: random.Random, limit: int) -> int:
    """An integer from 0 to limit - 1, by the one method of Random that never changes between versions of Python."""
    return int(generator.random() * limit)


def random_bases(generator: random.Random, length: int, letters: str = "ACGT") -> str:
    return "".join(letters[below(generator, len(letters))] for _ in range(length))


def random_quality(generator: random.Random, length: int) -> str:
    return random_bases(generator, length, "#,5:AFI")


def substitute(generator: random.Random, bases: str, count: int) -> str:
    """The same with another base at `count` places (fewer where one place is drawn twice)."""
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
    """The Fibonacci word: for its length it has the most repeats that overlap themselves."""
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
    """Two lines a record."""
    return "".join(f">{read.name}\n{read.bases}\n" for read in reads).encode()


def index_of(contigs: Sequence[str] | dict[str, str], force_64_bits: bool = False) -> Index:
    """The index of some contigs, named 0, 1, 2 and so on where they have no names."""
    named = contigs if isinstance(contigs, dict) else {str(number): letters for number, letters in enumerate(contigs)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.fa"
        path.write_bytes(fasta(named))
        return build_index(path, threads=1, force_64_bits=force_64_bits)


def reads_of(data: bytes, backend: Backend, lines: int = 4) -> Reads:
    """The records of a chunk's bytes."""
    records = data.count(b"\n") // lines
    return find_reads(backend.to_device(np.frombuffer(data, np.uint8)), records, lines, backend)


def queries_of(sequences: Sequence[str], backend: Backend) -> Queries:
    return pack_queries(reads_of(fasta_reads([Read("", bases) for bases in sequences]), backend, 2), backend)
