"""Scores of a scan against the oracle and parasail, whatever the shape of the kernel and however subjects are cut."""

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
from readmap.database import partition, scores
from readmap.database.interleaving import InterleavedSubjects, interleave
from readmap.database.parameters import ScanScoring
from readmap.database.partition import SubjectBatch
from readmap.database.scores import CELLS, OVERFLOW, WIDTHS, DeviceQuery, StripShape, score

BLOSUM62 = COSTS["BLOSUM62"]


@pytest.fixture(scope="module")
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


def longest_first(subjects: Sequence[Codes]) -> list[Codes]:
    return sorted(subjects, key=len, reverse=True)


def joined(subjects: Sequence[Codes]) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """Codes, starts and lengths."""
    ends = np.cumsum([0, *map(len, subjects)], dtype=np.int64)
    return np.concatenate([coded(""), *subjects]), ends[:-1], np.diff(ends)


def columns_of(subjects: Sequence[Codes], backend: Backend) -> InterleavedSubjects:
    return interleave(*joined(subjects), backend)


def found(query: Codes, subjects: Sequence[Codes], costs: ScanScoring, backend: Backend) -> NDArray[np.int32]:
    return score(DeviceQuery.of(query, costs, backend), columns_of(subjects, backend), backend)


def family(draw: random.Random, query: str, lengths: Sequence[int], letters: str = LETTERS) -> list[Codes]:
    """Subjects of such lengths, half of them with a relative of the query within."""
    subjects = []
    for length in lengths:
        text = random_letters(draw, length, letters)
        if query and draw.random() < 0.5:
            place = draw.randrange(length + 1)
            text = text[:place] + mutated(draw, query, draw.choice([0.05, 0.3]), LETTERS) + text[place:]
        subjects.append(coded(text[:length]))
    return longest_first(subjects)


def parasails(query: Codes, subject: Codes, costs: ScanScoring) -> int:
    """The score that parasail finds, of a symmetric matrix and sequences with letters."""
    matrix = parasail_matrix(costs)
    texts = ("".join(LETTERS[code] for code in codes) for codes in (query, subject))
    return int(parasail.sw_scan_32(*texts, costs.gap_open + costs.gap_extend, costs.gap_extend, matrix).score)


# What scores.


@pytest.mark.parametrize("name", COSTS)
def test_scores_are_the_oracles(backend: Backend, name: str) -> None:
    draw, costs = random.Random(name), COSTS[name]
    letters = "ACGTN" if name == "nucleotides" else LETTERS
    for rows in (0, 1, 2, 7, 33, 100):
        query = random_letters(draw, rows, letters)
        lengths = [0, 0, 1, 1, 2, 3, *(draw.randrange(120) for _ in range(28 + rows % 20)), 300]
        subjects = family(draw, query, lengths, letters)
        expected = scores_of([coded(query)], subjects, costs)[0]
        assert np.array_equal(found(coded(query), subjects, costs, backend), expected), rows


@pytest.mark.parametrize("name", ["BLOSUM62", "PAM30", "cheap gaps", "large"])
def test_scores_are_parasails(backend: Backend, name: str) -> None:
    draw, costs = random.Random(name), COSTS[name]
    for rows in (40, 513, 3000):
        query = random_letters(draw, rows, RESIDUES)
        subjects = family(draw, query, [5, 60, 300, 301, 302, 900, 3000], RESIDUES)
        expected = [parasails(coded(query), subject, costs) for subject in subjects]
        assert found(coded(query), subjects, costs, backend).tolist() == expected


def test_the_oracle_is_right() -> None:
    draw = random.Random(2)
    for _ in range(30):
        query, subject = (coded(random_letters(draw, draw.randrange(1, 50), "ACDW*")) for _ in range(2))
        for name in ("BLOSUM62", "cheap gaps", "large"):
            assert score_of(query, subject, COSTS[name]) == parasails(query, subject, COSTS[name])


def test_every_letter_has_its_score(backend: Backend) -> None:
    letters = coded(LETTERS)
    costs = COSTS["lopsided"]
    subjects = [letters[i : i + 1] for i in range(27)]
    for code in letters:
        expected = np.maximum(costs.matrix.scores[code, letters], 0)
        assert np.array_equal(found(np.array([code], np.uint8), subjects, costs, backend), expected)


