"""Test that the checker accepts valid alignments, and finds every kind of error anywhere in a batch."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pair_examples import sequences

from readmap.backend import open_backend
from readmap.errors import InternalError
from readmap.pairwise.alignments import DELETED, DIFFERENT, EQUAL, INSERTED, PairAlignments
from readmap.pairwise.checker import check
from readmap.pairwise.comparison import align_batch
from readmap.pairwise.parameters import MatchScores, Mode
from readmap.pairwise.results import Results

SCORES = MatchScores()


def results(
    queries: list[str], targets: list[str], mode: Mode, scores: MatchScores, score_only: bool = False
) -> Results:
    sides = sequences(queries), sequences(targets)
    found = align_batch(*sides, scores, mode, open_backend("cpu", threads=2), score_only)
    return Results(*sides, np.zeros(len(queries), np.bool_), found, score_only, 0, 0)


def random_pairs(count: int, seed: int) -> tuple[list[str], list[str]]:
    generator = random.Random(seed)
    queries = ["".join(generator.choices("ACGTN", [9, 9, 9, 9, 1], k=generator.randrange(25))) for _ in range(count)]
    targets = []
    for query in queries:
        cut = generator.randrange(len(query) + 1)
        targets.append(query[:cut] + "".join(generator.choices("ACGTN", k=generator.randrange(6))) + query[cut + 2 :])
    return queries, targets


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("scores", [SCORES, MatchScores(2, 0, 0, 1), MatchScores(5, 4, 8, 6)])
def test_valid_alignments_pass(mode: Mode, scores: MatchScores) -> None:
    pairs = random_pairs(150, 1)
    check(results(*pairs, mode, scores), scores, mode)
    check(results(*pairs, mode, scores, score_only=True), scores, mode)
    one = next(number for number, query in enumerate(pairs[0]) if len(query) > 20)
    check(results([pairs[0][one]], [pairs[1][one]], mode, scores), scores, mode)


#: Score, query start and end, target start and end, and operations with their lengths.
Given = tuple[int, int, int, int, int, list[tuple[int, int]]]


def alignments(given: list[Given]) -> PairAlignments:
    """Return alignments as the aligners do."""
    places = [np.array([each[k] for each in given], np.int64) for k in range(1, 5)]
    ends = np.cumsum([len(each[5]) for each in given], dtype=np.int64)
    operations = [length << 4 | kind for each in given for kind, length in each[5]]
    return PairAlignments(
        np.array([each[0] for each in given], np.int32), *places, ends, np.array(operations, np.uint32)
    )


#: A local alignment with each operation, and its parts.
QUERY, TARGET = "TTACGTACGAGTTACCAGTACCATT", "GACGTACGACTTACCAGTACGTTCATCC"
OPERATIONS = [(EQUAL, 8), (DIFFERENT, 1), (EQUAL, 9)]


def planted(operations: list[tuple[int, int]], places: tuple[int, int, int, int], score: int) -> Results:
    """Return results of three pairs; the second has the given alignment."""
    right: Given = (4, 0, 4, 0, 4, [(EQUAL, 4)])
    found = alignments([right, (score, *places, operations), right])
    sides = sequences(["ACGT", QUERY, "ACGT"]), sequences(["ACGT", TARGET, "ACGT"])
    return Results(*sides, np.zeros(3, np.bool_), found, False, 0, 0)


def test_the_unmodified_batch_passes() -> None:
    check(planted(OPERATIONS, (2, 20, 1, 19), 14), SCORES, Mode.LOCAL)


@pytest.mark.parametrize(
    ("operations", "places", "score", "message"),
    [
        (OPERATIONS, (2, 20, 1, 19), 15, "the score is 15, expected 14"),
        (OPERATIONS, (2, 20, 1, 19), -1, "the score is -1, expected 0"),
        (OPERATIONS, (2, 21, 1, 19), 14, "query's letters in its operations is 18, expected 19"),
        (OPERATIONS, (2, 20, 0, 19), 14, "target's letters in its operations is 18, expected 19"),
        (OPERATIONS, (12, 30, 1, 19), 14, "the end in the query is 30, expected 25"),
        (OPERATIONS, (2, 20, -1, 17), 14, "the start in the target is -1, expected 0"),
        (OPERATIONS, (20, 2, 1, 19), 14, "the start in the query is 20, expected 2"),
        (OPERATIONS, (3, 21, 1, 19), 14, "column 1 has C and A, and its operation is ="),
        ([(EQUAL, 18)], (2, 20, 1, 19), 18, "column 9 has G and C, and its operation is ="),
        ([(EQUAL, 8), (DIFFERENT, 2), (EQUAL, 8)], (2, 20, 1, 19), 10, "column 10 has T and T, and its operation is X"),
        ([(DELETED, 1), *OPERATIONS], (2, 20, 0, 19), 9, "the first operation is D"),
        ([*OPERATIONS, (INSERTED, 1)], (2, 21, 1, 19), 9, "the last operation is I"),
        ([(DIFFERENT, 1), *OPERATIONS], (1, 20, 0, 19), 11, "the first operation is X"),
        ([(EQUAL, 4), (EQUAL, 4), *OPERATIONS[1:]], (2, 20, 1, 19), 14, "operations that continue another is 1"),
        ([*OPERATIONS, (DIFFERENT, 0)], (2, 20, 1, 19), 14, "not I, D, = or X is 1, expected 0"),
        ([(0, 18)], (2, 20, 1, 19), 14, "not I, D, = or X is 1, expected 0"),
    ],
)
def test_errors_are_found(
    operations: list[tuple[int, int]], places: tuple[int, int, int, int], score: int, message: str
) -> None:
    with pytest.raises(InternalError) as caught:
        check(planted(operations, places, score), SCORES, Mode.LOCAL)
    assert str(caught.value).startswith("s1 against s1: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("mode", [Mode.GLOBAL, Mode.SEMIGLOBAL])
def test_alignments_must_fit_the_mode(mode: Mode) -> None:
    with pytest.raises(InternalError, match="the end in the query is 20, expected 25"):
        check(planted(OPERATIONS, (2, 20, 1, 19), 14), SCORES, mode)


def test_a_semiglobal_alignment_must_not_end_with_a_deletion() -> None:
    found = alignments([(-1, 0, 4, 0, 5, [(EQUAL, 4), (DELETED, 1)])])
    sides = sequences(["ACGT"]), sequences(["ACGTA"])
    wrong = Results(*sides, np.zeros(1, np.bool_), found, False, 0, 0)
    with pytest.raises(InternalError, match="the last operation is D"):
        check(wrong, SCORES, Mode.SEMIGLOBAL)
    check(wrong, SCORES, Mode.GLOBAL)


def test_ambiguous_letters_match_nothing() -> None:
    sides = sequences(["ACNGT"]), sequences(["ACNGT"])
    for operations, score, is_right in (([(7, 5)], 5, False), ([(7, 2), (8, 1), (7, 2)], 1, True)):
        found = alignments([(score, 0, 5, 0, 5, operations)])
        wrong = Results(*sides, np.zeros(1, np.bool_), found, False, 0, 0)
        if is_right:
            check(wrong, SCORES, Mode.LOCAL)
        else:
            with pytest.raises(InternalError, match="column 3 has N and N, and its operation is ="):
                check(wrong, SCORES, Mode.LOCAL)


@pytest.mark.parametrize(
    "change",
    [
        lambda found, at: replace(found, scores=plus(found.scores, at, 1)),
        lambda found, at: replace(found, query_ends=plus(found.query_ends, at, -1)),
        lambda found, at: replace(found, target_starts=plus(found.target_starts, at, 1)),
        lambda found, at: replace(found, operations=plus(found.operations, found.operation_ends[at] - 1, 16)),
        lambda found, at: replace(found, operations=plus(found.operations, found.operation_ends[at] - 1, 1)),
    ],
    ids=["score", "query end", "target start", "length", "operation"],
)
def test_changes_of_any_pair_are_found(change: Callable[[PairAlignments, int], PairAlignments]) -> None:
    right = results(*random_pairs(40, 2), Mode.LOCAL, SCORES)
    sizes = np.diff(right.alignments.operation_ends, prepend=0)
    for at in np.flatnonzero(sizes):
        wrong = replace(right, alignments=change(right.alignments, int(at)))
        with pytest.raises(InternalError, match=rf"^s{at} against s{at}: "):
            check(wrong, SCORES, Mode.LOCAL)


def plus(values: Any, at: int, step: int) -> Any:
    changed = values.copy()
    changed[at] += step
    return changed


def test_score_only_results_are_checked() -> None:
    right = results(["ACGT"], ["ACGT"], Mode.GLOBAL, SCORES, score_only=True)
    for name in ("query_ends", "target_ends", "query_starts"):
        wrong = replace(right.alignments, **{name: plus(getattr(right.alignments, name), 0, 1)})
        with pytest.raises(InternalError):
            check(replace(right, alignments=wrong), SCORES, Mode.GLOBAL)
