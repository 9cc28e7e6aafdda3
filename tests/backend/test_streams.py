"""Streams that threads inherit from each other."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from readmap.backend import cuda_available, open_backend
from readmap.backend.cuda import Streams


@pytest.fixture
def streams() -> Streams[int]:
    return Streams(itertools.count().__next__)


def in_thread(name: str, what: Callable[[], int]) -> int:
    """Return the result of a function in a new thread of a name; the thread has ended."""
    found = list[int]()
    thread = threading.Thread(target=lambda: found.append(what()), name=name)
    thread.start()
    thread.join()
    return found[0]


def borrowed(streams: Streams[int]) -> int:
    with streams.borrow() as stream:
        return stream


def test_a_thread_has_one_stream_of_its_own(streams: Streams[int]) -> None:
    kept = streams.own()
    with streams.borrow() as first, streams.borrow() as second:
        assert first == second == kept
    assert in_thread("MainThread", streams.own) != kept
    assert streams.own() == kept


@pytest.mark.parametrize("names", [("map", "map"), ("gather_0", "gather_13"), ("Task-1-2", "Task-1-11")])
def test_threads_of_one_kind_inherit_a_stream(streams: Streams[int], names: tuple[str, str]) -> None:
    assert in_thread(names[0], streams.own) == in_thread(names[1], streams.own)


def test_threads_of_other_kinds_have_other_streams(streams: Streams[int]) -> None:
    assert in_thread("gather_0", streams.own) != in_thread("map", streams.own)


def test_running_threads_return_borrowed_streams(streams: Streams[int]) -> None:
    with ThreadPoolExecutor(2, "task") as pool:
        barrier = threading.Barrier(2)  # both threads, so that either has had one

        def once(_: int) -> int:
            barrier.wait()
            return borrowed(streams)

        found = {stream for _ in range(20) for stream in pool.map(once, range(2))}
    assert found <= {0, 1}
    assert in_thread("task_7", streams.own) in found


def test_the_stream_is_returned_after_an_error(streams: Streams[int]) -> None:
    with pytest.raises(ValueError, match="broken"), streams.borrow() as stream:
        raise ValueError("broken")
    assert borrowed(streams) == stream


def test_concurrent_threads_share_no_stream(streams: Streams[int]) -> None:
    barrier = threading.Barrier(8)

    def take(_: int) -> int:
        with streams.borrow() as stream:
            barrier.wait()
            return stream

    with ThreadPoolExecutor(8, "task") as pool:
        for _ in range(50):
            assert len({*pool.map(take, range(8))}) == 8


@pytest.mark.gpu
def test_consecutive_tasks_reuse_memory() -> None:
    if (reason := cuda_available()) is not None:
        pytest.skip(f"no CUDA: {reason}")
    backend = open_backend("cuda")
    pool, taken = backend.xp.get_default_memory_pool(), list[int]()

    def task() -> int:
        with backend.thread_stream():
            arrays = [backend.full(1 << 24, 1, np.uint8) for _ in range(4)]
            found = int(backend.to_host(arrays[-1][-1:])[0])
        taken.append(pool.total_bytes())
        return found

    assert [in_thread(f"task-{number}", task) for number in range(4)] == [1] * 4
    assert len(set(taken)) == 1
