"""List sizes that stay on the device: the records are the same, even if a list exceeds its capacity."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import draw_pairs, index_of, small_genome, write_pairs
from search_runs import map_files

from readmap.backend import Kernel, open_backend
from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.cpu import CpuBackend
from readmap.backend.device_counts import BoundedCount
from readmap.index.index import Index
from readmap.mapping import device_counters
from readmap.mapping.device_counters import CapacityEstimates, CapacityExceeded, DeviceCounters
from readmap.mapping.parameters import Reporting
from readmap.reads.chunks import PairLayout
from readmap.run import sample
from readmap.run.read_mapper import MappingSummary

BATCH, LEARNT = 50, 100

#: Kernels that clamp list sizes to capacities.
CLAMPING = {"clamp_count", "clamp_task_counts"}


class Distant(CpuBackend):
    """A device whose counts the host must wait for, as a GPU; downloads are complete only after their wait.

    New arrays hold a byte pattern that is no valid index.
    bounded, clamped: number of launches with a count on the device, and of clamping kernels.
    """

    host_threshold = -1
    host_sees_counts = False

    def __init__(self) -> None:
        super().__init__(1)
        self.bounded = self.clamped = 0

    def empty(self, shape: Any, dtype: Any) -> Any:
        array = super().empty(shape, dtype)
        array.reshape(-1).view(np.uint8).fill(0x7F)
        return array

    def download(self, array: Any, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        buffer = pool.take(array.nbytes)
        buffer.data[:] = 0x7F
        return buffer, lambda: np.copyto(buffer.data[: array.nbytes], array)

    def run(self, kernel: Kernel, types: Any, count: Any, arguments: list[Any]) -> None:
        self.bounded += isinstance(count, BoundedCount)
        self.clamped += kernel.name in CLAMPING
        super().run(kernel, types, count, arguments)


class World:
    """Pairs of many kinds and lengths, and an index."""

    def __init__(self, folder: Path) -> None:
        generator = random.Random(2101)
        contigs = small_genome(generator)
        self.index: Index = index_of(list(contigs.values()))
        self.files = write_pairs(folder, draw_pairs(generator, contigs, 250), PairLayout.TWO_FILES)
        self._expected: dict[PairLayout, tuple[bytes, MappingSummary]] = {}

    def mapped(
        self, backend: CpuBackend, out: Path, layout: PairLayout, **options: Any
    ) -> tuple[bytes, MappingSummary]:
        files = self.files[: layout.files]
        given = {"layout": layout, "batch_reads": BATCH, **options}
        summary = map_files(files, self.index.to_device(backend), backend, out, **given)
        return out.read_bytes(), summary

    def expected(self, folder: Path, layout: PairLayout) -> tuple[bytes, MappingSummary]:
        """Return the records and the summary of a backend whose counts the host sees."""
        if layout not in self._expected:
            self._expected[layout] = self.mapped(CpuBackend(1), folder / "expected", layout)
        return self._expected[layout]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def few_reads_show_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "READS", LEARNT)
    monkeypatch.setattr(sample, "PAIRS", LEARNT)


def counts(summary: MappingSummary) -> dict[str, Any]:
    """Return the counters of a summary without times."""
    counted = asdict(summary)
    return {name: np.array(counted[name]).tolist() for name in counted.keys() - {"seconds", "waiting", "devices"}}


@pytest.mark.parametrize("layout", [PairLayout.SINGLE, PairLayout.TWO_FILES])
@pytest.mark.parametrize(
    ("more", "some", "numbers"), [(0.25, 4096, 1024), (0.25, 20, 1024), (0.0, 0, 1024), (0.25, 4096, 60)]
)
def test_same_records_and_counts(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layout: PairLayout,
    more: float,
    some: int,
    numbers: int,
) -> None:
    """Try enough capacity, scarce capacity, capacities that are exceeded, and too few size counters."""
    expected = world.expected(tmp_path, layout)
    for name, value in {"HEADROOM": more, "MIN_HEADROOM": some, "SIZE_COUNTERS": numbers}.items():
        monkeypatch.setattr(device_counters, name, value)
    backend = Distant()
    records, summary = world.mapped(backend, tmp_path / "out", layout)
    assert records == expected[0]
    assert (summary.work.repeated > 0) == (some < 4096)
    summary.work.repeated = 0
    assert counts(summary) == counts(expected[1])
    assert backend.clamped > 30
    assert backend.bounded > backend.clamped


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("layout", [PairLayout.SINGLE, PairLayout.TWO_FILES])
def test_any_list_may_exceed_its_capacity(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: PairLayout, seed: int
) -> None:
    """Mix sizes that the host reads back at once with lists of almost no capacity and lists of enough."""
    expected, _ = world.expected(tmp_path, layout)
    generator, capacity = random.Random(seed), CapacityEstimates.capacity

    def any_capacity(estimates: CapacityEstimates, name: str, reads: int) -> int | None:
        drawn = generator.random()
        if drawn < 0.2:
            return None
        is_scarce = estimates.is_enabled and drawn < 0.24
        return generator.randrange(3) if is_scarce else capacity(estimates, name, reads)

    monkeypatch.setattr(CapacityEstimates, "capacity", any_capacity)
    records, summary = world.mapped(Distant(), tmp_path / "out", layout)
    assert records == expected
    assert 0 < summary.work.repeated < summary.reads


def test_sizes_are_read_back_at_once_for_secondary_records(world: World, tmp_path: Path) -> None:
    reporting, backend = Reporting(max_secondary=5), Distant()
    expected, _ = world.mapped(CpuBackend(1), tmp_path / "expected", PairLayout.TWO_FILES, reporting=reporting)
    records, _ = world.mapped(backend, tmp_path / "out", PairLayout.TWO_FILES, reporting=reporting)
    assert records == expected
    assert backend.bounded == 0


@pytest.mark.parametrize(("rate", "found"), [(None, [3, 5, 7]), (0.3, [3, 5, 7]), (0.2, [])])
def test_selection(backends: str, monkeypatch: pytest.MonkeyPatch, rate: float | None, found: list[int]) -> None:
    """A list that exceeds its capacity stays empty, and so does what depends on it."""
    monkeypatch.setattr(device_counters, "MIN_HEADROOM", 0)
    monkeypatch.setattr(device_counters, "HEADROOM", 0.0)
    per_read = {} if rate is None else {"near_mates 1 0": rate, "near_mates 1 0 seeds 1 0": 9.0}
    backend, estimates = open_backend(backends), CapacityEstimates(per_read)
    monkeypatch.setattr(backend, "host_sees_counts", False)
    one, host = DeviceCounters(10, backend, estimates), backend.to_host
    marks = backend.to_device(np.array([0, 2, 0, 1, 2, 1, 0, 1, 2, 0], np.uint8))
    listed = one.select_flagged("near_mates", marks, 1)
    assert isinstance(listed.count, int) == (rate is None)
    ends, total = one.scan("seeds", backend.to_device(np.array([0, 40, 30, 20])), listed, 100)
    assert host(ends).tolist() == [0, 40, 70, 90]
    taken = backend.full(10, 9, np.uint8)
    chosen, marks = backend.to_device(np.arange(len(listed.indices), dtype=np.int32) - 1), taken[: len(listed.indices)]
    backend.launch(Kernel("mapping/matches", "mark_placed"), listed.count, chosen=chosen, marks=marks)
    count = _on_host(listed.count, backend)
    assert host(listed.indices)[:count].tolist() == found
    assert host(taken).tolist() == [0, 1, 1][: len(found)] + [9] * (10 - len(found))
    assert _on_host(total, backend) == (90 if found else 0) or rate is not None
    if not found:
        with pytest.raises(CapacityExceeded, match="near_mates 1 0"):
            one.read_back()
    else:
        counted, _, totals = one.read_back((backend.to_device(np.array([1, 5])), 1))
        assert (counted["near_mates"], counted["seeds"], totals) == (3, 90, [5])
    assert estimates.per_read["near_mates 1 0"] == (0.3 if found else 0.2)


def _on_host(count: Any, backend: Any) -> int:
    return int(backend.to_host(count.device_count)[0]) if isinstance(count, BoundedCount) else count


def test_a_scan_that_exceeds_its_capacity_empties_its_items(backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that run over the reads would otherwise look for their seeds."""
    monkeypatch.setattr(device_counters, "MIN_HEADROOM", 0)
    backend = open_backend(backends)
    monkeypatch.setattr(backend, "host_sees_counts", False)
    one = DeviceCounters(10, backend, CapacityEstimates({"near_mates 1 0": 0.5, "near_mates 1 0 seeds 1 0": 5.0}))
    listed = one.select_flagged("near_mates", backend.full(4, 1, np.uint8), 1)
    assert _on_host(listed.count, backend) == 4
    _, total = one.scan("seeds", backend.to_device(np.array([0, 40, 30, 20, 10])), listed, 1000)
    assert (_on_host(listed.count, backend), _on_host(total, backend)) == (0, 0)
    with pytest.raises(CapacityExceeded, match="seeds"):
        one.read_back()


def test_small_batches_hardly_raise_the_estimates() -> None:
    estimates, headroom, small = CapacityEstimates(), device_counters.MIN_HEADROOM, device_counters.SMALL_BATCH
    estimates.record_use("searched", 2, 2)
    estimates.record_use("scored", 1000, 3 * headroom)
    estimates.record_use("near_mates", small, 400)
    assert estimates.capacity("searched", 1_000_000) == headroom
    assert estimates.capacity("scored", 1000) == int(1.25 * 2 * headroom) + headroom
    assert estimates.capacity("near_mates", 100 * small) == int(1.25 * 100 * 400) + headroom
    assert estimates.capacity("others", 100_000) is None
