"""Pinned memory: pages are mapped while registered, addresses stay reserved, released blocks are cached."""

import ctypes
import gc
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from readmap.backend import pinned_memory
from readmap.backend.pinned_memory import allocate_pinned, set_pinned_cache_size

HUGE_PAGE = 2 << 20


class Runtime:
    """The functions of CuPy's CUDA runtime that pinned_memory calls."""

    def __init__(self) -> None:
        self.registered: dict[int, int] = {}
        self.was_mapped: list[bool] = []

    def hostRegister(self, start: int, size: int, flags: int) -> None:
        assert flags == 1
        self.registered[start] = size

    def hostUnregister(self, start: int) -> None:
        self.was_mapped.append(is_mapped(start, self.registered.pop(start)))


def is_mapped(start: int, size: int) -> bool:
    pages = (ctypes.c_ubyte * (size // 4096))()
    return ctypes.CDLL(None).mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), pages) == 0


@pytest.mark.parametrize("size", [0, 1, 5000, HUGE_PAGE, HUGE_PAGE + 1, 40 << 20])
def test_sizes_are_whole_huge_pages(size: int) -> None:
    runtime = Runtime()
    array = allocate_pinned(size, runtime)
    assert (array.shape, array.dtype) == ((size,), np.uint8)
    ((start, nbytes),) = runtime.registered.items()
    assert start == array.ctypes.data
    assert start % HUGE_PAGE == nbytes % HUGE_PAGE == 0
    assert size <= nbytes < size + HUGE_PAGE + (not size)
    array[...] = 7
    assert array.sum() == 7 * size


def test_blocks_are_unregistered_before_unmapping() -> None:
    """Blocks are unregistered with the last view, while the pages are still mapped."""
    runtime = Runtime()
    array = allocate_pinned(5 * HUGE_PAGE, runtime)
    part = array[10:20]
    del array
    gc.collect()
    assert runtime.registered
    del part
    gc.collect()
    assert not runtime.registered
    assert runtime.was_mapped == [True]


def test_addresses_stay_reserved() -> None:
    """Released addresses stay reserved, and the next allocation of this size gets them, zeroed."""
    runtime = Runtime()
    array = allocate_pinned(3 * HUGE_PAGE, runtime)
    array[...] = 1
    start = array.ctypes.data
    del array
    assert is_mapped(start, 3 * HUGE_PAGE)
    again = allocate_pinned(3 * HUGE_PAGE, runtime)
    assert again.ctypes.data == start
    assert not again.any()


def test_adjacent_ranges_are_merged() -> None:
    runtime = Runtime()
    arrays = [allocate_pinned(HUGE_PAGE, runtime) for _ in range(6)]
    start = min(array.ctypes.data for array in arrays)
    random.Random(3).shuffle(arrays)
    while arrays:
        arrays.pop()
    assert allocate_pinned(6 * HUGE_PAGE, runtime).ctypes.data == start


def test_failed_registrations_return_their_addresses() -> None:
    class Refusing(Runtime):
        def hostRegister(self, start: int, size: int, flags: int) -> None:
            self.registered[start] = size
            raise RuntimeError("no more")

    refusing = Refusing()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no more"):
            allocate_pinned(HUGE_PAGE, refusing)
    assert len(refusing.registered) == 1  # the same addresses both times
    assert not refusing.was_mapped


@pytest.mark.parametrize("max_bytes", [0, 9 * HUGE_PAGE])
def test_threads_share_no_memory(max_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_memory, "_CACHE", pinned_memory._Cache())
    set_pinned_cache_size(max_bytes)

    def take_often(seed: int) -> None:
        draw, runtime = random.Random(seed), Runtime()
        for _ in range(40):
            arrays = [allocate_pinned(draw.randrange(3 * HUGE_PAGE), runtime) for _ in range(draw.randrange(4))]
            for number, array in enumerate(arrays):
                array[::4096] = 16 * seed + number
            for number, array in enumerate(arrays):
                assert (array[::4096] == 16 * seed + number).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take_often, range(4)))


def test_impossible_sizes() -> None:
    with pytest.raises(MemoryError, match="page-locked"):
        allocate_pinned(1 << 60, Runtime())


