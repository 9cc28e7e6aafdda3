"""Comparison of two sequences in slow and obvious Python."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import cached_property

from oracles.alignment import Cigar, clean
from readmap.pairwise.parameters import MatchScores, Mode, SubstitutionScores

IMPOSSIBLE = -(10**9)

#: Cached, because millions of cells have the same few letters.
clean_letter = functools.cache(clean)

Cell = tuple[int, int]
Table = list[list[int]]


@dataclass(frozen=True)
class Alignment:
    """An alignment with its path."""

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    cigar: Cigar


def code_of(letter: str) -> int:
    """Return the index of a letter in a substitution matrix."""
    return 26 if letter == "*" else ord(letter) - ord("A")


def are_equal(query: str, target: str, scores: MatchScores | SubstitutionScores) -> bool:
    if isinstance(scores, SubstitutionScores):
        return query == target
    return clean_letter(query) == clean_letter(target) != "N"


def score_of(query: str, target: str, scores: MatchScores | SubstitutionScores) -> int:
    if isinstance(scores, SubstitutionScores):
        return int(scores.scores[code_of(query), code_of(target)])
    return scores.match if are_equal(query, target, scores) else -scores.mismatch


@dataclass(frozen=True)
class Comparison:
    """Gotoh's matrices H, E and F; cell (i, j) is the alignment of i letters of the query with j of the target."""

    query: str
    target: str
    scores: MatchScores | SubstitutionScores
    mode: Mode

    def score_of_letters(self, i: int, j: int) -> int:
        return score_of(self.query[i - 1], self.target[j - 1], self.scores)

    def gap(self, length: int) -> int:
        return -self.scores.gap_open - length * self.scores.gap_extend if length else 0

    @cached_property
    def matrices(self) -> tuple[Table, Table, Table]:
        rows, columns = len(self.query) + 1, len(self.target) + 1
        best, deletions, insertions = ([[IMPOSSIBLE] * columns for _ in range(rows)] for _ in range(3))
        for i in range(rows):
            for j in range(columns):
                candidates = [0] if self.mode == Mode.LOCAL or i == j == 0 else []
                if i == 0:
                    candidates.append(0 if self.mode == Mode.SEMIGLOBAL else self.gap(j))
                if j == 0:
                    candidates.append(self.gap(i))
                if j > 0 and i > 0:
                    opened = best[i][j - 1] - self.scores.gap_open
                    deletions[i][j] = max(opened, deletions[i][j - 1]) - self.scores.gap_extend
                    opened = best[i - 1][j] - self.scores.gap_open
                    insertions[i][j] = max(opened, insertions[i - 1][j]) - self.scores.gap_extend
                    diagonal = best[i - 1][j - 1] + self.score_of_letters(i, j)
                    candidates += [diagonal, deletions[i][j], insertions[i][j]]
                best[i][j] = max(candidates)
        return best, deletions, insertions

    @cached_property
    def ends(self) -> list[Cell]:
        """The cells where an optimal alignment ends, the preferred one first."""
        best = self.matrices[0]
        rows, columns = len(self.query), len(self.target)
        possible = {
            Mode.LOCAL: [(i, j) for i in range(rows + 1) for j in range(columns + 1)],
            Mode.GLOBAL: [(rows, columns)],
            Mode.SEMIGLOBAL: [(rows, j) for j in range(columns + 1)],
        }[self.mode]
        highest = max(best[i][j] for i, j in possible)
        return sorted((c for c in possible if best[c[0]][c[1]] == highest), key=lambda c: (c[0] + c[1], -c[1]))

    @property
    def score(self) -> int:
        i, j = self.ends[0]
        return self.matrices[0][i][j]

    @cached_property
    def alignment(self) -> Alignment:
        best, deletions, insertions = self.matrices
        i, j = end = self.ends[0]
        moves = ""
        while not self._is_start(i, j):
            if i > 0 and j > 0 and best[i][j] == best[i - 1][j - 1] + self.score_of_letters(i, j):
                moves += "=" if are_equal(self.query[i - 1], self.target[j - 1], self.scores) else "X"
                i, j = i - 1, j - 1
            elif i == 0 or (j > 0 and best[i][j] == deletions[i][j]):
                closed = False
                while not closed:
                    closed = i == 0 or best[i][j - 1] + self.gap(1) == deletions[i][j]
                    moves, j = moves + "D", j - 1
            else:
                closed = False
                while not closed:
                    closed = j == 0 or best[i - 1][j] + self.gap(1) == insertions[i][j]
                    moves, i = moves + "I", i - 1
        return Alignment(self.score, i, end[0], j, end[1], runs(moves[::-1]))

    def _is_start(self, i: int, j: int) -> bool:
        if self.mode == Mode.LOCAL:
            return self.matrices[0][i][j] == 0
        return i == 0 and (j == 0 or self.mode == Mode.SEMIGLOBAL)


def runs(moves: str) -> Cigar:
    """Merge equal adjacent moves into CIGAR operations."""
    cigar: Cigar = []
    for move in moves:
        if cigar and cigar[-1][1] == move:
            cigar[-1] = (cigar[-1][0] + 1, move)
        else:
            cigar.append((1, move))
    return cigar


def rescored(alignment: Alignment, query: str, target: str, scores: MatchScores | SubstitutionScores) -> int:
    """Return the score of a path. Raises AssertionError if it contradicts its ends or its letters."""
    i, j, score = alignment.query_start, alignment.target_start, 0
    for length, operation in alignment.cigar:
        if operation in "=X":
            for _ in range(length):
                assert are_equal(query[i], target[j], scores) == (operation == "=")
                score += score_of(query[i], target[j], scores)
                i, j = i + 1, j + 1
        else:
            score -= scores.gap_open + length * scores.gap_extend
            i, j = (i + length, j) if operation == "I" else (i, j + length)
    assert (i, j) == (alignment.query_end, alignment.target_end)
    return score
