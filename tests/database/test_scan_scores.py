"""Test scores of a scan against the oracle and parasail, for any kernel shape and any division of subjects."""

import random
import time
from collections.abc import Sequence

import numpy as np
import parasail
import pytest
from numpy.typing import NDArray
from oracles.scan import Codes, parasail_matrix, score_of, scores_of
from pair_examples import mutated
from protein_examples import COSTS, LETTERS, RESIDUES, coded, random_letters

from readmap.backend import Backend, open_backend
from readmap.database import device_pool, scores
from readmap.database.device_pool import SubjectBatch
from readmap.database.parameters import ScanScoring
from readmap.database.scores import (
    CELLS,
    OVERFLOW,
    WIDTHS,
    DeviceQuery,
    InterleavedSubjects,
    StripShape,
    interleave,
    score,
)

BLOSUM62 = COSTS["BLOSUM62"]


@pytest.fixture(scope="module")
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


def longest_first(subjects: Sequence[Codes]) -> list[Codes]:
    return sorted(subjects, key=len, reverse=True)


def joined(subjects: Sequence[Codes]) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """Return codes, starts and lengths."""
    ends = np.cumsum([0, *map(len, subjects)], dtype=np.int64)
    return np.concatenate([coded(""), *subjects]), ends[:-1], np.diff(ends)


def columns_of(subjects: Sequence[Codes], backend: Backend) -> InterleavedSubjects:
    return interleave(*joined(subjects), backend)


def found(query: Codes, subjects: Sequence[Codes], scoring: ScanScoring, backend: Backend) -> NDArray[np.int32]:
    return score(DeviceQuery.of(query, scoring, backend), columns_of(subjects, backend), backend)


def family(draw: random.Random, query: str, lengths: Sequence[int], letters: str = LETTERS) -> list[Codes]:
    """Return subjects of these lengths; half of them contain a relative of the query."""
    subjects = []
    for length in lengths:
        text = random_letters(draw, length, letters)
        if query and draw.random() < 0.5:
            place = draw.randrange(length + 1)
            text = text[:place] + mutated(draw, query, draw.choice([0.05, 0.3]), LETTERS) + text[place:]
        subjects.append(coded(text[:length]))
    return longest_first(subjects)


def score_with_parasail(query: Codes, subject: Codes, scoring: ScanScoring) -> int:
    """Return parasail's score for a symmetric matrix and sequences that are not empty."""
    matrix = parasail_matrix(scoring)
    texts = ("".join(LETTERS[code] for code in codes) for codes in (query, subject))
    return int(parasail.sw_scan_32(*texts, scoring.gap_open + scoring.gap_extend, scoring.gap_extend, matrix).score)


# Scores.


@pytest.mark.parametrize("name", COSTS)
def test_scores_match_the_oracle(backend: Backend, name: str) -> None:
    draw, scoring = random.Random(name), COSTS[name]
    letters = "ACGTN" if name == "nucleotides" else LETTERS
    for rows in (0, 1, 2, 7, 33, 100):
        query = random_letters(draw, rows, letters)
        lengths = [0, 0, 1, 1, 2, 3, *(draw.randrange(120) for _ in range(28 + rows % 20)), 300]
        subjects = family(draw, query, lengths, letters)
        expected = scores_of([coded(query)], subjects, scoring)[0]
        assert np.array_equal(found(coded(query), subjects, scoring, backend), expected), rows


@pytest.mark.parametrize("name", ["BLOSUM62", "PAM30", "cheap gaps", "large"])
def test_scores_match_parasail(backend: Backend, name: str) -> None:
    draw, scoring = random.Random(name), COSTS[name]
    for rows in (40, 513, 3000):
        query = random_letters(draw, rows, RESIDUES)
        subjects = family(draw, query, [5, 60, 300, 301, 302, 900, 3000], RESIDUES)
        expected = [score_with_parasail(coded(query), subject, scoring) for subject in subjects]
        assert found(coded(query), subjects, scoring, backend).tolist() == expected


def test_the_oracle() -> None:
    draw = random.Random(2)
    for _ in range(30):
        query, subject = (coded(random_letters(draw, draw.randrange(1, 50), "ACDW*")) for _ in range(2))
        for name in ("BLOSUM62", "cheap gaps", "large"):
            assert score_of(query, subject, COSTS[name]) == score_with_parasail(query, subject, COSTS[name])


def test_scores_of_all_letters(backend: Backend) -> None:
    letters = coded(LETTERS)
    scoring = COSTS["lopsided"]
    subjects = [letters[i : i + 1] for i in range(27)]
    for code in letters:
        expected = np.maximum(scoring.matrix.scores[code, letters], 0)
        assert np.array_equal(found(np.array([code], np.uint8), subjects, scoring, backend), expected)


