"""What inflates files of reads: kernels of the host, and of a GPU where it can."""

from __future__ import annotations

from readmap.backend import Backend
from readmap.formats.gzip_reader import Inflaters
from readmap.reads.blocks import bgzf_inflater
from readmap.reads.parallel_gzip import parallel_gzip_inflater

HOST_INFLATERS = Inflaters(bgzf_inflater, parallel_gzip_inflater)


def inflaters_for(backend: Backend) -> Inflaters:
    """Those of the host, but for blocks where the backend is a GPU's."""
    if backend.name == "cpu":
        return HOST_INFLATERS
    from readmap.backend.cuda import CudaBackend
    from readmap.reads.device_bgzf_inflater import device_bgzf_inflater

    return Inflaters(device_bgzf_inflater(backend), parallel_gzip_inflater) if isinstance(backend, CudaBackend) else HOST_INFLATERS
