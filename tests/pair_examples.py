"""Pairs of sequences for tests, and conversion of alignments to the form of the oracle."""

import itertools
import random

import numpy as np
from examples import random_bases
from oracles.comparison import Alignment

from readmap import PairAlignments
from readmap.pairwise.parameters import MatchScores
from readmap.reads.sequences import Sequences

Pair = tuple[str, str]
NAMES = {1: "I", 2: "D", 7: "=", 8: "X"}
SCORES = {
    "default": MatchScores(),
    "linear gaps": MatchScores(1, 1, 0, 1),
    "linear gaps, costly mismatches": MatchScores(5, 4, 0, 6),
    "long gaps": MatchScores(2, 3, 5, 1),
    "free mismatches": MatchScores(1, 0, 0, 1),
    "free mismatches, affine": MatchScores(1, 0, 2, 1),
    "largest": MatchScores(1000, 1000, 1000, 1000),
    "gaps for mismatches": MatchScores(1, 1000, 1000, 1),
    "match above all": MatchScores(300, 1, 1, 1),
}
CORNERS = [
    ("", ""),
    ("", "A"),
    ("A", ""),
    ("A", "A"),
    ("A", "C"),
    ("N", "N"),
    ("", "ACGT" * 10),
    ("ACGT" * 10, ""),
    ("N" * 20, "N" * 20),
    ("A" * 17, "A" * 40),
    ("A" * 40, "A" * 17),
    ("A" * 30, "C" * 30),
    ("ACGTTGCA" * 4, "ACGTTGCA" * 4),
    ("acguu", "ACGTT"),
    ("ACRYG", "ACRYG"),
    ("G", "ACGT" * 30),
    ("ACGT" * 30, "T"),
    ("ACGTACGTCC", "TTTTACGTAACGTCCTTTT"),
    ("CAC", "CACCACCAC"),
]


def sequences(texts: list[str]) -> Sequences:
    """Return sequences named s0, s1, ..."""
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    return Sequences([b"s%d" % i for i in range(len(texts))], letters, np.cumsum([0, *map(len, texts)]))


def mutated(draw: random.Random, letters: str, rate: float, alphabet: str = "ACGT") -> str:
    """Return letters with substitutions, deletions and insertions at this rate."""
    changed = ""
    for letter in letters:
        kind = draw.random() / rate
        if kind < 0.5:
            letter = draw.choice(alphabet)
        elif kind < 0.75:
            letter = ""
        elif kind < 1:
            letter += random_bases(draw, draw.randint(1, 5), alphabet)
        changed += letter
    return changed


def draw_pair(draw: random.Random, longest: int) -> Pair:
    alphabet = draw.choice(["ACGT", "AC", "A", "ACGTN"])
    letters = "".join(draw.choice(alphabet) for _ in range(draw.randint(0, longest)))
    other = draw.choice(
        [
            "".join(draw.choice(alphabet) for _ in range(draw.randint(0, longest))),
            random_bases(draw, draw.randint(0, 9))
            + mutated(draw, letters, 0.15)
            + random_bases(draw, draw.randint(0, 9)),
            mutated(draw, letters, 0.5),
            letters,
        ]
    )
    return (letters, other) if draw.random() < 0.5 else (other, letters)


def draw_long_pair(draw: random.Random, longest: int) -> Pair:
    letters = random_bases(draw, int(longest ** draw.uniform(0.3, 1)))
    other = mutated(draw, letters, draw.choice([0.02, 0.1, 0.3, 1]))
    if draw.random() < 0.3:
        other = random_bases(draw, int(longest ** draw.uniform(0.3, 1)))
    begin = draw.randint(0, max(len(other) // 3, 1))
    return (letters, (random_bases(draw, 100) + other)[begin:][:longest])


def parsed(found: PairAlignments) -> list[Alignment]:
    begins = [0, *found.operation_ends.tolist()]
    columns = (found.scores, found.query_starts, found.query_ends, found.target_starts, found.target_ends)
    rows = zip(*(column.tolist() for column in columns), itertools.pairwise(begins), strict=True)
    cigars = [[(int(o) >> 4, NAMES[int(o) & 15]) for o in found.operations[slice(*row[-1])]] for row in rows]
    rows = zip(*(column.tolist() for column in columns), cigars, strict=True)
    return [Alignment(*row) for row in rows]


def same(one: PairAlignments, other: PairAlignments) -> bool:
    return all(np.array_equal(a, getattr(other, name)) for name, a in vars(one).items())
