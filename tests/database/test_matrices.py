"""Test score matrices: built-in matrices against NCBI's files and blastp, and matrix files."""

import pathlib
import shutil
import subprocess

import numpy as np
import parasail
import pytest

from readmap.database.matrices import (
    LETTERS,
    PUBLISHED,
    STANDARD,
    ScoreMatrix,
    default_gaps,
    nucleotides,
    read_matrix,
    standard,
    standard_name,
)
from readmap.errors import DataError, UsageError
from readmap.pairwise.parameters import CODES

NCBI = pathlib.Path("/usr/share/ncbi/data")
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
IN_FILES = "ARNDCQEGHILKMFPSTWYVBJZX*"


def codes(letters: str) -> list[int]:
    return [LETTERS.index(letter) for letter in letters]


def score(matrix: ScoreMatrix, query: str, subject: str) -> int:
    return int(matrix.scores[codes(query)[0], codes(subject)[0]])


@pytest.fixture
def write(tmp_path: pathlib.Path):  # type: ignore[no-untyped-def]
    def written(text: str) -> pathlib.Path:
        path = tmp_path / "MINE"
        path.write_text(text)
        return path

    return written


@pytest.mark.parametrize("name", STANDARD)
def test_standard_matrices_match_ncbi(name: str) -> None:
    if not (NCBI / name).is_file():
        pytest.skip(f"{NCBI / name} is not there (Debian's ncbi-data)")
    header, *rows = (line.split() for line in (NCBI / name).read_text().splitlines() if not line.startswith("#"))
    assert "".join(header) == "".join(row[0] for row in rows) == IN_FILES
    pairs = np.ix_(codes(IN_FILES), codes(IN_FILES))
    assert standard(name).scores[pairs].tolist() == [[int(word) for word in row[1:]] for row in rows]


@pytest.mark.parametrize("name", STANDARD)
def test_standard_matrices_have_all_letters(name: str) -> None:
    matrix = standard(name.lower())
    assert matrix.name == name
    assert not matrix.is_nucleotide
    assert matrix.scores.shape == (CODES, CODES)
    assert matrix.scores.dtype == np.int32
    assert (matrix.scores == matrix.scores.T).all()
    for letter, stand_in in ("UC", "OX"):
        assert (matrix.scores[codes(letter)] == matrix.scores[codes(stand_in)]).all()
    lowest = matrix.scores.min()
    assert (matrix.scores[len(LETTERS) :] == lowest).all()
    assert (matrix.scores[:, len(LETTERS) :] == lowest).all()
    assert score(matrix, "*", "*") == 1
    assert (matrix.scores[codes("*"), : len(LETTERS) - 1] == lowest).all()
    with pytest.raises(ValueError, match="read-only"):
        matrix.scores[0, 0] = 0


def test_blosum62_of_rare_letters() -> None:
    matrix = standard("BLOSUM62")
    assert [score(matrix, "J", letter) for letter in "ILMVJXACUO*"] == [3, 3, 2, 2, 3, -1, -1, -1, -1, -1, -4]
    assert [score(matrix, "U", letter) for letter in "UCAXO*"] == [9, 9, 0, -1, -1, -4]


@pytest.mark.parametrize("name", [name for name in STANDARD if name != "BLOSUM80"])
def test_amino_acid_scores_match_parasail(name: str) -> None:
    """Except BLOSUM80, which parasail has in thirds of a bit, and B, Z and X, which it has in an older version."""
    theirs = getattr(parasail, name.lower()).matrix
    places = ["ARNDCQEGHILKMFPSTWYVBZX*".index(letter) for letter in AMINO_ACIDS]
    pairs = np.ix_(codes(AMINO_ACIDS), codes(AMINO_ACIDS))
    assert (standard(name).scores[pairs] == theirs[np.ix_(places, places)]).all()


@pytest.mark.parametrize("name", ["BLOSUM62", "PAM30"])
def test_letter_scores_match_blastp(name: str, tmp_path: pathlib.Path) -> None:
    """Align every letter with every other letter between flanks that keep each pair in the alignment."""
    if shutil.which("blastp") is None:
        pytest.skip("blastp is not installed (Debian's ncbi-blast+)")
    matrix = standard(name)
    side = "WCHFMYWPHC"
    queries, subjects = tmp_path / "queries.fa", tmp_path / "subjects.fa"
    for path in (queries, subjects):
        path.write_text("".join(f">{letter}\n{side}{letter}{side}\n" for letter in LETTERS))
    gaps = [str(cost) for cost in default_gaps(matrix)]
    options = ["-matrix", name, "-gapopen", gaps[0], "-gapextend", gaps[1], "-comp_based_stats", "0", "-seg", "no"]
    command = ["blastp", "-query", queries, "-subject", subjects, *options, "-outfmt", "6 qseqid sseqid score"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    best: dict[tuple[str, str], int] = {}
    for line in done.stdout.splitlines():
        query, subject, found = line.split("\t")
        best[query, subject] = max(best.get((query, subject), 0), int(found))
    sides = 2 * sum(score(matrix, letter, letter) for letter in side)
    assert best == {(one, other): sides + score(matrix, one, other) for one in LETTERS for other in LETTERS}


def test_unknown_matrix() -> None:
    with pytest.raises(UsageError, match=r"matrix is BLOSUM63, expected one of BLOSUM45, .*, or a file"):
        standard("BLOSUM63")


def test_nucleotides() -> None:
    matrix = nucleotides(2, 3)
    assert matrix.is_nucleotide
    assert (matrix.name, matrix.match, matrix.mismatch) == ("+2/-3", 2, 3)
    expected = np.full((CODES, CODES), -3)
    for base in codes("ACGT"):
        expected[base, base] = 2
    assert (matrix.scores == expected).all()


@pytest.mark.parametrize(
    ("match", "mismatch", "named"), [(0, 3, "match is 0"), (1, -1, "mismatch is -1"), (1001, 1, "1001")]
)
def test_nucleotides_out_of_range(match: int, mismatch: int, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        nucleotides(match, mismatch)


@pytest.mark.parametrize("name", STANDARD)
def test_the_file_of_a_standard_matrix_is_recognized(name: str, write) -> None:  # type: ignore[no-untyped-def]
    matrix = read_matrix(write((PUBLISHED / name).read_text().lower().replace("\n", "\r\n")))
    assert (matrix.scores == standard(name).scores).all()
    assert (matrix.name, standard_name(matrix)) == ("MINE", name)
    assert default_gaps(matrix) == default_gaps(standard(name)) == STANDARD[name]


def test_default_gaps() -> None:
    assert default_gaps(standard("BLOSUM62")) == (11, 1)
    assert default_gaps(nucleotides(2, 3)) == (5, 2)
    assert default_gaps(nucleotides(1, 3)) == (5, 2)


def test_custom_matrix(write) -> None:  # type: ignore[no-untyped-def]
    """Rows and columns have different orders, the matrix is not symmetric, and letters such as U and * are missing."""
    matrix = read_matrix(write("# mine\n\n  A C x\n\nC 0 9 -2 \n a 5 -1 +1\n#\nX -3 -4 -5"))
    assert [[score(matrix, one, other) for other in "ACX"] for one in "ACX"] == [[5, -1, 1], [0, 9, -2], [-3, -4, -5]]
    assert (matrix.scores[codes("U")] == matrix.scores[codes("C")]).all()
    assert (matrix.scores[:, codes("U")] == matrix.scores[:, codes("C")]).all()
    for letter in "JOWZ":
        assert (matrix.scores[codes(letter)] == matrix.scores[codes("X")]).all()
    assert (matrix.scores[codes("*")] == -5).all()
    assert (matrix.scores[:, len(LETTERS) :] == -5).all()
    assert standard_name(matrix) is None
    assert default_gaps(matrix) == (11, 1)


def test_custom_matrix_without_x(write) -> None:  # type: ignore[no-untyped-def]
    matrix = read_matrix(write("A U\nA 5 -1\nU -7 3\n"))
    assert (score(matrix, "U", "U"), score(matrix, "U", "A")) == (3, -7)
    for letter in "CXOJ*":
        assert (matrix.scores[codes(letter)] == -7).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "MINE: expected a matrix of scores, found only comments"),
        ("# A\n\n", "MINE: expected a matrix of scores"),
        ("A CD\n", "MINE, line 1: expected a letter, A to Z or *, found 'CD'"),
        ("A -\n", "MINE, line 1: expected a letter, A to Z or *, found '-'"),
        ("A C a\n", "MINE, line 1: expected every letter once, found A again"),
        ("#\nA C\n1 2\n", "MINE, line 3: expected a letter, A to Z or *, found '1'"),
        ("A C\nA 1 2\nD 2 1\n", "MINE, line 3: expected a row of one of AC, found one of D"),
        ("A C\nA 1 2\nA 1 2\n", "MINE, line 3: expected one row of A, found a second one"),
        ("A C\nA 1\n", "MINE, line 2: expected 2 scores, one for each of AC, found 1"),
        ("A C\nA 1 2 3\n", "MINE, line 2: expected 2 scores, one for each of AC, found 3"),
        ("A C\nA 1 2.5\n", "MINE, line 2: expected an integer score, found '2.5'"),
        ("A C\nA 1 é\n", r"MINE, line 2: expected an integer score, found '\\xc3\\xa9'"),
        ("A C\nA 1 1001\n", "MINE, line 2: expected a score from -1000 to 1000, found 1001"),
        ("A C\nA 1 -1001\n", "MINE, line 2: expected a score from -1000 to 1000, found -1001"),
        ("A C D\nC 1 2 3\n", "MINE: expected a row for each of ACD, found none for AD"),
    ],
)
def test_invalid_files_are_rejected(text: str, message: str, write) -> None:  # type: ignore[no-untyped-def]
    path = write(text)
    with pytest.raises(DataError) as error:
        read_matrix(path)
    assert str(error.value).startswith(f"{path.parent}/{message}")


def test_missing_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_matrix(tmp_path / "none")


def test_an_endless_file_is_rejected() -> None:
    with pytest.raises(DataError, match=r"/dev/zero: expected a matrix of scores, found more than 1,048,576 bytes"):
        read_matrix("/dev/zero")
