"""Teams of devices: distribution of work to threads, order of results, and errors."""

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

from readmap.backend import Backend, open_backend
from readmap.backend import team as team_module
from readmap.backend.team import Team
from readmap.errors import BackendError


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("device")]


@pytest.mark.parametrize("devices", [1, 2, 5])
def test_map_calls_each_device_in_its_thread(devices: int) -> None:
    with team_of("cpu", devices) as team:
        works: list[tuple[int, int, int]] = [
            one
            for _ in range(2)
            for one in team.map(lambda i, number: (i, number, threading.get_ident()), range(devices), repeat(7))
        ]
        assert [work[:2] for work in works] == [(i, 7) for i in range(devices)] * 2
        idents = [ident for *_, ident in works]
        assert idents[:devices] == idents[devices:]
        assert len(set(idents)) == devices
        assert (threading.get_ident() in idents) == (devices == 1)
        assert [team.submit(number, threading.get_ident).result() for number in range(devices)] == idents[:devices]
        assert team.map(lambda i: threading.get_ident(), [0]) == idents[:1]
    assert not threads()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_map_raises_the_first_error_at_once(failing: int) -> None:
    """The other devices finish their calls and accept more work."""
    raised, ended = threading.Event(), []

    def work(i: int) -> None:
        if i == failing:
            raise BackendError(f"device {i} fails")
        raised.wait()
        ended.append(i)

    with team_of("cpu", 3) as team:
        with pytest.raises(BackendError, match=f"device {failing} fails"):
            team.map(work, range(3))
        assert not ended
        raised.set()
        assert team.map(abs, [-1, -2, -3]) == [1, 2, 3]
        assert sorted(ended) == [i for i in range(3) if i != failing]
    assert not threads()


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_task_results_are_in_order(devices: int) -> None:
    """Each device runs one task at a time, and all devices take part."""
    at_work, users = set(), set()

    def work(number: int, backend: Backend) -> int:
        assert backend not in at_work
        at_work.add(backend)
        users.add(backend)
        time.sleep(0.002 * (number % 3))
        at_work.remove(backend)
        return number

    with team_of("cpu", devices) as team:
        assert list(team.run_tasks(partial(work, number) for number in range(50))) == list(range(50))
        assert list(team.run_tasks([])) == []
        assert users == {*team.backends}


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_no_tasks_start_after_a_failure(devices: int) -> None:
    started: list[int] = []

    def work(number: int, _: Any) -> None:
        started.append(number)
        if number == 5:
            raise ValueError("the fifth")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="the fifth"), team_of("cpu", devices) as team:
        list(team.run_tasks(partial(work, number) for number in range(1000)))
    assert len(started) < 100
    assert not threads()


def test_closing_cancels_waiting_calls() -> None:
    started: list[int] = []

    def work(number: int) -> None:
        started.append(number)
        time.sleep(0.05)

    with team_of("cpu", 2) as team:
        for number in range(100):
            team.submit(1, partial(work, number))
    assert len(started) < 100
    assert not threads()


@pytest.mark.parametrize("broken", [0, 1])
def test_errors_of_opening_are_raised(broken: int) -> None:
    def fail() -> Backend:
        raise BackendError("device cuda:1 cannot be used")

    openers: list[Callable[[], Backend]] = [partial(open_backend, "cpu", 1)] * 2
    openers.insert(broken, fail)
    with pytest.raises(BackendError, match="cuda:1 cannot"):
        Team(openers)
    assert not threads()


def test_devices_are_opened_in_their_threads() -> None:
    """The caller opens the first device, since it may use it too."""
    opened: list[threading.Thread] = []

    def open_one() -> Backend:
        opened.append(threading.current_thread())
        return open_backend("cpu", 1)

    for devices in (1, 3):
        opened.clear()
        with Team([open_one] * devices) as team:
            users = team.map(lambda _: threading.current_thread(), team.backends)
            assert {*opened} == {threading.current_thread(), *users[1:]}


def test_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices chosen by --device and --gpus, with their threads and memory limit."""
    named: list[tuple[Any, ...]] = []

    def open_named(*arguments: Any) -> Backend:
        named.append(arguments)
        return open_backend("cpu", 1)

    monkeypatch.setattr(team_module, "device_names", lambda device, gpus: [f"{device}:{number}" for number in gpus])
    monkeypatch.setattr(team_module, "open_backend", open_named)
    with Team.open("cuda", [0, 3], 4, 1 << 30) as team:
        assert len(team) == len(team.backends) == 2
        assert team.first is team.backends[0]
    assert sorted(named) == [("cuda:0", 4, 1 << 30), ("cuda:3", 4, 1 << 30)]


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("row", [[-1, -2], ["one", "two"]], ids=["done", "failed"])
def test_map_synchronizes_several_devices(devices: int, row: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A team of several devices synchronizes after each call, even after a failure; a single device does not."""
    waited: list[Backend] = []
    all_at_work = threading.Barrier(devices)

    def work(number: Any) -> int:
        all_at_work.wait()
        return abs(number)

    with team_of("cpu", devices) as team, contextlib.suppress(TypeError):
        for backend in team.backends:
            monkeypatch.setattr(backend, "synchronize", partial(waited.append, backend))
        team.map(work, row[:devices])
    assert {*waited} == ({*team.backends} if devices > 1 else set())


@pytest.mark.parametrize("sizes", [(5,), (5, 3), (5, 0, 3), (1, 250, 7), (100, 1)])
def test_concatenation_of_parts(backends: str, sizes: tuple[int, ...]) -> None:
    numbers = np.arange(sum(sizes), dtype=np.uint32)
    given = [part.copy() for part in np.split(numbers, np.cumsum(sizes)[:-1])]
    with team_of(backends, len(sizes)) as team:
        parts = team.map(lambda backend, part: backend.to_device(part), team.backends, given)
        whole = team.gather(parts)
        assert np.array_equal(team.first.to_host(whole), numbers)
        assert np.array_equal(team.to_host(parts), numbers)
        assert (whole is parts[0]) == (len(sizes) == 1)
        team.release_memory()


def test_invalid_copies_are_refused(backends: str) -> None:
    """Otherwise a GPU would copy the bytes of another dtype or shape."""
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


def test_copies_between_devices(backends: str) -> None:
    """Between devices, including parts of arrays, and into a part of a host array."""
    cases: list[Callable[[Any], Any]] = [lambda array: array, lambda array: array[7:1000]]
    numbers = np.arange(3 << 20, dtype=np.uint64)
    with team_of(backends, 2) as team:
        first, other = team.backends
        (held, _) = team.map(lambda backend, _: backend.to_device(numbers), team.backends, range(2))
        for taken in cases:
            (_, brought) = team.map(
                lambda backend, taken: other.to_host(other.copy(taken(held))) if backend is other else None,
                team.backends,
                [taken] * 2,
            )
            assert np.array_equal(brought, taken(numbers))
        target = np.zeros(len(numbers) + 2, np.uint64)
        first.copy_to_host(target[1:-1], held)
        assert np.array_equal(target[1:-1], numbers)
        assert not target[0]
        assert not target[-1]
