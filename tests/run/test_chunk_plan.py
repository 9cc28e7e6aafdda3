"""Plans of chunks by memory: larger chunks for several devices, smaller ones if memory is short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from readmap.backend import open_backend
from readmap.backend.cpu import CpuBackend
from readmap.cli import main
from readmap.run import chunk_plan, index_loading, stream
from readmap.run.chunk_plan import MIN_CHUNK_BYTES, MULTI_DEVICE_PLAN, WORKING_BYTES, ChunkPlan, plan_chunks

#: What one device maps.
USUAL = ChunkPlan(2, 512 << 20)


class Device(CpuBackend):
    """Has memory of its own, and maps chunks as a GPU does."""

    def __init__(self, free: int) -> None:
        """free: bytes of it."""
        super().__init__(1)
        self.free, (self.concurrent_chunks, self.chunk_bytes) = free, USUAL

    def memory(self) -> tuple[int, int]:
        return self.free, self.free


@pytest.fixture(autouse=True)
def large_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_plan, "available_memory", lambda: None)


def of(*free: int, needed: int = 0, is_sorted: bool = False) -> ChunkPlan:
    return plan_chunks([Device(each) for each in free], needed, is_sorted)


def test_a_device_without_memory_of_its_own() -> None:
    backend = open_backend("cpu", 2)
    usual = ChunkPlan(backend.concurrent_chunks, backend.chunk_bytes)
    assert plan_chunks([backend]) == plan_chunks([backend, backend]) == usual


def test_one_device() -> None:
    assert of(1 << 40) == of(USUAL.working_bytes) == USUAL
    for free in (USUAL.working_bytes - WORKING_BYTES * 2, 100 << 20, 1 << 30):
        assert of(free) == ChunkPlan(2, free // WORKING_BYTES // 2)
        assert of(free + 5000, needed=5000) == of(free)
    assert of(0) == of(10, needed=1 << 40) == ChunkPlan(2, MIN_CHUNK_BYTES)


def test_several_devices() -> None:
    """As large as the smallest memory allows, but where they would be smaller than one device's."""
    most = MULTI_DEVICE_PLAN.working_bytes
    assert of(most, most) == of(most + 9, most + 20, needed=9) == MULTI_DEVICE_PLAN
    assert of(most, most - 3 * WORKING_BYTES) == MULTI_DEVICE_PLAN._replace(nbytes=MULTI_DEVICE_PLAN.nbytes - 1)
    least = 3 * WORKING_BYTES * USUAL.nbytes
    assert of(most, least) == ChunkPlan(3, USUAL.nbytes)
    assert of(most, least - 1) == USUAL
    assert of(most, most, is_sorted=True) == USUAL


def test_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """One buffer is filled, one waits for each device, and three are mapped on each."""
    most = MULTI_DEVICE_PLAN.working_bytes
    for devices in (2, 8):
        assert MULTI_DEVICE_PLAN.buffers(devices) == 1 + 4 * devices
        needed = 4 * (1 + 4 * devices) * MULTI_DEVICE_PLAN.nbytes
        for available, plan in ((needed, MULTI_DEVICE_PLAN), (needed - 4, USUAL)):
            monkeypatch.setattr(chunk_plan, "available_memory", lambda available=available: available)
            assert of(*[most] * devices) == plan


@pytest.mark.parametrize(
    ("output", "is_sorted"), [(["out.sam"], False), (["out.bam"], False), (["out.bam", "--sort"], True)]
)
def test_what_a_search_plans(
    demo_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: list[str], is_sorted: bool
) -> None:
    """By the index that is to be put there, and by whether records are sorted."""
    asked, mapped, run = list[tuple[int, bool]](), list[ChunkPlan](), stream.run

    def planned(backends: list[Device], needed: int, is_sorted: bool) -> ChunkPlan:
        asked.append((needed, is_sorted))
        return ChunkPlan(1, 12345)

    def noting(*given: Any, plan: ChunkPlan, **named: Any) -> None:
        mapped.append(plan)
        run(*given, plan=plan, **named)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(index_loading, "plan_chunks", planned)
    monkeypatch.setattr(stream, "run", noting)
    Path("reads.fq").write_text("@a\nACGT\n+\nIIII\n")
    assert main(["search", "reads.fq", "-x", str(demo_index), "-q", "-o", *output]) == 0
    ((needed, was_sorted),) = asked
    assert needed > 10_000
    assert was_sorted is is_sorted
    assert mapped == [ChunkPlan(1, 12345)]