def test_scores_are_those_of_the_query_with_the_subject(backend: Backend) -> None:
    """Rows of the matrix are of the query."""
    costs = COSTS["lopsided"]
    assert not np.array_equal(costs.matrix.scores, costs.matrix.scores.T)
    draw = random.Random(8)
    query, subject = (coded(random_letters(draw, 90)) for _ in range(2))
    assert score_of(query, subject, costs) != score_of(subject, query, costs)
    assert found(query, [subject], costs, backend)[0] == score_of(query, subject, costs)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 15, 16, 17, 31, 33])
def test_groups_need_not_be_full(backend: Backend, count: int) -> None:
    draw = random.Random(count)
    query = random_letters(draw, 50)
    subjects = family(draw, query, [draw.randrange(90) for _ in range(count)])
    scored = found(coded(query), subjects, BLOSUM62, backend)
    assert scored.dtype == np.int32
    assert scored.tolist() == [score_of(coded(query), subject, BLOSUM62) for subject in subjects]


def test_nothing(backend: Backend) -> None:
    for query in ("", "MKV"):
        assert len(found(coded(query), [], BLOSUM62, backend)) == 0
        assert found(coded(query), [coded("")] * 40, BLOSUM62, backend).tolist() == [0] * 40


# Scores that 16 bits do not hold.


def test_scores_that_overflow_are_found(backend: Backend) -> None:
    """W scores 11 with itself: 2,909 reach 32,000, and 2,979 go beyond 16 bits."""
    query = coded("W" * 6200)
    lengths = [6200, 6000, 5960, 5957, *range(2990, 2970, -1), *range(2915, 2900, -1), 100, 1, 0]
    subjects = [coded("W" * length) for length in lengths]
    assert found(query, subjects, BLOSUM62, backend).tolist() == [11 * length for length in lengths]


@pytest.mark.parametrize("place", [0, 5, 20, 40])
def test_one_that_overflows_does_no_harm_to_others(backend: Backend, place: int) -> None:
    draw = random.Random(place)
    query = random_letters(draw, 6500, RESIDUES)
    subjects = [coded(random_letters(draw, 7000 - number, RESIDUES)) for number in range(45)]
    subjects[place] = coded(mutated(draw, query, 0.01, LETTERS) + random_letters(draw, 9000, RESIDUES))[
        : len(subjects[place])
    ]
    scored = found(coded(query), subjects, BLOSUM62, backend)
    for number in {0, place, (place + 1) % 45, 44}:
        assert scored[number] == parasails(coded(query), subjects[number], BLOSUM62)
    assert np.flatnonzero(scored >= OVERFLOW).tolist() == [place]


def test_the_highest_letters_pass_the_limit_in_no_step(backend: Backend) -> None:
    costs = COSTS["all of a byte"]
    query = coded("".join(random.Random(1).choices(LETTERS, k=400)))
    subjects = [query[:length] for length in range(300, 268, -1)]
    assert found(query, subjects, costs, backend).tolist() == [score_of(query, each, costs) for each in subjects]


def test_titin(backend: Backend) -> None:
    """As long as the longest human protein, with parts of itself and the other way round."""
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
    """A query with many strips, and relatives of some lengths."""
    draw = random.Random(11)
    query = random_letters(draw, 1100, RESIDUES)
    lengths = [3000, 2500, *(draw.randrange(40, 1500) for _ in range(120)), 8, 7, 1, 0]
    return coded(query), family(draw, query, lengths, RESIDUES)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["BLOSUM62", "large"])
