"""Test the BGZF inflater of the host: contents, or None if a block is corrupt."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from readmap.backend import libdeflate
from readmap.formats.bgzf import BLOCK_BYTES, END_OF_FILE, compress_with_package
from readmap.formats.gzip_reader import inflate
from readmap.reads import inflaters
from readmap.reads.inflaters import HOST_INFLATERS, bgzf_inflater

DRAW = np.random.default_rng(6)


def group(*parts: bytes) -> tuple[bytes, list[int]]:
    return b"".join(parts), np.cumsum([0, *map(len, parts)]).tolist()


def block(data: bytes) -> bytes:
    return b"".join(map(bytes, compress_with_package([np.frombuffer(data, np.uint8)], 1).data))


def inflated(*parts: bytes) -> bytes | None:
    inflater = bgzf_inflater()
    assert inflater is not None
    contents = inflater.inflate(*group(*parts))
    return None if contents is None else bytes(contents)


@pytest.mark.parametrize("letters", [1, 4, 256])
@pytest.mark.parametrize("size", [1, 1000, BLOCK_BYTES])
def test_contents(letters: int, size: int) -> None:
    parts = [DRAW.integers(0, letters, size, np.uint8).tobytes() for _ in range(3)]
    assert inflated(*map(block, parts)) == b"".join(parts)


def test_empty_blocks() -> None:
    assert inflated(END_OF_FILE, block(b"one"), END_OF_FILE, END_OF_FILE, block(b"two"), END_OF_FILE) == b"onetwo"
    assert inflated(*[END_OF_FILE] * 20_000) == b""


@pytest.mark.parametrize("at", range(len(block(b"ACGT" * 50))))
def test_any_flipped_bit(at: int) -> None:
    """Some header bits do not affect the contents."""
    right = block(b"ACGT" * 50)
    for bit in range(8):
        wrong = bytearray(right)
        wrong[at] ^= 1 << bit
        found = inflated(block(b"before"), bytes(wrong), block(b"behind"))
        assert found is None or found == b"before" + b"ACGT" * 50 + b"behind"


def test_invalid_blocks() -> None:
    right = block(b"ACGT" * 50)
    assert inflated(right[:-1]) is None
    assert inflated(right + b"\0") is None
    assert inflated(right[:-4] + b"\xff\xff\xff\xff") is None
    assert inflated(gzip.compress(b"A" * (1 << 17))) is None  # more than a block may hold


@pytest.mark.parametrize("threads", [1, 4])
def test_memory_of_inflated_pieces_is_bounded(threads: int) -> None:
    """For blocks that expand greatly and for many empty blocks."""
    data = b"".join([block(b"A" * BLOCK_BYTES)] * 300 + [END_OF_FILE] * 20_000 + [block(b"end"), END_OF_FILE])
    file = io.BytesIO(data)
    pieces = [bytes(piece) for piece in inflate(file, "zeros", file.read(18), threads, HOST_INFLATERS)]
    assert b"".join(pieces) == b"A" * (300 * BLOCK_BYTES) + b"end"
    assert max(map(len, pieces)) <= 4 << 20


def test_no_inflater_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(inflaters, "host_backend", lambda module, threads: None)
        assert bgzf_inflater() is None
    monkeypatch.setattr(libdeflate.ctypes, "CDLL", lambda path: object())
    assert bgzf_inflater() is None
