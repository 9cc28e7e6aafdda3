"""Searches and scans by the workers of a Dask cluster: shards of reads, or parts of a database, are tasks.

>>> import readmap.dask
>>> from distributed import Client
>>> client = Client("scheduler:8786")  # doctest: +SKIP
>>> readmap.dask.search(client, [("r1.fq.gz", "r2.fq.gz")], "ref.readmap", "out.bam")  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from readmap.dask.api import search as search
    from readmap.dask.distributed_scan import scan as scan
    from readmap.run.lanes import Lane as Lane

#: The address that starts a cluster on this machine.
LOCAL = "local"
#: Approximate reads of a task on the CPU and on a GPU. Tasks, and so the blocks of BAM, do not depend on the workers.
TASK_READS, GPU_TASK_READS = 1_000_000, 10_000_000

_HOMES = {"search": "readmap.dask.api", "Lane": "readmap.run.lanes", "scan": "readmap.dask.distributed_scan"}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Imported on first use: Dask is installed only with the extra.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
