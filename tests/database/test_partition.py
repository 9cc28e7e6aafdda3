"""Test partitions of a database: batches and cuts do not change scores."""

import functools
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.scan import Codes, scores_of
from pair_examples import mutated
from protein_examples import COSTS, RESIDUES, coded, proteins, random_letters, sequences_of, subjects_of

from readmap.backend import Backend, open_backend
from readmap.database import device_pool
from readmap.database.database import Database
from readmap.database.device_pool import LETTER_BYTES, Partition

BLOSUM62 = COSTS["BLOSUM62"]
LENGTHS = [300, 0, 1, 2, *range(40, 140), 1, 0, 120, 120, 700, 650]
LETTERS = sum(LENGTHS)


@pytest.fixture
def backend(backends: str) -> Backend:
    return open_backend(backends, threads=2)


DATABASE = Database.of(sequences_of(proteins(LENGTHS, seed=4)), "protein")


def draw_queries() -> list[Codes]:
    """Return queries, some of which are related to subjects."""
    draw = random.Random(6)
    text = DATABASE.subject_letters(len(LENGTHS) - 1, 100, 300).tobytes().decode()
    return [coded(each) for each in ("", "M", random_letters(draw, 70), mutated(draw, text, 0.2, RESIDUES), text[:50])]


QUERIES = draw_queries()


@functools.cache
def expected() -> NDArray[np.int32]:
    return scores_of(QUERIES, subjects_of(DATABASE), BLOSUM62)


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the subjects, or pieces of them, of each batch."""
    counts: list[int] = []

    def interleave(codes: Codes, starts: Any, *others: Any) -> Any:
        counts.append(len(starts))
        return actual(codes, starts, *others)

    actual = device_pool.interleave
    monkeypatch.setattr(device_pool, "interleave", interleave)
    return counts


def limited(backend: Backend, letters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit batches to this number of letters."""
    size = backend.scratch_bytes + LETTER_BYTES * letters
    monkeypatch.setattr(device_pool, "MIN_BATCH_LETTERS", 0)
    monkeypatch.setattr(backend, "memory", lambda: (size, size))


def scored(taken: Partition, queries: list[Codes]) -> NDArray[np.int32]:
    return taken.scores(queries, BLOSUM62, lambda cells: None)


def whole(database: Database, backend: Backend) -> Partition:
    taken = Partition(database, backend)
    taken.assign(0, len(database))
    return taken


def test_scores(backend: Backend, placed: list[int]) -> None:
    taken = whole(DATABASE, backend)
    for _ in range(2):
        taken.assign(0, len(DATABASE))  # subjects stay on the device
        found = scored(taken, QUERIES)
        assert found.dtype == np.int32
        assert np.array_equal(found, expected())
    assert placed == [len(DATABASE)]
    assert scored(taken, []).shape == (0, len(DATABASE))


@pytest.mark.parametrize("letters", [0, 1, 10, 699, 700, 1350, 5000, LETTERS - 1, LETTERS, LETTERS + 1])
def test_batches_change_nothing(
    backend: Backend, letters: int, placed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(backend, letters, monkeypatch)
    taken = whole(DATABASE, backend)
    for times in (1, 2):
        assert np.array_equal(scored(taken, QUERIES), expected())
        assert sum(placed) == (times if letters < LETTERS else 1) * len(DATABASE)
    # No batch has more, except a single subject that is longer.
    first = 0
    for count in placed[: len(placed) // 2]:
        assert DATABASE.lengths[first : first + count].sum() <= max(letters, 1) or count == 1
        first += count
    if letters >= 1350:
        assert len(placed) <= 2 * -(-LETTERS // (letters - 200))


def test_minimum_size_of_batches(backend: Backend, placed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches have a minimum size even with little memory."""
    monkeypatch.setattr(backend, "memory", lambda: (1, 1 << 30))
    scored(whole(DATABASE, backend), QUERIES)
    assert LETTERS < device_pool.MIN_BATCH_LETTERS
    assert placed == [len(DATABASE)]


@pytest.mark.parametrize("letters", [500, LETTERS + 1])
def test_batches_in_host_memory(letters: int, placed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_pool, "BATCH_LETTERS", letters)
    assert np.array_equal(scored(whole(DATABASE, open_backend("cpu", threads=1)), QUERIES), expected())
    assert (len(placed) == 1) == (letters > LETTERS)


@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (3, 40), (60, 60), (50, len(LENGTHS)), (105, 107)])
def test_part_of_the_subjects(backend: Backend, bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    taken = whole(DATABASE, backend)
    scored(taken, QUERIES)
    taken.assign(*bounds)
    assert np.array_equal(scored(taken, QUERIES), expected()[:, slice(*bounds)])
    limited(backend, 600, monkeypatch)
    taken.assign(0, 2)
    taken.assign(*bounds)
    assert np.array_equal(scored(taken, QUERIES), expected()[:, slice(*bounds)])


@pytest.mark.parametrize("letters", [800, 1 << 40])
def test_pieces_change_nothing(
    backend: Backend, letters: int, placed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query with the longer span needs longer pieces, which also suit the shorter query."""
    monkeypatch.setattr(device_pool, "UNCUT_LETTERS", 1)
    limited(backend, letters, monkeypatch)
    database = Database.of(sequences_of(proteins([3000, 10, 2000, 0, *range(90, 150)], seed=5)), "protein")
    short, long = (coded(random_letters(random.Random(rows), rows, "ACDEF")) for rows in (3, 9))
    taken, subjects = whole(database, backend), subjects_of(database)
    pieces = []
    for queries in ([short], [long], [short], [short, long], [long]):
        before = sum(placed)
        assert np.array_equal(scored(taken, queries), scores_of(queries, subjects, BLOSUM62))
        pieces.append(sum(placed) - before)
    assert pieces[0] > pieces[1] > len(database)
    if letters > 5000:
        assert pieces[2:] == [0, 0, 0]


def test_cells_are_reported(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    for letters in (900, 1 << 40):
        limited(backend, letters, monkeypatch)
        reported: list[int] = []
        whole(DATABASE, backend).scores(QUERIES, BLOSUM62, reported.append)
        assert sum(reported) == LETTERS * sum(map(len, QUERIES))
        assert (len(reported) == len(QUERIES)) == (letters > LETTERS)


def test_a_database_without_sequences(backend: Backend) -> None:
    for lengths in ([], [0], [0] * 20):
        empty = Database.of(sequences_of(proteins(lengths)), "protein")
        assert np.array_equal(scored(whole(empty, backend), QUERIES), np.zeros((len(QUERIES), len(lengths)), np.int32))
