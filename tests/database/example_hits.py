"""Hits written by hand for tests of the formats: alignments as two lines of letters and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import parasail

from readmap.database.letters import codes_of
from readmap.database.results import QueryHits, ScanHits, ScanQuery
from readmap.pairwise.alignments import DELETED, DIFFERENT, EQUAL, INSERTED, PairAlignments
from readmap.pairwise.parameters import CODES
from readmap.reads.sequences import COMPLEMENTS


def array(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def reverse_complement(text: str) -> str:
    return COMPLEMENTS[array(text)[::-1]].tobytes().decode()


def blosum62() -> np.ndarray:
    """Return int32 [32, 32] by codes; missing letters have the lowest score."""
    scores = np.full((CODES, CODES), -4, np.int32)
    codes = codes_of(array("ARNDCQEGHILKMFPSTWYVBZX*"))
    scores[np.ix_(codes, codes)] = parasail.blosum62.matrix
    return scores


@dataclass(frozen=True)
class FakeDatabase:
    """Sequences by title."""

    sequences: dict[str, str]
    molecule: str = "protein"

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def titles(self) -> list[bytes]:
        return [title.encode() for title in self.sequences]

    @property
    def names(self) -> list[bytes]:
        return [title.split()[0] for title in self.titles]

    def subject_letters(self, number: int, start: int, end: int) -> np.ndarray:
        return array([*self.sequences.values()][number][start:end])

    def subject_length(self, number: int) -> int:
        return len([*self.sequences.values()][number])


@dataclass(frozen=True)
class Aligned:
    """A hit: its lines of the query and the subject as aligned, and their 0-based, half-open positions."""

    subject: int
    lines: tuple[str, str]
    places: tuple[int, int, int, int]
    score: int = 50
    bit_score: float = float("nan")
    evalue: float = float("nan")
    reverse: bool = False


def align(subject: int, query: str, target: str, sequences: tuple[str, str], **more: object) -> Aligned:
    """Return the hit of two lines, whose letters are searched in the query and in the subject as aligned."""
    places: list[int] = []
    for line, sequence in ((query, sequences[0]), (target, sequences[1])):
        letters = line.replace("-", "")
        assert sequence.count(letters) == 1
        places += [sequence.index(letters), sequence.index(letters) + len(letters)]
    return Aligned(subject, (query, target), (places[0], places[1], places[2], places[3]), **more)  # type: ignore[arg-type]


def operations(query: str, target: str) -> list[int]:
    """Return operations as in PairAlignments."""

    def kind(letters: tuple[str, str]) -> int:
        if "-" in letters:
            return INSERTED if letters[1] == "-" else DELETED
        return EQUAL if letters[0] == letters[1] else DIFFERENT

    kinds = groupby(kind(letters) for letters in zip(query, target, strict=True))
    return [len([*group]) << 4 | each for each, group in kinds]


def results(title: str, letters: str, database: FakeDatabase, aligned: Sequence[Aligned]) -> QueryHits:
    """Return the hits of a query."""
    found = [operations(*each.lines) for each in aligned]
    places = np.array([each.places for each in aligned], np.int64).reshape(-1, 4).T
    scores = np.array([each.score for each in aligned], np.int32)
    alignments = PairAlignments(
        scores,
        *places,
        np.cumsum([len(each) for each in found], dtype=np.int64),
        np.array([operation for each in found for operation in each], np.uint32),
    )
    hits = ScanHits(
        0,
        np.array([each.subject for each in aligned], np.int64),
        np.array([each.reverse for each in aligned], np.bool_),
        scores,
        np.array([each.bit_score for each in aligned]),
        np.array([each.evalue for each in aligned]),
        alignments,
    )
    name, *_ = title.split()
    return QueryHits(ScanQuery(name.encode(), title.encode(), array(letters)), hits, database, blosum62())


#: A protein query with two hits in one subject and one hit in another.
QUERY = "MKVLAAGIVGLCAWERTYHKLMNPQRSTXXWYVHDEKLMAQWERTYFPS"
PROTEINS = FakeDatabase({
    "s1 a first title": "AAMKVLSAGIVGLCATYHKLMNPRRSTXXWYVGG",
    "s2": "GGWYVHDEGGKIMAQWPPMKVLAAGIVGG",
})  # fmt: skip
PROTEIN_HITS = [
    align(
        0, "MKVLAAGIVGLCAWERTYHKLMNPQRSTXXWYV", "MKVLSAGIVGLCA---TYHKLMNPRRSTXXWYV",
        (QUERY, PROTEINS.sequences["s1 a first title"]), score=123, bit_score=104.96, evalue=3.215e-15,
    ),
    align(
        1, "WYVHDE--KLMAQW", "WYVHDEGGKIMAQW",
        (QUERY, PROTEINS.sequences["s2"]), score=57, bit_score=26.56, evalue=0.0371,
    ),
    align(1, "MKVLAAGIVG", "MKVLAAGIVG", (QUERY, PROTEINS.sequences["s2"]), score=45, bit_score=21.94, evalue=1.26),
]  # fmt: skip

#: A nucleotide query with a hit on each strand.
DNA_QUERY = "TTACGGATCCATTGCAGTNACCGATTAGACGG"
_FORWARD = "CCCGGATCCATGCAGTNACCAATTAG"
_REVERSE = "GGATCCATTGCAGGGTNACCGA"
NUCLEOTIDES = FakeDatabase(
    {"c1 one": "A" * 7 + _FORWARD + "CC", "c2": "CT" + reverse_complement(_REVERSE) + "AAA"}, "nucleotide"
)
DNA_HITS = [
    align(
        0, "CGGATCCATTGCAGTNACCGATTAG", "CGGATCCA-TGCAGTNACCAATTAG",
        (DNA_QUERY, NUCLEOTIDES.sequences["c1 one"]), score=30, bit_score=28.25, evalue=2e-7,
    ),
    align(
        1, "GGATCCATTGCA--GTNACCGA", "GGATCCATTGCAGGGTNACCGA",
        (DNA_QUERY, reverse_complement(NUCLEOTIDES.sequences["c2"])), score=29, reverse=True,
    ),
]  # fmt: skip
