"""The kernel that calls libdeflate makes the same blocks as its Python package."""

import deflate._deflate
import numpy as np
import pytest

from readmap.backend import libdeflate
from readmap.bam import codecs
from readmap.bam.codecs import block_compressor
from readmap.formats.bgzf import BLOCK_BYTES, GROUP_BYTES, compress_with_package

DRAW = np.random.default_rng(5)


def check(parts: list[np.ndarray[tuple[int], np.dtype[np.uint8]]], level: int) -> None:
    expected, found = compress_with_package(parts, level), block_compressor()(parts, level)
    assert found.sizes == expected.sizes
    assert b"".join(map(bytes, found.data)) == b"".join(map(bytes, expected.data))


@pytest.mark.parametrize("letters", [1, 4, 40, 256])
@pytest.mark.parametrize("size", [1, 2, 1000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, GROUP_BYTES])
@pytest.mark.parametrize("level", [1, 6])
def test_same_blocks(letters: int, size: int, level: int) -> None:
    data = DRAW.integers(0, letters, size, np.uint8)
    check([data], level)


def test_a_sequence_of_compressible_and_incompressible_blocks() -> None:
    parts = [DRAW.integers(0, letters, BLOCK_BYTES, np.uint8) for letters in (256, 3, 256, 256, 1)]
    check([np.concatenate(parts[:2]), *parts[2:], parts[0][:77]], 1)


def test_fallback_without_c_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libdeflate.ctypes, "CDLL", lambda path: object())
    assert block_compressor() is compress_with_package


def test_fallback_without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "host_backend", lambda module, threads: None)
    assert block_compressor() is compress_with_package


def test_failed_allocation_of_a_compressor(monkeypatch: pytest.MonkeyPatch) -> None:
    compress = block_compressor()
    assert deflate._deflate.__file__
    with pytest.raises(MemoryError):
        compress([np.zeros(10, np.uint8)], 99)  # not a level of libdeflate: it allocates no compressor
