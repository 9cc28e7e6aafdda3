"""The hits of queries, with the sequences that the output formats need."""

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
from readmap.pairwise.alignments import DELETED, DIFFERENT, EQUAL, INSERTED, AlignedColumns, PairAlignments, cigar
from readmap.reads.sequences import COMPLEMENTS


@dataclass(frozen=True)
class ScanHits:
    """The reported hits of a query, the best hit first. All arrays are on the host.

    Attributes
    ----------
    query : int
        Index of the query in its file.
    subjects : int64 [hits]
        Indices of the subjects in the database's file.
    reverse : bool [hits]
        Whether the reverse complement of the subject is aligned (nucleotides only).
    scores : int32 [hits]
    bit_scores, evalues : float64 [hits]
        NaN if the scoring has no statistical parameters.
    alignments : PairAlignments
        One per hit: the query as given with the subject as aligned, which is its reverse complement if `reverse` is
        True. Equal letters are "=", also if their score is not positive.
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


#: Number of operation codes up to the highest that alignments use.
_KINDS = max(EQUAL, DIFFERENT) + 1


@dataclass(frozen=True)
class ScanQuery:
    """A query; name: title up to the first blank; title: header line without >; letters: uint8, upper case."""

    name: bytes
    title: bytes
    letters: NDArray[np.uint8]

    @cached_property
    def reverse_complement(self) -> NDArray[np.uint8]:
        return COMPLEMENTS[self.letters[::-1]]


@dataclass(frozen=True)
class ScanHit:
    """A subject and the alignment of the query with it.

    query_start, query_end, subject_start, subject_end: 0-based, half-open, in both sequences as given. covered: letters
    of the query aligned in any hit of the same subject. query, subject: uint8, the aligned letters of the query as
    given, and of the subject or its reverse complement (`reverse`). operations: uint32, as in PairAlignments, along the
    query as given. equal, different, gaps: columns with equal or different letters or a gap. gap_openings: number of
    gaps. are_similar: bool [256, 256], whether a letter of the query and of the subject score above 0.
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
        return self.equal + self.different + self.gaps

    @property
    def cigar(self) -> bytes:
        return cigar(self.operations)

    @cached_property
    def columns(self) -> AlignedColumns:
        return AlignedColumns.of(self.operations, self.query, self.subject)

    @cached_property
    def similar(self) -> NDArray[np.bool_]:
        """Whether each column has two different letters with a positive score, bool [columns]."""
        columns = self.columns
        similar: NDArray[np.bool_] = columns.operations == DIFFERENT
        similar &= self.are_similar[columns.query, columns.target]
        return similar

    @property
    def positives(self) -> int:
        """Number of columns with equal or similar letters; as in BLAST, X with X counts despite its score."""
        return self.equal + int(np.count_nonzero(self.similar))


@dataclass(frozen=True)
class QueryHits:
    """The hits of a query; iteration yields them with their letters; letter_scores: int32 [32, 32], by code."""

    query: ScanQuery
    hits: ScanHits
    subjects: Database
    letter_scores: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hits)

    @property
    def are_nucleotides(self) -> bool:
        return self.subjects.molecule == Alphabet.NUCLEOTIDES

    def __iter__(self) -> Iterator[ScanHit]:
        hits, subjects = self.hits, self.subjects
        names, titles, covered, codes = subjects.names, subjects.titles, self._covered(), np.minimum(CODE_OF_BYTE, PAD)
        are_similar = self.letter_scores[np.ix_(codes, codes)] > 0
        columns = (hits.subjects, hits.reverse, hits.scores, hits.bit_scores, hits.evalues, *self._ranges())
        rows = zip(*(each.tolist() for each in columns), strict=True)
        cuts = pairwise([0, *hits.alignments.operation_ends.tolist()])
        for row, (first, last), (equal, different, gaps, openings) in zip(rows, cuts, self._counts(), strict=True):
            index, reverse, score, bit_score, evalue, query_start, query_end, start, stop = row
            length = subjects.subject_length(index)
            if reverse:
                start, stop = length - stop, length - start
            subject = subjects.subject_letters(index, start, stop)
            yield ScanHit(
                *(names[index], titles[index], length, reverse, score, bit_score, evalue),
                *(query_start, query_end, start, stop, covered[index]),
                self.query.letters[query_start:query_end],
                COMPLEMENTS[subject[::-1]] if reverse else subject,
                hits.alignments.operations[first:last],
                *(equal, different, gaps, openings),
                are_similar,
            )

    def _counts(self) -> list[list[int]]:
        """Return for each hit its columns with equal letters, different letters and gaps, and its number of gaps."""
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

    def _ranges(self) -> tuple[NDArray[np.int64], ...]:
        found = self.hits.alignments
        return found.query_starts, found.query_ends, found.target_starts, found.target_ends

    def _covered(self) -> dict[int, int]:
        """Return the number of letters of the query aligned with each subject."""
        parts: dict[int, list[tuple[int, int]]] = defaultdict(list)
        starts, ends = (each.tolist() for each in self._ranges()[:2])
        for subject, start, end in zip(self.hits.subjects.tolist(), starts, ends, strict=True):
            parts[subject].append((start, end))
        return {subject: _covered_by(each) for subject, each in parts.items()}


def _covered_by(parts: list[tuple[int, int]]) -> int:
    """Return the total length of intervals that may overlap."""
    covered = reached = 0
    for start, end in sorted(parts):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered
