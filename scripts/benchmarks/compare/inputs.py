"""Sequences to compare: random ones, mutated ones, and the herpesviruses of the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import SHARED
from readmap.formats.sequences import read_sequences

SEED = 7
BASES = np.frombuffer(b"ACGT", np.uint8)
PAIRS = SHARED / "data/pairs"
HERPESVIRUSES = ("NC_000898.fa.gz", "NC_007605.fa.gz")
HERPESVIRUSES_END = (18, 41058, 44353)  # the score and where it ends, of Table 5 of the paper

Letters = NDArray[np.uint8]


class Pair(NamedTuple):
    """Two sequences, as letters."""

    name: str
    query: Letters
    target: Letters

    @property
    def cells(self) -> int:
        return len(self.query) * len(self.target)


def herpesviruses() -> Pair | None:
    """The paper's smallest real pair; None where the files are not there."""
    paths = [PAIRS / name for name in HERPESVIRUSES]
    if not all(path.exists() for path in paths):
        return None
    return Pair("herpesviruses", *(read_sequences(str(path)).letters for path in paths))


def random_pair(bases: int) -> Pair:
    random = np.random.default_rng(SEED)
    return Pair("random", *(BASES[random.integers(0, 4, bases, np.uint8)] for _ in range(2)))


def similar_pair(bases: int, rate: float) -> Pair:
    """Random DNA, and the same with differences: of ten, eight letters are others, one is lost, one is new."""
    random = np.random.default_rng(SEED)
    codes = random.integers(0, 4, bases, np.uint8)
    chances = random.random(bases, np.float32) / rate
    steps = np.where(chances < 0.8, random.integers(1, 4, bases, np.uint8), 0)
    copies = np.where(chances < 0.8, 1, np.where(chances < 0.9, 0, np.where(chances < 1, 2, 1)))
    changed = np.repeat(codes + steps & 3, copies)
    is_new = np.diff(np.repeat(np.arange(bases), copies), prepend=-1) == 0
    changed[is_new] = random.integers(0, 4, np.count_nonzero(is_new), np.uint8)
    return Pair(f"{100 * (1 - rate):g} % similar", BASES[codes], BASES[changed])
