"""readmap on a cluster of Dask: the shards of a search, and the parts of a database, as tasks of its workers.

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

#: The value that stands for a cluster of this machine.
LOCAL = "local"

#: Reads of a task, about, on a processor and on a GPU; of how many workers there are the number of tasks does not
#: depend, nor do blocks of BAM.
TASK_READS, GPU_TASK_READS = 1_000_000, 10_000_000

_HOMES = {"search": "readmap.dask.api", "Lane": "readmap.run.lanes", "scan": "readmap.dask.distributed_scan"}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Loaded when asked for: Dask is there only where the extra is installed.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
