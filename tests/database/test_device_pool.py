"""Test scans on several devices: results do not depend on their number, and all stop if one fails."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from examples import team_of
from numpy.typing import NDArray
from oracles.scan import Codes, scores_of
from protein_examples import COSTS, coded, proteins, random_letters, sequences_of, subjects_of

from readmap import backend
from readmap.backend import open_backend
from readmap.backend.team import Team
from readmap.database import device_pool
from readmap.database.database import Database
from readmap.database.device_pool import DevicePool

BLOSUM62 = COSTS["BLOSUM62"]


@pytest.fixture(scope="module")
def database() -> Database:
    return Database.of(sequences_of(proteins([500, 0, *range(1, 160), 2000, 0], seed=7)), "protein")


@pytest.fixture(scope="module")
def queries() -> list[Codes]:
    return [coded(random_letters(random.Random(rows), rows)) for rows in (40, 0, 75, 3)]


@pytest.fixture(scope="module")
def expected(database: Database, queries: list[Codes]) -> NDArray[np.int32]:
    return scores_of(queries, subjects_of(database), BLOSUM62)


@contextmanager
def pool_of(database: Database, device: str, count: int) -> Iterator[DevicePool]:
    with team_of(device, count) as team:
        yield DevicePool(database, team)


def nothing(cells: int) -> None:
    pass


def letters_of(worked: DevicePool, database: Database) -> list[int]:
    """Return the letters of each device's partition."""
    partitions = [worker.partition for worker in worked._workers]
    return [int(database.lengths[each._first : each._end].sum()) for each in partitions]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_number_of_devices_changes_nothing(
    backends: str, database: Database, queries: list[Codes], expected: NDArray[np.int32], count: int
) -> None:
    reported: list[int] = []
    with pool_of(database, backends, count) as worked:
        for _ in range(4):
            assert np.array_equal(worked.scores(queries, BLOSUM62, reported.append), expected)
        assert worked.scores([], BLOSUM62, nothing).shape == (0, len(database))
    assert sum(reported) == 4 * database.letters * sum(map(len, queries))


@pytest.mark.parametrize("lengths", [[], [0, 0], [5], [1, 1]])
def test_more_devices_than_sequences(backends: str, queries: list[Codes], lengths: list[int]) -> None:
    small = Database.of(sequences_of(proteins(lengths)), "protein")
    with pool_of(small, backends, 3) as worked:
        for _ in range(3):
            found = worked.scores(queries, BLOSUM62, nothing)
            assert found.shape == (len(queries), len(lengths))
            assert found.tolist() == scores_of(queries, subjects_of(small), BLOSUM62).tolist()


def test_partitions_follow_the_speeds(
    database: Database, queries: list[Codes], expected: NDArray[np.int32], monkeypatch: pytest.MonkeyPatch
) -> None:
    even = Database.of(sequences_of(proteins([10] * 1000)), "protein")
    of_even = scores_of(queries[3:], subjects_of(even), BLOSUM62)
    speeds = [1.0, 1.0, 1.0]
    monkeypatch.setattr(device_pool._Worker, "speed", property(lambda self: speeds[self.backend.threads - 1]))
    with Team.of(*(open_backend("cpu", threads) for threads in (1, 2, 3))) as team:
        worked = DevicePool(even, team)
        assert letters_of(worked, even) == pytest.approx([3330, 3330, 3340], abs=10)
        for now, partitions in (
            ([1.0, 1.05, 1.0], [3330, 3330, 3340]),  # too small a change to send data again
            ([1.0, 2.0, 7.0], [1000, 2000, 7000]),
            ([1.0, 2.0, 0.0], [1000, 2000, 7000]),  # one speed is unknown
            ([8.0, 1.0, 1.0], [8000, 1000, 1000]),
        ):
            speeds[:] = now
            assert np.array_equal(worked.scores(queries[3:], BLOSUM62, nothing), of_even)
            assert letters_of(worked, even) == pytest.approx(partitions, abs=10)
        worked = DevicePool(database, team)
        for chosen in ([1e-9, 1.0, 1.0], [1.0, 1e-9, 1e-9], [3.0, 2.0, 1.0]):
            speeds[:] = chosen
            assert np.array_equal(worked.scores(queries, BLOSUM62, nothing), expected)
            assert sum(letters_of(worked, database)) == database.letters


def test_speeds_are_measured(backends: str, database: Database, queries: list[Codes]) -> None:
    with pool_of(database, backends, 2) as worked:
        assert [worker.speed for worker in worked._workers] == [0, 0]
        worked.scores(queries, BLOSUM62, nothing)
        for worker in worked._workers:
            assert 1e3 < worker.speed < 1e14


class Broken(Exception):
    pass


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failing_device_stops_all(database: Database, queries: list[Codes], failing: int) -> None:
    """The error is raised for any device that fails; the other devices would take minutes."""
    scanned = [0, 0, 0]

    def scores(number: int) -> Any:
        def slow(queries: Any, scoring: Any, report: Callable[[int], None]) -> Any:
            if number == failing:
                time.sleep(0.1)
                raise Broken
            for _ in range(6000):
                time.sleep(0.01)
                report(1)
                scanned[number] += 1

        return slow

    began = time.perf_counter()
    with pool_of(database, "cpu", 3) as worked:
        for number, worker in enumerate(worked._workers):
            worker.partition.scores = scores(number)  # type: ignore[method-assign]
        with pytest.raises(Broken):
            worked.scores(queries, BLOSUM62, nothing)
    assert time.perf_counter() - began < 10
    assert scanned[failing] == 0
    assert min(scanned[:failing] + scanned[failing + 1 :]) > 0


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, Broken])
def test_a_report_can_stop_the_scan(
    database: Database,
    queries: list[Codes],
    expected: NDArray[np.int32],
    count: int,
    failure: type[BaseException],
) -> None:
    """An error of a progress bar, or an interrupt in a thread; the pool remains usable."""

    def stop(cells: int) -> None:
        raise failure

    with pool_of(database, "cpu", count) as worked:
        with pytest.raises(failure):
            worked.scores(queries, BLOSUM62, stop)
        assert np.array_equal(worked.scores(queries, BLOSUM62, nothing), expected)


def test_an_interrupt_of_the_main_thread_stops_all(
    database: Database, queries: list[Codes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        time.sleep(0.05)
        raise KeyboardInterrupt

    def endless(queries: Any, scoring: Any, report: Callable[[int], None]) -> None:
        while True:
            time.sleep(0.01)
            report(1)

    before = set(threading.enumerate())
    with pool_of(database, "cpu", 2) as worked:
        for worker in worked._workers:
            worker.partition.scores = endless  # type: ignore[assignment,method-assign]
        monkeypatch.setattr(backend.team, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worked.scores(queries, BLOSUM62, nothing)
    assert set(threading.enumerate()) <= before
