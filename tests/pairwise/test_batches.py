"""Test batches of pairs against the oracle, and long pairs against parasail."""

import doctest
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import parasail
import pytest
from examples import team_of
from oracles.alignment import Cigar, clean
from oracles.comparison import Alignment, Comparison, rescored
from pair_examples import CORNERS, SCORES, Pair, draw_long_pair, draw_pair, parsed, same

import readmap
from readmap import PairAlignments, UsageError
from readmap.backend import Backend, open_backend
from readmap.pairwise import api
from readmap.pairwise.api import align_arrays
from readmap.pairwise.batches import align_batch, align_pairs, find_large_pairs, max_cells
from readmap.pairwise.device_sequences import concatenate_texts, sequences_from_letters, sequences_from_texts
from readmap.pairwise.parameters import MatchScores, Mode


@pytest.fixture(scope="module")
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


def align(
    pairs: list[Pair],
    scores: MatchScores,
    mode: Mode,
    backend: Backend,
    score_only: bool = False,
    how: Any = align_batch,
) -> PairAlignments:
    queries, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    letters = sequences_from_texts(queries, backend), sequences_from_texts(targets, backend)
    found: PairAlignments = how(*letters, scores, mode, backend, score_only)
    return found.to_host(backend)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_alignments_match_the_oracle(backend: Backend, scores: MatchScores, mode: Mode) -> None:
    draw = random.Random(f"{scores}{mode}")
    pairs = [*CORNERS, *(draw_pair(draw, longest) for longest in (1, 2, 5, 9, 17, 40) for _ in range(20))]
    found = align(pairs, scores, mode, backend)
    for pair, alignment in zip(pairs, parsed(found), strict=True):
        assert alignment == Comparison(*pair, scores, mode).alignment, pair
    assert all(array.dtype == dtype for array, dtype in zip(vars(found).values(), DTYPES, strict=True))


DTYPES = (np.int32, np.int64, np.int64, np.int64, np.int64, np.int64, np.uint32)

EMPTY: Cigar = []


def test_empty_local_alignments(backend: Backend) -> None:
    pairs = [("A" * 30, "C" * 50), ("", "ACGT"), ("N" * 9, "N" * 9)]
    assert parsed(align(pairs, MatchScores(), Mode.LOCAL, backend)) == [Alignment(0, 0, 0, 0, 0, EMPTY)] * 3


@pytest.mark.parametrize("mode", list(Mode))
def test_score_only_finds_the_same_scores_and_ends(backend: Backend, mode: Mode) -> None:
    draw = random.Random(5)
    pairs = [draw_pair(draw, 100) for _ in range(100)]
    whole, part = (align(pairs, MatchScores(), mode, backend, score_only) for score_only in (False, True))
    assert np.array_equal(whole.scores, part.scores)
    assert np.array_equal(whole.query_ends, part.query_ends)
    assert np.array_equal(whole.target_ends, part.target_ends)
    assert set(part.query_starts.tolist()) == set(part.target_starts.tolist()) == {-1}
    assert len(part.operations) == 0
    assert not part.operation_ends.any()


# parasail's striped functions sometimes miss the best score with linear gaps; its scan functions do not.
PARASAIL: dict[Mode, Callable[..., Any]] = {
    Mode.LOCAL: parasail.sw_scan_32,
    Mode.GLOBAL: parasail.nw_scan_32,
    Mode.SEMIGLOBAL: parasail.sg_dx_scan_32,
}


