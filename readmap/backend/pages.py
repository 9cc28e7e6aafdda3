"""New memory of the host, whose pages the system gives where they are first written: ahead of that, by threads."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

#: Linux's MADV_POPULATE_WRITE, which the module mmap does not name.
_POPULATE_WRITE = 23

#: Bytes that are asked for together, and threads that ask: the system clears pages at the pace of memory.
_PART_BYTES, _THREADS = 64 << 20, 4


@contextlib.contextmanager
def given_ahead(size: int, dtype: Any) -> Iterator[np.ndarray[Any, Any]]:
    """A new array of undefined contents, whose pages come while the caller is in it; an old Linux gives none ahead."""
    array = np.empty(size, dtype)
    begin, end = array.ctypes.data, array.ctypes.data + array.nbytes
    libc = ctypes.CDLL(None)

    def ask(start: int) -> None:
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        last = min(start + _PART_BYTES, end) // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _POPULATE_WRITE)

    pool = ThreadPoolExecutor(_THREADS, "readmap-pages")
    try:
        for start in range(begin, end, _PART_BYTES):
            pool.submit(ask, start)
        yield array
    finally:
        pool.shutdown(cancel_futures=True)
