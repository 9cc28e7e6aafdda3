"""Bytes -> blocks of BGZF, many in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from readmap.backend.base import Kernel
from readmap.backend.cpu import host_backend
from readmap.backend.libdeflate import libdeflate
from readmap.formats.bgzf import BLOCK_BYTES, HEADER_START, BgzfOutput, Blocks, Bytes, Codec, Compress, compress_with_package

_COMPRESS = Kernel("bam/libdeflate_blocks", "compress_blocks")

#: Of a block that has not become smaller, with its header and trailer; behind the last one libdeflate wants some room.
MAX_BLOCK_BYTES, ROOM_BEHIND = 1 << 16, 1 << 10


def libdeflate_codec() -> Codec:
    """What compresses on the host."""
    return Codec("libdeflate", partial(BgzfOutput, compress=block_compressor()))


def block_compressor() -> Compress:
    """What makes a group of blocks: functions of libdeflate, where its Python package shows them, else that package."""
    held, backend = libdeflate(), host_backend("bam/libdeflate_blocks", 1)
    if held is None or backend is None:
        return compress_with_package
    header = np.frombuffer(HEADER_START, np.uint8)

    def compress_part(data: Bytes, level: int) -> tuple[Bytes, list[int]]:
        count = -(-len(data) // BLOCK_BYTES)
        blocks = np.empty(count * MAX_BLOCK_BYTES + ROOM_BEHIND, np.uint8)
        sizes = np.empty(count, np.int64)
        shape = {"size": len(data), "header_bytes": len(header), "room": len(blocks), "count": count}
        given = {"data": data, "header": header, "blocks": blocks, "sizes": sizes, "library": held}
        backend.launch(_COMPRESS, 1, **given, **shape, block_bytes=BLOCK_BYTES, level=level)
        if (sizes < 0).any():
            raise MemoryError("to compress")
        return blocks[: int(sizes.sum())], sizes.tolist()

    def compress(parts: Sequence[Bytes], level: int) -> Blocks:
        made = [compress_part(part, level) for part in parts]
        return Blocks([data for data, _ in made], [size for _, sizes in made for size in sizes])

    return compress