def test_asymmetric_matrix(backend: Backend) -> None:
    """Rows of the matrix belong to the query."""
    scoring = COSTS["lopsided"]
    assert not np.array_equal(scoring.matrix.scores, scoring.matrix.scores.T)
    draw = random.Random(8)
    query, subject = (coded(random_letters(draw, 90)) for _ in range(2))
    assert score_of(query, subject, scoring) != score_of(subject, query, scoring)
    assert found(query, [subject], scoring, backend)[0] == score_of(query, subject, scoring)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 15, 16, 17, 31, 33])
def test_incomplete_groups(backend: Backend, count: int) -> None:
    draw = random.Random(count)
    query = random_letters(draw, 50)
    subjects = family(draw, query, [draw.randrange(90) for _ in range(count)])
    scored = found(coded(query), subjects, BLOSUM62, backend)
    assert scored.dtype == np.int32
    assert scored.tolist() == [score_of(coded(query), subject, BLOSUM62) for subject in subjects]


def test_empty_input(backend: Backend) -> None:
    for query in ("", "MKV"):
        assert len(found(coded(query), [], BLOSUM62, backend)) == 0
        assert found(coded(query), [coded("")] * 40, BLOSUM62, backend).tolist() == [0] * 40


# Scores that 16 bits do not hold.


def test_overflow_of_16_bits(backend: Backend) -> None:
    """W scores 11 with itself: 2,909 reach 32,000, and 2,979 exceed 16 bits."""
    query = coded("W" * 6200)
    lengths = [6200, 6000, 5960, 5957, *range(2990, 2970, -1), *range(2915, 2900, -1), 100, 1, 0]
    subjects = [coded("W" * length) for length in lengths]
    assert found(query, subjects, BLOSUM62, backend).tolist() == [11 * length for length in lengths]


@pytest.mark.parametrize("place", [0, 5, 20, 40])
def test_overflow_does_not_affect_other_subjects(backend: Backend, place: int) -> None:
    draw = random.Random(place)
    query = random_letters(draw, 6500, RESIDUES)
    subjects = [coded(random_letters(draw, 7000 - number, RESIDUES)) for number in range(45)]
    subjects[place] = coded(mutated(draw, query, 0.01, LETTERS) + random_letters(draw, 9000, RESIDUES))[
        : len(subjects[place])
    ]
    scored = found(coded(query), subjects, BLOSUM62, backend)
    for number in {0, place, (place + 1) % 45, 44}:
        assert scored[number] == score_with_parasail(coded(query), subjects[number], BLOSUM62)
    assert np.flatnonzero(scored >= OVERFLOW).tolist() == [place]


def test_highest_scores_stay_below_the_limit_in_each_step(backend: Backend) -> None:
    scoring = COSTS["all of a byte"]
    query = coded("".join(random.Random(1).choices(LETTERS, k=400)))
    subjects = [query[:length] for length in range(300, 268, -1)]
    assert found(query, subjects, scoring, backend).tolist() == [score_of(query, each, scoring) for each in subjects]


def test_titin(backend: Backend) -> None:
    """The subject is as long as the longest human protein, and contains parts of itself, also reversed."""
    titin = coded(random_letters(random.Random(35), 35_000, RESIDUES))
    itself = BLOSUM62.matrix.scores[titin, titin]
    expected = [int(itself[start:end].sum()) for start, end in ((10_000, 17_000), (28_100, 35_000), (0, 40))]
    assert expected[1] > OVERFLOW
    began = time.perf_counter()
    parts = [titin[10_000:17_000], titin[28_100:], titin[:40]]
    assert found(titin, parts, BLOSUM62, backend).tolist() == expected
    assert [found(part, [titin], BLOSUM62, backend)[0] for part in parts[1:]] == expected[1:]
    assert time.perf_counter() - began < 60


# Shapes and pieces.


@pytest.fixture
def related(backend: Backend) -> tuple[Codes, list[Codes]]:
    """Return a query with many strips, and relatives of several lengths."""
    draw = random.Random(11)
    query = random_letters(draw, 1100, RESIDUES)
    lengths = [3000, 2500, *(draw.randrange(40, 1500) for _ in range(120)), 8, 7, 1, 0]
    return coded(query), family(draw, query, lengths, RESIDUES)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["BLOSUM62", "large"])
