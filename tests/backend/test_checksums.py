"""Checksums of arrays against the definition in kernels/common/checksums.cu, on every device."""

import numpy as np
import pytest

from readmap.backend import checksums, open_backend
from readmap.backend.checksums import BLOCK_BYTES, block_checksum, block_checksums, host_checksums

STEP, FACTOR, MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 2**64 - 1


def expected_checksums(data: bytes) -> list[int]:
    """Compute the checksums by their definition."""
    sums = []
    for begin in range(0, len(data), BLOCK_BYTES):
        block = data[begin : begin + BLOCK_BYTES]
        words = np.frombuffer(block + bytes(-len(block) % 8), "<u8").astype(object)
        scrambled = [(word + i * STEP) * FACTOR & MASK for i, word in enumerate(words.tolist())]
        sums.append(sum(x ^ x >> 32 for x in scrambled) & MASK)
    return sums


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 32_767, 32_768, 32_775, 100_003])
def test_checksums_match_the_definition(backends: str, size: int) -> None:
    array, backend = np.random.default_rng(size).integers(0, 256, size, np.uint8), open_backend(backends)
    found = block_checksums(backend.to_device(array), backend)
    assert (found.dtype, found.tolist()) == (np.uint64, expected_checksums(array.tobytes()))


def test_blocks_and_parts(backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(1).integers(0, 2**32, BLOCK_BYTES // 2 + 77, np.uint32)
    backend, expected = open_backend(backends), expected_checksums(array.tobytes())
    assert len(expected) == 3
    assert block_checksums(backend.to_device(array), backend).tolist() == expected
    monkeypatch.setattr("readmap.backend.checksums.PART_BYTES", BLOCK_BYTES)
    assert host_checksums(array, backend).tolist() == expected
    data = array.view(np.uint8)
    assert [block_checksum(data[i : i + BLOCK_BYTES]) for i in range(0, len(data), BLOCK_BYTES)] == expected


def test_gpu_computes_checksums_if_the_host_has_no_compiler(backends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "host_backend", lambda module, threads: None)
    monkeypatch.setattr(checksums, "_device", lambda: open_backend(backends))
    data = np.random.default_rng(3).integers(0, 256, 100_003, np.uint8)
    assert [block_checksum(data)] == expected_checksums(data.tobytes())


def test_every_changed_byte_and_swapped_word_is_detected() -> None:
    backend, rng = open_backend("cpu", 1), np.random.default_rng(2)
    array = rng.integers(0, 4, 3001, np.uint8)
    right = block_checksums(array, backend)
    for place in range(len(array)):
        changed = array.copy()
        changed[place] ^= 1 << rng.integers(8)
        assert block_checksums(changed, backend) != right
    for first, second in rng.integers(0, len(array) // 8, (1000, 2)):
        words = array[:3000].view(np.uint64).copy()
        words[[first, second]] = words[[second, first]]
        same = np.array_equal(words.view(np.uint8), array[:3000])
        assert (block_checksums(np.append(words.view(np.uint8), array[3000:]), backend) == right) == same
