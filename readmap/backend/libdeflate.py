"""libdeflate's functions for kernels of the host: many blocks in one call, behind which alone Python is waited for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields

import deflate._deflate


@dataclass(frozen=True)
class Libdeflate:
    """Where functions of libdeflate are in this process."""

    alloc_compressor: int
    deflate_compress: int
    crc32: int
    free_compressor: int
    alloc_decompressor: int
    gzip_decompress_ex: int
    free_decompressor: int


def libdeflate() -> Libdeflate | None:
    """The library that its Python package brings; None where that hides its functions."""
    library = ctypes.CDLL(deflate._deflate.__file__)
    try:
        functions = [getattr(library, f"libdeflate_{one.name}") for one in fields(Libdeflate)]
    except AttributeError:
        return None
    return Libdeflate(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions))