def align_with_parasail(pair: Pair, scores: MatchScores, mode: Mode) -> Any:
    """Align with parasail; its N matches nothing."""
    matrix = parasail.matrix_create("ACGTN", scores.match, -scores.mismatch)
    matrix[4, 4] = -scores.mismatch
    query, target = map(clean, pair)
    return PARASAIL[mode](query, target, scores.gap_open + scores.gap_extend, scores.gap_extend, matrix)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    "scores",
    [MatchScores(), MatchScores(2, 3, 5, 1), MatchScores(1, 1, 0, 1), MatchScores(10, 7, 20, 3)],
    ids=["default", "long gaps", "linear gaps", "32 bits"],
)
def test_scores_match_parasail(backend: Backend, scores: MatchScores, mode: Mode) -> None:
    draw = random.Random(f"{scores}{mode}")
    sizes = [300] * 150 + [1000] * 50 + [5000] * 6
    pairs = [draw_long_pair(draw, size) for size in sizes]
    backend = open_backend(backend.name, threads=2)
    backend.scratch_bytes = 4 << 30  # size of a block of the longest pairs on a GPU
    found = align(pairs, scores, mode, backend)
    for pair, alignment in zip(pairs, parsed(found), strict=True):
        expected = align_with_parasail(pair, scores, mode) if all(pair) else None
        if expected is not None:
            assert alignment.score == expected.score
        assert rescored(alignment, *pair, scores) == alignment.score
        if mode != Mode.LOCAL:
            assert (alignment.query_start, alignment.query_end) == (0, len(pair[0]))
        if mode == Mode.GLOBAL:
            assert (alignment.target_start, alignment.target_end) == (0, len(pair[1]))


@pytest.mark.parametrize("mode", list(Mode))
def test_ends_of_parasail_are_optimal(backend: Backend, mode: Mode) -> None:
    draw = random.Random(8)
    pairs = [pair for pair in (draw_long_pair(draw, 150) for _ in range(15)) if all(pair)]
    for pair, alignment in zip(pairs, parsed(align(pairs, MatchScores(), mode, backend)), strict=True):
        theirs, comparison = align_with_parasail(pair, MatchScores(), mode), Comparison(*pair, MatchScores(), mode)
        if theirs.score > 0 or mode != Mode.LOCAL:
            assert (theirs.end_query + 1, theirs.end_ref + 1) in comparison.ends
        assert (alignment.query_end, alignment.target_end) == comparison.ends[0]


@pytest.mark.parametrize("mode", list(Mode))
def test_results_do_not_depend_on_slices_threads_or_batches(backends: str, mode: Mode) -> None:
    draw = random.Random(9)
    pairs = [draw_pair(draw, 90) for _ in range(700)]
    one, many = open_backend(backends, threads=1), open_backend(backends, threads=4)
    expected = align(pairs, MatchScores(), mode, one)
    many.scratch_bytes = 230 * 230 * many.warp_width * many.lanes_16bit // 2
    assert same(align(pairs, MatchScores(), mode, many), expected)
    singly = [align([pair], MatchScores(), mode, one) for pair in pairs[:40]]
    assert [parsed(found)[0] for found in singly] == parsed(expected)[:40]
    backwards = parsed(align(pairs[::-1], MatchScores(), mode, one))
    assert backwards[::-1] == parsed(expected)


@pytest.mark.parametrize("mode", list(Mode))
def test_neighbouring_pairs_change_nothing(backend: Backend, mode: Mode) -> None:
    """Pairs whose paths lie on distant diagonals share a block."""
    for seed in range(60, 100):
        draw = random.Random(seed)
        pairs = [pair for pair in (draw_long_pair(draw, 300) for _ in range(6)) if all(pair)]
        alone = [parsed(align([pair], MatchScores(), mode, backend))[0] for pair in pairs]
        assert parsed(align(pairs, MatchScores(), mode, backend)) == alone


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("score_only", [False, True], ids=["paths", "scores"])
def test_large_pairs_are_aligned_one_by_one(backends: str, mode: Mode, score_only: bool) -> None:
    backend, roomy = open_backend(backends, threads=1), open_backend(backends, threads=1)
    draw = random.Random(10)
    pairs = [draw_pair(draw, 60) for _ in range(60)]
    backend.scratch_bytes = 60 * 60 * backend.warp_width * backend.lanes_16bit // 2
    queries, targets = (sequences_from_texts([pair[side] for pair in pairs], backend) for side in (0, 1))
    assert 5 < len(find_large_pairs(queries, targets, max_cells(backend))) < 50
    found = align(pairs, MatchScores(), mode, backend, score_only, align_pairs)
    assert same(found, align(pairs, MatchScores(), mode, roomy, score_only))


