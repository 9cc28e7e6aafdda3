"""What a letter of the query scores with one of a subject: matrices of BLAST, of a file, of match and mismatch."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.database.letters import LETTERS as LETTERS_BY_CODE
from readmap.errors import DataError, UsageError
from readmap.formats.file_errors import file_name_context
from readmap.pairwise.parameters import CODES, MAX_SCORE

#: The names of the built-in matrices, each with the gap_open and gap_extend that blastp takes for it.
STANDARD = {
    "BLOSUM45": (14, 2),
    "BLOSUM50": (13, 2),
    "BLOSUM62": (11, 1),
    "BLOSUM80": (10, 1),
    "BLOSUM90": (10, 1),
    "PAM30": (9, 1),
    "PAM70": (10, 1),
    "PAM250": (14, 2),
}
#: blastp's of its default matrix, for one that is none of these; blastn's.
CUSTOM_MATRIX_GAPS, NUCLEOTIDE_GAPS = (11, 1), (5, 2)

#: What BLAST has published: the matrices and their statistics.
PUBLISHED = Path(__file__).parent / "published"

#: The letters by their codes.
LETTERS = LETTERS_BY_CODE.tobytes().decode()
# Of which alone the statistics of a matrix are, and by which it is therefore known.
#: Of a matrix's file. What is longer, as a device that never ends, is none.
MAX_BYTES = 1 << 20

_AMINO_ACIDS = np.array([LETTERS.index(letter) for letter in "ACDEFGHIKLMNPQRSTVWY"])


@dataclass(frozen=True)
class ScoreMatrix:
    """The scores of all pairs of letters.

    name: of a standard matrix, or of the file; +2/-3 of a match and a mismatch.
    scores: int32 [32, 32], of a letter of the query (row) with one of the subject (column), by their codes; of codes
        that are no letter the lowest of all. Read-only.
    match, mismatch: of nucleotides, the mismatch as a positive number; None of other matrices.
    """

    name: str
    scores: NDArray[np.int32]
    match: int | None = None
    mismatch: int | None = None

    @property
    def is_nucleotide(self) -> bool:
        """Whether it is made of a match and a mismatch."""
        return self.match is not None


@functools.cache
def standard(name: str) -> ScoreMatrix:
    """The matrix that BLAST knows by this name, in upper or lower case; raises UsageError where there is none."""
    if name.upper() not in STANDARD:
        raise UsageError(f"matrix is {name}, expected one of {', '.join(STANDARD)}, or a file of scores")
    return read_matrix(PUBLISHED / name.upper())


def nucleotides(match: int, mismatch: int) -> ScoreMatrix:
    """A, C, G and T score `match` with themselves; all else costs `mismatch`, an ambiguous letter with itself too."""
    for name, value, least in (("match", match, 1), ("mismatch", mismatch, 0)):
        if not least <= value <= MAX_SCORE:
            raise UsageError(f"{name} is {value}, expected {least} to {MAX_SCORE}")
    scores = np.full((CODES, CODES), -mismatch, np.int32)
    bases = [LETTERS.index(base) for base in "ACGT"]
    scores[bases, bases] = match
    return _matrix(f"+{match}/-{mismatch}", scores, match, mismatch)


def read_matrix(path: str | os.PathLike[str]) -> ScoreMatrix:
    """The matrix of a file in NCBI's format.

    Lines that begin with # are comments. The first other one names the columns by letters A to Z and *, in upper or
    lower case; each further one is a letter, which names the row, and its integer scores, -1000 to 1000. There is a row
    for each column; it need not be the same as that column.

    U that the file lacks scores as C, and any other letter as X; without an X they, and *, score the lowest of all.
    Raises DataError where the file is none of this, OSError where it cannot be read.
    """
    letters, table = _read_table(path)
    places = [_place_of(letter, letters) for letter in LETTERS]
    known = [code for code, place in enumerate(places) if place is not None]
    rows = [place for place in places if place is not None]
    scores = np.full((CODES, CODES), table.min(), np.int32)
    scores[np.ix_(known, known)] = table[np.ix_(rows, rows)]
    return _matrix(os.path.basename(path), scores)


def standard_name(matrix: ScoreMatrix) -> str | None:
    """The name of the standard matrix that scores the twenty amino acids likewise, if there is one."""
    pairs = np.ix_(_AMINO_ACIDS, _AMINO_ACIDS)
    for name in STANDARD:
        if np.array_equal(standard(name).scores[pairs], matrix.scores[pairs]):
            return name
    return None


def default_gaps(matrix: ScoreMatrix) -> tuple[int, int]:
    """(gap_open, gap_extend) as BLAST has them: a gap of k letters costs gap_open + k * gap_extend."""
    if matrix.is_nucleotide:
        return NUCLEOTIDE_GAPS
    name = standard_name(matrix)
    return STANDARD[name] if name else CUSTOM_MATRIX_GAPS


def _matrix(name: str, scores: NDArray[np.int32], match: int | None = None, mismatch: int | None = None) -> ScoreMatrix:
    scores.setflags(write=False)
    return ScoreMatrix(name, scores, match, mismatch)


def _place_of(letter: str, letters: str) -> int | None:
    """The row of the letter's scores, or of those of the letter that stands for it."""
    stand_ins = {"U": "UCX", "*": "*"}.get(letter, letter + "X")
    return next((letters.index(other) for other in stand_ins if other in letters), None)


