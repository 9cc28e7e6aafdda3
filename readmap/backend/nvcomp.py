"""nvCOMP: gzip made and inflated by a GPU, where NVIDIA's library is installed."""

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


class InflateOptions(ctypes.Structure):
    """nvcompBatchedGzipDecompressOpts_t: by kernels, of the naive algorithm, which is the quicker one up to 64 KiB."""

    _fields_ = [("backend", c_int), ("algorithm", c_int), ("sorts", c_int), ("reserved", ctypes.c_char * 52)]


class ChecksumOptions(ctypes.Structure):
    """nvcompBatchedCRC32Opts_t: what CRC is to be computed, and how."""

    _fields_ = [
        ("poly", ctypes.c_uint32),
        ("init", ctypes.c_uint32),
        ("ref_in", ctypes.c_bool),
        ("ref_out", ctypes.c_bool),
        ("xorout", ctypes.c_uint32),
        ("spec_reserved", ctypes.c_char * 16),
        ("conf", ctypes.c_char * 32),
        ("reserved", ctypes.c_char * 64),
    ]


INFLATE = InflateOptions(backend=2)

#: gzip's.
CRC32 = {"poly": 0x04C11DB7, "init": 0xFFFFFFFF, "ref_in": True, "ref_out": True, "xorout": 0xFFFFFFFF}


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
        self._inflate_scratch = library.nvcompBatchedGzipDecompressGetTempSize
        self._inflate_scratch.argtypes = [c_size_t, c_size_t, InflateOptions, POINTER(c_size_t), c_size_t, c_void_p]
        self._inflate = library.nvcompBatchedGzipDecompressAsync
        plain = [c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]
        self._inflate.argtypes = [*plain, InflateOptions, c_void_p, c_void_p]
        self._configure = library.nvcompBatchedCRC32GetHeuristicConf
        self._configure.argtypes = [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]
        self._checksums = library.nvcompBatchedCRC32Async
        self._checksums.argtypes = [
            c_void_p,
            c_void_p,
            c_size_t,
            c_void_p,
            ChecksumOptions,
            c_int,
            c_void_p,
            c_void_p,
        ]

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

    def inflate_scratch(self, count: int, nbytes: int) -> int:
        """Bytes on the device to inflate so many members, each of no more than nbytes of contents."""
        scratch = c_size_t()
        _expect(self._inflate_scratch(count, nbytes, INFLATE, byref(scratch), count * nbytes, None))
        return scratch.value

    def inflate(
        self,
        count: int,
        *,
        members: int,
        member_lengths: int,
        rooms: int,
        made: int,
        scratch: tuple[int, int],
        contents: int,
        statuses: int,
        stream: int,
    ) -> None:
        """Inflate so many members; the host does not wait for it.

        All are addresses on the device. members, member_lengths: of each, addresses and uint64. contents, rooms, made:
        of the contents of each, addresses, the bytes that there are, and those that are made, uint64. scratch: its
        bytes too. statuses: int32 of each, 0 where it is made. stream: a stream's. What is corrupt may be noticed or
        not, and whatever lies up to 64 KiB beside members and contents may be read.
        """
        given = members, member_lengths, rooms, made, count, *scratch, contents, INFLATE, statuses, stream
        _expect(self._inflate(*given))

    def checksums(self, count: int, nbytes: int, *, contents: int, lengths: int, sums: int, stream: int) -> None:
        """The CRC-32, uint32, of each of so many contents, of no more than nbytes; arguments as `inflate` has them."""
        options = ChecksumOptions(**CRC32)
        conf = byref(options, ChecksumOptions.conf.offset)
        _expect(self._configure(None, count, conf, nbytes, None))
        _expect(self._checksums(contents, lengths, count, sums, options, 0, None, stream))


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
