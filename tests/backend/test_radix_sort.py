"""Radix sort of key-value pairs on a device, against NumPy's stable sort."""

import numpy as np
import pytest

from readmap.backend import Backend, open_backend
from readmap.backend.radix_sort import argsort_columns, sort_pairs

#: Keys, uint64, or values, uint32 or uint64.
Numbers = np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]


def sort(keys: Numbers, values: Numbers, bits: int, backend: Backend) -> tuple[Numbers, Numbers]:
    others = backend.empty(len(keys), keys.dtype), backend.empty(len(keys), values.dtype)
    held = backend.to_device(keys.copy()), backend.to_device(values.copy())
    found = sort_pairs(*held, *others, bits, backend)
    return backend.to_host(found[0]), backend.to_host(found[1])


@pytest.mark.parametrize("bits", [0, 1, 8, 17, 64])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("size", [0, 1, 2, 2047, 2048, 2049, 4096, 70_001])
def test_sort_pairs(backends: str, size: int, dtype: type[np.generic], bits: int) -> None:
    generator, backend = np.random.default_rng(size), open_backend(backends)
    keys = generator.integers(0, 2**bits - 1, size, np.uint64, endpoint=True)
    values = generator.integers(0, np.iinfo(dtype).max, size, dtype)
    order = np.argsort(keys, kind="stable")
    found = sort(keys, values, bits, backend)
    assert [array.dtype for array in found] == [np.uint64, dtype]
    assert np.array_equal(found[0], keys[order])
    assert np.array_equal(found[1], values[order])


def test_sort_is_stable(backends: str) -> None:
    """Sections and tiles in which all, some or no keys have the same digit."""
    backend = open_backend(backends)
    for keys in (np.zeros(50_000), np.arange(50_000) // 3_000, np.arange(50_000) % 3, np.arange(50_000)[::-1] // 7):
        keys = keys.astype(np.uint64)
        values = np.arange(len(keys), dtype=np.uint32)
        assert np.array_equal(sort(keys, values, 16, backend)[1], np.argsort(keys, kind="stable"))


def test_sections_of_many_tiles(backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's block sorts several tiles, as for millions of pairs; the last tile is incomplete."""
    backend = open_backend(backends)
    monkeypatch.setattr(backend, "concurrent_warps", 1)
    for keys in (np.random.default_rng(5).integers(0, 2**17, 70_001), np.arange(70_001) // 5_000, np.zeros(70_001)):
        keys = keys.astype(np.uint64)
        values = np.arange(len(keys), dtype=np.uint32)
        assert np.array_equal(sort(keys, values, 18, backend)[1], np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("size", [0, 1, 5000])
@pytest.mark.parametrize("bits", [(1, 64), (9, 3), (17, 8, 2)])
def test_argsort_columns(backends: str, size: int, bits: tuple[int, ...]) -> None:
    """Equal rows keep their order."""
    backend, generator = open_backend(backends), np.random.default_rng(17)
    columns = [generator.integers(0, min(1 << width, 50), size, np.uint64) for width in bits]
    held = [(backend.to_device(column.copy()), width) for column, width in zip(columns, bits, strict=True)]
    found = backend.to_host(argsort_columns(held, backend))
    assert np.array_equal(found, np.lexsort(columns[::-1]))