def test_arrays_and_texts_give_the_same_codes(backend: Backend) -> None:
    texts = ["ACGTUN", "", "acgtun", "R-*\n"]
    offsets = np.cumsum([0, *map(len, texts)])
    by_array = sequences_from_letters(np.frombuffer("".join(texts).encode(), np.uint8), offsets, backend)
    by_text = sequences_from_texts([text.encode() for text in texts], backend)
    for letters in (by_array, by_text):
        codes = backend.to_host(letters.codes)[: letters.count]
        assert codes.tolist() == [0, 1, 2, 3, 3, 4, 0, 1, 2, 3, 3, 4, 4, 4, 4, 4]
        assert letters.lengths.tolist() == [6, 0, 6, 4]
        assert backend.to_host(letters.offsets).tolist() == offsets.tolist()
        assert letters.longest == 6


@pytest.mark.parametrize("offsets", [[], [0], [0, 3], [1, 4], [0, 3, 2, 4]])
def test_invalid_offsets_are_rejected(backend: Backend, offsets: list[int]) -> None:
    with pytest.raises(UsageError, match="offsets that ascend from 0 to 4, the number of letters"):
        sequences_from_letters(np.frombuffer(b"ACGT", np.uint8), np.array(offsets, np.int64), backend)


def test_align_pairs_accepts_texts_and_arrays(backends: str) -> None:
    texts = ["GATTACA", "ACGT"], ("TTGATTTACATT", b"ACGTT")
    found = readmap.align_pairs(*texts, mode="global", device=backends, threads=1)
    assert parsed(found) == [
        Comparison(q, t, MatchScores(), Mode.GLOBAL).alignment
        for q, t in zip(texts[0], ("TTGATTTACATT", "ACGTT"), strict=True)
    ]
    arrays = [
        (np.frombuffer(b"GATTACAACGT", np.uint8), np.array([0, 7, 11])),
        (np.frombuffer(b"TTGATTTACATTACGTT", np.uint8), np.array([0, 12, 17])),
    ]
    assert same(readmap.align_pairs(*arrays, mode="global", device=backends, threads=1), found)
    assert len(readmap.align_pairs([], [], device=backends)) == 0
    assert readmap.align_pairs([""], ["A"], device=backends).cigars() == [""]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("count", [2, 3, 8])
def test_align_pairs_divides_pairs_among_devices(backends: str, mode: Mode, count: int) -> None:
    draw = random.Random(f"{mode}{count}")
    drawn = [draw_pair(draw, draw.choice([5, 60, 300])) for _ in range(60)]
    for pairs in ([], drawn[:1], drawn[:2], [("", "")] * 5, CORNERS, drawn):
        sides = [concatenate_texts([pair[side] for pair in pairs]) for side in (0, 1)]
        for score_only in (False, True):
            found = []
            for devices in (1, count):
                with team_of(backends, devices) as team:
                    found.append(align_arrays(sides[0], sides[1], MatchScores(2, 3, 5, 1), mode, score_only, team))
            for one, other in zip(vars(found[0]).values(), vars(found[1]).values(), strict=True):
                assert np.array_equal(one, other)


def test_example_in_the_docstring() -> None:
    done = doctest.testmod(api, raise_on_error=False)
    assert done.attempted > 2
    assert done.failed == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": ["A"]}, "expected equal numbers of queries and targets, found 2 and 1"),
        ({"mode": "glocal"}, "mode is glocal, expected one of local, global, semiglobal"),
        ({"gap_first": 1}, "the first letter of a gap costs 1, expected at least 2"),
        ({"match": 0}, "match is 0, expected 1 to 1000"),
        ({"device": "gpu"}, "--device gpu"),
    ],
)
def test_align_pairs_rejects_invalid_arguments(arguments: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"queries": ["A", "C"], "targets": ["A", "C"], "device": "cpu", **arguments}
    with pytest.raises(UsageError, match=message):
        readmap.align_pairs(**whole)
