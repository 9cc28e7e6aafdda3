"""Score matrices: BLAST's matrices, matrix files, and match/mismatch scores."""

import functools
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.database.letters import LETTERS as LETTERS_BY_CODE
from readmap.errors import DataError, UsageError
from readmap.formats.file_errors import file_name_context
from readmap.pairwise.parameters import CODES, MAX_SCORE

#: The built-in matrices, with the gap_open and gap_extend that blastp uses by default.
STANDARD = {
    **{"BLOSUM45": (14, 2), "BLOSUM50": (13, 2), "BLOSUM62": (11, 1), "BLOSUM80": (10, 1), "BLOSUM90": (10, 1)},
    **{"PAM30": (9, 1), "PAM70": (10, 1), "PAM250": (14, 2)},
}
#: Default gap costs for other protein matrices (blastp's for BLOSUM62), and for nucleotides (blastn's).
CUSTOM_MATRIX_GAPS, NUCLEOTIDE_GAPS = (11, 1), (5, 2)

#: Folder of BLAST's published matrices and statistics.
PUBLISHED = Path(__file__).parent / "published"

#: The letters by their codes.
LETTERS = LETTERS_BY_CODE.tobytes().decode()
#: Maximum size of a matrix file; guards against endless devices.
MAX_BYTES = 1 << 20

# The statistics of a matrix depend on these letters only, so they identify a matrix.
_AMINO_ACIDS = np.array([LETTERS.index(letter) for letter in "ACDEFGHIKLMNPQRSTVWY"])


@dataclass(frozen=True)
class ScoreMatrix:
    """The scores of all pairs of letters.

    name: a standard matrix, a file, or such as +2/-3 for match and mismatch. scores: int32 [32, 32], read-only; row:
    code of the query's letter, column: code of the subject's letter. Codes that are not letters have the lowest of all
    scores. match, mismatch: of nucleotides, the mismatch as a positive penalty; None for other matrices.
    """

    name: str
    scores: NDArray[np.int32]
    match: int | None = None
    mismatch: int | None = None

    @property
    def is_nucleotide(self) -> bool:
        return self.match is not None


@functools.cache
def standard(name: str) -> ScoreMatrix:
    """Return BLAST's matrix of this name, in upper or lower case; UsageError if it is unknown."""
    if name.upper() not in STANDARD:
        raise UsageError(f"matrix is {name}, expected one of {', '.join(STANDARD)}, or a file of scores")
    return read_matrix(PUBLISHED / name.upper())


def nucleotides(match: int, mismatch: int) -> ScoreMatrix:
    """Return a matrix in which A, C, G and T match themselves; all other pairs are mismatches, N with N too."""
    for name, value, minimum in (("match", match, 1), ("mismatch", mismatch, 0)):
        if not minimum <= value <= MAX_SCORE:
            raise UsageError(f"{name} is {value}, expected {minimum} to {MAX_SCORE}")
    scores = np.full((CODES, CODES), -mismatch, np.int32)
    bases = [LETTERS.index(base) for base in "ACGT"]
    scores[bases, bases] = match
    return _matrix(f"+{match}/-{mismatch}", scores, match, mismatch)


def read_matrix(path: str | os.PathLike[str]) -> ScoreMatrix:
    """Read a matrix file in NCBI's format.

    Lines that start with # are comments. The first other line names the columns by letters A to Z and *, in upper or
    lower case. Each further line is a letter, which names the row, and its integer scores, -1000 to 1000. Every column
    has a row; the matrix need not be symmetric. Letters missing in the file are scored as others: U as C, any other
    letter as X. Without X, these and * have the lowest of all scores. Raises DataError or OSError for an invalid file.
    """
    letters, table = _read_table(path)
    sources = [_row_of(letter, letters) for letter in LETTERS]
    known = [code for code, row in enumerate(sources) if row is not None]
    rows = [row for row in sources if row is not None]
    scores = np.full((CODES, CODES), table.min(), np.int32)
    scores[np.ix_(known, known)] = table[np.ix_(rows, rows)]
    return _matrix(os.path.basename(path), scores)


def standard_name(matrix: ScoreMatrix) -> str | None:
    """Return the name of the standard matrix that scores the twenty amino acids in the same way, or None."""
    pairs = np.ix_(_AMINO_ACIDS, _AMINO_ACIDS)
    for name in STANDARD:
        if np.array_equal(standard(name).scores[pairs], matrix.scores[pairs]):
            return name
    return None


def default_gaps(matrix: ScoreMatrix) -> tuple[int, int]:
    """Return BLAST's (gap_open, gap_extend); a gap of k letters costs gap_open + k * gap_extend."""
    if matrix.is_nucleotide:
        return NUCLEOTIDE_GAPS
    name = standard_name(matrix)
    return STANDARD[name] if name else CUSTOM_MATRIX_GAPS


def _matrix(name: str, scores: NDArray[np.int32], match: int | None = None, mismatch: int | None = None) -> ScoreMatrix:
    scores.setflags(write=False)
    return ScoreMatrix(name, scores, match, mismatch)


def _row_of(letter: str, letters: str) -> int | None:
    """Return the row of a letter, or of the letter that stands in for it; None if there is neither."""
    stand_ins = {"U": "UCX", "*": "*"}.get(letter, letter + "X")
    return next((letters.index(other) for other in stand_ins if other in letters), None)


def _read_table(path: str | os.PathLike[str]) -> tuple[str, NDArray[np.int32]]:
    """Return the letters of a file, and its scores, int32 [letters, letters], in their order."""
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
                rows |= _row(words, letters, rows)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
    if not letters:
        raise DataError(f"{path}: expected a matrix of scores, found only comments")
    missing = [letter for letter in letters if letter not in rows]
    if missing:
        raise DataError(f"{path}: expected a row for each of {letters}, found none for {''.join(missing)}")
    return letters, np.array([rows[letter] for letter in letters], np.int32)


def _header(words: list[str]) -> str:
    """Return the letters that name the columns; ValueError if a word is not a letter or is repeated."""
    letters = "".join(map(_letter, words))
    for letter in letters:
        if letters.count(letter) > 1:
            raise ValueError(f"expected every letter once, found {letter} again")
    return letters


def _row(words: list[str], letters: str, known: Collection[str]) -> dict[str, list[int]]:
    """Return the scores of a line, by its letter; known: letters of earlier rows. ValueError if it is invalid."""
    letter = _letter(words[0])
    if letter not in letters:
        raise ValueError(f"expected a row of one of {letters}, found one of {letter}")
    if letter in known:
        raise ValueError(f"expected one row of {letter}, found a second one")
    if len(words) - 1 != len(letters):
        raise ValueError(f"expected {len(letters)} scores, one for each of {letters}, found {len(words) - 1}")
    return {letter: [_score(word) for word in words[1:]]}


def _letter(word: str) -> str:
    if len(word) != 1 or word.upper() not in LETTERS:
        raise ValueError(f"expected a letter, A to Z or *, found {word[:20]!r}")
    return word.upper()


def _score(word: str) -> int:
    """Return the score in a word of the file; ValueError if it is not an integer from -MAX_SCORE to MAX_SCORE."""
    try:
        score = int(word)
    except ValueError:
        raise ValueError(f"expected an integer score, found {word[:20]!r}") from None
    if not -MAX_SCORE <= score <= MAX_SCORE:
        raise ValueError(f"expected a score from {-MAX_SCORE} to {MAX_SCORE}, found {word[:20]}")
    return score
