"""Alignments together with their sequences: the input of the output formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.pairwise.alignments import (
    DELETED,
    DIFFERENT,
    EQUAL,
    INSERTED,
    AlignedColumns,
    PairAlignments,
    cigar_operations,
)
from readmap.reads.sequences import Sequences

Counts = NDArray[np.int64]


class Result(NamedTuple):
    """The alignment of one pair.

    query, target: all letters, uint8; the reverse complement of the query if `reverse` is True. query_start, query_end,
    target_start, target_end: 0-based, half-open, in the sequences as given; -1 if unknown or if nothing is aligned.
    operations: uint32, as in PairAlignments. cigar: the operations as text. Both are empty if only the score is known.
    equal, different, inserted, deleted: numbers of columns of each kind. gap_openings: number of gaps.
    """

    query_name: bytes
    query: NDArray[np.uint8]
    target_name: bytes
    target: NDArray[np.uint8]
    reverse: bool
    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    operations: NDArray[np.uint32]
    cigar: bytes
    equal: int
    different: int
    inserted: int
    deleted: int
    gap_openings: int

    @property
    def strand(self) -> str:
        return "-" if self.reverse else "+"

    @property
    def is_empty(self) -> bool:
        return self.target_end < 0

    @property
    def gaps(self) -> int:
        return self.inserted + self.deleted

    @property
    def columns(self) -> int:
        """Alignment length in columns, gaps included."""
        return self.equal + self.different + self.gaps

    @property
    def identity(self) -> float | None:
        """Fraction of columns with equal letters; None if the alignment has no columns."""
        return self.equal / self.columns if self.columns else None

    @property
    def aligned_query(self) -> tuple[int, int]:
        """Start and end of the alignment in `query`."""
        if self.reverse:
            return len(self.query) - self.query_end, len(self.query) - self.query_start
        return self.query_start, self.query_end


@dataclass(frozen=True)
class Results:
    """The alignments of several pairs; pair i is query i with target i.

    queries: as they were aligned, reverse complements where `reverse`, bool [pairs], is True.
    alignments: on the host. score_only: the alignments have neither operations nor starts.
    first_query, first_target: indices, in their files, of the sequences of pair 0.
    """

    queries: Sequences
    targets: Sequences
    reverse: NDArray[np.bool_]
    alignments: PairAlignments
    score_only: bool
    first_query: int
    first_target: int

    @cached_property
    def operations(self) -> NDArray[np.uint8]:
        """Codes of the operations, without their lengths."""
        return np.asarray(self.alignments.operations & 15, np.uint8)

    @cached_property
    def lengths(self) -> Counts:
        """Columns of each operation, int64."""
        return np.asarray(self.alignments.operations >> 4, np.int64)

    def sums(self, values: NDArray[Any]) -> Counts:
        """Return the sum of a value per operation over the operations of each pair, int64 [pairs]."""
        sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])[self.alignments.operation_ends]
        return np.diff(sums, prepend=0)

    def columns(self, operation: int) -> Counts:
        """Return the number of columns of each pair that have this operation."""
        return self.sums(self.lengths * (self.operations == operation))

    @cached_property
    def gap_openings(self) -> Counts:
        return self.sums((self.operations == INSERTED) | (self.operations == DELETED))

    @cached_property
    def expanded(self) -> AlignedColumns:
        """The columns of all pairs. Raises ValueError if operations and aligned parts differ in length."""
        found = self.alignments
        query = self.queries.between(found.query_starts, found.query_ends)
        return AlignedColumns.of(found.operations, query, self.targets.between(found.target_starts, found.target_ends))

    def __iter__(self) -> Iterator[Result]:
        # Lists and one tuple per pair: indexing arrays would take ten times as long.
        operations, ends = self.alignments.operations, self.alignments.operation_ends.tolist()
        values = [self.alignments.scores, *self.ranges]
        counts = [self.columns(operation) for operation in (EQUAL, DIFFERENT, INSERTED, DELETED)]
        texts = cigar_operations(operations)
        rows = zip(
            zip(self.queries.names, self.queries, self.targets.names, self.targets, self.reverse.tolist(), strict=True),
            zip(*(column.tolist() for column in values), strict=True),
            zip([0, *ends], ends, strict=False),
            zip(*(column.tolist() for column in [*counts, self.gap_openings]), strict=True),
            strict=True,
        )
        for pair, ranges, (start, end), columns in rows:
            yield Result._make((*pair, *ranges, operations[start:end], b"".join(texts[start:end]), *columns))

    @cached_property
    def ranges(self) -> tuple[Counts, ...]:
        """query_start, query_end, target_start and target_end of every pair, as in Result, each int64 [pairs]."""
        alignments, lengths = self.alignments, self.queries.lengths
        starts, ends = alignments.query_starts, alignments.query_ends
        # In a reverse complement the end comes first, so with a score alone the start is known instead of the end.
        far_ends = np.where(starts < 0, -1, lengths - starts)
        query_starts = np.where(self.reverse, lengths - ends, starts)
        query_ends = np.where(self.reverse, far_ends, ends)
        is_empty = (ends == 0) & (alignments.target_ends == 0)
        ranges = (query_starts, query_ends, alignments.target_starts, alignments.target_ends)
        return tuple(np.where(is_empty, -1, each) for each in ranges)
