"""Alignments of pairs as arrays, their CIGARs, and their expansion to columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.compilation.declarations import constant

#: CIGAR operations as in BAM: insertion to the target, deletion from the target, equal letters, different letters.
INSERTED, DELETED, EQUAL, DIFFERENT = (
    constant("pairwise/recurrence.cuh", name) for name in ("INSERTED", "DELETED", "EQUAL", "DIFFERENT")
)

#: The letters of CIGAR operations, indexed by their BAM codes.
CIGAR_LETTERS = "MIDNSHP=X"


@dataclass(frozen=True)
class PairAlignments:
    """The optimal alignments of pairs of sequences, one alignment per pair.

    If several alignments are optimal, the one reported is fixed by these rules. Among the cells in which an optimal
    alignment ends, the cell (i, j) with the smallest i + j is taken, and then the cell with the largest j; i counts
    letters of the query and j letters of the target. From there the traceback prefers a pair of letters to a deletion,
    a deletion to an insertion, and a shorter gap to a longer gap. A local alignment starts at the first cell with
    score 0 that the traceback reaches.

    Attributes
    ----------
    scores : int32 [pairs]
    query_starts, query_ends, target_starts, target_ends : int64 [pairs]
        0-based, half-open; all 0 for an empty alignment. Starts are -1 if only scores were computed.
    operation_ends : int64 [pairs]
        Ends of the pairs' slices of `operations`; each slice starts at the end of the slice before.
    operations : uint32 [operations]
        length << 4 | operation as in BAM (1 I, 2 D, 7 =, 8 X). I is a letter of the query alone, D of the target alone.
    """

    scores: Array
    query_starts: Array
    query_ends: Array
    target_starts: Array
    target_ends: Array
    operation_ends: Array
    operations: Array

    def __len__(self) -> int:
        return len(self.scores)

    def to_host(self, backend: Backend) -> PairAlignments:
        """Return a copy whose arrays are NumPy arrays on the host."""
        return PairAlignments(**{name: backend.to_host(array) for name, array in vars(self).items()})

    def part(self, first: int, end: int) -> PairAlignments:
        """Return the alignments of pairs [first, end). The arrays must be on the host."""
        start = int(self.operation_ends[first - 1]) if first else 0
        stop = int(self.operation_ends[end - 1]) if end else 0
        part = {name: array[first:end] for name, array in vars(self).items()}
        operations = {"operation_ends": part["operation_ends"] - start, "operations": self.operations[start:stop]}
        return PairAlignments(**part | operations)

    def cigars(self) -> list[str]:
        """Return the CIGAR of every pair, without clips, as a list of str. The arrays must be on the host."""
        texts, ends = cigar_operations(self.operations), self.operation_ends.tolist()
        return [b"".join(texts[start:end]).decode() for start, end in zip([0, *ends], ends, strict=False)]


def cigar_operations(operations: NDArray[np.uint32]) -> list[bytes]:
    """Return each operation as SAM text, such as b"5="."""
    letters = (operations & 15).astype(np.uint8).tobytes().translate(CIGAR_LETTERS.encode().ljust(256))
    return [b"%d%c" % each for each in zip((operations >> 4).tolist(), letters, strict=True)]


def cigar(operations: NDArray[np.uint32]) -> bytes:
    return b"".join(cigar_operations(operations))


def join_alignments(parts: Sequence[PairAlignments]) -> PairAlignments:
    """Concatenate the alignments of one or more parts. The arrays must be on the host."""
    counts = [np.diff(part.operation_ends, prepend=0) for part in parts]
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    return PairAlignments(**whole | {"operation_ends": np.cumsum(np.concatenate(counts))})


GAP = ord("-")


@dataclass(frozen=True)
class AlignedColumns:
    """The columns of consecutive alignments, uint8 [columns]: operations, and the letter or gap of each sequence."""

    operations: NDArray[np.uint8]
    query: NDArray[np.uint8]
    target: NDArray[np.uint8]

    @classmethod
    def of(cls, operations: NDArray[np.uint32], query: NDArray[np.uint8], target: NDArray[np.uint8]) -> AlignedColumns:
        """Expand operations and the aligned letters to columns, GAP in gaps; takes about five bytes per column."""
        each = np.repeat((operations & 15).astype(np.uint8), operations >> 4)
        return cls(each, _spread(query, each != DELETED), _spread(target, each != INSERTED))


def _spread(letters: NDArray[np.uint8], has_letter: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return uint8 [columns] with `letters` where `has_letter` is True and GAP elsewhere."""
    line = np.full(len(has_letter), GAP, np.uint8)
    line[has_letter] = letters
    return line
