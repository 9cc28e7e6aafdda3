"""Inflaters of gzip and BGZF input: host kernels, or the kernel of a GPU for BGZF."""

from __future__ import annotations

import numpy as np

from readmap.backend import Backend
from readmap.backend.base import Kernel
from readmap.backend.cpu import host_backend
from readmap.backend.libdeflate import libdeflate
from readmap.formats.gzip_reader import Inflater, Inflaters, declared_sizes
from readmap.reads.parallel_gzip import parallel_gzip_inflater

_INFLATE = Kernel("reads/bgzf_libdeflate", "inflate_blocks")


def bgzf_inflater() -> Inflater | None:
    """Return the BGZF inflater of the host; None without host kernels or if libdeflate exports no functions."""
    library, backend = libdeflate(), host_backend("reads/bgzf_libdeflate", 1)
    if library is None or backend is None:
        return None

    def inflate_blocks(data: bytes, ends: list[int]) -> memoryview | None:
        compressed, block_ends = np.frombuffer(data, np.uint8), np.array(ends)
        # A block that needs more than the size in its trailer is corrupt.
        contents = np.empty(int(declared_sizes(compressed, block_ends).sum()), np.uint8)
        total = np.empty(1, np.int64)
        arrays = {"data": compressed, "ends": block_ends, "contents": contents, "total": total}
        sizes = {"size": len(data), "count": len(ends) - 1, "capacity": len(contents)}
        backend.launch(_INFLATE, 1, **arrays, **sizes, library=library)
        return contents[: total[0]].data if total[0] >= 0 else None

    return Inflater(inflate_blocks)


HOST_INFLATERS = Inflaters(bgzf_inflater, parallel_gzip_inflater)


def inflaters_for(backend: Backend) -> Inflaters:
    """Return inflaters that use the backend's GPU for BGZF; HOST_INFLATERS for a CPU backend."""
    if backend.name == "cpu":
        return HOST_INFLATERS
    from readmap.backend.cuda import CudaBackend
    from readmap.reads.device_bgzf_inflater import device_bgzf_inflater

    if not isinstance(backend, CudaBackend):
        return HOST_INFLATERS
    return Inflaters(device_bgzf_inflater(backend), parallel_gzip_inflater)
