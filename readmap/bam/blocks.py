"""Bytes -> blocks of BGZF, many in one call, behind which alone a thread waits for Python's lock."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import deflate._deflate
import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Kernel
from readmap.backend.cpu import CpuBackend
from readmap.formats.bgzf import BLOCK_BYTES, HEADER_BEGIN, Codec, compress

_COMPRESS = Kernel("bam/blocks", "compress_blocks")

#: Of a block that has not become smaller, with its header and trailer; behind the last one libdeflate wants some room.
MOST_BLOCK_BYTES, ROOM_BEHIND = 1 << 16, 1 << 10


@dataclass(frozen=True)
class Libdeflate:
    """Where functions of libdeflate are in this process."""

    alloc_compressor: int
    deflate_compress: int
    crc32: int
    free_compressor: int


def block_codec() -> Codec:
    """What compresses blocks: functions of libdeflate, where its Python package shows them, else that package's."""
    library = ctypes.CDLL(deflate._deflate.__file__)
    try:
        functions = [getattr(library, f"libdeflate_{name}") for name in Libdeflate.__dataclass_fields__]
    except AttributeError:
        return compress
    addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    held, backend = Libdeflate(*addresses), CpuBackend(1)
    header = np.frombuffer(HEADER_BEGIN, np.uint8)

    def compress_blocks(data: NDArray[np.uint8], level: int) -> tuple[NDArray[np.uint8], list[int]]:
        count = -(-len(data) // BLOCK_BYTES)
        blocks = np.empty(count * MOST_BLOCK_BYTES + ROOM_BEHIND, np.uint8)
        sizes = np.empty(count, np.int64)
        shape = {"size": len(data), "header_bytes": len(header), "room": len(blocks), "count": count}
        given = {"data": data, "header": header, "blocks": blocks, "sizes": sizes, "library": held}
        backend.launch(_COMPRESS, 1, **given, **shape, block_bytes=BLOCK_BYTES, level=level)
        if (sizes < 0).any():
            raise MemoryError("to compress")
        return blocks[: int(sizes.sum())], sizes.tolist()

    return compress_blocks
