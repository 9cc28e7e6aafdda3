"""Pieces of work for several devices: in order, each on one device at a time, and no more after a failure."""

import threading
import time
from functools import partial
from typing import Any

import pytest

from readmap.backend import Backend, open_backend
from readmap.pairwise.crew import Crew


def several(count: int) -> list[Backend]:
    return [open_backend("cpu", threads=1) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_what_comes_is_in_order(count: int) -> None:
    backends, at_work, users = several(count), set(), set()

    def work(number: int, backend: Backend) -> int:
        assert backend not in at_work
        at_work.add(backend)
        users.add(backend)
        time.sleep(0.002 * (number % 3))
        at_work.remove(backend)
        return number

    with Crew(backends) as crew:
        assert list(crew.divide(partial(work, number) for number in range(50))) == list(range(50))
        assert list(crew.divide([])) == []
        assert crew.each(lambda backend: backend) == backends
    assert users == set(backends)


def test_alone_it_has_no_thread() -> None:
    with Crew(several(1)) as crew:
        assert crew.do(0, threading.current_thread).result() is threading.current_thread()
    with Crew(several(2)) as crew:
        (one,), (other,) = ([crew.do(number, threading.current_thread).result()] for number in (0, 1))
        assert len({one, other, threading.current_thread()}) == 3


@pytest.mark.parametrize("count", [1, 2, 8])
def test_no_more_is_begun_after_a_failure(count: int) -> None:
    begun: list[int] = []

    def work(number: int, _: Any) -> None:
        begun.append(number)
        if number == 5:
            raise ValueError("the fifth")
        time.sleep(0.001)

    threads = threading.active_count()
    with pytest.raises(ValueError, match="the fifth"), Crew(several(count)) as crew:
        list(crew.divide(partial(work, number) for number in range(1000)))
    assert len(begun) < 100
    assert threading.active_count() <= threads


def test_the_failure_of_each_is_raised() -> None:
    backends = several(3)

    def fail(backend: Backend) -> None:
        if backend is backends[2]:
            raise ValueError("the third")

    with pytest.raises(ValueError, match="the third"), Crew(backends) as crew:
        crew.each(fail)
