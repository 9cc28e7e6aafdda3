"""Test parallel inflation of gzip of one and several members: same contents and errors as with one thread."""

import gzip
import io
import random
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from isal import isal_zlib

from readmap.errors import DataError
from readmap.formats.gzip_reader import MIN_THREADS, NO_INFLATERS, Inflaters, NotParallelizable, inflate
from readmap.reads import parallel_gzip
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.parallel_gzip import parallel_gzip_inflater

DRAW = np.random.default_rng(21)


def fastq_like(records: int, letters: int = 4) -> bytes:
    bases = DRAW.choice(np.frombuffer(b"ACGT", np.uint8), (records, 100))
    qualities = DRAW.choice(np.frombuffer(b"FF:,"[:letters], np.uint8), (records, 100))
    return b"".join(
        b"@read%d\n%s\n+\n%s\n" % (number, base.tobytes(), quality.tobytes())
        for number, (base, quality) in enumerate(zip(bases, qualities, strict=True))
    )


def by_zlib(data: bytes, level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY, flush: int = 0) -> bytes:
    """flush: bytes between full flushes."""
    made = zlib.compressobj(level, zlib.DEFLATED, 31, 8, strategy)
    parts = [data[at : at + flush] for at in range(0, len(data), flush)] if flush else [data]
    pieces = [made.compress(part) + (made.flush(zlib.Z_FULL_FLUSH) if flush else b"") for part in parts]
    return b"".join([*pieces, made.flush()])


def by_isal(data: bytes, level: int) -> bytes:
    made = isal_zlib.compressobj(level, isal_zlib.DEFLATED, 31)
    return bytes(made.compress(data) + made.flush())


TEXT = fastq_like(10_000)
NOISE = DRAW.integers(0, 256, 300_000, np.uint8).tobytes()
WRITERS: dict[str, Callable[[bytes], bytes]] = {
    **{f"zlib {level}": lambda data, level=level: by_zlib(data, level) for level in (0, 1, 6, 9)},  # type: ignore[misc]
    **{f"isal {level}": lambda data, level=level: by_isal(data, level) for level in (0, 1, 3)},  # type: ignore[misc]
    "fixed codes": lambda data: by_zlib(data, 6, zlib.Z_FIXED),
    "no copies": lambda data: by_zlib(data, 6, zlib.Z_HUFFMAN_ONLY),
    "runs": lambda data: by_zlib(data, 6, zlib.Z_RLE),
    "flushes": lambda data: by_zlib(data, 6, flush=5000),
}
CONTENTS = {
    "text": TEXT,
    "few letters": fastq_like(3000, 1),
    "noise": NOISE,
    "both": TEXT[:200_000] + NOISE + TEXT[200_000:400_000],
    "zeros": bytes(3_000_000),
    "little": b"ACGT\n",
    "nothing": b"",
}


@pytest.fixture(autouse=True)
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_gzip, "PART_BYTES", 100_000)


def inflated(path: Path, inflaters: Inflaters = HOST_INFLATERS) -> tuple[bytes, str]:
    """Return the contents of a file and the error after them."""
    found = io.BytesIO()
    with open(path, "rb", buffering=0) as file:
        try:
            for piece in inflate(file, "file", file.read(18), MIN_THREADS, inflaters):
                found.write(piece)
        except DataError as error:
            return found.getvalue(), str(error)
    return found.getvalue(), ""


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("contents", CONTENTS)
def test_contents(tmp_path: Path, writer: str, contents: str) -> None:
    path, data = tmp_path / "file.gz", CONTENTS[contents]
    path.write_bytes(WRITERS[writer](data))
    assert inflated(path) == (data, "")


def by_parts(path: Path, threads: int = 4) -> bytes:
    """Return the contents by the parallel inflater, without fallback."""
    inflater = parallel_gzip_inflater()
    assert inflater is not None
    with open(path, "rb", buffering=0) as file:
        return b"".join(map(bytes, inflater(file, file.read(18), threads)))


