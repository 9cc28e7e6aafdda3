"""What inflates files of reads: kernels of the host, and of a GPU where it can."""

from __future__ import annotations

from readmap.backend import Backend
from readmap.formats.gzip_data import Inflaters
from readmap.reads.blocks import block_inflater
from readmap.reads.parallel_gzip import member_inflater

HOST_INFLATERS = Inflaters(block_inflater, member_inflater)


def inflaters_for(backend: Backend) -> Inflaters:
    """Those of the host, but for blocks where the backend is a GPU's."""
    if backend.name == "cpu":
        return HOST_INFLATERS
    from readmap.backend.cuda import CudaBackend
    from readmap.reads.device_inflater import device_inflater

    return Inflaters(device_inflater(backend), member_inflater) if isinstance(backend, CudaBackend) else HOST_INFLATERS
