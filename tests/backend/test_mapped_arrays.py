"""Arrays of mapped files in memory, whole, and of the file that was mapped."""

from pathlib import Path

import numpy as np
import pytest

from readmap.backend import cpu
from readmap.backend.cpu import CpuBackend


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 511, 4096, 20_001])
def test_a_file_that_is_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, size: int
) -> None:
    """Parts of no whole number of pages; arrays without a file, and parts of mapped ones, are copied too."""
    monkeypatch.setattr(cpu, "PART_BYTES", 10_000)
    backend, path = CpuBackend(threads), tmp_path / "array.npy"
    expected = np.random.default_rng(size).integers(0, 1 << 60, (size, 2))
    np.save(path, expected)
    mapped = np.load(path, mmap_mode="r")
    np.save(tmp_path / "other.npy", expected + 1)
    (tmp_path / "other.npy").replace(path)
    for array, same in ((mapped, expected), (mapped[size // 2 :], expected[size // 2 :]), (expected, expected)):
        held = backend.to_device_random_access(array)
        assert np.array_equal(held, same)
        assert type(held) is np.ndarray
        assert not np.shares_memory(held, array)
    assert np.array_equal(mapped, expected)
