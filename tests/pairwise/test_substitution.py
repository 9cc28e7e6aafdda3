"""Test pairs with substitution matrices against the oracle and parasail, and batches against long pairs."""

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import parasail
import pytest
from numpy.typing import NDArray
from oracles.comparison import Alignment, Comparison, code_of, rescored
from pair_examples import Pair, mutated, parsed, same
from protein_examples import LETTERS, RESIDUES, Table, drawn, random_letters

from readmap import PairAlignments, UsageError
from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.errors import InternalError
from readmap.pairwise.alignments import EQUAL
from readmap.pairwise.batches import align_batch, align_pairs, find_large_pairs, max_cells
from readmap.pairwise.checker import check
from readmap.pairwise.device_sequences import DeviceSequences, sequences_from_codes
from readmap.pairwise.long_pairs import align_long
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import CODES, CompareSettings, Mode, SubstitutionScores
from readmap.pairwise.results import Results
from readmap.reads.sequences import Sequences


def blosum() -> Table:
    """Return BLOSUM62; missing letters score as *."""
    table = np.full((CODES, CODES), -4, np.int32)
    known = [code_of(chr(letter)) for letter in range(128) if chr(letter) in LETTERS]
    places = np.array([parasail.blosum62.mapper[ord(letter)] for letter in LETTERS])
    table[np.ix_(known, known)] = 0
    codes = np.array([code_of(letter) for letter in LETTERS])
    table[np.ix_(codes, codes)] = parasail.blosum62.matrix[np.ix_(places, places)]
    return table


SCHEMES = {
    "BLOSUM62": SubstitutionScores(blosum(), 11, 1),
    "BLOSUM62, linear gaps": SubstitutionScores(blosum(), 0, 3),
    "letters that do not match themselves": SubstitutionScores(drawn(1, -6, 5, (-4, 0)), 4, 1),
    "large": SubstitutionScores(drawn(2, -900, 200, (100, 1000)), 1000, 150),
    "dear": SubstitutionScores(drawn(4, -(1 << 30), 3, (1, 6)), 7, 2),
    "lopsided": SubstitutionScores(np.random.default_rng(3).integers(-6, 5, (CODES, CODES), np.int32), 5, 2),
    "nothing is worth a thing": SubstitutionScores(drawn(5, -9, 0, (-3, 0)), 2, 1),
}
SYMMETRIC = [name for name in SCHEMES if name not in ("lopsided", "dear")]


@pytest.fixture(scope="module")
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


