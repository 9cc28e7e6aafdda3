"""Blocks of BGZF -> their contents, many in one call."""

from __future__ import annotations

import numpy as np

from readmap.backend.base import Kernel
from readmap.backend.cpu import host_backend
from readmap.backend.libdeflate import libdeflate
from readmap.formats.gzip_data import Inflater, told_bytes

_INFLATE = Kernel("reads/bgzf_libdeflate", "inflate_blocks")


def bgzf_inflater() -> Inflater | None:
    """What inflates blocks: functions of libdeflate, where its Python package shows them, and kernels of the host."""
    held, backend = libdeflate(), host_backend("reads/bgzf_libdeflate", 1)
    if held is None or backend is None:
        return None

    def inflate_blocks(data: bytes, ends: list[int]) -> memoryview | None:
        compressed, borders = np.frombuffer(data, np.uint8), np.array(ends)
        # Where what they tell is too little, they are corrupt.
        contents, made = np.empty(int(told_bytes(compressed, borders).sum()), np.uint8), np.empty(1, np.int64)
        given = {"data": compressed, "ends": borders, "contents": contents, "made": made}
        shape = {"size": len(data), "count": len(ends) - 1, "room": len(contents)}
        backend.launch(_INFLATE, 1, **given, **shape, library=held)
        return contents[: made[0]].data if made[0] >= 0 else None

    return Inflater(inflate_blocks)
