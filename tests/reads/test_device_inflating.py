"""Contents of blocks that a device's library has inflated, whole or not, and those that a GPU inflates."""

from __future__ import annotations

import gzip
import itertools
import zlib
from typing import Any

import numpy as np
import pytest

from readmap.backend import nvcomp as library
from readmap.backend import open_backend
from readmap.formats.bgzf import END_OF_FILE, compress
from readmap.formats.gzip_data import BLOCK_BYTES, told_bytes
from readmap.reads.device_inflating import device_inflater, join_contents

DRAW = np.random.default_rng(11)
LETTERS = (1, 4, 40, 256)

Drawn = np.ndarray[tuple[int], np.dtype[np.uint8]]


def drawn(size: int, letters: int) -> Drawn:
    return DRAW.integers(0, letters, size, np.uint8)


def blocks_of(data: Drawn) -> tuple[bytes, list[int]]:
    """The blocks, and where each begins, and the last one ends."""
    made = compress([data], 1)
    return b"".join(map(bytes, made.data)), [0, *itertools.accumulate(made.sizes)]


def inflated(blocks: bytes, ends: list[int]) -> tuple[Drawn, dict[str, Any]]:
    """What a library would make of them."""
    parts = [gzip.decompress(blocks[begin:end]) for begin, end in itertools.pairwise(ends)]
    room = np.zeros((len(parts), BLOCK_BYTES), np.uint8)
    for row, part in zip(room, parts, strict=True):
        row[: len(part)] = np.frombuffer(part, np.uint8)
    found = {
        "made": np.array([len(part) for part in parts], np.uint64),
        "sums": np.array([zlib.crc32(part) for part in parts], np.uint32),
        "statuses": np.zeros(len(parts), np.int32),
    }
    return room.reshape(-1), found


@pytest.mark.parametrize("fault", [None, "made", "sums", "statuses"])
@pytest.mark.parametrize("size", [0, 1, 65_279, 65_280, 65_281, 300_000])
def test_contents(backends: str, size: int, fault: str | None) -> None:
    backend, data = open_backend(backends), drawn(size, 40)
    blocks, ends = blocks_of(data) if size else (END_OF_FILE, [0, len(END_OF_FILE)])
    compressed, borders = np.frombuffer(blocks, np.uint8), np.array(ends)
    room, found = inflated(blocks, ends)
    told = told_bytes(compressed, borders)
    assert told.tolist() == found["made"].tolist()
    if fault:
        found[fault][-1] += 1
    contents = backend.empty(int(told.sum()), np.uint8)
    held = {name: backend.to_device(array) for name, array in found.items()}
    arrays = [backend.to_device(array) for array in (compressed, borders)]
    is_whole = join_contents(*arrays, np.cumsum(told), backend.to_device(room), held, contents, backend)
    assert is_whole == (fault is None)
    if is_whole:
        assert backend.to_host(contents).tobytes() == data.tobytes()


def test_no_device_inflates_by_the_host() -> None:
    data = drawn(100_000, 4)
    inflater = device_inflater(open_backend("cpu"))()
    assert inflater is not None
    assert inflater.inflate(*blocks_of(data)) == data.data


@pytest.mark.gpu
def test_a_device_inflates() -> None:
    if library.nvcomp() is None:
        pytest.skip("nvCOMP is not installed")
    inflater = device_inflater(open_backend("cuda"))()
    assert inflater is not None
    assert inflater.threads == 3
    for size, letters in itertools.product((1, 65_279, 65_280, 65_281, 20_000_000), LETTERS):
        data = drawn(size, letters)
        assert inflater.inflate(*blocks_of(data)) == data.data
    assert inflater.inflate(END_OF_FILE, [0, len(END_OF_FILE)]) == b""


@pytest.mark.gpu
def test_a_device_notices_what_is_corrupt() -> None:
    if library.nvcomp() is None:
        pytest.skip("nvCOMP is not installed")
    inflater = device_inflater(open_backend("cuda"))()
    assert inflater is not None
    for letters in LETTERS:
        data = drawn(1_000_000, letters)
        blocks, ends = blocks_of(data)
        for _ in range(100):
            changed = bytearray(blocks)
            for place in DRAW.integers(0, len(blocks), DRAW.integers(1, 30)).tolist():
                if all(not 0 <= place - begin < 18 for begin in ends):  # headers are read before
                    changed[place] ^= int(DRAW.integers(1, 256))
            found = inflater.inflate(bytes(changed), ends)
            assert found is None or found == data.data  # the last bits of some say nothing
        assert inflater.inflate(blocks, ends) == data.data
