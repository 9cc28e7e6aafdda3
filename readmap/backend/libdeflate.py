"""Addresses of libdeflate's functions, for host kernels that process many blocks in one call without the GIL."""

import ctypes
from dataclasses import dataclass, fields

import deflate._deflate


@dataclass(frozen=True)
class Libdeflate:
    """The addresses of libdeflate_NAME in this process, for the struct Libdeflate of kernels/common/libdeflate.cuh."""

    alloc_compressor: int
    deflate_compress: int
    crc32: int
    free_compressor: int
    alloc_decompressor: int
    gzip_decompress_ex: int
    free_decompressor: int


def libdeflate() -> Libdeflate | None:
    """Return the functions of the Python package `deflate`, or None if its build does not export them."""
    library = ctypes.CDLL(deflate._deflate.__file__)
    try:
        functions = [getattr(library, f"libdeflate_{field.name}") for field in fields(Libdeflate)]
    except AttributeError:
        return None
    return Libdeflate(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions))
