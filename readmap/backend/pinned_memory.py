"""Pinned host memory in huge pages, for copies to and from GPUs at the speed of the link.

Its addresses are reserved once and never unmapped. Otherwise the driver, which looks for free addresses for its own
allocations, can find addresses that another thread is mapping and locking, and reports them as already registered.
"""

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

#: Linux's MADV_POPULATE_WRITE, PROT_NONE, MAP_NORESERVE and MAP_FIXED, which the module mmap does not define.
_POPULATE_WRITE, _NO_ACCESS, _NO_RESERVE, _FIXED = 23, 0, 0x4000, 0x10

#: Bytes of one populate request, and threads that populate in parallel: the kernel clears pages at memory speed.
_PART_BYTES, _THREADS = 16 << 20, 4
_HUGE_PAGE = 2 << 20  # bytes of a huge page; allocations are rounded up to it
_PORTABLE = 1  # cudaHostRegisterPortable: pinned for all GPUs

#: A cached allocation serves requests down to 1/4 of its size: a growing buffer releases all smaller sizes.
_MAX_SIZE_RATIO = 4
_RESERVED = 4  # reserved addresses as a multiple of the machine's memory, to leave room for fragmentation
_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

_libc = ctypes.CDLL(None, use_errno=True)  # the functions of the module mmap do not release the GIL
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mmap.restype = ctypes.c_void_p


