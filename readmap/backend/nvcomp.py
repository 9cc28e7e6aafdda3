"""nvCOMP: gzip compression on a GPU, if NVIDIA's library is installed."""

import ctypes
import functools
import importlib.util
from ctypes import POINTER, byref, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

#: The version whose functions are declared below, from the Python package nvidia-libnvcomp or the system.
SONAME = "libnvcomp.so.6"


class Options(ctypes.Structure):
    """nvcompBatchedGzipCompressOpts_t. algorithm: 0 (fastest) to 5 (smallest files)."""

    _fields_ = [("algorithm", c_int), ("reserved", ctypes.c_char * 60)]


class Sizes(NamedTuple):
    """Device memory needed for compression, bytes: the maximum of one gzip member, and scratch for all members."""

    member: int
    scratch: int


class NvcompError(Exception):
    """nvCOMP returned an error status."""


class Nvcomp:
    """The library's functions for compressing a batch of gzip members."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._max_size = library.nvcompBatchedGzipCompressGetMaxOutputChunkSize
        self._max_size.argtypes = [c_size_t, Options, POINTER(c_size_t)]
        self._scratch_size = library.nvcompBatchedGzipCompressGetTempSize
        self._scratch_size.argtypes = [c_size_t, c_size_t, Options, POINTER(c_size_t), c_size_t, c_void_p]
        self._compress = library.nvcompBatchedGzipCompressAsync
        plain: list[Any] = [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]
        self._compress.argtypes = [*plain, Options, c_void_p, c_void_p]

    def sizes(self, count: int, nbytes: int, algorithm: int) -> Sizes:
        """Return the memory needed to compress `count` members of at most `nbytes` plain bytes each."""
        member, scratch = c_size_t(), c_size_t()
        _check(self._max_size(nbytes, Options(algorithm), byref(member)))
        _check(self._scratch_size(count, nbytes, Options(algorithm), byref(scratch), count * nbytes, None))
        return Sizes(member.value, scratch.value)

    def compress(
        self,
        count: int,
        nbytes: int,
        algorithm: int,
        *,
        starts: int,
        lengths: int,
        scratch: tuple[int, int],
        members: int,
        member_lengths: int,
        statuses: int,
        stream: int,
    ) -> None:
        """Compress `count` members of at most `nbytes` plain bytes each, asynchronously on `stream`.

        All array arguments are device addresses. starts, lengths: address and uint64 length of each input; members,
        member_lengths: address and uint64 length of each output. scratch: address and bytes. statuses: int32 [count],
        0 for success.
        """
        outputs = members, member_lengths, Options(algorithm), statuses, stream
        _check(self._compress(starts, lengths, nbytes, count, *scratch, *outputs))


def _check(status: int) -> None:
    if status:
        raise NvcompError(f"nvCOMP returned status {status}")


@functools.cache
def nvcomp() -> Nvcomp | None:
    """Return nvCOMP from NVIDIA's Python package or the system's library path; None if it is not installed."""
    for path in [*_find_package_libraries(), SONAME]:
        try:
            return Nvcomp(ctypes.CDLL(str(path)))
        except (OSError, AttributeError):
            continue
    return None


def _find_package_libraries() -> list[Path]:
    """Return where the library would be in the Python package nvidia.libnvcomp; [] if that is missing."""
    try:
        package = importlib.util.find_spec("nvidia.libnvcomp")
    except ModuleNotFoundError:
        return []
    folders = (package.submodule_search_locations if package else None) or []
    return [Path(folder) / "lib64" / SONAME for folder in folders]
