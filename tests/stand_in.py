"""The alignments of readmap.compare by plain matrices (Gotoh 1982), with its rules for those that score the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.compare.alignments import DELETED, DIFFERENT, EQUAL, INSERTED, Alignments
from readmap.compare.parameters import Mode, Scores, Settings
from readmap.formats.sequences import Sequences

NEVER = -(10**9)

Matrix = list[list[int]]
#: Score, query start and end, target start and end, and operations with their lengths.
Found = tuple[int, int, int, int, int, list[tuple[int, int]]]


def fill(query: bytes, target: bytes, scores: Scores, mode: Mode) -> Matrix:
    """The best score of an alignment that ends in each cell."""
    first, more = scores.gap_open + scores.gap_extend, scores.gap_extend
    rows, columns = len(query) + 1, len(target) + 1
    best = [[0] * columns for _ in range(rows)]
    down = [NEVER] * columns
    for i in range(rows):
        across = NEVER
        for j in range(columns):
            if i == j == 0:
                continue
            across = max(across - more, best[i][j - 1] - first) if j else NEVER
            down[j] = max(down[j] - more, best[i - 1][j] - first) if i else NEVER
            value = max(across, down[j])
            if i and j:
                value = max(value, best[i - 1][j - 1] + letters_score(query[i - 1], target[j - 1], scores))
            is_free = mode is Mode.LOCAL or (mode is Mode.SEMIGLOBAL and i == 0)
            best[i][j] = max(value, 0) if is_free else value
    return best


def letters_score(query: int, target: int, scores: Scores) -> int:
    return scores.match if query == target and query in b"ACGT" else -scores.mismatch


def align(query: bytes, target: bytes, scores: Scores, mode: Mode) -> Found:
    best = fill(query, target, scores, mode)
    ends = [(i, j) for i in range(len(query) + 1) for j in range(len(target) + 1)]
    if mode is not Mode.LOCAL:
        ends = [(i, j) for i, j in ends if i == len(query) and (mode is Mode.SEMIGLOBAL or j == len(target))]
    i, j = end = min(ends, key=lambda cell: (-best[cell[0]][cell[1]], sum(cell), -cell[1]))
    score = best[i][j]
    back: list[int] = []
    while not is_start(i, j, best, mode):
        step = last_step(i, j, query, target, best, scores)
        back += step
        i -= sum(kind != DELETED for kind in step)
        j -= sum(kind != INSERTED for kind in step)
    return score, i, end[0], j, end[1], runs(back[::-1])


def is_start(i: int, j: int, best: Matrix, mode: Mode) -> bool:
    if mode is Mode.LOCAL:
        return best[i][j] == 0
    return i == 0 and (mode is Mode.SEMIGLOBAL or j == 0)


def last_step(i: int, j: int, query: bytes, target: bytes, best: Matrix, scores: Scores) -> list[int]:
    """The last columns of the alignment that ends in a cell: one with two letters, or those of a gap."""
    here = best[i][j]
    if i and j and here == best[i - 1][j - 1] + letters_score(query[i - 1], target[j - 1], scores):
        return [EQUAL if letters_score(query[i - 1], target[j - 1], scores) == scores.match else DIFFERENT]
    for length in range(1, j + 1):
        if here == best[i][j - length] - scores.gap_open - length * scores.gap_extend:
            return [DELETED] * length
    for length in range(1, i + 1):
        if here == best[i - length][j] - scores.gap_open - length * scores.gap_extend:
            return [INSERTED] * length
    raise AssertionError("a cell without a way back")


def runs(kinds: list[int]) -> list[tuple[int, int]]:
    """Operations with their lengths."""
    found: list[tuple[int, int]] = []
    for kind in kinds:
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + 1)
        else:
            found.append((kind, 1))
    return found


def as_alignments(found: list[Found], score_only: bool) -> Alignments:
    places = [np.array([each[k] for each in found], np.int64) for k in range(1, 5)]
    for each in found:
        if not each[5] and not score_only:
            assert each[1:5] == (each[2], each[2], each[4], each[4])
    is_empty = [not each[5] for each in found]
    places = [np.where(is_empty, 0, column) for column in places]
    if score_only:
        places[0] = places[2] = np.full(len(found), -1, np.int64)
        found = [(*each[:5], []) for each in found]
    operations = [length << 4 | kind for each in found for kind, length in each[5]]
    return Alignments(
        np.array([each[0] for each in found], np.int32),
        *places,
        np.cumsum([len(each[5]) for each in found], dtype=np.int64),
        np.array(operations, np.uint32),
    )


def align_batch(
    queries: Sequences, targets: Sequences, scores: Scores, mode: Mode, backend: Any, score_only: bool
) -> Alignments:
    found = [align(q.tobytes(), t.tobytes(), scores, mode) for q, t in zip(queries, targets, strict=True)]
    return as_alignments(found, score_only)


def align_long(
    query: NDArray[np.uint8],
    target: NDArray[np.uint8],
    settings: Settings,
    backend: Any,
    progress: Callable[[int, int], None],
) -> Alignments:
    cells = len(query) * len(target)
    progress(cells // 2, cells)
    found = align(query.tobytes(), target.tobytes(), settings.scores, Mode.LOCAL)
    return as_alignments([found], settings.score_only)