@pytest.fixture
def cached_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of ten huge pages."""
    monkeypatch.setattr(pinned_memory, "_CACHE", pinned_memory._Cache())
    set_pinned_cache_size(10 * HUGE_PAGE)


@pytest.mark.usefixtures("cached_blocks")
def test_released_blocks_are_reused() -> None:
    """By requests of its size down to a quarter; it is registered only once."""
    runtime = Runtime()
    array = allocate_pinned(4 * HUGE_PAGE, runtime)
    start, view = array.ctypes.data, array[5:]
    del array
    assert allocate_pinned(5 * HUGE_PAGE, runtime).ctypes.data != start  # a view still exists
    del view
    for size in (4 * HUGE_PAGE, HUGE_PAGE, 3 * HUGE_PAGE - 7, 1 + 3 * HUGE_PAGE):
        again = allocate_pinned(size, runtime)
        assert (again.ctypes.data, again.shape) == (start, (size,))
        again[...] = 1
        del again
    larger = allocate_pinned(6 * HUGE_PAGE, runtime)
    # The oldest block was evicted.
    assert runtime.registered == {start: 4 * HUGE_PAGE, larger.ctypes.data: 6 * HUGE_PAGE}
    assert runtime.was_mapped == [True]


@pytest.mark.usefixtures("cached_blocks")
def test_the_smallest_fitting_block_is_reused() -> None:
    runtime = Runtime()
    arrays = {size: allocate_pinned(size * HUGE_PAGE, runtime) for size in (4, 2, 3)}
    starts = {size: array.ctypes.data for size, array in arrays.items()}
    arrays.clear()
    assert allocate_pinned(2 * HUGE_PAGE, runtime).ctypes.data == starts[2]
    two, three = allocate_pinned(2 * HUGE_PAGE, runtime), allocate_pinned(2 * HUGE_PAGE, runtime)
    assert [two.ctypes.data, three.ctypes.data] == [starts[2], starts[3]]


@pytest.mark.usefixtures("cached_blocks")
def test_cache_size_is_bounded() -> None:
    """Blocks that exceed the cache are unregistered at once, while their pages are mapped."""
    runtime = Runtime()
    arrays = [allocate_pinned(4 * HUGE_PAGE, runtime) for _ in range(3)]
    starts = [array.ctypes.data for array in arrays]
    for _ in range(3):
        arrays.pop(0)
    assert [*runtime.registered] == starts[:2]
    assert runtime.was_mapped == [True]
    set_pinned_cache_size(5 * HUGE_PAGE)
    assert [*runtime.registered] == starts[1:2]
    other = allocate_pinned(11 * HUGE_PAGE, runtime)
    assert [*runtime.registered] == [other.ctypes.data]
    del other
    assert not runtime.registered
    assert runtime.was_mapped == 4 * [True]


@pytest.mark.usefixtures("cached_blocks")
def test_cached_blocks_make_room() -> None:
    """If the system refuses to register more memory."""

    class Small(Runtime):
        def hostRegister(self, start: int, size: int, flags: int) -> None:
            if sum(self.registered.values()) + size > 7 * HUGE_PAGE:
                raise RuntimeError("out of memory")
            super().hostRegister(start, size, flags)

    runtime = Small()
    arrays = [allocate_pinned(HUGE_PAGE, runtime) for _ in range(4)]
    registered = arrays.pop()
    arrays.clear()
    assert len(runtime.registered) == 4
    assert len(allocate_pinned(5 * HUGE_PAGE, runtime)) == 5 * HUGE_PAGE
    with pytest.raises(RuntimeError, match="out of memory"):
        allocate_pinned(7 * HUGE_PAGE, runtime)
    assert [*runtime.registered] == [registered.ctypes.data]


@pytest.mark.usefixtures("cached_blocks")
def test_errors_of_a_failed_device_are_ignored() -> None:
    class Broken(Runtime):
        def hostUnregister(self, start: int) -> None:
            raise RuntimeError("it fell off the bus")

    allocate_pinned(6 * HUGE_PAGE, Broken())
    runtime = Runtime()
    assert allocate_pinned(9 * HUGE_PAGE, runtime).ctypes.data in runtime.registered