def draw_pair(draw: random.Random, longest: int) -> Pair:
    alphabet = draw.choice([LETTERS, RESIDUES, "AW", "L", "WC*"])
    letters = random_letters(draw, draw.randint(1, longest), alphabet)
    around = [random_letters(draw, draw.randint(0, longest // 4)) for _ in range(2)]
    unrelated = random_letters(draw, draw.randint(1, longest), alphabet)
    related = around[0] + mutated(draw, letters, draw.choice([0.05, 0.2, 0.6]), LETTERS) + around[1]
    other = draw.choice([unrelated, related, letters])[:longest]
    return (letters, other or "A") if draw.random() < 0.5 else (other or "A", letters)


def coded(texts: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    codes = np.array([code_of(letter) for letter in "".join(texts)], np.uint8)
    return codes, np.cumsum([0, *map(len, texts)], dtype=np.int64)


def letters_of(texts: list[str], backend: Backend) -> DeviceSequences:
    return sequences_from_codes(*coded(texts), backend)


def align(
    pairs: list[Pair], scores: SubstitutionScores, backend: Backend, score_only: bool = False, how: Any = align_pairs
) -> PairAlignments:
    queries, targets = (letters_of([pair[side] for pair in pairs], backend) for side in (0, 1))
    found: PairAlignments = how(queries, targets, scores, Mode.LOCAL, backend, score_only)
    return found.to_host(backend)


def align_one(pair: Pair, scores: SubstitutionScores, backend: Backend, **how: Any) -> PairAlignments:
    query, target = (letters_of([side], backend).codes[: len(side)] for side in pair)
    matrix = DPMatrix(query, target, scores, Mode.LOCAL, backend)
    return align_long([matrix], CompareSettings(scores, **how), Team.of(backend))


def results(pairs: list[Pair], found: PairAlignments) -> Results:
    names = [b"s%d" % number for number in range(len(pairs))]
    queries, targets = (Sequences(names, *coded([pair[side] for pair in pairs])) for side in (0, 1))
    return Results(queries, targets, np.zeros(len(pairs), np.bool_), found, False, 0, 0)


@pytest.mark.parametrize("name", SCHEMES)
def test_alignments_match_the_oracle(backend: Backend, name: str) -> None:
    draw, scores = random.Random(name), SCHEMES[name]
    corners = [("", ""), ("", "W"), ("W", ""), ("W", "W"), ("*", "*"), ("W" * 20, "W" * 33), (LETTERS, LETTERS)]
    pairs = [*corners, *(draw_pair(draw, longest) for longest in (1, 2, 5, 9, 17, 40) for _ in range(20))]
    expected = [Comparison(*pair, scores, Mode.LOCAL).alignment for pair in pairs]
    found = align(pairs, scores, backend)
    assert parsed(found) == expected
    check(results(pairs, found), scores, Mode.LOCAL)
    for pair, alignment in zip(pairs[::4], expected[::4], strict=True):
        assert parsed(align_one(pair, scores, backend)) == [alignment], pair


def score_with_parasail(pair: Pair, scores: SubstitutionScores) -> int:
    """Return parasail's score for a symmetric matrix; its striped functions miss some scores with linear gaps."""
    matrix = parasail.matrix_create(LETTERS[:26], 1, -1)
    for i, j in itertools.product(range(27), repeat=2):
        matrix[i, j] = int(scores.scores[i, j])
    return int(parasail.sw_scan_32(*pair, scores.gap_first, scores.gap_extend, matrix).score)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_scores_match_parasail(backend: Backend, name: str) -> None:
    draw, scores = random.Random(name), SCHEMES[name]
    pairs = [draw_pair(draw, size) for size in [30] * 100 + [300] * 50 + [2000] * 8]
    found = align(pairs, scores, backend)
    for pair, alignment in zip(pairs, parsed(found), strict=True):
        assert alignment.score == score_with_parasail(pair, scores)
        assert rescored(alignment, *pair, scores) == alignment.score
    check(results(pairs, found), scores, Mode.LOCAL)
    only = align(pairs, scores, backend, score_only=True)
    assert np.array_equal(only.scores, found.scores)
    assert np.array_equal(only.target_ends, found.target_ends)


def test_scores_match_parasails_own_matrix(backend: Backend) -> None:
    draw, scores = random.Random(1), SCHEMES["BLOSUM62"]
    pairs = [draw_pair(draw, 200) for _ in range(50)]
    for pair, score in zip(pairs, align(pairs, scores, backend).scores, strict=True):
        assert score == parasail.sw_striped_32(*pair, 12, 1, parasail.blosum62).score


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("memory", [1 << 16, 1 << 30])
def test_long_pairs_match_batches(backend: Backend, name: str, memory: int, small_tiles: None) -> None:
    draw, scores = random.Random(f"{name}{memory}"), SCHEMES[name]
    roomy = open_backend(backend.name, threads=2)
    roomy.scratch_bytes = 1 << 30
    pairs = [draw_pair(draw, 2500) for _ in range(4)]
    expected = parsed(align(pairs, scores, roomy, how=align_batch))
    for pair, alignment in zip(pairs, expected, strict=True):
        for pruning in (True, False):
            assert parsed(align_one(pair, scores, backend, memory=memory, pruning=pruning)) == [alignment]
        only = align_one(pair, scores, backend, memory=memory, score_only=True)
        ends = int(only.scores[0]), int(only.query_ends[0]), int(only.target_ends[0])
        assert ends == (alignment.score, alignment.query_end, alignment.target_end)


def test_large_pairs_are_aligned_one_by_one(backends: str) -> None:
    backend, roomy = open_backend(backends, threads=1), open_backend(backends, threads=1)
    draw, scores = random.Random(10), SCHEMES["BLOSUM62"]
    pairs = [draw_pair(draw, 60) for _ in range(60)]
    backend.scratch_bytes = 60 * 60 * backend.warp_width * backend.lanes_16bit // 2
    queries, targets = (letters_of([pair[side] for pair in pairs], backend) for side in (0, 1))
    assert 5 < len(find_large_pairs(queries, targets, max_cells(backend))) < 50
    assert same(align(pairs, scores, backend), align(pairs, scores, roomy))


def test_results_do_not_depend_on_batches(backend: Backend) -> None:
    draw, scores = random.Random(9), SCHEMES["large"]
    pairs = [draw_pair(draw, 90) for _ in range(200)]
    expected = parsed(align(pairs, scores, backend))
    assert parsed(align(pairs[::-1], scores, backend))[::-1] == expected
    assert [parsed(align([pair], scores, backend))[0] for pair in pairs[:20]] == expected[:20]


def test_ties_end_at_the_first_cell(backend: Backend) -> None:
    unit = random_letters(random.Random(3), 60, RESIDUES)
    apart = ("X" * 300).join([unit] * 8)
    for found in (align([(apart, apart)], RARE, backend), align_one((apart, apart), RARE, backend)):
        assert (found.query_ends[0], found.target_ends[0]) == (60, 60)


def _rare() -> Table:
    """Return a matrix in which residues match only themselves, and X matches nothing."""
    table = np.full((CODES, CODES), -8, np.int32)
    codes = [code_of(letter) for letter in RESIDUES]
    table[codes, codes] = 5
    return table


RARE = SubstitutionScores(_rare(), 11, 1)


def test_the_last_code_is_not_a_letter(backend: Backend) -> None:
    table = np.full((CODES, CODES), 7, np.int32)
    codes = np.array([31, 30, 31, 31, 30, 30, 31], np.uint8)
    letters = sequences_from_codes(codes, np.array([0, 7]), backend)
    scores = SubstitutionScores(table, 100, 1)
    matrix = DPMatrix(letters.codes[:7], letters.codes[:7], scores, Mode.LOCAL, backend)
    for found in (
        align_pairs(letters, letters, scores, Mode.LOCAL, backend).to_host(backend),
        align_long([matrix], CompareSettings(scores), Team.of(backend)),
    ):
        assert parsed(found) == [Alignment(14, 4, 6, 4, 6, [(2, "=")])]


def test_invalid_input_is_rejected() -> None:
    backend = open_backend("cpu", threads=1)
    with pytest.raises(UsageError, match=r"the shape of a matrix is \(27, 27\), expected \(32, 32\)"):
        SubstitutionScores(np.zeros((27, 27), np.int32), 11, 1)
    with pytest.raises(UsageError, match="highest score of a matrix is 1001, expected at most 1000"):
        SubstitutionScores(np.full((CODES, CODES), 1001, np.int32), 11, 1)
    with pytest.raises(UsageError, match="gap extend is 0, expected 1 to 1000"):
        SubstitutionScores(blosum(), 11, 0)
    with pytest.raises(ValueError, match="a code is 32, expected less than 32"):
        sequences_from_codes(np.array([3, 32], np.uint8), np.array([0, 2]), backend)
    with pytest.raises(UsageError, match="offsets that ascend from 0 to 2, the number of letters"):
        sequences_from_codes(np.array([3, 31], np.uint8), np.array([0, 3]), backend)
    letters = letters_of(["WW"], backend)
    with pytest.raises(ValueError, match="mode is global, expected local"):
        align_pairs(letters, letters, SCHEMES["BLOSUM62"], Mode.GLOBAL, backend)
    with pytest.raises(UsageError, match="scores of 1,100,000 letters with 2,000,000 may reach 1,100,000,000"):
        SubstitutionScores(np.full((CODES, CODES), 1000, np.int32), 0, 1).check_score_range(
            np.array([1_100_000]), np.array([2_000_000]), Mode.LOCAL
        )


def test_repr_contains_all_scores() -> None:
    """A checkpoint identifies its comparison by this text."""
    one, other = blosum(), blosum()
    other[20, 20] += 1
    assert repr(SubstitutionScores(one, 11, 1)) != repr(SubstitutionScores(other, 11, 1))


def test_errors_are_found() -> None:
    scores, pairs = SCHEMES["BLOSUM62"], [("MKV", "MKV"), ("AAWTYCWAA", "GGWSYCWGG")]
    found = align(pairs, scores, open_backend("cpu", threads=1))
    assert found.cigars() == ["3=", "1=1X3="]
    check(results(pairs, found), scores, Mode.LOCAL)
    operations = found.operations.copy()
    operations[2] = 1 << 4 | EQUAL
    merged = replace(found, operations=np.array([3 << 4 | 7, 5 << 4 | 7], np.uint32), operation_ends=np.array([1, 2]))
    for wrong, message in (
        (replace(found, scores=np.add(found.scores, [0, 1])), "s1 against s1: the score is"),
        (merged, "s1 against s1: column 2 has code 19 and code 18, and its operation is ="),
        (replace(found, operations=operations), "s1 against s1: the number of operations that continue another"),
    ):
        with pytest.raises(InternalError, match=message):
            check(results(pairs, wrong), scores, Mode.LOCAL)