@pytest.mark.parametrize("threads", [1, 3, 8])
@pytest.mark.parametrize("writer", ["zlib 1", "zlib 6", "isal 1", "fixed codes", "flushes"])
def test_parallel_inflation_needs_no_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str, threads: int
) -> None:
    path = tmp_path / "file.gz"
    if writer == "isal 1":  # whose blocks are longer
        monkeypatch.setattr(parallel_gzip, "PART_BYTES", 300_000)
    path.write_bytes(WRITERS[writer](TEXT))
    assert by_parts(path, threads) == TEXT


def test_several_members(tmp_path: Path) -> None:
    path, parts = tmp_path / "file.gz", [TEXT[:1000], b"", TEXT[:500_000], b"A", TEXT[500_000:], TEXT[:50_000]]
    path.write_bytes(b"".join(by_zlib(part, 6) for part in parts) + bytes(70_000))
    assert by_parts(path) == b"".join(parts)


def test_headers(tmp_path: Path) -> None:
    """With a name, a comment, an extra field and a header checksum."""
    path, body = tmp_path / "file.gz", by_zlib(TEXT, 6)[10:]
    for flags in range(32):
        header = struct.pack("<2s B B I B B", b"\x1f\x8b", 8, flags, 7, 0, 3)
        header += struct.pack("<H", 300) + bytes(range(1, 101)) * 3 if flags & 4 else b""
        header += b"a name\0" if flags & 8 else b""
        header += b"a comment\0" if flags & 16 else b""
        header += struct.pack("<H", zlib.crc32(header) & 0xFFFF) if flags & 2 else b""
        path.write_bytes(header + body)
        assert by_parts(path) == TEXT
    for header in (struct.pack("<2s B B 6x", b"\x1f\x8b", 8, 64), struct.pack("<2s B B 6x", b"\x1f\x8b", 7, 0)):
        path.write_bytes(header + body)
        with pytest.raises(NotParallelizable):
            by_parts(path)


@pytest.mark.parametrize("writer", ["zlib 1", "zlib 6", "isal 1"])
def test_same_errors_as_with_one_thread(tmp_path: Path, writer: str) -> None:
    path, data, rng = tmp_path / "file.gz", WRITERS[writer](TEXT), random.Random(writer)
    wrong = [data[: -cut or None] for cut in (1, 4, 8, 9, 20, 5000, len(data) // 2, len(data) - 11, len(data) - 30)]
    tails = b"no gzip", bytes(50_000) + b"no gzip", b"\x1f", data[:40], data[: len(data) // 2]
    wrong += [data + tail for tail in tails]
    for _ in range(40):
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        wrong.append(bytes(changed))
    for one in wrong:
        path.write_bytes(one)
        found, expected = inflated(path), inflated(path, NO_INFLATERS)
        assert found[1] == expected[1]
        assert found[0] == expected[0] or (expected[1] and found[0].startswith(expected[0][: len(found[0])]))


def test_noise_is_rejected(tmp_path: Path) -> None:
    path, rng = tmp_path / "file.gz", random.Random(5)
    for _ in range(100):
        size = rng.randrange(1, 60_000)
        path.write_bytes(b"\x1f\x8b\x08\0" + bytes(6) + DRAW.integers(0, 256, size, np.uint8).tobytes())
        with pytest.raises(NotParallelizable):
            by_parts(path)


def test_threads_end_with_the_generator(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(by_zlib(TEXT, 6))
    with open(path, "rb", buffering=0) as file:
        pieces = inflate(file, "file", file.read(18), MIN_THREADS, HOST_INFLATERS)
        assert next(pieces)
        assert any(thread.name.startswith("readmap-parts") for thread in threading.enumerate())
        pieces.close()
    assert not any(thread.name.startswith("readmap-parts") for thread in threading.enumerate())


def test_memory_is_inflated_by_one_thread() -> None:
    file = io.BytesIO(gzip.compress(TEXT))
    assert b"".join(map(bytes, inflate(file, "memory", file.read(18), MIN_THREADS, HOST_INFLATERS))) == TEXT


def test_fallback_to_one_thread_if_memory_is_exhausted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(by_zlib(TEXT, 6))
    monkeypatch.setattr(parallel_gzip, "MAX_EXPANSION", 1 << 35)
    with pytest.raises(NotParallelizable):
        by_parts(path)
    assert inflated(path) == (TEXT, "")


def test_no_inflater_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_gzip, "host_backend", lambda module, threads: None)
    assert parallel_gzip_inflater() is None
