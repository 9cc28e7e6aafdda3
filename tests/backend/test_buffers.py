"""The pool of reusable buffers."""

import gc
import threading
import weakref

import numpy as np
import pytest

from readmap.backend import buffers
from readmap.backend.buffers import BufferPool, ClosedError


def test_the_last_release_returns_a_buffer() -> None:
    pool = BufferPool(lambda nbytes: np.empty(nbytes, np.uint8), 10, 2)
    first = pool.take()
    second = pool.take()
    assert first is not second
    first.retain()
    second.release()
    first.release()
    assert pool.take() is second
    first.release()
    assert pool.take() is first
    first.release()
    with pytest.raises(ValueError, match="released more often than held"):
        first.release()


def test_larger_buffers_are_allocated_on_request() -> None:
    sizes: list[int] = []

    def allocate(nbytes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        sizes.append(nbytes)
        return np.empty(nbytes, np.uint8)

    pool = BufferPool(allocate, 10, 1)
    for wanted, length in ((0, 10), (10, 10), (24, 27), (27, 27), (5, 27)):
        buffer = pool.take(wanted)
        assert len(buffer.data) == length
        buffer.release()
    assert sizes == [10, 27]


@pytest.mark.parametrize(
    ("first", "expected"),
    [(None, [10, 40, 100, 100, 100]), (60, [60, 100, 100, 100, 100]), (200, [100, 100, 100, 100, 100])],
)
def test_buffer_sizes_grow(monkeypatch: pytest.MonkeyPatch, first: int | None, expected: list[int]) -> None:
    monkeypatch.setattr(buffers, "FIRST_BYTES", 10)
    pool, lengths = BufferPool(lambda nbytes: np.empty(nbytes, np.uint8), 100, 2, first), []
    for _ in range(5):
        buffer = pool.take()
        lengths.append(len(buffer.data))
        buffer.release()
        pool.grow()
    assert lengths == expected


def test_a_closed_pool_frees_its_memory() -> None:
    gc.disable()
    try:
        pool = BufferPool(lambda nbytes: np.empty(nbytes, np.uint8), 10, 2)
        free, held = pool.take(), pool.take()
        memories = [weakref.ref(free.data), weakref.ref(held.data)]
        free.release()
        pool.close()
        del free
        assert memories[0]() is None
        held.release()
        del held
        assert memories[1]() is None
    finally:
        gc.enable()


def test_closing_wakes_waiting_threads() -> None:
    pool, ended = BufferPool(lambda nbytes: np.empty(nbytes, np.uint8), 10, 1), []

    def take() -> None:
        with pytest.raises(ClosedError):
            pool.take()
        ended.append(True)

    held = pool.take()
    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    pool.close()
    for thread in threads:
        thread.join(10)
    assert ended == [True, True]
    held.release()
    with pytest.raises(ClosedError):
        pool.take()
