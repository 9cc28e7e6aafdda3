"""Every query with every target, and pair by pair: strands, batches, progress, and what is handed to the aligners."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import parasail
import pytest
import stand_in

from readmap.compare import aligners, comparison
from readmap.compare.parameters import Mode, Scores, Settings
from readmap.compare.results import Result
from readmap.errors import DataError
from readmap.formats.sequences import Sequences
from readmap.index.occurrences import Strand

COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligners, "align_batch", stand_in.align_batch)
    monkeypatch.setattr(aligners, "align_long", stand_in.align_long)


def sequences(texts: list[str]) -> Sequences:
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    return Sequences([b"s%d" % i for i in range(len(texts))], letters, np.cumsum([0, *map(len, texts)]))


def random_texts(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    return ["".join(generator.choices("ACGT", k=generator.randrange(30))) for _ in range(count)]


def pairwise(
    queries: list[str],
    targets: list[str],
    mode: Mode = Mode.LOCAL,
    strand: Strand = Strand.FORWARD,
    settings: Settings | None = None,
) -> list[Result]:
    sides = sequences(queries), sequences(targets)
    backend: Any = None
    found = comparison.compare_pairs(*sides, settings or Settings(), mode, strand, backend, lambda done, total: None)
    return [result for results in found for result in results]


def plain(result: Result) -> tuple[Any, ...]:
    """All but arrays."""
    return tuple(value for value in result if not isinstance(value, np.ndarray))


@pytest.mark.parametrize("mode", list(Mode))
def test_the_stand_in_scores_as_parasail_does(mode: Mode) -> None:
    matrix = parasail.matrix_create("ACGT", 2, -3)
    score = {Mode.LOCAL: parasail.sw, Mode.GLOBAL: parasail.nw, Mode.SEMIGLOBAL: parasail.sg_dx}[mode]
    queries, targets = [[text + "A" for text in random_texts(60, seed)] for seed in (1, 2)]
    found = pairwise(queries, targets, mode, settings=Settings(Scores(2, 3, 4, 1)))
    expected = [score(q, t, 5, 1, matrix).score for q, t in zip(queries, targets, strict=True)]
    assert [result.score for result in found] == expected


@pytest.mark.parametrize("mode", list(Mode))
def test_strands(mode: Mode) -> None:
    queries, targets = random_texts(80, 3), random_texts(80, 4)
    backwards = [query[::-1].translate(COMPLEMENT) for query in queries]
    forward, reverse, both = (
        pairwise(queries, targets, mode, strand) for strand in (Strand.FORWARD, Strand.REVERSE, Strand.BOTH)
    )
    assert {result.reverse for result in both} == {False, True}
    for i, result in enumerate(pairwise(backwards, targets, mode)):
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
def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int], strand: Strand) -> None:
    queries, targets = random_texts(50, 5), random_texts(50, 6)
    whole = pairwise(queries, targets, strand=strand)
    for name, limit in zip(("BATCH_PAIRS", "BATCH_LETTERS", "BATCH_CELLS"), limits, strict=True):
        monkeypatch.setattr(comparison, name, limit)
    assert list(map(plain, pairwise(queries, targets, strand=strand))) == list(map(plain, whole))


def test_every_query_with_every_target() -> None:
    queries, targets = random_texts(4, 7), random_texts(3, 8)
    sides = sequences(queries), sequences(targets)
    told: list[tuple[int, int]] = []
    backend: Any = None
    found = list(comparison.compare_all(*sides, Settings(), Strand.BOTH, backend, lambda *cells: told.append(cells)))
    assert [(each.first_query, each.first_target) for each in found] == [(i, j) for i in range(4) for j in range(3)]
    in_pairs = pairwise([q for q in queries for _ in targets], targets * 4, strand=Strand.BOTH)
    names = [(b"s%d" % i, b"s%d" % j) for i in range(4) for j in range(3)]
    expected = [
        plain(result._replace(query_name=query, target_name=target))
        for result, (query, target) in zip(in_pairs, names, strict=True)
    ]
    assert [plain(result) for each in found for result in each] == expected
    total = 2 * sum(map(len, queries)) * sum(map(len, targets))
    assert told == sorted(told)
    assert told[-1] == (total, total)
    assert {all_cells for _, all_cells in told} == {total}


def test_checkpoints_are_of_a_pair_and_a_strand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []

    def remember(query: Any, target: Any, settings: Settings, *rest: Any) -> Any:
        seen.append(settings)
        return stand_in.align_long(query, target, settings, *rest)

    monkeypatch.setattr(aligners, "align_long", remember)
    asked = Settings(pruning=False, memory=7, checkpoint=tmp_path / "work")
    sides = sequences(["A", "C"]), sequences(["A"])
    backend: Any = None
    list(comparison.compare_all(*sides, asked, Strand.BOTH, backend, lambda *cells: None))
    assert [settings.checkpoint and settings.checkpoint.relative_to(tmp_path).as_posix() for settings in seen] == [
        "work/1-1-forward",
        "work/1-1-reverse",
        "work/2-1-forward",
        "work/2-1-reverse",
    ]
    assert {(settings.pruning, settings.memory) for settings in seen} == {(False, 7)}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((1, 3), "1 queries and 3 targets.*record 2 .s1. of the targets"),
        ((2, 1), "record 2 .s1. of the queries has no"),
    ],
)
def test_records_without_partners(counts: tuple[int, int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        pairwise(*(["A"] * count for count in counts))


def test_a_score_alone_has_the_end_of_its_alignment() -> None:
    queries, targets = random_texts(50, 9), random_texts(50, 10)
    for strand in Strand:
        whole = pairwise(queries, targets, strand=strand)
        for one, other in zip(
            whole, pairwise(queries, targets, strand=strand, settings=Settings(score_only=True)), strict=True
        ):
            assert (one.score, one.reverse, one.target_end) == (other.score, other.reverse, other.target_end)
            known = (one.query_start, -1) if one.reverse else (-1, one.query_end)
            assert (other.query_start, other.query_end) == known
            assert (other.target_start, other.cigar, other.columns, other.is_empty) == (-1, b"", 0, one.is_empty)


@pytest.mark.parametrize("score_only", [False, True])
def test_an_empty_sequence_needs_no_aligner(monkeypatch: pytest.MonkeyPatch, score_only: bool) -> None:
    monkeypatch.undo()
    sides = sequences([""]), sequences(["ACGT"])
    backend: Any = None
    settings = Settings(score_only=score_only)
    ((result,),) = comparison.compare_all(*sides, settings, Strand.BOTH, backend, lambda *cells: None)
    assert result.is_empty
    assert (result.score, result.reverse) == (0, False)