def test_shapes_change_nothing(
    backend: Backend, related: tuple[Codes, list[Codes]], width: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend.warp_width == 1:
        pytest.skip("the CPU has one shape")
    query, subjects = related
    for cells in CELLS if name == "BLOSUM62" else CELLS[:1]:
        if width * -(-cells // 8) * 8 > scores.STRIP_ROWS:
            continue
        for rows in (1, width * cells - 1, width * cells, width * cells + 1, len(query)):
            expected = found(query[:rows], subjects, COSTS[name], backend)
            with monkeypatch.context() as patch:
                patch.setattr(scores, "_shape", lambda *_, cells=cells: StripShape(width, cells))
                assert np.array_equal(found(query[:rows], subjects, COSTS[name], backend), expected), (cells, rows)


@pytest.mark.parametrize("name", ["BLOSUM62", "cheap gaps", "large"])
def test_column_ranges_change_nothing(backend: Backend, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The span of the second query is longer than most subjects."""
    draw, scoring = random.Random(name), COSTS[name]
    for rows in (6, 70):
        query = random_letters(draw, rows, RESIDUES)
        subjects = family(draw, query, [4000, 3999, 2500, *range(900, 840, -1), 30, 20, 0], RESIDUES)
        # An alignment of a sequence with itself, for any cuts.
        long = subjects[0].copy()
        for place in range(0, len(long) - rows - 2, 3 * rows + 1):
            long[place : place + rows // 2] = coded(query)[: rows // 2]
            long[place + rows // 2 + 2 : place + rows + 2] = coded(query)[rows // 2 :]
        subjects[1] = long[:-1]
        monkeypatch.setattr(scores, "UNCUT_COLUMNS", 1 << 40)
        expected = found(coded(query), subjects, scoring, backend)
        assert expected.tolist() == scores_of([coded(query)], subjects, scoring)[0].tolist()
        for uncut in (1, 64, 1000):
            monkeypatch.setattr(scores, "UNCUT_COLUMNS", uncut)
            assert np.array_equal(found(coded(query), subjects, scoring, backend), expected)


def test_alignments_across_cuts(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest possible alignments: with so many letters in gaps that one more would have score 0."""
    monkeypatch.setattr(scores, "UNCUT_COLUMNS", 1)
    scoring = COSTS["cheap gaps"]
    query = coded("W" * 6)
    span = DeviceQuery.of(query, scoring, backend).span
    assert span == 6 + 66
    for before in range(0, 400, 7):
        for gap in (1, 31, 32, 33, 70):
            text = "P" * before + "WWW" + "P" * gap + "WWW" + "P" * (900 - before - gap)
            assert found(query, [coded(text)], scoring, backend)[0] == max(33, 66 - gap), (before, gap)


@pytest.mark.parametrize("name", ["BLOSUM62", "cheap gaps", "large"])
def test_pieces_of_subjects_change_nothing(backend: Backend, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, scoring = random.Random(name), COSTS[name]
    monkeypatch.setattr(device_pool, "UNCUT_LETTERS", 1)
    for rows in (5, 40):
        query = random_letters(draw, rows, RESIDUES)
        subjects = family(draw, query, [5000, 3000, 3000, 1200, *range(400, 350, -1), 1, 0, 0], RESIDUES)
        placed = DeviceQuery.of(coded(query), scoring, backend)
        codes, starts, lengths = joined(subjects)
        pieces, sizes, owners = device_pool._cut(starts, lengths, 4 * placed.span, placed.span)
        assert owners is not None
        assert len(pieces) > len(subjects) + 5
        assert sizes.max() <= 5 * placed.span
        assert np.array_equal(np.sort(-sizes), -sizes)
        columns = interleave(codes, pieces, sizes, backend)
        scored = SubjectBatch(0, len(subjects), columns, owners, placed.span).scores(placed, backend)
        assert scored.tolist() == scores_of([coded(query)], subjects, scoring)[0].tolist()


@pytest.mark.parametrize("name", ["BLOSUM62", "large"])
def test_slices_of_borders_change_nothing(backends: str, related: tuple[Codes, list[Codes]], name: str) -> None:
    query, subjects = related
    roomy, tight, least = (open_backend(backends, threads=2) for _ in range(3))
    tight.scratch_bytes, least.scratch_bytes = 1 << 18, 1
    expected = found(query, subjects, COSTS[name], roomy)
    assert np.array_equal(found(query, subjects, COSTS[name], tight), expected)
    assert np.array_equal(found(query, subjects, COSTS[name], least), expected)


@pytest.mark.parametrize("name", ["BLOSUM62", "large"])
@pytest.mark.parametrize("cells", [1, 1 << 20, 5_000_000])
def test_rounds_change_nothing(
    backend: Backend, related: tuple[Codes, list[Codes]], name: str, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, subjects = related
    expected = found(query, subjects, COSTS[name], backend)
    monkeypatch.setattr(scores, "CALL_CELLS", cells)
    assert np.array_equal(found(query, subjects, COSTS[name], backend), expected)
    monkeypatch.setattr(scores, "UNCUT_COLUMNS", 1)
    short = found(query[:60], subjects, COSTS[name], backend)
    assert short.tolist() == scores_of([query[:60]], subjects, COSTS[name])[0].tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(related: tuple[Codes, list[Codes]], threads: int, backends: str) -> None:
    query, subjects = related
    one, other = (open_backend(backends, threads=count) for count in (2, threads))
    assert np.array_equal(*(found(query, subjects, BLOSUM62, each) for each in (one, other)))
