"""Test comparisons of all pairs and pair by pair: strands, batches, progress, and the arguments of the aligners."""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.comparison import Comparison
from pair_examples import sequences

from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.errors import DataError, UsageError
from readmap.pairwise import comparison
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.pairwise.results import Result
from readmap.strand import Strand

COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module")
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


def random_texts(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    return ["".join(generator.choices("ACGT", k=generator.randrange(30))) for _ in range(count)]


def pairwise(
    backend: Backend,
    queries: list[str],
    targets: list[str],
    mode: Mode = Mode.LOCAL,
    strand: Strand = Strand.FORWARD,
    settings: CompareSettings | None = None,
) -> list[Result]:
    sides = sequences(queries), sequences(targets)
    found = comparison.compare_pairs(
        *sides, settings or CompareSettings(), mode, strand, Team.of(backend), lambda done, total: None
    )
    return [result for results in found for result in results]


def plain(result: Result) -> tuple[Any, ...]:
    """Return all fields except arrays."""
    return tuple(value for value in result if not isinstance(value, np.ndarray))


@pytest.mark.parametrize("mode", list(Mode))
def test_pairs_match_the_oracle(backend: Backend, mode: Mode) -> None:
    queries, targets, scores = random_texts(60, 1), random_texts(60, 2), MatchScores(2, 3, 4, 1)
    found = pairwise(backend, queries, targets, mode, settings=CompareSettings(scores))
    for query, target, result in zip(queries, targets, found, strict=True):
        expected = Comparison(query, target, scores, mode).alignment
        assert result.score == expected.score
        assert result.cigar.decode() == "".join(f"{length}{kind}" for length, kind in expected.cigar)
        if not result.is_empty:
            places = result.query_start, result.query_end, result.target_start, result.target_end
            ends = expected.query_start, expected.query_end, expected.target_start, expected.target_end
            assert places == ends


@pytest.mark.parametrize("mode", list(Mode))
def test_strands(backend: Backend, mode: Mode) -> None:
    queries, targets = random_texts(80, 3), random_texts(80, 4)
    backwards = [query[::-1].translate(COMPLEMENT) for query in queries]
    forward, reverse, both = (
        pairwise(backend, queries, targets, mode, strand) for strand in (Strand.FORWARD, Strand.REVERSE, Strand.BOTH)
    )
    assert {result.reverse for result in both} == {False, True}
    for i, result in enumerate(pairwise(backend, backwards, targets, mode)):
        if not result.is_empty:
            ends = len(queries[i]) - result.query_end, len(queries[i]) - result.query_start
            result = result._replace(query_start=ends[0], query_end=ends[1])
        assert plain(reverse[i]) == plain(result._replace(reverse=True))
        assert reverse[i].query.tobytes().decode() == backwards[i]
        better = reverse[i] if reverse[i].score > forward[i].score else forward[i]
        assert plain(both[i]) == plain(better)
        assert both[i].query.tobytes() == better.query.tobytes()
        assert both[i].operations.tolist() == better.operations.tolist()


@pytest.mark.parametrize("limits", [(1, 1 << 30, 1 << 40), (7, 1 << 30, 1 << 40), (99, 90, 1 << 40), (99, 999, 900)])
@pytest.mark.parametrize("strand", list(Strand))
def test_batches_change_nothing(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int], strand: Strand
) -> None:
    queries, targets = random_texts(50, 5), random_texts(50, 6)
    whole = pairwise(backend, queries, targets, strand=strand)
    for name, limit in zip(("MAX_BATCH_PAIRS", "MAX_BATCH_LETTERS", "MAX_BATCH_CELLS"), limits, strict=True):
        monkeypatch.setattr(comparison, name, limit)
    assert list(map(plain, pairwise(backend, queries, targets, strand=strand))) == list(map(plain, whole))


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("strand", list(Strand))
def test_devices_divide_pairs(backends: str, strand: Strand, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results keep the order of the input, and each device gets batches."""
    opened, users, align = [open_backend(backends, threads=1) for _ in range(count)], set(), comparison.align_batch

    def remember(*arguments: Any) -> Any:
        users.add(arguments[4])
        time.sleep(0.05)  # no device finishes before the other devices start
        return align(*arguments)

    queries, targets = random_texts(50, 5), random_texts(50, 6)
    whole = pairwise(opened[0], queries, targets, strand=strand)
    monkeypatch.setattr(comparison, "align_batch", remember)
    for numbers in (range(50), range(1), range(3), range(0)):
        sides = (sequences([side[number] for number in numbers]) for side in (queries, targets))
        with Team.of(*opened) as team:
            found = comparison.compare_pairs(*sides, CompareSettings(), Mode.LOCAL, strand, team, lambda *cells: None)
            results = [plain(result) for each in found for result in each]
        assert results == list(map(plain, whole[: len(numbers)]))
    assert users == set(opened)


def test_every_query_with_every_target(backend: Backend) -> None:
    queries, targets = random_texts(4, 7), random_texts(3, 8)
    sides = sequences(queries), sequences(targets)
    reported: list[tuple[int, int]] = []
    how = CompareSettings(), Strand.BOTH, Team.of(backend)
    found = list(comparison.compare_all(*sides, *how, lambda *cells: reported.append(cells)))
    assert [(each.first_query, each.first_target) for each in found] == [(i, j) for i in range(4) for j in range(3)]
    in_pairs = pairwise(backend, [q for q in queries for _ in targets], targets * 4, strand=Strand.BOTH)
    names = [(b"s%d" % i, b"s%d" % j) for i in range(4) for j in range(3)]
    expected = [
        plain(result._replace(query_name=query, target_name=target))
        for result, (query, target) in zip(in_pairs, names, strict=True)
    ]
    assert [plain(result) for each in found for result in each] == expected
    total = 2 * sum(map(len, queries)) * sum(map(len, targets))
    assert reported == sorted(reported)
    assert reported[-1] == (total, total)
    assert {all_cells for _, all_cells in reported} == {total}


def test_each_pair_and_strand_has_its_own_checkpoint(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen, align_long = [], comparison.align_long_pair

    def remember(query: Any, target: Any, settings: CompareSettings, *rest: Any) -> Any:
        seen.append(settings)
        return align_long(query, target, settings, *rest)

    monkeypatch.setattr(comparison, "align_long_pair", remember)
    asked = CompareSettings(pruning=False, memory=7, checkpoint=tmp_path / "work")
    sides = sequences(["A", "C"]), sequences(["A"])
    list(comparison.compare_all(*sides, asked, Strand.BOTH, Team.of(backend), lambda *cells: None))
    folders = [settings.checkpoint and settings.checkpoint.relative_to(tmp_path).as_posix() for settings in seen]
    assert folders == ["work/1-1-forward", "work/1-1-reverse", "work/2-1-forward", "work/2-1-reverse"]
    assert {(settings.pruning, settings.memory) for settings in seen} == {(False, 7)}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((1, 3), "1 queries and 3 targets.*record 2 .s1. of the targets"),
        ((2, 1), "record 2 .s1. of the queries has no"),
    ],
)
def test_unequal_numbers_of_records_are_rejected(backend: Backend, counts: tuple[int, int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        pairwise(backend, *(["A"] * count for count in counts))


@pytest.mark.parametrize(
    ("lengths", "mode", "most"),
    [
        ((2_000_000, 1_073_742), Mode.LOCAL, "1,073,742,000"),
        ((600_000, 500_000), Mode.GLOBAL, "1,100,002,000"),
        ((1_100_000, 2), Mode.SEMIGLOBAL, "1,100,002,000"),
    ],
)
def test_check_of_score_range(lengths: tuple[int, int], mode: Mode, most: str) -> None:
    scores, few = MatchScores(1000, 1, 1000, 1000), [np.array([length]) for length in lengths]
    with pytest.raises(UsageError, match=f"may reach {most}, expected less than 1,073,741,824"):
        scores.check_score_range(*few, mode)
    MatchScores().check_score_range(*few, mode)
    scores.check_score_range(np.array([1, 1_000]), np.array([1_000_000, 3_000]), mode)


def test_scores_out_of_range_are_rejected_at_once() -> None:
    side: Any = sequences(["A" * 1_100_000])
    settings, asked = CompareSettings(MatchScores(match=1000)), (Mode.LOCAL, Strand.FORWARD)
    team: Any = None
    with pytest.raises(UsageError, match="choose smaller scores"):
        next(comparison.compare_all(side, side, settings, Strand.FORWARD, team, lambda *cells: None))
    with pytest.raises(UsageError, match="choose smaller scores"):
        next(comparison.compare_pairs(side, side, settings, *asked, team, lambda *cells: None))


def test_score_only_finds_the_end_of_the_alignment(backend: Backend) -> None:
    queries, targets = random_texts(50, 9), random_texts(50, 10)
    for strand in Strand:
        whole = pairwise(backend, queries, targets, strand=strand)
        scored = pairwise(backend, queries, targets, strand=strand, settings=CompareSettings(score_only=True))
        for one, other in zip(whole, scored, strict=True):
            assert (one.score, one.reverse, one.target_end) == (other.score, other.reverse, other.target_end)
            known = (one.query_start, -1) if one.reverse else (-1, one.query_end)
            assert (other.query_start, other.query_end) == known
            assert (other.target_start, other.cigar, other.columns, other.is_empty) == (-1, b"", 0, one.is_empty)


@pytest.mark.parametrize("score_only", [False, True])
def test_an_empty_sequence(backend: Backend, score_only: bool) -> None:
    sides = sequences([""]), sequences(["ACGT"])
    settings = CompareSettings(score_only=score_only)
    ((result,),) = comparison.compare_all(*sides, settings, Strand.BOTH, Team.of(backend), lambda *cells: None)
    assert result.is_empty
    assert (result.score, result.reverse) == (0, False)
