"""Results of tasks, in their order."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from readmap.dask import cluster
from readmap.dask.cluster import Tasks
from readmap.errors import BackendError


def wait(seconds: float, result: Any) -> Any:
    """Raises a result that is an error."""
    time.sleep(seconds)
    if isinstance(result, BaseException):
        raise result
    return result


@pytest.fixture
def tasks(client: Any, monkeypatch: pytest.MonkeyPatch) -> Tasks:
    monkeypatch.setattr(cluster, "RETRIES", 0)
    return Tasks(client)


def futures(tasks: Tasks, *given: tuple[float, Any]) -> Iterator[Any]:
    for number, (seconds, result) in enumerate(given):
        yield tasks.submit("wait", number, wait, seconds, result)


def test_they_come_as_they_end_and_go_in_order(tasks: Tasks) -> None:
    came = list[int]()
    found = tasks.results(futures(tasks, (0.5, 0), (0, 1), (0, 2)), came.append)
    assert [*found] == [0, 1, 2]
    assert sorted(came) == [0, 1, 2]
    assert came[-1] == 0 or came[0] == 1


def test_tasks_that_are_still_to_come(tasks: Tasks) -> None:
    """The first tasks are done while further tasks are requested."""
    seen, asked = list[int](), [0]

    def coming() -> Iterator[Any]:
        for number, future in enumerate(futures(tasks, (0, 0), (0, 1), (0, 2))):
            yield future
            began = time.monotonic()
            while number not in seen and time.monotonic() - began < 30:
                asked[0] += 1
                yield None

    for result in tasks.results(coming()):
        seen.append(result)
    assert seen == [0, 1, 2]
    assert asked[0] >= 3


def test_none_at_all(tasks: Tasks) -> None:
    assert [*tasks.results([])] == []
    assert [*tasks.results(iter([None, None]))] == []


def test_the_first_error_is_raised(tasks: Tasks) -> None:
    """An error is raised after all earlier results; later tasks are not waited for."""
    began = time.monotonic()
    given = (0.3, 0), (0.6, OSError("first")), (0, OSError("second")), (5, 3), (5, 4)
    found = tasks.results(futures(tasks, *given))
    assert next(found) == 0
    with pytest.raises(OSError, match="first"):
        next(found)
    assert time.monotonic() - began < 4.5


def test_an_error_of_those_to_come(tasks: Tasks) -> None:
    def coming() -> Iterator[Any]:
        yield from futures(tasks, (5, 0), (5, 1))
        yield None
        raise ValueError("broken")

    began = time.monotonic()
    with pytest.raises(ValueError, match="broken"):
        [*tasks.results(coming())]
    assert time.monotonic() - began < 4.5


def test_a_cluster_that_has_ended(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_client", SimpleNamespace(status="closed"))
    with pytest.raises(BackendError, match="the cluster has ended"):
        tasks.submit("wait", 0, wait, 0, 0)
    with pytest.raises(BackendError, match="the cluster has ended"):
        next(tasks.results(itertools.repeat(None)))
