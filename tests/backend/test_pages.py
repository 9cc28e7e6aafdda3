"""Memory whose pages are asked for ahead: it holds what is written, whatever the system gives."""

import ctypes
import threading

import numpy as np
import pytest

from readmap.backend import pages
from readmap.backend.pages import given_ahead


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("size", [0, 1, 5000, 3_000_001])
def test_it_is_written_while_pages_come(size: int, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_PART_BYTES", 1 << 16)
    if refused:
        monkeypatch.setattr(pages, "_POPULATE_WRITE", 999)
    wanted, threads = np.arange(size, dtype=np.uint32), threading.active_count()
    with given_ahead(size, np.uint32) as array:
        assert (array.shape, array.dtype) == ((size,), np.uint32)
        array[...] = wanted
    assert np.array_equal(array, wanted)
    assert threading.active_count() == threads


def test_pages_are_there() -> None:
    """Where Linux knows the call (5.14), of all but the ends of the array."""
    size = 64 << 20
    with given_ahead(size, np.uint8) as array:
        pass
    page, held = 4096, (ctypes.c_ubyte * (size // 4096))()
    first = -(-array.ctypes.data // page) * page
    count = size // page - 1
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(first), ctypes.c_size_t(count * page), held) == 0
    if not any(held):
        pytest.skip("this Linux gives no pages ahead")
    assert all(value & 1 for value in held[:count])
