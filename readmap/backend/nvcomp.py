"""nvCOMP: gzip made by a GPU, where NVIDIA's library is installed."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from ctypes import POINTER, byref, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

#: Of which the functions below are; the Python package brings it, the system may have it.
SONAME = "libnvcomp.so.6"


class Options(ctypes.Structure):
    """nvcompBatchedGzipCompressOpts_t. algorithm: 0, the fastest one, to 5, which makes the smallest files."""

    _fields_ = [("algorithm", c_int), ("reserved", ctypes.c_char * 60)]


class Sizes(NamedTuple):
    """Bytes that compressing takes on the device: most of a member, and of what is dropped again."""

    member: int
    scratch: int


class NvcompError(Exception):
    """The library refuses what it is asked for."""


class Nvcomp:
    """The library's functions for members of gzip that are made together."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._most = library.nvcompBatchedGzipCompressGetMaxOutputChunkSize
        self._most.argtypes = [c_size_t, Options, POINTER(c_size_t)]
        self._scratch = library.nvcompBatchedGzipCompressGetTempSize
        self._scratch.argtypes = [c_size_t, c_size_t, Options, POINTER(c_size_t), c_size_t, c_void_p]
        self._compress = library.nvcompBatchedGzipCompressAsync
        plain: list[Any] = [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]
        self._compress.argtypes = [*plain, Options, c_void_p, c_void_p]

    def sizes(self, count: int, nbytes: int, algorithm: int) -> Sizes:
        """Of so many members, each of no more than nbytes."""
        member, scratch = c_size_t(), c_size_t()
        _expect(self._most(nbytes, Options(algorithm), byref(member)))
        _expect(self._scratch(count, nbytes, Options(algorithm), byref(scratch), count * nbytes, None))
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
        """Make so many members, each of no more than nbytes; the host does not wait for it.

        All are addresses on the device. starts, lengths: of the bytes of each, addresses and uint64; members,
        member_lengths: of what is made of each, the same. scratch: its bytes too. statuses: int32 of each, 0 where it
        is made. stream: a stream's.
        """
        made = members, member_lengths, Options(algorithm), statuses, stream
        _expect(self._compress(starts, lengths, nbytes, count, *scratch, *made))


def _expect(status: int) -> None:
    if status:
        raise NvcompError(f"nvCOMP ends with status {status}")


@functools.cache
def nvcomp() -> Nvcomp | None:
    """The library; None where it is not installed."""
    for path in [*_installed(), SONAME]:
        try:
            return Nvcomp(ctypes.CDLL(str(path)))
        except (OSError, AttributeError):
            continue
    return None


def _installed() -> list[Path]:
    """Where its Python package has it."""
    try:
        package = importlib.util.find_spec("nvidia.libnvcomp")
    except ModuleNotFoundError:
        return []
    folders = (package.submodule_search_locations if package else None) or []
    return [Path(folder) / "lib64" / SONAME for folder in folders]
