"""Inputs of scans: proteins with SwissProt's lengths, contigs, and the human proteome with the papers' queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import SHARED
from readmap.database.database import Database
from readmap.formats.alphabets import Alphabet
from readmap.reads.sequences import Sequences, read_sequences

SEED = 11
BLOCK_LETTERS = 1 << 24  # letters drawn at a time

# Per cent of SwissProt's residues, from the statistics of its releases.
PER_CENT = {
    **{"A": 8.25, "R": 5.52, "N": 4.06, "D": 5.46, "C": 1.38, "Q": 3.93, "E": 6.72, "G": 7.07, "H": 2.27, "I": 5.91},
    **{"L": 9.65, "K": 5.80, "M": 2.41, "F": 3.86, "P": 4.74, "S": 6.65, "T": 5.36, "W": 1.10, "Y": 2.92, "V": 6.86},
}
# Median and standard deviation of the logarithm of most lengths, and of a few lengths, since SwissProt has more long
# proteins than a log-normal distribution. Fitted to SwissProt's mean and median lengths, 360 and 295.
SHARE_OF_FEW, MOST, FEW = 0.04, (289.0, 0.57), (680.0, 0.72)
SHORTEST, LONGEST = 2, 35_213
SHORTEST_CONTIG, LONGEST_CONTIG = 1_000, 5_000_000
OTHER = 0.2  # share of letters that are replaced in a query drawn from a database

PROTEIN = SHARED / "data/protein"
QUERIES, PROTEOME = "queries.fa.gz", "human_proteome.fa.gz"

Letters = NDArray[np.uint8]


class Inputs(NamedTuple):
    """Queries and a database."""

    name: str
    queries: Sequences
    database: Database


def human() -> Inputs | None:
    """Return the human proteome and the papers' queries, or None if the files are missing."""
    paths = [PROTEIN / name for name in (QUERIES, PROTEOME)]
    if not all(path.exists() for path in paths):
        return None
    queries, proteome = (read_sequences(str(path), alphabet=Alphabet.PROTEINS) for path in paths)
    return Inputs("human proteome", queries, Database.of(proteome, Alphabet.PROTEINS))


def proteins(count: int, has_longest: bool) -> Database:
    """Return a database with the lengths and composition of SwissProt."""
    random = np.random.default_rng(SEED)
    lengths = protein_lengths(count, has_longest, random)
    sequences = _sequences(residues(int(lengths.sum()), random), lengths)
    return Database.of(sequences, Alphabet.PROTEINS)


def protein_lengths(count: int, has_longest: bool, random: np.random.Generator) -> NDArray[np.int64]:
    """Return lengths distributed as in SwissProt. has_longest: include the length of its longest protein."""
    is_few = random.random(count) < SHARE_OF_FEW
    medians, deviations = (np.where(is_few, few, most) for few, most in zip(FEW, MOST, strict=True))
    lengths = np.clip(random.lognormal(np.log(medians), deviations).astype(np.int64), SHORTEST, LONGEST)
    if has_longest:
        lengths[random.integers(count)] = LONGEST
    return lengths


def residues(count: int, random: np.random.Generator) -> Letters:
    """Return residues with SwissProt's frequencies."""
    shares = np.cumsum([*PER_CENT.values()]) / sum(PER_CENT.values())
    table = np.frombuffer("".join(PER_CENT).encode(), np.uint8)[
        np.searchsorted(shares, np.arange(0.5, 1 << 16) / (1 << 16))
    ]
    return _drawn(table, count, random)


def random_queries(lengths: Sequence[int]) -> Sequences:
    """Return queries of random residues; a query depends only on its length."""
    found = [residues(length, np.random.default_rng([SEED, length])) for length in lengths]
    return _sequences(np.concatenate(found), np.array(lengths))


def contigs(bases: int, longest: int = LONGEST_CONTIG) -> Database:
    """Return random DNA; the logarithms of the lengths are uniformly distributed."""
    random, lengths = np.random.default_rng(SEED), list[int]()
    while (left := bases - sum(lengths)) > 0:
        lengths.append(min(int(np.exp(random.uniform(np.log(SHORTEST_CONTIG), np.log(longest)))), left))
    letters = _drawn(np.frombuffer(b"ACGT" * (1 << 14), np.uint8), bases, random)
    return Database.of(_sequences(letters, np.array(lengths)), Alphabet.NUCLEOTIDES)


def random_dna(bases: int) -> Sequences:
    """Return one query of random bases."""
    letters = _drawn(np.frombuffer(b"ACGT" * (1 << 14), np.uint8), bases, np.random.default_rng([SEED, bases]))
    return _sequences(letters, np.array([bases]))


def similar_queries(database: Database, lengths: Sequence[int]) -> Sequences:
    """Return consecutive parts of a database's longest sequence.

    The last part is unchanged; in the other parts a fifth of the letters is replaced, and a tenth deleted.
    """
    random, start, found = np.random.default_rng(SEED), 0, list[Letters]()
    number = int(database.order[0])
    for length in lengths:
        part = database.subject_letters(number, start, start + length)
        start += length
        if length != lengths[-1]:
            others = database.subject_letters(number, 0, database.longest)[
                random.integers(0, database.longest, len(part))
            ]
            part = np.where(random.random(len(part)) < OTHER, others, part)
            part = np.delete(part, slice(len(part) // 2, len(part) // 2 + len(part) // 10))
        found.append(part)
    return _sequences(np.concatenate(found), np.array([*map(len, found)]))


def _drawn(table: Letters, count: int, random: np.random.Generator) -> Letters:
    """Return letters drawn uniformly from a table of 65,536 letters."""
    letters = np.empty(count, np.uint8)
    for start in range(0, count, BLOCK_LETTERS):
        some = letters[start : start + BLOCK_LETTERS]
        some[:] = table[random.integers(0, 1 << 16, len(some), np.uint16)]
    return letters


def _sequences(letters: Letters, lengths: NDArray[np.int64]) -> Sequences:
    """Return sequences with indices as names."""
    return Sequences([b"%d" % i for i in range(len(lengths))], letters, np.concatenate([[0], np.cumsum(lengths)]))
