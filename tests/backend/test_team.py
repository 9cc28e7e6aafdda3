"""Devices that work together: who does what, in which thread, and what becomes of errors."""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
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
            for one in group.map(lambda i, number: (i, number, threading.get_ident()), range(devices), repeat(7))
        ]
        assert [work[:2] for work in works] == [(i, 7) for i in range(devices)] * 2
        idents = [ident for *_, ident in works]
        assert idents[:devices] == idents[devices:]
        assert len(set(idents)) == devices
        assert (threading.get_ident() in idents) == (devices == 1)
        assert [group.submit(number, threading.get_ident).result() for number in range(devices)] == idents[:devices]
        assert group.map(lambda i: threading.get_ident(), [0]) == idents[:1]
    assert not threads()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_of_one_device_is_raised_before_the_others_have_ended(failing: int) -> None:
    """They end what they are at, and do more afterwards."""
    raised, ended = threading.Event(), []

    def work(i: int) -> None:
        if i == failing:
            raise BackendError(f"device {i} fails")
        raised.wait()
        ended.append(i)

    with team_of("cpu", 3) as group:
        with pytest.raises(BackendError, match=f"device {failing} fails"):
            group.map(work, range(3))
        assert not ended
        raised.set()
        assert group.map(abs, [-1, -2, -3]) == [1, 2, 3]
        assert sorted(ended) == [i for i in range(3) if i != failing]
    assert not threads()


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_what_comes_of_pieces_is_in_order(devices: int) -> None:
    """Each is done by one device at a time, and by all of them together."""
    at_work, users = set(), set()

    def work(number: int, backend: Backend) -> int:
        assert backend not in at_work
        at_work.add(backend)
        users.add(backend)
        time.sleep(0.002 * (number % 3))
        at_work.remove(backend)
        return number

    with team_of("cpu", devices) as group:
        assert list(group.run_tasks(partial(work, number) for number in range(50))) == list(range(50))
        assert list(group.run_tasks([])) == []
        assert users == {*group.backends}


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_no_more_is_begun_after_a_failure(devices: int) -> None:
    begun: list[int] = []

    def work(number: int, _: Any) -> None:
        begun.append(number)
        if number == 5:
            raise ValueError("the fifth")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="the fifth"), team_of("cpu", devices) as group:
        list(group.run_tasks(partial(work, number) for number in range(1000)))
    assert len(begun) < 100
    assert not threads()


def test_what_has_not_begun_is_dropped() -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        time.sleep(0.05)

    with team_of("cpu", 2) as group:
        for number in range(100):
            group.submit(1, partial(work, number))
    assert len(begun) < 100
    assert not threads()


@pytest.mark.parametrize("broken", [0, 1])
def test_a_device_that_does_not_open(broken: int) -> None:
    def fail() -> Backend:
        raise BackendError("device cuda:1 cannot be used")

    openers: list[Callable[[], Backend]] = [partial(open_backend, "cpu", 1)] * 2
    openers.insert(broken, fail)
    with pytest.raises(BackendError, match="cuda:1 cannot"):
        Team(openers)
    assert not threads()


def test_devices_are_opened_where_they_are_used() -> None:
    """But the first one by the caller, who may use it too."""
    opened: list[threading.Thread] = []

    def open_one() -> Backend:
        opened.append(threading.current_thread())
        return open_backend("cpu", 1)

    for devices in (1, 3):
        opened.clear()
        with Team([open_one] * devices) as group:
            users = group.map(lambda _: threading.current_thread(), group.backends)
            assert {*opened} == {threading.current_thread(), *users[1:]}


def test_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices that --device and --gpus choose, with the threads and the memory that each may have."""
    named: list[tuple[Any, ...]] = []

    def open_named(*arguments: Any) -> Backend:
        named.append(arguments)
        return open_backend("cpu", 1)

    monkeypatch.setattr(team, "device_names", lambda device, gpus: [f"{device}:{number}" for number in gpus])
    monkeypatch.setattr(team, "open_backend", open_named)
    with Team.open("cuda", [0, 3], 4, 1 << 30) as group:
        assert len(group) == len(group.backends) == 2
        assert group.first is group.backends[0]
    assert sorted(named) == [("cuda:0", 4, 1 << 30), ("cuda:3", 4, 1 << 30)]


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("row", [[-1, -2], ["one", "two"]], ids=["done", "failed"])
def test_all_that_was_launched_has_ended(devices: int, row: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where several devices work, also if they fail; one alone goes on."""
    waited: list[Backend] = []
    all_at_work = threading.Barrier(devices)

    def work(number: Any) -> int:
        all_at_work.wait()
        return abs(number)

    with team_of("cpu", devices) as group, contextlib.suppress(TypeError):
        for backend in group.backends:
            monkeypatch.setattr(backend, "synchronize", partial(waited.append, backend))
        group.map(work, row[:devices])
    assert {*waited} == ({*group.backends} if devices > 1 else set())


@pytest.mark.parametrize("sizes", [(5,), (5, 3), (5, 0, 3), (1, 250, 7), (100, 1)])
def test_parts_behind_each_other(backends: str, sizes: tuple[int, ...]) -> None:
    numbers = np.arange(sum(sizes), dtype=np.uint32)
    given = [part.copy() for part in np.split(numbers, np.cumsum(sizes)[:-1])]
    with team_of(backends, len(sizes)) as group:
        parts = group.map(lambda backend, part: backend.to_device(part), group.backends, given)
        whole = group.gather(parts)
        assert np.array_equal(group.first.to_host(whole), numbers)
        assert np.array_equal(group.to_host(parts), numbers)
        assert (whole is parts[0]) == (len(sizes) == 1)
        group.release_memory()


def test_what_is_no_copy_is_refused(backends: str) -> None:
    """A GPU would copy bytes, whatever they are."""
    backend = open_backend(backends, 1)
    square, row = backend.full((4, 4), 1, np.int32), backend.full(4, 1, np.int32)
    for target, source, message in (
        (row, square, r"expected int32 \(4,\), as the target has, found int32 \(4, 4\)"),
        (row[:1], row, r"expected int32 \(1,\), .* found int32 \(4,\)"),
        (row.view(np.uint32), row, "expected uint32 .* found int32"),
        (square[:, 0], row, "not contiguous"),
        (row, square[:, 0], "not contiguous"),
    ):
        with pytest.raises(TypeError, match=message):
            backend.copy_into(target, source)
    backend.copy_into(square[1], backend.full(4, 0, np.int32))
    assert backend.to_host(square).sum(axis=1).tolist() == [4, 0, 4, 4]


def test_what_crosses(backends: str) -> None:
    """Between devices, also parts of an array, and into a part of one of the host's."""
    cases: list[Callable[[Any], Any]] = [lambda array: array, lambda array: array[7:1000]]
    numbers = np.arange(3 << 20, dtype=np.uint64)
    with team_of(backends, 2) as group:
        first, other = group.backends
        (held, _) = group.map(lambda backend, _: backend.to_device(numbers), group.backends, range(2))
        for taken in cases:
            (_, brought) = group.map(
                lambda backend, taken: other.to_host(other.copy(taken(held))) if backend is other else None,
                group.backends,
                [taken] * 2,
            )
            assert np.array_equal(brought, taken(numbers))
        target = np.zeros(len(numbers) + 2, np.uint64)
        first.copy_to_host(target[1:-1], held)
        assert np.array_equal(target[1:-1], numbers)
        assert not target[0]
        assert not target[-1]
