"""Memory of the host that copies to and from GPUs reach at the pace of the link: page-locked, in large pages."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

#: Linux's MADV_POPULATE_WRITE, which the module mmap does not name.
_POPULATE_WRITE = 23

#: Bytes that are asked for together, and threads that ask: the system clears pages at the pace of memory.
_PART_BYTES, _THREADS = 16 << 20, 4

#: Of a large page. What is smaller is in ordinary ones.
_LARGE = 2 << 20

#: For all GPUs (cudaHostRegisterPortable).
_PORTABLE = 1

_madvise = ctypes.CDLL(None).madvise  # mmap's own keeps Python's lock
_madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def page_locked(size: int, runtime: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """New memory, uint8 [size]; runtime: CuPy's, of CUDA. The driver alone takes three times as long to make some."""
    pages = mmap.mmap(-1, -(-max(size, 1) // _LARGE) * _LARGE + _LARGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held = np.frombuffer(pages, np.uint8)
    begin = -held.ctypes.data % _LARGE
    array = held[begin : begin + size]
    start, nbytes = array.ctypes.data, -(-max(size, 1) // _LARGE) * _LARGE
    _madvise(start, nbytes, mmap.MADV_HUGEPAGE)
    _madvise(start, nbytes, mmap.MADV_DONTFORK)  # behind a fork the first write would be to a copy, which no GPU knows
    with ThreadPoolExecutor(_THREADS, "readmap-pages") as pool:
        for at in range(0, nbytes, _PART_BYTES):
            pool.submit(_madvise, start + at, min(_PART_BYTES, nbytes - at), _POPULATE_WRITE)
    runtime.hostRegister(start, nbytes, _PORTABLE)
    weakref.finalize(held, runtime.hostUnregister, start).atexit = False  # before the pages go
    return array