def test_every_shape_gives_the_same(
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
def test_stretches_give_the_same(backend: Backend, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The span of the second query is longer than most subjects."""
    draw, costs = random.Random(name), COSTS[name]
    for rows in (6, 70):
        query = random_letters(draw, rows, RESIDUES)
        subjects = family(draw, query, [4000, 3999, 2500, *range(900, 840, -1), 30, 20, 0], RESIDUES)
        # An alignment with itself, wherever stretches may be cut.
        long = subjects[0].copy()
        for place in range(0, len(long) - rows - 2, 3 * rows + 1):
            long[place : place + rows // 2] = coded(query)[: rows // 2]
            long[place + rows // 2 + 2 : place + rows + 2] = coded(query)[rows // 2 :]
        subjects[1] = long[:-1]
        monkeypatch.setattr(scores, "UNCUT_COLUMNS", 1 << 40)
        expected = found(coded(query), subjects, costs, backend)
        assert expected.tolist() == scores_of([coded(query)], subjects, costs)[0].tolist()
        for uncut in (1, 64, 1000):
            monkeypatch.setattr(scores, "UNCUT_COLUMNS", uncut)
            assert np.array_equal(found(coded(query), subjects, costs, backend), expected)


def test_an_alignment_over_each_cut_is_whole(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest alignments that there are: so many letters against gaps that the last is worth no more."""
    monkeypatch.setattr(scores, "UNCUT_COLUMNS", 1)
    costs = COSTS["cheap gaps"]
    query = coded("W" * 6)
    span = DeviceQuery.of(query, costs, backend).span
    assert span == 6 + 66
    for before in range(0, 400, 7):
        for gap in (1, 31, 32, 33, 70):
            text = "P" * before + "WWW" + "P" * gap + "WWW" + "P" * (900 - before - gap)
            assert found(query, [coded(text)], costs, backend)[0] == max(33, 66 - gap), (before, gap)


@pytest.mark.parametrize("name", ["BLOSUM62", "cheap gaps", "large"])
def test_pieces_of_subjects_give_the_same(backend: Backend, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, costs = random.Random(name), COSTS[name]
    monkeypatch.setattr(partition, "UNCUT_LETTERS", 1)
    for rows in (5, 40):
        query = random_letters(draw, rows, RESIDUES)
        subjects = family(draw, query, [5000, 3000, 3000, 1200, *range(400, 350, -1), 1, 0, 0], RESIDUES)
        placed = DeviceQuery.of(coded(query), costs, backend)
        codes, starts, lengths = joined(subjects)
        pieces, sizes, owners = partition._cut(starts, lengths, 4 * placed.span, placed.span)
        assert owners is not None
        assert len(pieces) > len(subjects) + 5
        assert sizes.max() <= 5 * placed.span
        assert np.array_equal(np.sort(-sizes), -sizes)
        columns = interleave(codes, pieces, sizes, backend)
        scored = SubjectBatch(0, len(subjects), columns, owners, placed.span).scores(placed, backend)
        assert scored.tolist() == scores_of([coded(query)], subjects, costs)[0].tolist()


@pytest.mark.parametrize("name", ["BLOSUM62", "large"])
def test_borders_in_slices_give_the_same(backends: str, related: tuple[Codes, list[Codes]], name: str) -> None:
    query, subjects = related
    roomy, tight, least = (open_backend(backends, threads=2) for _ in range(3))
    tight.scratch_bytes, least.scratch_bytes = 1 << 18, 1
    expected = found(query, subjects, COSTS[name], roomy)
    assert np.array_equal(found(query, subjects, COSTS[name], tight), expected)
    assert np.array_equal(found(query, subjects, COSTS[name], least), expected)


@pytest.mark.parametrize("name", ["BLOSUM62", "large"])
@pytest.mark.parametrize("cells", [1, 1 << 20, 5_000_000])
def test_rounds_give_the_same(
    backend: Backend,
    related: tuple[Codes, list[Codes]],
    name: str,
    cells: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query, subjects = related
    expected = found(query, subjects, COSTS[name], backend)
    monkeypatch.setattr(scores, "CALL_CELLS", cells)
    assert np.array_equal(found(query, subjects, COSTS[name], backend), expected)
    monkeypatch.setattr(scores, "UNCUT_COLUMNS", 1)
    short = found(query[:60], subjects, COSTS[name], backend)
    assert short.tolist() == scores_of([query[:60]], subjects, COSTS[name])[0].tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_give_the_same(related: tuple[Codes, list[Codes]], threads: int, backends: str) -> None:
    query, subjects = related
    one, other = (open_backend(backends, threads=count) for count in (2, threads))
    assert np.array_equal(*(found(query, subjects, BLOSUM62, each) for each in (one, other)))
