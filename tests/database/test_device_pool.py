"""Test scans on several devices: results do not depend on their number, and all stop if one fails."""

import functools
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
from oracles.scan import scores_of
from protein_examples import COSTS, coded, proteins, random_letters, sequences_of, subjects_of

from readmap import backend
from readmap.backend import open_backend
from readmap.backend.team import Team
from readmap.database import device_pool
from readmap.database.database import Database
from readmap.database.device_pool import DevicePool

BLOSUM62 = COSTS["BLOSUM62"]


DATABASE = Database.of(sequences_of(proteins([500, 0, *range(1, 160), 2000, 0], seed=7)), "protein")
QUERIES = [coded(random_letters(random.Random(rows), rows)) for rows in (40, 0, 75, 3)]


@functools.cache
def expected() -> NDArray[np.int32]:
    return scores_of(QUERIES, subjects_of(DATABASE), BLOSUM62)


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
def test_the_number_of_devices_changes_nothing(backends: str, count: int) -> None:
    reported: list[int] = []
    with pool_of(DATABASE, backends, count) as worked:
        for _ in range(4):
            assert np.array_equal(worked.scores(QUERIES, BLOSUM62, reported.append), expected())
        assert worked.scores([], BLOSUM62, nothing).shape == (0, len(DATABASE))
    assert sum(reported) == 4 * DATABASE.letters * sum(map(len, QUERIES))


@pytest.mark.parametrize("lengths", [[], [0, 0], [5], [1, 1]])
def test_more_devices_than_sequences(backends: str, lengths: list[int]) -> None:
    small = Database.of(sequences_of(proteins(lengths)), "protein")
    with pool_of(small, backends, 3) as worked:
        for _ in range(3):
            found = worked.scores(QUERIES, BLOSUM62, nothing)
            assert found.shape == (len(QUERIES), len(lengths))
            assert found.tolist() == scores_of(QUERIES, subjects_of(small), BLOSUM62).tolist()


def test_partitions_follow_the_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    even = Database.of(sequences_of(proteins([10] * 1000)), "protein")
    of_even = scores_of(QUERIES[3:], subjects_of(even), BLOSUM62)
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
            assert np.array_equal(worked.scores(QUERIES[3:], BLOSUM62, nothing), of_even)
            assert letters_of(worked, even) == pytest.approx(partitions, abs=10)
        worked = DevicePool(DATABASE, team)
        for chosen in ([1e-9, 1.0, 1.0], [1.0, 1e-9, 1e-9], [3.0, 2.0, 1.0]):
            speeds[:] = chosen
            assert np.array_equal(worked.scores(QUERIES, BLOSUM62, nothing), expected())
            assert sum(letters_of(worked, DATABASE)) == DATABASE.letters


def test_speeds_are_measured(backends: str) -> None:
    with pool_of(DATABASE, backends, 2) as worked:
        assert [worker.speed for worker in worked._workers] == [0, 0]
        worked.scores(QUERIES, BLOSUM62, nothing)
        for worker in worked._workers:
            assert 1e3 < worker.speed < 1e14


class Broken(Exception):
    pass


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failing_device_stops_all(failing: int) -> None:
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
    with pool_of(DATABASE, "cpu", 3) as worked:
        for number, worker in enumerate(worked._workers):
            worker.partition.scores = scores(number)  # type: ignore[method-assign]
        with pytest.raises(Broken):
            worked.scores(QUERIES, BLOSUM62, nothing)
    assert time.perf_counter() - began < 10
    assert scanned[failing] == 0
    assert min(scanned[:failing] + scanned[failing + 1 :]) > 0


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, Broken])
def test_a_report_can_stop_the_scan(count: int, failure: type[BaseException]) -> None:
    """An error of a progress bar, or an interrupt in a thread; the pool remains usable."""

    def stop(cells: int) -> None:
        raise failure

    with pool_of(DATABASE, "cpu", count) as worked:
        with pytest.raises(failure):
            worked.scores(QUERIES, BLOSUM62, stop)
        assert np.array_equal(worked.scores(QUERIES, BLOSUM62, nothing), expected())


def test_an_interrupt_of_the_main_thread_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        time.sleep(0.05)
        raise KeyboardInterrupt

    def endless(queries: Any, scoring: Any, report: Callable[[int], None]) -> None:
        while True:
            time.sleep(0.01)
            report(1)

    before = set(threading.enumerate())
    with pool_of(DATABASE, "cpu", 2) as worked:
        for worker in worked._workers:
            worker.partition.scores = endless  # type: ignore[assignment,method-assign]
        monkeypatch.setattr(backend.team, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worked.scores(QUERIES, BLOSUM62, nothing)
    assert set(threading.enumerate()) <= before
