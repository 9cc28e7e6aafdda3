"""Memory of the host that copies to and from GPUs reach at the pace of the link: page-locked, in large pages.

Its addresses are reserved once and kept. Else the driver, which looks for room for memory of its own meanwhile, could
find that some of it was given away and locked in the same moment: it then says of either that it is there already.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

#: Linux's MADV_POPULATE_WRITE, and what the module mmap does not name either: no access, addresses without memory
#: behind them, and a place that is told.
_POPULATE_WRITE, _NO_ACCESS, _NO_RESERVE, _FIXED = 23, 0, 0x4000, 0x10

#: Bytes that are asked for together, and threads that ask: the system clears pages at the pace of memory.
_PART_BYTES, _THREADS = 16 << 20, 4

#: Of a large page. What is smaller is in ordinary ones.
_LARGE = 2 << 20

#: For all GPUs (cudaHostRegisterPortable).
_PORTABLE = 1

#: Memory that is kept serves who wants a part of it, down to this one: a buffer that grows has had all sizes before.
_LEAST_PART = 4

#: Addresses that are reserved, as a multiple of the machine's memory: there is room between what is held.
_RESERVED = 4

_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

_system = ctypes.CDLL(None, use_errno=True)  # the module mmap's own functions keep Python's lock
_system.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_system.mmap.restype = ctypes.c_void_p


def page_locked(size: int, runtime: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Memory, uint8 [size], whose bytes are undefined; runtime: CuPy's, of CUDA. The driver alone takes three times as
    long to make some.

    Raises MemoryError where the machine has none left.
    """
    nbytes = -(-max(size, 1) // _LARGE) * _LARGE
    locked = _KEPT.take(nbytes) or _lock_with_room(nbytes, runtime)
    held = np.frombuffer(memoryview((ctypes.c_ubyte * size).from_address(locked.start)), np.uint8)
    weakref.finalize(held, _KEPT.give_back, locked).atexit = False
    return held


def keep_released(most: int) -> None:
    """Keep up to so many bytes that are let go of, for who wants some next: to make and lock them anew takes longer."""
    _KEPT.most = most
    _KEPT.let_go(most)


class _Locked(NamedTuple):
    """Memory from an address on, and the runtime that has locked it."""

    start: int
    nbytes: int
    runtime: Any

    def let_go(self) -> None:
        """Its addresses are given back with the memory mapped still, so that nobody else has them meanwhile."""
        self.runtime.hostUnregister(self.start)
        _ADDRESSES.give_back(self.start, self.nbytes)


def _lock_with_room(nbytes: int, runtime: Any) -> _Locked:
    """New memory, for which what is kept makes room where there is none."""
    try:
        return _lock(nbytes, runtime)
    except Exception:
        if not _KEPT.let_go(0):
            raise
        return _lock(nbytes, runtime)


def _lock(nbytes: int, runtime: Any) -> _Locked:
    start = _ADDRESSES.take(nbytes)
    try:
        _system.madvise(start, nbytes, mmap.MADV_HUGEPAGE)
        _system.madvise(start, nbytes, mmap.MADV_DONTFORK)  # behind a fork the first write would be to a copy
        with ThreadPoolExecutor(_THREADS, "readmap-pages") as pool:
            for at in range(0, nbytes, _PART_BYTES):
                pool.submit(_system.madvise, start + at, min(_PART_BYTES, nbytes - at), _POPULATE_WRITE)
        runtime.hostRegister(start, nbytes, _PORTABLE)
    except BaseException:
        _ADDRESSES.give_back(start, nbytes)
        raise
    return _Locked(start, nbytes, runtime)


class _Kept:
    """Memory that was let go of and is locked still; most: bytes of it, about, since threads let go at once."""

    def __init__(self) -> None:
        self.most = 0
        self._lock = threading.Lock()
        # The oldest first; and what has come back since, from whichever thread, at any time.
        self._held: list[_Locked] = []
        self._returned: deque[_Locked] = deque()

    def take(self, nbytes: int) -> _Locked | None:
        """The least that has so many bytes, without being much larger; None where there is none, and the oldest has
        made way for so many more."""
        with self._lock:
            self._gather()
            fitting = [one for one in self._held if nbytes <= one.nbytes <= _LEAST_PART * nbytes]
            found = min(fitting, key=lambda one: one.nbytes, default=None)
            if found:
                self._held.remove(found)
                return found
        self.let_go(max(self.most - nbytes, 0))
        return None

    def let_go(self, most: int) -> bool:
        """Keep no more than so many bytes, the oldest least; whether any were let go of."""
        going = list[_Locked]()
        with self._lock:
            self._gather()
            kept = sum(one.nbytes for one in self._held)
            while kept > most:
                going.append(self._held.pop(0))
                kept -= going[-1].nbytes
        for one in going:
            with contextlib.suppress(Exception):  # a device that has failed keeps its memory
                one.let_go()
        return bool(going)

    def give_back(self, locked: _Locked) -> None:
        """Keep what is let go of, where there is room for it. No lock is taken: finalizers call this at any time."""
        if sum(one.nbytes for one in [locked, *self._held, *self._returned]) <= self.most:
            self._returned.append(locked)
        else:
            locked.let_go()

    def _gather(self) -> None:
        while self._returned:
            self._held.append(self._returned.popleft())


class _Addresses:
    """Addresses from which memory is taken, and to which it goes back."""

    def __init__(self, nbytes: int) -> None:
        begin = -(-_map(None, nbytes + _LARGE, _NO_ACCESS, _NO_RESERVE) // _LARGE) * _LARGE
        self._lock = threading.Lock()
        # The sizes of what is free, by where it begins; and what has come back since, from whichever thread, at any
        # time.
        self._free = {begin: nbytes}
        self._returned: deque[tuple[int, int]] = deque()

    def take(self, nbytes: int) -> int:
        """The first one of so many, which have memory now: the lowest that are free."""
        with self._lock:
            while self._returned:
                self._join(*self._returned.popleft())
            start = min((begin for begin, size in self._free.items() if size >= nbytes), default=None)
            if start is None:
                raise MemoryError(f"no addresses are left for {nbytes:,} bytes of page-locked memory")
            _map(start, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, _FIXED)
            left = self._free.pop(start) - nbytes
            if left:
                self._free[start + nbytes] = left
        return start

    def give_back(self, start: int, nbytes: int) -> None:
        """Let go of the memory at addresses that were taken together."""
        _map(start, nbytes, _NO_ACCESS, _FIXED | _NO_RESERVE)
        self._returned.append((start, nbytes))

    def _join(self, start: int, nbytes: int) -> None:
        """Have these free, as one with what is free beside them."""
        for begin, size in list(self._free.items()):
            if begin == start + nbytes:
                nbytes += self._free.pop(begin)
            elif begin + size == start:
                start, nbytes = begin, nbytes + self._free.pop(begin)
        self._free[start] = nbytes


def _map(start: int | None, nbytes: int, access: int, flags: int) -> int:
    """Where these bytes are from now on; raises MemoryError."""
    place: int = _system.mmap(start, nbytes, access, _ANONYMOUS | flags, -1, 0)
    if place == ctypes.c_void_p(-1).value:
        raise MemoryError(f"{os.strerror(ctypes.get_errno())}: {nbytes:,} bytes of page-locked memory")
    return place


_ADDRESSES = _Addresses(_RESERVED * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
_KEPT = _Kept()
