"""Sequences to compare: random, mutated, and the herpesviruses of the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import SHARED
from readmap.reads.sequences import Sequences, read_sequences

SEED = 7
BASES = np.frombuffer(b"ACGT", np.uint8)
QUERY_BASES, TARGET_BASES = 150, 250  # lengths of a pair of a batch
RATE, LONGEST_GAP = 0.05, 3  # rate of differences of such a pair; a third of them are gaps
BLOCK = 100_000  # pairs generated at a time
PAIRS = SHARED / "data/pairs"
HERPESVIRUSES = ("NC_000898.fa.gz", "NC_007605.fa.gz")
HERPESVIRUSES_END = (18, 41058, 44353)  # score, query end and target end, from Table 5 of the paper

Letters = NDArray[np.uint8]


class Pair(NamedTuple):
    """Two sequences as letters."""

    name: str
    query: Letters
    target: Letters

    @property
    def cells(self) -> int:
        return len(self.query) * len(self.target)


def herpesviruses() -> Pair | None:
    """Return the paper's smallest real pair, or None if the files are missing."""
    paths = [PAIRS / name for name in HERPESVIRUSES]
    if not all(path.exists() for path in paths):
        return None
    return Pair("herpesviruses", *(read_sequences(str(path)).letters for path in paths))


def random_pair(bases: int) -> Pair:
    random = np.random.default_rng(SEED)
    return Pair("random", *(BASES[random.integers(0, 4, bases, np.uint8)] for _ in range(2)))


def similar_pair(bases: int, rate: float) -> Pair:
    """Return random DNA and a mutated copy: 80 % substitutions, 10 % deletions, 10 % insertions."""
    random = np.random.default_rng(SEED)
    codes = random.integers(0, 4, bases, np.uint8)
    chances = random.random(bases, np.float32) / rate
    steps = np.where(chances < 0.8, random.integers(1, 4, bases, np.uint8), 0)
    copies = np.where(chances < 0.8, 1, np.where(chances < 0.9, 0, np.where(chances < 1, 2, 1)))
    changed = np.repeat(codes + steps & 3, copies)
    is_new = np.diff(np.repeat(np.arange(bases), copies), prepend=-1) == 0
    changed[is_new] = random.integers(0, 4, np.count_nonzero(is_new), np.uint8)
    return Pair(f"{100 * (1 - rate):g} % similar", BASES[codes], BASES[changed])


def short_pairs(count: int) -> tuple[Sequences, Sequences]:
    """Return queries of 150 bases, mutated parts of their targets of 250 bases."""
    blocks = [_block(min(BLOCK, count - start), SEED + start) for start in range(0, count, BLOCK)]
    queries, targets = (np.concatenate(side) for side in zip(*blocks, strict=True))
    return sequences(queries), sequences(targets)


def _block(count: int, seed: int) -> tuple[Letters, Letters]:
    random, shape = np.random.default_rng(seed), (count, QUERY_BASES)
    targets = BASES[random.integers(0, 4, (count, TARGET_BASES), np.uint8)]
    begins = random.integers(0, TARGET_BASES - QUERY_BASES - 10, (count, 1))
    is_new, is_lost = (random.random(shape, np.float32) < RATE / 6 for _ in range(2))
    shifts = np.cumsum(is_lost * random.integers(1, LONGEST_GAP + 1, shape) - is_new, axis=1)
    places = np.clip(begins + np.arange(QUERY_BASES) + shifts, 0, TARGET_BASES - 1)
    is_other = is_new | (random.random(shape, np.float32) < RATE)
    others = BASES[random.integers(0, 4, shape, np.uint8)]
    return np.where(is_other, others, np.take_along_axis(targets, places, 1)), targets


def sequences(rows: Letters) -> Sequences:
    """Return a sequence for each row."""
    count, length = rows.shape
    return Sequences([b"%d" % i for i in range(count)], rows.reshape(-1), np.arange(count + 1, dtype=np.int64) * length)
