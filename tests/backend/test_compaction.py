"""Prefix sums, row ends and stream compaction on a device."""

from __future__ import annotations

import numpy as np
import pytest

from readmap.backend import Backend, open_backend
from readmap.backend.compaction import count_flagged, select_flagged

#: With a threshold of -1 the CPU also launches kernels for small arrays, as a GPU does.
by_kernels = pytest.mark.parametrize("threshold", [4096, -1], ids=["", "by kernels"])


def opened(name: str, threshold: int) -> Backend:
    backend = open_backend(name)
    backend.host_threshold = min(backend.host_threshold, threshold)
    return backend


@by_kernels
@pytest.mark.parametrize("size", [0, 1, 4, 31, 33, 1024, 1025, 70_000, 1024**2 + 1])
def test_prefix_sums(backends: str, size: int, threshold: int) -> None:
    backend, counts = opened(backends, threshold), np.random.default_rng(size).integers(-(2**33), 2**33, size)
    ends, total = backend.inclusive_sum_with_total(backend.to_device(counts))
    assert total == counts.sum()
    assert np.array_equal(backend.to_host(ends), np.cumsum(counts))


@by_kernels
@pytest.mark.parametrize("row_size", [0, 1, 33, 2_000])
def test_row_ends(backends: str, row_size: int, threshold: int) -> None:
    backend, generator = opened(backends, threshold), np.random.default_rng(row_size)
    sums = [np.cumsum(generator.integers(0, 2**33, rows * row_size)) for rows in (1, 4)]
    expected = [
        row[-1] if row_size else 0 for one, rows in zip(sums, (1, 4), strict=True) for row in one.reshape(rows, -1)
    ]
    assert backend.row_ends(*zip(map(backend.to_device, sums), (1, 4), strict=True)) == expected


@by_kernels
@pytest.mark.parametrize("size", [0, 1, 33, 1024, 5_000])
def test_select_and_count_flagged(backends: str, size: int, threshold: int) -> None:
    backend, flags = opened(backends, threshold), np.random.default_rng(size).integers(0, 8, size).astype(np.uint8)
    for mask in (1, 6, 8):
        expected = 7 + np.flatnonzero(flags & mask)
        found = backend.to_host(select_flagged(backend.to_device(flags), mask, backend, 7))
        assert (found.dtype, found.tolist()) == (np.int32, expected.tolist())
        assert count_flagged(backend.to_device(flags), mask, backend) == len(expected)
