"""ScanHits, with the letters that they are of -> QueryHits: what the formats write, hit by hit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from readmap.database.database import Database
from readmap.database.letters import CODE_OF_BYTE, PAD
from readmap.formats.alphabets import Alphabet
from readmap.pairwise.alignments import (
    DELETED,
    DIFFERENT,
    EQUAL,
    INSERTED,
    AlignedColumns,
    PairAlignments,
    cigar_operations,
    expand,
)
from readmap.reads.sequences import COMPLEMENTS


@dataclass(frozen=True)
class ScanHits:
    """The reported hits of a query, the best first; all arrays are on the host.

    Attributes:
        query: its number in its file, from 0.
        subjects: int64 [hits], their numbers in the database's file, from 0.
        reverse: bool [hits], whether the subject's reverse complement is aligned, which only nucleotides have.
        scores: int32 [hits].
        bit_scores, evalues: float64 [hits]; NaN where the costs have no statistical parameters.
        alignments: a pair a hit: the query as it was given, and the subject as it is aligned, which is its reverse
            complement where `reverse` is true. Equal letters are = whatever they score.
    """

    query: int
    subjects: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    scores: NDArray[np.int32]
    bit_scores: NDArray[np.float64]
    evalues: NDArray[np.float64]
    alignments: PairAlignments

    def __len__(self) -> int:
        return len(self.subjects)


#: The kinds of columns, by the operations' numbers in BAM.
_KINDS = max(EQUAL, DIFFERENT) + 1


@dataclass(frozen=True)
class ScanQuery:
    """A sequence that the database was scanned with.

    name: its title up to the first blank. title: its header's line without '>'. letters: uint8, in upper case.
    """

    name: bytes
    title: bytes
    letters: NDArray[np.uint8]

    @cached_property
    def reverse_complement(self) -> NDArray[np.uint8]:
        """The reverse complement of nucleotides, uint8."""
        return COMPLEMENTS[self.letters[::-1]]


@dataclass(frozen=True)
class ScanHit:
    """A subject, and the alignment of the query with it.

    query_start to subject_end: 0-based and half-open, in both sequences as they were given.
    covered: letters of the query that are aligned in this hit or in another of the same subject.
    query, subject: uint8, the aligned letters: those of the query as it was given, and those of the subject's reverse
        complement where `reverse` is true.
    operations: uint32, as in PairAlignments; they lead along the query as it was given.
    equal, different, gaps: columns of the alignment with two equal letters, with two others, and with one.
    openings: gaps, whatever their lengths.
    are_similar: bool [256, 256], which letters of the query and of the subject have a score above 0.
    """

    name: bytes
    title: bytes
    length: int
    reverse: bool
    score: int
    bit_score: float
    evalue: float
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    covered: int
    query: NDArray[np.uint8]
    subject: NDArray[np.uint8]
    operations: NDArray[np.uint32]
    equal: int
    different: int
    gaps: int
    gap_openings: int
    are_similar: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """All columns of the alignment."""
        return self.equal + self.different + self.gaps

    @property
    def cigar(self) -> bytes:
        """The operations as SAM writes them, without clips."""
        return cigar(self.operations)

    @cached_property
    def columns(self) -> AlignedColumns:
        """The alignment with a letter or a gap of both in every column."""
        return expand(self.operations, self.query, self.subject)

    @cached_property
    def similar(self) -> NDArray[np.bool_]:
        """Which columns have two letters that differ and whose score is above 0."""
        columns = self.columns
        similar: NDArray[np.bool_] = columns.operations == DIFFERENT
        similar &= self.are_similar[columns.query, columns.target]
        return similar

    @property
    def positives(self) -> int:
        """Columns with equal or similar letters; as BLAST counts, X with X is one, whatever it scores."""
        return self.equal + int(np.count_nonzero(self.similar))


def cigar(operations: NDArray[np.uint32]) -> bytes:
    """Operations as text."""
    return b"".join(cigar_operations(operations))


@dataclass(frozen=True)
class QueryHits:
    """What the scan with a query found; iterating gives its hits, each with its letters, one at a time.

    letter_scores: int32 [32, 32], of a letter of the query with one of the subject, by their codes (letters.py).
    """

    query: ScanQuery
    hits: ScanHits
    subjects: Database
    letter_scores: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hits)

    @property
    def are_nucleotides(self) -> bool:
        """Whether the sequences have two strands."""
        return self.subjects.molecule == Alphabet.NUCLEOTIDES

    def __iter__(self) -> Iterator[ScanHit]:
        hits, subjects = self.hits, self.subjects
        names, titles, covered, are_similar = subjects.names, subjects.titles, self._covered(), self._are_similar()
        facts = (hits.subjects, hits.reverse, hits.scores, hits.bit_scores, hits.evalues, *self._places())
        rows = zip(*(each.tolist() for each in facts), strict=True)
        cuts = pairwise([0, *hits.alignments.operation_ends.tolist()])
        for row, (begin, end), counts in zip(rows, cuts, self._counts(), strict=True):
            equal, different, gaps, openings = counts
            number, reverse, score, bit_score, evalue, query_start, query_end, start, stop = row
            length = subjects.subject_length(number)
            if reverse:
                start, stop = length - stop, length - start
            subject = subjects.subject_letters(number, start, stop)
            yield ScanHit(
                *(names[number], titles[number], length, reverse, score, bit_score, evalue),
                *(query_start, query_end, start, stop, covered[number]),
                self.query.letters[query_start:query_end],
                COMPLEMENTS[subject[::-1]] if reverse else subject,
                hits.alignments.operations[begin:end],
                *(equal, different, gaps, openings),
                are_similar,
            )

    def _counts(self) -> list[list[int]]:
        """Columns of each hit with equal letters, with different ones and with gaps, and its gaps."""
        found = self.hits.alignments
        kinds = (found.operations & 15).astype(np.int64)
        hit = np.repeat(np.arange(len(self)), np.diff(found.operation_ends, prepend=0))
        cells, size = hit * _KINDS + kinds, len(self) * _KINDS
        columns = np.bincount(cells, found.operations >> 4, size).astype(np.int64).reshape(-1, _KINDS)
        openings = np.bincount(cells, minlength=size).reshape(-1, _KINDS)
        gaps = [INSERTED, DELETED]
        counts = (columns[:, EQUAL], columns[:, DIFFERENT], columns[:, gaps].sum(axis=1), openings[:, gaps].sum(axis=1))
        rows: list[list[int]] = np.stack(counts, axis=1).tolist()
        return rows

    def _are_similar(self) -> NDArray[np.bool_]:
        codes = np.minimum(CODE_OF_BYTE, PAD)
        are_similar: NDArray[np.bool_] = self.letter_scores[np.ix_(codes, codes)] > 0
        return are_similar

    def _places(self) -> tuple[NDArray[np.int64], ...]:
        found = self.hits.alignments
        return found.query_starts, found.query_ends, found.target_starts, found.target_ends

    def _covered(self) -> dict[int, int]:
        """The letters of the query that are aligned with each subject."""
        parts: dict[int, list[tuple[int, int]]] = defaultdict(list)
        starts, ends = (each.tolist() for each in self._places()[:2])
        for subject, start, end in zip(self.hits.subjects.tolist(), starts, ends, strict=True):
            parts[subject].append((start, end))
        return {subject: _covered_by(each) for subject, each in parts.items()}


def _covered_by(parts: list[tuple[int, int]]) -> int:
    """How much parts cover that may overlap."""
    covered = reached = 0
    for start, end in sorted(parts):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered
