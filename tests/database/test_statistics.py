"""Test E-values and bit scores against blastp and blastn, the published tables against BLAST, and number formats."""

import gzip
import math
import os
import pathlib
import random
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readmap.database.formats.tab import format_bit_score, format_evalue
from readmap.database.matrices import STANDARD, ScoreMatrix, default_gaps, nucleotides, read_matrix, standard
from readmap.database.statistics import SearchSpace, gapped_parameters, length_adjustment, supported_gaps

#: Of ../shared/data/protein/queries.fa.gz: 24, 63, 189, 729 and 2,504 letters.
QUERIES = ("P56980", "O29181", "P01111", "P21177", "P19096")
#: Number of sequences of the proteome; all would take a minute.
SUBJECTS = 1500


@dataclass(frozen=True)
class Database:
    """A database made by makeblastdb, and its sequences."""

    path: pathlib.Path
    letters: int
    sequences: int


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian's ncbi-blast+)")


def fasta(sequences: list[tuple[str, str]]) -> str:
    return "".join(f">{name}\n{letters}\n" for name, letters in sequences)


def make_database(path: pathlib.Path, sequences: list[tuple[str, str]], kind: str) -> Database:
    path.write_text(fasta(sequences))
    subprocess.run(["makeblastdb", "-in", path, "-dbtype", kind], check=True, stdout=subprocess.DEVNULL)
    return Database(path, sum(len(letters) for _, letters in sequences), len(sequences))


@pytest.fixture(scope="module")
def proteins(shared: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Database, pathlib.Path]:
    """Return a part of the human proteome, and queries."""
    need("blastp", "makeblastdb")
    folder = tmp_path_factory.mktemp("proteins")
    subjects = read_proteins(shared / "data/protein/human_proteome.fa.gz")
    queries = read_proteins(shared / "data/protein/queries.fa.gz")
    (folder / "queries.fa").write_text(fasta([(n, s) for n, s in queries if n.split("|")[1] in QUERIES]))
    # Spread over the file, so that they include short and long sequences.
    database = make_database(folder / "database.fa", subjects[:: len(subjects) // SUBJECTS], "prot")
    return database, folder / "queries.fa"


def read_proteins(path: pathlib.Path) -> list[tuple[str, str]]:
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    records = gzip.decompress(path.read_bytes()).decode().removeprefix(">").split("\n>")
    return [(record.split(maxsplit=1)[0], "".join(record.split("\n")[1:])) for record in records]


@pytest.fixture(scope="module")
def genes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Database, pathlib.Path]:
    """Return random DNA, and mutated pieces of it."""
    need("blastn", "makeblastdb")
    folder = tmp_path_factory.mktemp("genes")
    choose = random.Random(6)
    subjects = ["".join(choose.choices("ACGT", k=choose.choice([300, 1000, 5000]))) for _ in range(200)]
    queries = []
    for number in range(40):
        length = choose.choice([20, 40, 100, 250, 300])
        source = choose.choice(subjects)
        begin = choose.randrange(len(source) - length + 1)
        rate = choose.choice([0, 0.05, 0.15, 0.25])
        queries.append((f"q{number}", changed(source[begin : begin + length], rate, choose)))
    queries.append(("long", changed(max(subjects, key=len), 0.03, choose)))
    (folder / "queries.fa").write_text(fasta(queries))
    return make_database(
        folder / "database.fa", [(f"s{i}", letters) for i, letters in enumerate(subjects)], "nucl"
    ), folder / "queries.fa"


def changed(letters: str, rate: float, choose: random.Random) -> str:
    changes = [lambda x: x, lambda x: choose.choice("ACGT"), lambda x: "", lambda x: x + "A"]
    chosen = choose.choices(changes, [1 - rate, rate * 0.8, rate * 0.1, rate * 0.1], k=len(letters))
    return "".join(change(letter) for change, letter in zip(chosen, letters, strict=True))


@dataclass(frozen=True)
class Line:
    """A line of BLAST's table."""

    query: str
    evalue: str
    bit_score: str
    score: int
    query_length: int
    subject_length: int


def blast(
    program: list[str], database: Database, queries: pathlib.Path, gaps: tuple[int, int], **environment: str
) -> list[Line]:
    costs = ["-gapopen", str(gaps[0]), "-gapextend", str(gaps[1])]
    table = ["-outfmt", "6 qseqid evalue bitscore score qlen slen"]
    command = [*program, "-db", str(database.path), "-query", str(queries), *costs, *table]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    # Bit scores between 99.9 and 100 are preceded by a blank.
    return [Line(name, evalue, bits.strip(), *map(int, numbers)) for name, evalue, bits, *numbers in rows]


def texts(
    lines: list[Line], matrix: ScoreMatrix, gaps: tuple[int, int], letters: int, sequences: int, adjusted: bool = False
) -> list[tuple[str, str]]:
    """Return the E-value and the bit score that should be printed for each line."""
    parameters = gapped_parameters(matrix, *gaps)
    assert parameters is not None
    found = []
    for line in lines:
        space = SearchSpace(parameters, line.query_length, letters, sequences)
        score, length = np.array([line.score], np.int32), np.array([line.subject_length], np.int64)
        (evalue,) = space.adjusted_evalues(score) if adjusted else space.evalues(score, length)
        found.append((format_evalue(evalue), format_bit_score(parameters.bit_scores(score)[0])))
    return found


def printed(lines: list[Line]) -> list[tuple[str, str]]:
    return [(line.evalue, line.bit_score) for line in lines]


BLASTP = ["blastp", "-comp_based_stats", "0", "-seg", "no"]
BLASTN = ["blastn", "-task", "blastn", "-dust", "no"]


@pytest.mark.parametrize(
    ("name", "gaps"),
    [
        *STANDARD.items(),
        *(("BLOSUM62", (9, 2)), ("BLOSUM62", (9, 1)), ("BLOSUM80", (25, 2)), ("PAM30", (14, 1)), ("PAM70", (11, 2))),
    ],
)
def test_evalues_match_blastp(name: str, gaps: tuple[int, int], proteins: tuple[Database, pathlib.Path]) -> None:
    database, queries = proteins
    lines = blast([*BLASTP, "-matrix", name], database, queries, gaps)
    assert len(lines) > 40
    assert len({line.query for line in lines}) >= 3
    assert texts(lines, standard(name), gaps, database.letters, database.sequences) == printed(lines)


def test_evalues_match_blastp_for_another_database_size(proteins: tuple[Database, pathlib.Path]) -> None:
    database, queries = proteins
    lines = blast([*BLASTP, "-dbsize", "50000000"], database, queries, (11, 1))
    assert texts(lines, standard("BLOSUM62"), (11, 1), 50_000_000, database.sequences) == printed(lines)


@pytest.mark.parametrize(("name", "gaps"), STANDARD.items())
def test_evalues_match_blastp_with_length_adjustment(
    name: str, gaps: tuple[int, int], proteins: tuple[Database, pathlib.Path]
) -> None:
    database, queries = proteins
    lines = blast([*BLASTP, "-matrix", name], database, queries, gaps, OLD_FSC="1")
    assert lines
    assert texts(lines, standard(name), gaps, database.letters, database.sequences, True) == printed(lines)


@pytest.mark.parametrize(
    ("match", "mismatch", "gaps"),
    [
        *((2, 3, (5, 2)), (2, 3, (2, 2)), (4, 6, (10, 4)), (6, 9, (15, 6)), (1, 3, (2, 2))),
        *((1, 1, (3, 2)), (3, 4, (6, 3)), (2, 7, (2, 4)), (2, 5, (4, 2)), (5, 4, (10, 6))),
    ],
)
def test_evalues_match_blastn(
    match: int, mismatch: int, gaps: tuple[int, int], genes: tuple[Database, pathlib.Path]
) -> None:
    database, queries = genes
    lines = blast([*BLASTN, "-reward", str(match), "-penalty", str(-mismatch)], database, queries, gaps)
    assert len(lines) > 40
    if (match, mismatch) == (2, 3):
        assert any(line.score % 2 for line in lines)
    matrix = nucleotides(match, mismatch)
    assert texts(lines, matrix, gaps, database.letters, database.sequences) == printed(lines)


def test_evalues_match_blastn_for_another_database_size(genes: tuple[Database, pathlib.Path]) -> None:
    database, queries = genes
    lines = blast([*BLASTN, "-reward", "2", "-penalty", "-3", "-dbsize", "30000000"], database, queries, (5, 2))
    assert lines
    assert texts(lines, nucleotides(2, 3), (5, 2), 30_000_000, database.sequences) == printed(lines)


@pytest.mark.parametrize("name", STANDARD)
def test_gap_costs_supported_by_blastp(name: str, tmp_path: pathlib.Path) -> None:
    need("blastp")
    query = tmp_path / "query.fa"
    query.write_text(">q\nMKVLAWWGKR\n")
    costs = ["-matrix", name, "-gapopen", "99", "-gapextend", "99"]
    done = subprocess.run(["blastp", "-query", query, "-subject", query, *costs], capture_output=True, text=True)
    listed = [tuple(map(int, line.split(", "))) for line in done.stderr.splitlines() if line[:1].isdigit()]
    assert supported_gaps(standard(name)) == [gaps for gaps in listed if gaps != (32767, 32767)]


@pytest.mark.parametrize(
    "scores", [(1, 5), (1, 4), (2, 7), (1, 3), (2, 5), (1, 2), (2, 3), (4, 6), (3, 4), (4, 5), (1, 1), (3, 2), (5, 4)]
)
def test_gap_costs_supported_by_blastn(scores: tuple[int, int], tmp_path: pathlib.Path) -> None:
    need("blastn")
    query = tmp_path / "query.fa"
    query.write_text(">q\nACGTTGCATCGATTCAGCATC\n")
    costs = ["-reward", str(scores[0]), "-penalty", str(-scores[1]), "-gapopen", "1", "-gapextend", "7"]
    command = ["blastn", "-task", "blastn", "-query", query, "-subject", query, *costs]
    done = subprocess.run(command, capture_output=True, text=True)
    supported = " are supported existence and extension values"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.endswith(supported)]
    # From the last line on, BLAST uses ungapped parameters, which readmap does not.
    assert lines
    listed = [tuple(map(int, line.removesuffix(supported).split()[-3::2])) for line in lines[:-1]]
    assert supported_gaps(nucleotides(*scores)) == listed


def test_defaults_have_parameters() -> None:
    for matrix in [*map(standard, STANDARD), nucleotides(2, 3)]:
        gaps = default_gaps(matrix)
        assert gaps in supported_gaps(matrix)
        parameters = gapped_parameters(matrix, *gaps)
        assert parameters is not None
        assert (parameters.finite_size is None) == matrix.is_nucleotide


def test_gap_costs_without_parameters(tmp_path: pathlib.Path) -> None:
    assert gapped_parameters(standard("BLOSUM50"), 8, 2) is None
    assert gapped_parameters(nucleotides(2, 3), 50, 50) is None
    assert supported_gaps(nucleotides(7, 3)) == []
    path = tmp_path / "own"
    path.write_text("A X\nA 5 -1\nX -1 -1\n")
    assert gapped_parameters(read_matrix(path), 11, 1) is None
    assert supported_gaps(read_matrix(path)) == []


def test_parameters_of_scaled_scores() -> None:
    once, twice = gapped_parameters(nucleotides(1, 3), 2, 2), gapped_parameters(nucleotides(2, 6), 4, 4)
    assert once is not None
    assert twice is not None
    assert (twice.lambda_, twice.alpha, twice.beta) == (once.lambda_ / 2, once.alpha / 2, once.beta)


@given(st.integers(0, 40_000), st.integers(0, 10**10), st.integers(1, 10**6), st.sampled_from(sorted(STANDARD)))
def test_length_adjustment_is_a_fixed_point(query: int, letters: int, sequences: int, name: str) -> None:
    parameters = gapped_parameters(standard(name), *STANDARD[name])
    assert parameters is not None
    length = length_adjustment(parameters, query, letters, sequences)
    assert 0 <= length <= query
    if length:
        space = (query - length) * (letters - sequences * length)
        assert parameters.k * space > 0.999 * max(query, letters)
        ratio = parameters.alpha / parameters.lambda_
        assert ratio * math.log(parameters.k * space) + parameters.beta >= length - 1e-6
    effective = max(query - length, 1), max(letters - sequences * length, 1)
    assert SearchSpace(parameters, query, letters, sequences).effective_lengths() == effective


@pytest.mark.parametrize("matrix", [standard("BLOSUM62"), nucleotides(2, 3)], ids=["proteins", "nucleotides"])
@pytest.mark.parametrize("query", [10, 24, 374, 35_000])
@pytest.mark.parametrize("evalue", [0.0, 1e-300, 1e-3, 10.0, 1e9])
def test_min_scores(matrix: ScoreMatrix, query: int, evalue: float) -> None:
    parameters = gapped_parameters(matrix, *default_gaps(matrix))
    assert parameters is not None
    lengths = np.array([0, 1, 2, 10, 50, 300, 1000, 5000, 35_000, 10**6, 10**9])
    space = SearchSpace(parameters, query, 180_000_000, 500_000)
    least = space.min_scores(evalue, lengths)
    assert (space.evalues(least, lengths) <= evalue).all()
    below = np.maximum(least - 1, 0)
    assert ((space.evalues(below, lengths) > evalue) | (least == 1)).all()
    assert len(space.min_scores(evalue, lengths[:0])) == 0