def _read_table(path: str | os.PathLike[str]) -> tuple[str, NDArray[np.int32]]:
    """A file's letters, and its scores, int32 [letters, letters], rows and columns in their order."""
    letters = ""
    rows: dict[str, list[int]] = {}
    with file_name_context(str(path)), open(path, "rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise DataError(f"{path}: expected a matrix of scores, found more than {MAX_BYTES:,} bytes")
    for number, line in enumerate(text.split(b"\n"), 1):
        words = line.decode("ascii", "backslashreplace").split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if not letters:
                letters = _header(words)
            else:
                letter = _row_letter(words[0], letters, rows)
                rows[letter] = _row_scores(words[1:], letters)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
    if not letters:
        raise DataError(f"{path}: expected a matrix of scores, found no line that is no comment")
    missing = [letter for letter in letters if letter not in rows]
    if missing:
        raise DataError(f"{path}: expected a row for each of {letters}, found none for {''.join(missing)}")
    return letters, np.array([rows[letter] for letter in letters], np.int32)


def _header(words: list[str]) -> str:
    letters = "".join(map(_letter, words))
    for letter in letters:
        if letters.count(letter) > 1:
            raise ValueError(f"expected every letter once, found {letter} again")
    return letters


def _row_letter(word: str, letters: str, rows: dict[str, list[int]]) -> str:
    letter = _letter(word)
    if letter not in letters:
        raise ValueError(f"expected a row of one of {letters}, found one of {letter}")
    if letter in rows:
        raise ValueError(f"expected one row of {letter}, found another")
    return letter


def _row_scores(words: list[str], letters: str) -> list[int]:
    if len(words) != len(letters):
        raise ValueError(f"expected {len(letters)} scores, one for each of {letters}, found {len(words)}")
    return [_score(word) for word in words]


def _letter(word: str) -> str:
    if len(word) != 1 or word.upper() not in LETTERS:
        raise ValueError(f"expected a letter, A to Z or *, found {word[:20]!r}")
    return word.upper()


def _score(word: str) -> int:
    try:
        score = int(word)
    except ValueError:
        raise ValueError(f"expected an integer score, found {word[:20]!r}") from None
    if not -MAX_SCORE <= score <= MAX_SCORE:
        raise ValueError(f"expected a score from {-MAX_SCORE} to {MAX_SCORE}, found {word[:20]}")
    return score
