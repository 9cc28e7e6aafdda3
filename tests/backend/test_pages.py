"""Memory that is page-locked: its pages are there, and they are let go of before they go."""

import ctypes
import gc

import numpy as np
import pytest

from readmap.backend.pages import page_locked

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
        size = self.held.pop(start)
        pages = (ctypes.c_ubyte * (size // 4096))()
        self.readable.append(ctypes.CDLL(None).mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), pages) == 0)


@pytest.mark.parametrize("size", [0, 1, 5000, LARGE, LARGE + 1, 40 << 20])
def test_whole_large_pages(size: int) -> None:
    runtime = Runtime()
    array = page_locked(size, runtime)
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
    array = page_locked(5 * LARGE, runtime)
    part = array[10:20]
    del array
    gc.collect()
    assert runtime.held
    del part
    gc.collect()
    assert not runtime.held
    assert runtime.readable == [True]
