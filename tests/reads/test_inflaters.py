"""Test the BGZF inflaters of the host and of a device: contents, or None if a block is corrupt."""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import random
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from readmap.backend import cuda_available, libdeflate, open_backend
from readmap.backend.cuda import CudaBackend
from readmap.formats.bgzf import BLOCK_BYTES, END_OF_FILE
from readmap.formats.gzip_reader import declared_sizes, inflate
from readmap.reads import inflaters
from readmap.reads.inflaters import HOST_INFLATERS, bgzf_inflater, device_bgzf_inflater, inflate_bgzf_blocks

DRAW = np.random.default_rng(11)
LETTERS = (1, 4, 40, 256)
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)
Inflated = Callable[[list[bytes]], bytes | None]


def block(data: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY, flushes: bool = False) -> bytes:
    made = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    middle = len(data) // 2 if flushes else 0
    body = made.compress(data[:middle]) + (made.flush(zlib.Z_FULL_FLUSH) if flushes else b"")
    body += made.compress(data[middle:]) + made.flush()
    size = len(body) + 25
    trailer = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return END_OF_FILE[:16] + size.to_bytes(2, "little") + body + trailer


def drawn(size: int, letters: int) -> bytes:
    """Return data with copies over short and long distances."""
    data = DRAW.integers(65, 65 + letters, size).astype(np.uint8)
    for _ in range(size // 500):
        begin, length = int(DRAW.integers(0, size)), int(DRAW.integers(3, 300))
        source = max(begin - int(DRAW.integers(1, 32_000 if DRAW.integers(0, 2) else 9)), 0)
        part = data[source : source + length]
        data[begin : begin + len(part)] = part[: size - begin]
    return data.tobytes()


def by_host(blocks: list[bytes]) -> bytes | None:
    inflater = bgzf_inflater()
    assert inflater is not None
    contents = inflater.inflate(b"".join(blocks), [0, *itertools.accumulate(map(len, blocks))])
    return None if contents is None else bytes(contents)


def by_kernel(backend_name: str, blocks: list[bytes]) -> bytes | None:
    backend = open_backend(backend_name, 2)
    data, ends = np.frombuffer(b"".join(blocks), np.uint8), np.cumsum([0, *map(len, blocks)])
    told = declared_sizes(data, ends)
    contents = backend.full(int(told.sum()), 0, np.uint8)
    is_whole = inflate_bgzf_blocks(backend.to_device(data), ends, np.cumsum(told), contents, backend)
    return backend.to_host(contents).tobytes() if is_whole else None


@pytest.fixture(params=["host", "kernel"])
def inflated(request: pytest.FixtureRequest, backends: str) -> Inflated:
    return by_host if request.param == "host" else functools.partial(by_kernel, backends)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("level", [0, 1, 6, 9])
def test_contents(inflated: Inflated, level: int, strategy: int) -> None:
    sizes = (0, 1, 2, 31, 33, 1000, 40_000, 60_000)
    parts = [drawn(size, letters) for size, letters in itertools.product(sizes, LETTERS)]
    blocks = [block(part, level, strategy, flushes) for part, flushes in zip(parts, itertools.cycle([False, True]))]
    for one, part in zip(blocks, parts, strict=True):
        assert gzip.decompress(one) == part
    assert inflated([END_OF_FILE, *blocks, END_OF_FILE]) == b"".join(parts)
    assert inflated([END_OF_FILE]) == b""


@pytest.mark.parametrize("letters", LETTERS)
def test_corrupt_blocks_are_detected(inflated: Inflated, letters: int) -> None:
    rng = random.Random(letters)
    part = drawn(3000, letters)
    right, before, behind = block(part), block(b"before"), block(b"behind")
    for number in range(300):
        wrong = bytearray(right if number % 2 else block(part, 1, zlib.Z_FIXED))
        for _ in range(rng.randrange(1, 9)):
            wrong[rng.randrange(18, len(wrong))] ^= 1 << rng.randrange(8)
        wrong = wrong[: rng.randrange(1, len(wrong))] if number % 10 == 0 else wrong
        found = inflated([before, bytes(wrong), behind])
        assert found is None or found == b"before" + part + b"behind"  # some bits say nothing


def test_noise_is_rejected(inflated: Inflated) -> None:
    for size in (1, 7, 25, 26, 27, 100, 5000):
        noise = END_OF_FILE[:18] + DRAW.integers(0, 256, size, np.uint8).tobytes()
        assert inflated([block(b"before"), noise, block(b"behind")]) is None


def test_empty_blocks(inflated: Inflated) -> None:
    assert inflated([END_OF_FILE, block(b"one"), END_OF_FILE, END_OF_FILE, block(b"two")]) == b"onetwo"
    assert inflated([END_OF_FILE] * 20_000) == b""


@pytest.mark.parametrize("at", range(len(block(b"ACGT" * 50))))
def test_any_flipped_bit(at: int) -> None:
    """Some header bits do not affect the contents."""
    right = block(b"ACGT" * 50)
    for bit in range(8):
        wrong = bytearray(right)
        wrong[at] ^= 1 << bit
        found = by_host([block(b"before"), bytes(wrong), block(b"behind")])
        assert found is None or found == b"before" + b"ACGT" * 50 + b"behind"


def test_invalid_blocks() -> None:
    right, large = block(b"ACGT" * 50), gzip.compress(b"A" * (1 << 17))  # more than a block may hold
    for wrong in (right[:-1], right + b"\0", right[:-4] + b"\xff\xff\xff\xff", large):
        assert by_host([wrong]) is None


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


@pytest.mark.gpu
def test_inflater_of_a_gpu() -> None:
    if reason := cuda_available():
        pytest.skip(reason)
    backend = open_backend("cuda")
    assert isinstance(backend, CudaBackend)
    inflater = device_bgzf_inflater(backend)()
    assert inflater is not None
    assert inflater.threads == 3
    for letters in LETTERS:
        parts = [drawn(BLOCK_BYTES - 300, letters) for _ in range(40)]
        blocks = [block(part) for part in parts]
        ends = [0, *itertools.accumulate(map(len, blocks))]
        assert inflater.inflate(b"".join(blocks), ends) == b"".join(parts)
        broken = bytearray(b"".join(blocks))
        broken[ends[7] + 30] ^= 4
        assert inflater.inflate(bytes(broken), ends) is None
