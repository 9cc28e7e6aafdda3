"""BGZF blocks from gzip members, and from a GPU: valid, complete and reproducible."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from readmap.backend import nvcomp as library
from readmap.backend import open_backend
from readmap.bam import nvcomp_codec
from readmap.bam.nvcomp_codec import BATCH_BLOCKS, build_blocks, open_nvcomp_codec
from readmap.errors import BackendError
from readmap.formats.bgzf import BLOCK_BYTES, END_OF_FILE, HEADER_START, TRAILER_BYTES, Codec
from readmap.formats.output import ByteSink

DRAW = np.random.default_rng(7)
SIZES = (1, 77, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 5)


def drawn(letters: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return DRAW.integers(0, letters, size, np.uint8)


def check(blocks: bytes, sizes: list[int], data: bytes) -> None:
    """Check that the blocks are valid, contain the data in order, and are no larger than stored blocks."""
    at = 0
    for number, size in enumerate(sizes):
        block, part = blocks[at : at + size], data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]
        assert block.startswith(HEADER_START)
        assert int.from_bytes(block[16:18], "little") == size - 1
        assert gzip.decompress(block) == part
        assert size <= len(part) + 18 + 5 + TRAILER_BYTES
        at += size
    assert at == len(blocks)


@pytest.mark.parametrize("letters", [1, 4, 256])
@pytest.mark.parametrize("size", SIZES)
def test_blocks_of_members(backends: str, letters: int, size: int) -> None:
    backend, data, stride = open_backend(backends), drawn(letters, size), 66_000
    members = [gzip.compress(data[at : at + BLOCK_BYTES], 1, mtime=0) for at in range(0, size, BLOCK_BYTES)]
    room = np.zeros((len(members), stride), np.uint8)
    for row, member in zip(room, members, strict=True):
        row[: len(member)] = np.frombuffer(member, np.uint8)
    given = data, room.reshape(-1), np.array([len(one) for one in members]), np.frombuffer(HEADER_START, np.uint8)
    blocks = backend.empty(len(members) << 16, np.uint8)
    ends, total = build_blocks(*map(backend.to_device, given), blocks, backend)
    sizes = np.diff(backend.to_host(ends), prepend=0).tolist()
    check(backend.to_host(blocks)[:total].tobytes(), sizes, data.tobytes())


def nvcomp_is_there() -> bool:
    return library.nvcomp() is not None


class Memory(ByteSink):
    """A sink in memory."""

    name = "memory"

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: memoryview | bytes | np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
        self.data += bytes(data)

    def finish(self) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...


def made_of(parts: Sequence[Any], codec: Codec) -> tuple[bytes, list[int]]:
    """Compress parts with write_borrowed; return the blocks without the end-of-file block, and their sizes."""
    memory, done = Memory(), list[None]()
    output = codec.open(memory, 1, 1)
    for part in parts:
        output.write_borrowed(part, lambda: done.append(None))
    output.commit()
    assert len(done) == len(parts)
    return memory.data.removesuffix(END_OF_FILE), output.block_sizes


@pytest.mark.gpu
@pytest.mark.parametrize("letters", [1, 4, 40, 256])
def test_blocks_of_the_device(letters: int) -> None:
    """Data on the host or the device, in any parts, of one batch or several."""
    if not nvcomp_is_there():
        pytest.skip("nvCOMP is not installed")
    backend = open_backend("cuda")
    codec = open_nvcomp_codec([backend])
    for size in (*SIZES, BATCH_BLOCKS * BLOCK_BYTES + 7):
        data = drawn(letters, size)
        blocks, sizes = made_of([data], codec)
        check(blocks, sizes, data.tobytes())
        middle = min(100, size)
        again = made_of([data[:middle], backend.to_device(data[middle:])], codec)
        assert again == (blocks, sizes)


@pytest.mark.gpu
def test_files_are_as_small_as_by_threads() -> None:
    if not nvcomp_is_there():
        pytest.skip("nvCOMP is not installed")
    lines = [b"%d\tACGT" % number for number in DRAW.integers(0, 999, 50_000)]
    data = np.frombuffer(b"".join(lines), np.uint8)
    blocks, _ = made_of([data], open_nvcomp_codec([open_backend("cuda")]))
    assert len(blocks) < len(zlib.compress(data, 1)) * 1.2


def test_a_missing_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match="expected a GPU and nvidia-libnvcomp"):
        open_nvcomp_codec([open_backend("cpu")])


@pytest.mark.parametrize(("free", "expected"), [(1 << 40, 2304), (1 << 34, 1152), (1 << 33, 576), (0, 144)])
def test_batches_take_a_share_of_the_memory(free: int, expected: int) -> None:
    """The library takes 200,000 bytes of scratch memory per block."""
    sizes = SimpleNamespace(sizes=lambda blocks, *_: library.Sizes(66_000, 200_000 * blocks))
    backend = SimpleNamespace(memory=lambda: (free, 1 << 40))
    assert nvcomp_codec._batch_blocks(cast(Any, sizes), cast(Any, backend)) == expected


@pytest.mark.gpu
def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    if not nvcomp_is_there():
        pytest.skip("nvCOMP is not installed")
    backend = open_backend("cuda")

    def full(*_: object) -> None:
        raise backend.memory_error(1, 2)

    monkeypatch.setattr(backend, "empty", full)
    with pytest.raises(BackendError, match="--codec nvcomp"):
        open_nvcomp_codec([backend])


def test_an_absent_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "SONAME", "libnvcomp.none")
    assert library.nvcomp.__wrapped__() is None
