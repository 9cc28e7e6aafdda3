"""A cluster of two workers of this machine, where Dask is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from readmap.dask.cluster import LOST_WORKER

WORKERS = 2


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'readmap[dask]'")
    import dask
    from distributed import LocalCluster

    options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with dask.config.set({LOST_WORKER: "1 hour"}), LocalCluster(n_workers=WORKERS, **options) as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(cluster) as made:
        made.wait_for_workers(WORKERS, 60)
        yield made
