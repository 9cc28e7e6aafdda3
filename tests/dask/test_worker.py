"""What a worker keeps between tasks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from readmap.backend.cpu import CpuBackend
from readmap.dask import GPU_TASK_READS, TASK_READS, map_tasks, worker
from readmap.dask.job import RECORDS
from readmap.dask.run_files import RunSidecar
from readmap.run.config import SearchConfig


def test_a_device_is_opened_once_and_keeps_its_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = list[int]()
    monkeypatch.setattr(worker, "_backends", {})
    monkeypatch.setattr(CpuBackend, "cache_host_buffers", lambda self, most: kept.append(most))
    available = iter([None, 800])
    monkeypatch.setattr(worker, "available_memory", lambda: next(available))
    held = worker.worker_backend("cpu", 1)
    assert worker.worker_backend("cpu", 1) is held
    assert worker.worker_backend("cpu", 2) is not held
    assert kept == [worker.BUFFER_BYTES, 100]


@pytest.mark.parametrize(("name", "reads"), [("cpu", TASK_READS), ("cuda:0", GPU_TASK_READS)])
def test_a_task_has_as_many_reads_as_suit_the_device(monkeypatch: pytest.MonkeyPatch, name: str, reads: int) -> None:
    backend = CpuBackend(1)
    backend.name = name
    monkeypatch.setattr(worker, "_backends", {})
    monkeypatch.setattr(worker, "open_backend", lambda *_: backend)
    assert worker.task_reads(SearchConfig(threads=1)) == reads


@pytest.mark.parametrize(("given", "available", "memory"), [(100, 8000, 50), (None, 8000, 2000), (None, None, 2 << 30)])
def test_two_shards_share_the_memory_for_sorting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: int | None, available: int | None, memory: int
) -> None:
    taken = list[int]()

    def sorted_output(output: Any, memory: int, *_: Any, **named: Any) -> Any:
        taken.append(memory)
        return output

    monkeypatch.setattr(map_tasks, "SortedOutput", sorted_output)
    monkeypatch.setattr("readmap.bam.memory.available_memory", lambda: available)
    job: Any = SimpleNamespace(is_sorted=True, config=SearchConfig(output="out.bam", sort=True, sort_memory=given))
    map_tasks._open_output(job, RECORDS, tmp_path, CpuBackend(1), RunSidecar(1)).abort()
    assert taken == [memory]
