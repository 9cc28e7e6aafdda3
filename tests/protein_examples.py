"""Random proteins and databases, and costs of many kinds."""

import random

import numpy as np
from numpy.typing import NDArray
from oracles.scan import Codes

from readmap.database.database import Database
from readmap.database.letters import codes_of
from readmap.database.matrices import STANDARD, ScoreMatrix, nucleotides, standard
from readmap.database.parameters import ScanScoring
from readmap.pairwise.parameters import CODES
from readmap.reads.sequences import Sequences

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"
RESIDUES = "ARNDCQEGHILKMFPSTWYV"

Table = NDArray[np.int32]


def drawn(seed: int, lowest: int, highest: int, diagonal: tuple[int, int]) -> Table:
    """Return a random symmetric matrix; the diagonal's scores have a range of their own."""
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.integers(lowest, highest + 1, (CODES, CODES), np.int32), 1)
    itself = np.diag(generator.integers(diagonal[0], diagonal[1] + 1, CODES, np.int32))
    table: Table = upper + upper.T + itself
    return table


def random_letters(draw: random.Random, length: int, alphabet: str = LETTERS) -> str:
    return "".join(draw.choices(alphabet, k=length))


COSTS = {
    **{name: ScanScoring.of(standard(name)) for name in STANDARD},
    "BLOSUM50, 8/2": ScanScoring.of(standard("BLOSUM50"), 8, 2),
    "linear gaps": ScanScoring.of(standard("BLOSUM62"), 0, 3),
    "cheap gaps": ScanScoring.of(standard("BLOSUM62"), 0, 1),
    "dear gaps": ScanScoring.of(standard("BLOSUM62"), 1000, 1000),
    "nucleotides": ScanScoring.of(nucleotides(2, 3)),
    "lopsided": ScanScoring(ScoreMatrix("", np.random.default_rng(3).integers(-6, 5, (CODES, CODES), np.int32)), 5, 2),
    "all of a byte": ScanScoring(ScoreMatrix("", drawn(6, -128, 20, (100, 127))), 40, 7),
    "beyond a byte, low": ScanScoring(ScoreMatrix("", drawn(7, -129, 5, (3, 9))), 6, 2),
    "beyond a byte, high": ScanScoring(ScoreMatrix("", drawn(8, -90, 20, (100, 128))), 30, 9),
    "large": ScanScoring(ScoreMatrix("", drawn(2, -900, 200, (100, 1000))), 1000, 150),
    "dear letters": ScanScoring(ScoreMatrix("", drawn(4, -(1 << 30), 3, (1, 6))), 7, 2),
    "nothing is worth a thing": ScanScoring(ScoreMatrix("", drawn(5, -9, 0, (-3, 0))), 2, 1),
}


def coded(text: str) -> Codes:
    return codes_of(np.frombuffer(text.encode(), np.uint8))


def proteins(lengths: list[int], seed: int = 1) -> list[str]:
    generator = random.Random(seed)
    return ["".join(generator.choices(LETTERS, k=length)) for length in lengths]


def sequences_of(texts: list[str]) -> Sequences:
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    names = [b"p%d" % number for number in range(len(texts))]
    titles = [b"%b protein %d" % (name, number) if number % 3 else name for number, name in enumerate(names)]
    return Sequences(names, letters, np.cumsum([0, *map(len, texts)]), titles)


def subjects_of(database: Database) -> list[Codes]:
    """Return the codes of the subjects, the longest first."""
    return [database.codes[start:][:length] for start, length in zip(database.starts, database.lengths, strict=True)]
