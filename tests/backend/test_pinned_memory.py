"""Memory that is page-locked: its pages are there, they are let go of before they go, and its addresses are kept."""

import ctypes
import gc
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from readmap.backend import pinned_memory
from readmap.backend.pinned_memory import allocate_pinned, set_pinned_cache_size

LARGE = 2 << 20


class Runtime:
    """CUDA's, as far as it is asked."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.readable: list[bool] = []

    def hostRegister(self, start: int, size: int, flags: int) -> None:
        assert flags == 1
        self.held[start] = size

    def hostUnregister(self, start: int) -> None:
        self.readable.append(is_mapped(start, self.held.pop(start)))


def is_mapped(start: int, size: int) -> bool:
    pages = (ctypes.c_ubyte * (size // 4096))()
    return ctypes.CDLL(None).mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), pages) == 0


@pytest.mark.parametrize("size", [0, 1, 5000, LARGE, LARGE + 1, 40 << 20])
def test_whole_large_pages(size: int) -> None:
    runtime = Runtime()
    array = allocate_pinned(size, runtime)
    assert (array.shape, array.dtype) == ((size,), np.uint8)
    ((start, nbytes),) = runtime.held.items()
    assert start == array.ctypes.data
    assert start % LARGE == nbytes % LARGE == 0
    assert size <= nbytes < size + LARGE + (not size)
    array[...] = 7
    assert array.sum() == 7 * size


def test_let_go_of_in_time() -> None:
    """With the last view, while the pages are still mapped."""
    runtime = Runtime()
    array = allocate_pinned(5 * LARGE, runtime)
    part = array[10:20]
    del array
    gc.collect()
    assert runtime.held
    del part
    gc.collect()
    assert not runtime.held
    assert runtime.readable == [True]


def test_addresses_are_kept() -> None:
    """Nobody else is given them, and the next who asks for so much has them, with nothing in them."""
    runtime = Runtime()
    array = allocate_pinned(3 * LARGE, runtime)
    array[...] = 1
    start = array.ctypes.data
    del array
    assert is_mapped(start, 3 * LARGE)
    again = allocate_pinned(3 * LARGE, runtime)
    assert again.ctypes.data == start
    assert not again.any()


def test_neighbours_are_joined() -> None:
    runtime = Runtime()
    arrays = [allocate_pinned(LARGE, runtime) for _ in range(6)]
    start = min(array.ctypes.data for array in arrays)
    random.Random(3).shuffle(arrays)
    while arrays:
        arrays.pop()
    assert allocate_pinned(6 * LARGE, runtime).ctypes.data == start


def test_what_cannot_be_locked_is_given_back() -> None:
    class Refusing(Runtime):
        def hostRegister(self, start: int, size: int, flags: int) -> None:
            self.held[start] = size
            raise RuntimeError("no more")

    refusing = Refusing()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no more"):
            allocate_pinned(LARGE, refusing)
    assert len(refusing.held) == 1  # the same addresses twice
    assert not refusing.readable


@pytest.mark.parametrize("most", [0, 9 * LARGE])
def test_threads_have_memory_of_their_own(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_memory, "_CACHE", pinned_memory._Cache())
    set_pinned_cache_size(most)

    def take_often(seed: int) -> None:
        draw, runtime = random.Random(seed), Runtime()
        for _ in range(40):
            arrays = [allocate_pinned(draw.randrange(3 * LARGE), runtime) for _ in range(draw.randrange(4))]
            for number, array in enumerate(arrays):
                array[::4096] = 16 * seed + number
            for number, array in enumerate(arrays):
                assert (array[::4096] == 16 * seed + number).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take_often, range(4)))


def test_too_much() -> None:
    with pytest.raises(MemoryError, match="page-locked"):
        allocate_pinned(1 << 60, Runtime())


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten large pages are."""
    monkeypatch.setattr(pinned_memory, "_CACHE", pinned_memory._Cache())
    set_pinned_cache_size(10 * LARGE)


@pytest.mark.usefixtures("kept")
def test_what_is_kept_is_had_again() -> None:
    """By who wants as much, or a quarter of it, but not less: locked once, and all of it still there."""
    runtime = Runtime()
    array = allocate_pinned(4 * LARGE, runtime)
    start, view = array.ctypes.data, array[5:]
    del array
    assert allocate_pinned(5 * LARGE, runtime).ctypes.data != start  # a view is left
    del view
    for size in (4 * LARGE, LARGE, 3 * LARGE - 7, 1 + 3 * LARGE):
        again = allocate_pinned(size, runtime)
        assert (again.ctypes.data, again.shape) == (start, (size,))
        again[...] = 1
        del again
    larger = allocate_pinned(6 * LARGE, runtime)
    assert runtime.held == {start: 4 * LARGE, larger.ctypes.data: 6 * LARGE}  # the oldest has made way
    assert runtime.readable == [True]


@pytest.mark.usefixtures("kept")
def test_the_least_that_is_large_enough() -> None:
    runtime = Runtime()
    arrays = {size: allocate_pinned(size * LARGE, runtime) for size in (4, 2, 3)}
    starts = {size: array.ctypes.data for size, array in arrays.items()}
    arrays.clear()
    assert allocate_pinned(2 * LARGE, runtime).ctypes.data == starts[2]
    two, three = allocate_pinned(2 * LARGE, runtime), allocate_pinned(2 * LARGE, runtime)
    assert [two.ctypes.data, three.ctypes.data] == [starts[2], starts[3]]


@pytest.mark.usefixtures("kept")
def test_no_more_is_kept() -> None:
    """What there is no room for is unlocked at once, while its pages are there."""
    runtime = Runtime()
    arrays = [allocate_pinned(4 * LARGE, runtime) for _ in range(3)]
    starts = [array.ctypes.data for array in arrays]
    for _ in range(3):
        arrays.pop(0)
    assert [*runtime.held] == starts[:2]
    assert runtime.readable == [True]
    set_pinned_cache_size(5 * LARGE)
    assert [*runtime.held] == starts[1:2]
    other = allocate_pinned(11 * LARGE, runtime)
    assert [*runtime.held] == [other.ctypes.data]
    del other
    assert not runtime.held
    assert runtime.readable == 4 * [True]


@pytest.mark.usefixtures("kept")
def test_what_is_kept_makes_room() -> None:
    """Where the system locks no more."""

    class Small(Runtime):
        def hostRegister(self, start: int, size: int, flags: int) -> None:
            if sum(self.held.values()) + size > 7 * LARGE:
                raise RuntimeError("out of memory")
            super().hostRegister(start, size, flags)

    runtime = Small()
    arrays = [allocate_pinned(LARGE, runtime) for _ in range(4)]
    held = arrays.pop()
    arrays.clear()
    assert len(runtime.held) == 4
    assert len(allocate_pinned(5 * LARGE, runtime)) == 5 * LARGE
    with pytest.raises(RuntimeError, match="out of memory"):
        allocate_pinned(7 * LARGE, runtime)
    assert [*runtime.held] == [held.ctypes.data]


@pytest.mark.usefixtures("kept")
def test_a_device_that_has_failed_harms_nobody() -> None:
    class Broken(Runtime):
        def hostUnregister(self, start: int) -> None:
            raise RuntimeError("it fell off the bus")

    allocate_pinned(6 * LARGE, Broken())
    runtime = Runtime()
    assert allocate_pinned(9 * LARGE, runtime).ctypes.data in runtime.held