def allocate_pinned(size: int, runtime: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Allocate pinned memory, uint8 [size], three times as fast as the driver; runtime: of CuPy. Raises MemoryError."""
    nbytes = -(-max(size, 1) // _HUGE_PAGE) * _HUGE_PAGE
    block = _CACHE.take(nbytes) or _pin_with_retry(nbytes, runtime)
    array = np.frombuffer(memoryview((ctypes.c_ubyte * size).from_address(block.start)), np.uint8)
    weakref.finalize(array, _CACHE.give_back, block).atexit = False
    return array


def set_pinned_cache_size(max_bytes: int) -> None:
    """Set how many bytes of released pinned memory are cached for later allocations."""
    _CACHE.max_bytes = max_bytes
    _CACHE.shrink(max_bytes)


class _Block(NamedTuple):
    """A pinned range of addresses, and the CuPy runtime that registered it."""

    start: int
    nbytes: int
    runtime: Any

    def free(self) -> None:
        """Unpin the block and return its addresses, which stay mapped so that nobody else takes them meanwhile."""
        self.runtime.hostUnregister(self.start)
        _ADDRESSES.give_back(self.start, self.nbytes)


def _pin_with_retry(nbytes: int, runtime: Any) -> _Block:
    """Map and pin `nbytes` bytes; if no memory is left, free the cached blocks and try again."""
    try:
        return _pin(nbytes, runtime)
    except Exception:
        if not _CACHE.shrink(0):
            raise
        return _pin(nbytes, runtime)


def _pin(nbytes: int, runtime: Any) -> _Block:
    """Map `nbytes` bytes in huge pages and pin them for all GPUs. Raises if no memory is left."""
    start = _ADDRESSES.take(nbytes)
    try:
        _libc.madvise(start, nbytes, mmap.MADV_HUGEPAGE)
        _libc.madvise(start, nbytes, mmap.MADV_DONTFORK)  # after a fork the first write would go to a copy
        with ThreadPoolExecutor(_THREADS, "readmap-pages") as pool:
            for offset in range(0, nbytes, _PART_BYTES):
                pool.submit(_libc.madvise, start + offset, min(_PART_BYTES, nbytes - offset), _POPULATE_WRITE)
        runtime.hostRegister(start, nbytes, _PORTABLE)
    except BaseException:
        _ADDRESSES.give_back(start, nbytes)
        raise
    return _Block(start, nbytes, runtime)


class _Cache:
    """Released blocks that are still pinned, about `max_bytes` of them (threads release concurrently)."""

    def __init__(self) -> None:
        self.max_bytes = 0
        self._lock = threading.Lock()
        # Oldest first; finalizers append to _returned from any thread at any time, without a lock.
        self._blocks: list[_Block] = []
        self._returned: deque[_Block] = deque()

    def take(self, nbytes: int) -> _Block | None:
        """Remove and return the smallest block that fits well; if none does, evict the oldest ones and return None."""
        with self._lock:
            self._collect()
            fitting = [block for block in self._blocks if nbytes <= block.nbytes <= _MAX_SIZE_RATIO * nbytes]
            if best := min(fitting, key=lambda block: block.nbytes, default=None):
                self._blocks.remove(best)
                return best
        self.shrink(max(self.max_bytes - nbytes, 0))
        return None

    def shrink(self, max_bytes: int) -> bool:
        """Free the oldest blocks until at most `max_bytes` are cached; return True if any was freed."""
        evicted = list[_Block]()
        with self._lock:
            self._collect()
            cached = sum(block.nbytes for block in self._blocks)
            while cached > max_bytes:
                evicted.append(self._blocks.pop(0))
                cached -= evicted[-1].nbytes
        for block in evicted:
            with contextlib.suppress(Exception):  # a failed device keeps its memory
                block.free()
        return bool(evicted)

    def give_back(self, block: _Block) -> None:
        """Cache a released block, or free it if the cache is full. Takes no lock: finalizers call this at any time."""
        if sum(other.nbytes for other in [block, *self._blocks, *self._returned]) <= self.max_bytes:
            self._returned.append(block)
        else:
            block.free()

    def _collect(self) -> None:
        while self._returned:
            self._blocks.append(self._returned.popleft())


class _Addresses:
    """A reserved range of addresses from which memory is mapped."""

    def __init__(self, nbytes: int) -> None:
        start = -(-_map(None, nbytes + _HUGE_PAGE, _NO_ACCESS, _NO_RESERVE) // _HUGE_PAGE) * _HUGE_PAGE
        self._lock = threading.Lock()
        # Sizes of the free ranges by start; finalizers append to _returned from any thread at any time.
        self._free = {start: nbytes}
        self._returned: deque[tuple[int, int]] = deque()

    def take(self, nbytes: int) -> int:
        """Map memory at the lowest free range of `nbytes`; return its address. Raises MemoryError if none is free."""
        with self._lock:
            while self._returned:
                self._merge(*self._returned.popleft())
            start = min((start for start, size in self._free.items() if size >= nbytes), default=None)
            if start is None:
                raise MemoryError(f"no addresses are left for {nbytes / (1 << 30):.2f} GiB of page-locked memory")
            _map(start, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, _FIXED)
            if rest := self._free.pop(start) - nbytes:
                self._free[start + nbytes] = rest
        return start

    def give_back(self, start: int, nbytes: int) -> None:
        """Free the memory of a range returned by `take`."""
        _map(start, nbytes, _NO_ACCESS, _FIXED | _NO_RESERVE)
        self._returned.append((start, nbytes))

    def _merge(self, start: int, nbytes: int) -> None:
        """Add a free range, joined with its free neighbours."""
        for other, size in list(self._free.items()):
            if other == start + nbytes:
                nbytes += self._free.pop(other)
            elif other + size == start:
                start, nbytes = other, nbytes + self._free.pop(other)
        self._free[start] = nbytes


def _map(start: int | None, nbytes: int, access: int, flags: int) -> int:
    """Map anonymous memory and return its address; raise MemoryError if that fails."""
    address: int = _libc.mmap(start, nbytes, access, _ANONYMOUS | flags, -1, 0)
    if address == ctypes.c_void_p(-1).value:
        raise MemoryError(f"{os.strerror(ctypes.get_errno())}: {nbytes / (1 << 30):.2f} GiB of page-locked memory")
    return address


_ADDRESSES = _Addresses(_RESERVED * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
_CACHE = _Cache()
