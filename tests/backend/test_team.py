"""Devices that work together: who does what, in which thread, and what becomes of errors."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from examples import team_of

from readmap.backend import Backend, open_backend, team
from readmap.backend.team import Team
from readmap.errors import BackendError


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("device")]


@pytest.mark.parametrize("devices", [1, 2, 5])
def test_each_device_does_its_row_in_its_own_thread(devices: int) -> None:
    with team_of("cpu", devices) as group:
        works: list[tuple[int, int, int]] = [
            one
            for _ in range(2)
            for one in group.each(lambda i, number: (i, number, threading.get_ident()), range(9), [7] * devices)
        ]
        assert [work[:2] for work in works] == [(i, 7) for i in range(devices)] * 2
        idents = [ident for *_, ident in works]
        assert idents[:devices] == idents[devices:]
        assert len(set(idents)) == devices
        assert idents[0] == threading.get_ident()
        assert group.each(lambda i: threading.get_ident(), [0]) == idents[:1]
    assert not threads()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_of_one_device_is_raised_once_the_others_have_ended(failing: int) -> None:
    ended = []

    def work(i: int) -> None:
        if i == failing:
            raise BackendError(f"device {i} fails")
        time.sleep(0.05)
        ended.append(i)

    with team_of("cpu", 3) as group:
        with pytest.raises(BackendError, match=f"device {failing} fails"):
            group.each(work, range(3))
        assert sorted(ended) == [i for i in range(3) if i != failing]
        assert group.each(abs, [-1, -2, -3]) == [1, 2, 3]
    assert not threads()


def test_a_device_that_does_not_open() -> None:
    with pytest.raises(BackendError, match="cpu"):
        Team(open_backend("cpu", 1), [partial(open_backend, "cpu", 1), _broken])
    assert not threads()


def _broken() -> Backend:
    raise BackendError("device cpu cannot be used")


def test_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices that --device and --gpus choose, with the threads and the memory that each may have."""
    named: list[tuple[Any, ...]] = []

    def open_named(*arguments: Any) -> Backend:
        named.append(arguments)
        return open_backend("cpu", 1)

    monkeypatch.setattr(team, "device_names", lambda device, gpus: [f"{device}:{number}" for number in gpus])
    monkeypatch.setattr(team, "open_backend", open_named)
    with Team.open("cuda", [0, 3], 4, 1 << 30) as group:
        assert len(group.backends) == 2
        assert group.first is group.backends[0]
    assert named == [("cuda:0", 4, 1 << 30), ("cuda:3", 4, 1 << 30)]


def test_all_that_was_launched_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where several devices work; one alone goes on."""
    with team_of("cpu", 2) as group:
        waited: list[Backend] = []
        for backend in group.backends:
            monkeypatch.setattr(backend, "synchronize", partial(waited.append, backend))
        group.each(abs, [1])
        assert not waited
        group.each(abs, [1, 2])
        assert {*waited} == {*group.backends}


@pytest.mark.parametrize("sizes", [(5,), (5, 3), (1, 250, 7), (100, 1)])
def test_parts_behind_each_other(backends: str, sizes: tuple[int, ...]) -> None:
    numbers = np.arange(sum(sizes), dtype=np.uint32)
    given = [part.copy() for part in np.split(numbers, np.cumsum(sizes)[:-1])]
    with team_of(backends, len(sizes)) as group:
        parts = group.each(lambda backend, part: backend.to_device(part), group.backends, given)
        whole = group.gather(parts)
        assert np.array_equal(group.first.to_host(whole), numbers)
        assert np.array_equal(group.to_host(parts), numbers)
        assert (whole is parts[0]) == (len(sizes) == 1)
        group.release_memory()


def test_what_crosses(backends: str) -> None:
    """Between devices, also parts of an array, and into a part of one of the host's."""
    cases: list[Callable[[Any], Any]] = [lambda array: array, lambda array: array[7:1000]]
    numbers = np.arange(3 << 20, dtype=np.uint64)
    with team_of(backends, 2) as group:
        first, other = group.backends
        (held, _) = group.each(lambda backend, _: backend.to_device(numbers), group.backends, range(2))
        for taken in cases:
            (_, brought) = group.each(
                lambda backend, taken: other.to_host(other.copy(taken(held))) if backend is other else None,
                group.backends,
                [taken] * 2,
            )
            assert np.array_equal(brought, taken(numbers))
        target = np.zeros(len(numbers) + 2, np.uint64)
        first.receive(target[1:-1], held)
        assert np.array_equal(target[1:-1], numbers)
        assert not target[0]
        assert not target[-1]
