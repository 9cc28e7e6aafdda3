"""What a comparison finds: arrays with an alignment a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend
from readmap.backend.compilation.declarations import constant

#: Operations of a CIGAR as in BAM: a letter of the query against none, one of the target against none, equal letters,
#: different ones.
INSERTED, DELETED, EQUAL, DIFFERENT = (
    constant("pairwise/comparison.cuh", name) for name in ("INSERTED", "DELETED", "EQUAL", "DIFFERENT")
)

#: The letters of operations by their numbers in BAM.
LETTERS = "MIDNSHP=X"


@dataclass(frozen=True)
class PairAlignments:
    """An alignment a pair, the first of the optimal ones.

    Of the cells where an optimal alignment ends the one with the smallest i + j is taken, then the one with the largest
    j, for i letters of the query and j of the target. Back from there equal or different letters are preferred to a gap
    in the query (a deletion), that to one in the target (an insertion), and the shorter gap to the longer; a local
    alignment begins at the first cell on the way whose score is 0.

    Attributes:
        scores: int32 [pairs].
        query_starts, query_ends, target_starts, target_ends: int64 [pairs], half-open; all 0 for an empty alignment.
            Without CIGARs the starts are -1.
        operation_ends: int64 [pairs], the operations of a pair end there and begin where those of the pair before end.
        operations: uint32, length << 4 | operation as in BAM (1 I, 2 D, 7 =, 8 X).
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
        """The alignments in arrays of NumPy's."""
        return PairAlignments(**{name: backend.to_host(array) for name, array in vars(self).items()})

    def part(self, first: int, end: int) -> PairAlignments:
        """The alignments from `first` to before `end`; of arrays on the host."""
        begin = int(self.operation_ends[first - 1]) if first else 0
        stop = int(self.operation_ends[end - 1]) if end else 0
        part = {name: array[first:end] for name, array in vars(self).items()}
        operations = {"operation_ends": part["operation_ends"] - begin, "operations": self.operations[begin:stop]}
        return PairAlignments(**part | operations)

    def cigars(self) -> list[str]:
        """The CIGAR of every pair as SAM writes it, without clips; of arrays on the host."""
        texts, ends = cigar_operations(self.operations), self.operation_ends.tolist()
        return [b"".join(texts[begin:end]).decode() for begin, end in zip([0, *ends], ends, strict=False)]


def cigar_operations(operations: NDArray[np.uint32]) -> list[bytes]:
    """Each operation as SAM writes it."""
    letters = (operations & 15).astype(np.uint8).tobytes().translate(LETTERS.encode().ljust(256))
    return [b"%d%c" % each for each in zip((operations >> 4).tolist(), letters, strict=True)]


def join_alignments(parts: Sequence[PairAlignments]) -> PairAlignments:
    """The alignments of all parts, of which there is at least one; of arrays on the host."""
    counts = [np.diff(part.operation_ends, prepend=0) for part in parts]
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    return PairAlignments(**whole | {"operation_ends": np.cumsum(np.concatenate(counts))})


GAP = ord("-")


@dataclass(frozen=True)
class AlignedColumns:
    """Columns of alignments that follow each other, uint8 [columns]: operations, and letters or gaps."""

    operations: NDArray[np.uint8]
    query: NDArray[np.uint8]
    target: NDArray[np.uint8]


def expand(operations: NDArray[np.uint32], query: NDArray[np.uint8], target: NDArray[np.uint8]) -> AlignedColumns:
    """The columns of operations as in PairAlignments; query, target: just the letters that they consume.

    It takes about five bytes a column, so that alignments of whole chromosomes are no matter.
    """
    each = np.repeat((operations & 15).astype(np.uint8), operations >> 4)
    return AlignedColumns(each, _spread(query, each != DELETED), _spread(target, each != INSERTED))


def _spread(letters: NDArray[np.uint8], places: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A line with the letters at their places, and gaps elsewhere."""
    line = np.full(len(places), GAP, np.uint8)
    line[places] = letters
    return line
