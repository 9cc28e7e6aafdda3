"""Sources of plain bytes, gzip and BGZF; errors are reported after the valid data."""

import contextlib
import gzip
import os
import pathlib
import random
import struct
import threading
import zlib
from collections.abc import Callable, Generator, Iterator

import pytest
from bgzf_examples import BLOCK, EOF_BLOCK, blocked
from commands import standard_input
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.errors import DataError
from readmap.formats.byte_source import PARALLEL_READ_BYTES, ByteSource, GeneratorSource, describe_start, open_bytes
from readmap.formats.gzip_reader import READ_BYTES

TEXT = b"".join(b"@r%d\nACGTTGCA%d\n+\nIIIIFFFF%d\n" % (i, i % 7, i * i % 9973) for i in range(20_000))

ThreadCount = pytest.mark.parametrize("threads", [1, 4])


def with_header(data: bytes, flags: int) -> bytes:
    """Return a gzip member whose header has the fields given by the flags."""
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    if flags & 4:
        head += struct.pack("<H", 60_000) + b"AB" + struct.pack("<H", 59_996) + bytes(59_996)
    if flags & 8:
        head += b"name\0"
    if flags & 16:
        head += b"comment\0"
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return head + gzip.compress(data)[10:]


def drain(source: ByteSource, step: int = 1 << 20, parts: list[bytes] | None = None) -> bytes:
    """Return all bytes, read `step` at a time; `parts` has them even if an error is raised."""
    target = memoryview(bytearray(step))
    parts = [] if parts is None else parts
    while count := source.readinto(target):
        parts.append(bytes(target[:count]))
    return b"".join(parts)


def drain_to_error(source: ByteSource, step: int = 1 << 20) -> tuple[bytes, str]:
    """Return the bytes before the error, and its message."""
    parts: list[bytes] = []
    with pytest.raises(DataError) as error:
        drain(source, step, parts)
    with pytest.raises(DataError):
        drain(source, step)
    return b"".join(parts), str(error.value)


Opener = Callable[..., ByteSource]


@pytest.fixture
def opened(tmp_path: pathlib.Path) -> Iterator[Opener]:
    """Write bytes to a file and open it."""
    with contextlib.ExitStack() as stack:

        def write_and_open(data: bytes, threads: int = 1) -> ByteSource:
            path = tmp_path / "reads.fq.gz"
            path.write_bytes(data)
            return stack.enter_context(open_bytes(str(path), threads))

        yield write_and_open


CONTENTS = {
    "plain": TEXT,
    "empty": b"",
    "one byte": b"\x1f",
    "gzip": gzip.compress(TEXT),
    "members": gzip.compress(TEXT[:1000]) + gzip.compress(b"") + gzip.compress(TEXT[1000:]),
    "padded": gzip.compress(TEXT) + bytes(1000),
    "padded by more than a read": gzip.compress(TEXT) + bytes(READ_BYTES + 3),
    "padded between": gzip.compress(TEXT[:1000]) + bytes(512) + gzip.compress(TEXT[1000:]),
    "blocked": blocked(TEXT),
    "small blocks": blocked(TEXT, 999),
    "two blocked": blocked(TEXT[:100_000]) + blocked(TEXT[100_000:]),
    "blocked, padded": blocked(TEXT) + bytes(700),
    "blocked, then gzip": blocked(TEXT[:200_000]) + gzip.compress(TEXT[200_000:]),
    "gzip, then blocked": gzip.compress(TEXT[:1000]) + blocked(TEXT[1000:]),
    "gzip of nothing": gzip.compress(b""),
    "blocked nothing": EOF_BLOCK,
}


@ThreadCount
@pytest.mark.parametrize("kind", CONTENTS)
def test_contents(opened: Opener, kind: str, threads: int) -> None:
    data = CONTENTS[kind]
    expected = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    assert drain(opened(data, threads)) == expected
    assert drain(opened(data, threads), 997) == expected


@pytest.mark.parametrize("flags", range(0, 32, 2))
def test_every_header_field(opened: Opener, flags: int) -> None:
    # The second header starts in the middle of a read: isal loses a header that is cut.
    noise = random.Random(flags).randbytes(READ_BYTES - 50)
    assert drain(opened(with_header(noise, 0) + with_header(TEXT, flags))) == noise + TEXT


@ThreadCount
@pytest.mark.parametrize("whole", [gzip.compress(TEXT), blocked(TEXT)], ids=["gzip", "blocked"])
def test_truncated_files(opened: Opener, whole: bytes, threads: int) -> None:
    for cut in (len(whole) // 2, len(whole) // 3, len(whole) - len(EOF_BLOCK) - 3, 18, 11, 3):
        data, message = drain_to_error(opened(whole[:cut], threads))
        assert TEXT.startswith(data)
        assert message.endswith(
            f"reads.fq.gz: unexpected end of the compressed data after {len(data):,} inflated bytes"
        )
        assert len(data) >= zlib_prefix(whole[:cut])


def zlib_prefix(data: bytes) -> int:
    """Return how many bytes zlib inflates from a truncated file, minus those that isal may still buffer."""
    count = 0
    while data:
        member = zlib.decompressobj(31)
        count += len(member.decompress(data))
        data = member.unused_data
    return count - 1000


@ThreadCount
@pytest.mark.parametrize("tail", [b"", bytes(700)], ids=["end", "zeros"])
@pytest.mark.parametrize("blocks", [1, 3, None])
def test_missing_end_of_file_block(opened: Opener, blocks: int | None, tail: bytes, threads: int) -> None:
    """A missing end-of-file block is an error, whether truncated or never written."""
    text = TEXT if blocks is None else TEXT[: blocks * BLOCK]
    data, message = drain_to_error(opened(blocked(text).removesuffix(EOF_BLOCK) + tail, threads))
    assert data == text
    assert message.endswith(
        f"reads.fq.gz: unexpected end of the compressed data after {len(text):,} inflated bytes: "
        "BGZF's end-of-file block is missing"
    )


@ThreadCount
@pytest.mark.parametrize("place", [-8, -1], ids=["checksum", "length"])
def test_trailer_is_checked(opened: Opener, place: int, threads: int) -> None:
    data = bytearray(gzip.compress(TEXT[:1000]))
    data[place] ^= 1
    read, message = drain_to_error(opened(bytes(data), threads))
    assert "reads.fq.gz: the gzip data are corrupt after" in message
    assert TEXT.startswith(read)


@ThreadCount
def test_a_corrupt_block_after_valid_blocks(opened: Opener, threads: int) -> None:
    data = bytearray(blocked(TEXT))
    third = len(blocked(TEXT[: 2 * BLOCK])) - len(EOF_BLOCK)
    data[third + 2000] ^= 0xFF
    read, message = drain_to_error(opened(bytes(data), threads))
    assert read == TEXT[: 2 * BLOCK]
    assert f"corrupt after {2 * BLOCK:,} inflated bytes" in message


@ThreadCount
@pytest.mark.parametrize("whole", [gzip.compress(TEXT), blocked(TEXT)], ids=["gzip", "blocked"])
@pytest.mark.parametrize("garbage", [b"x", b"\x1f", b"garbage", bytes(10) + b"\x1fx", b"@" * 300_000])
def test_garbage_after_the_end(opened: Opener, whole: bytes, garbage: bytes, threads: int) -> None:
    data, message = drain_to_error(opened(whole + garbage, threads))
    assert data == TEXT
    assert message.endswith(f"{len(garbage)} bytes after the end of the gzip data are not gzip")


def test_errors_do_not_depend_on_the_step(opened: Opener) -> None:
    whole = gzip.compress(TEXT) + b"garbage"
    assert drain_to_error(opened(whole), 1000) == drain_to_error(opened(whole), 1 << 22)


@ThreadCount
def test_a_large_plain_file_is_read_in_slices(opened: Opener, threads: int) -> None:
    data = TEXT * 16
    assert len(data) > 9 << 20
    assert drain(opened(data, threads), 9 << 20) == data
    source = opened(data, threads)
    small = memoryview(bytearray(100))
    assert source.readinto(small) == 100
    assert bytes(small) + drain(source, 9 << 20) == data


@ThreadCount
@pytest.mark.parametrize("kind", ["plain", "gzip", "members", "blocked", "empty", "blocked, then gzip"])
def test_standard_input_is_a_pipe(kind: str, threads: int) -> None:
    data = CONTENTS[kind]
    reading, writing = os.pipe()

    def feed() -> None:
        with open(writing, "wb", buffering=0) as pipe:
            for start in range(0, len(data), 5000):
                pipe.write(data[start : start + 5000])

    feeder = threading.Thread(target=feed)
    with standard_input(reading):
        feeder.start()
        with open_bytes("-", threads) as source:
            assert source.name == "standard input"
            assert drain(source, 9 << 20) == (TEXT if data else b"")
        os.fstat(0)
    feeder.join()


@ThreadCount
def test_standard_input_is_a_file(tmp_path: pathlib.Path, threads: int) -> None:
    path = tmp_path / "reads.fq"
    path.write_bytes(b"skipped" + TEXT * 16)
    descriptor = os.open(path, os.O_RDONLY)
    os.lseek(descriptor, 7, os.SEEK_SET)
    with standard_input(descriptor), open_bytes("-", threads) as source:
        assert drain(source, 9 << 20) == TEXT * 16


def test_files_that_cannot_be_opened(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.fq"):
        open_bytes(str(tmp_path / "missing.fq"))
    with pytest.raises(IsADirectoryError):
        open_bytes(str(tmp_path))


@ThreadCount
def test_closing_early_ends_the_threads(opened: Opener, threads: int) -> None:
    before = set(threading.enumerate())
    for data in (blocked(TEXT * 4), gzip.compress(TEXT * 4, 1), TEXT * 16):
        with opened(data, threads) as source:
            source.readinto(memoryview(bytearray(100)))
        assert set(threading.enumerate()) <= before


def test_empty_target(opened: Opener) -> None:
    for data in (TEXT, gzip.compress(TEXT)[:100]):
        assert opened(data).readinto(memoryview(bytearray())) == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=9)), st.integers(1, 7), st.booleans())
def test_pieces_in_any_step(pieces: list[bytes], step: int, has_error: bool) -> None:
    def generate() -> Generator[bytes, None, None]:
        yield from pieces
        if has_error:
            raise DataError("faulty")

    source = GeneratorSource("pieces", generate())
    read = drain_to_error(source, step)[0] if has_error else drain(source, step)
    assert read == b"".join(pieces)


def test_descriptions_of_a_start() -> None:
    assert describe_start(b"ACGT") == "'A'"
    assert describe_start(b"\xff") == "byte 0xff"
    assert describe_start(b"\r\n") == "a blank line"
    assert describe_start(b"BAM\1...") == "'B' (it looks like BAM)"
    assert describe_start(b"\x28\xb5\x2f\xfd\0") == "'(' (it looks like zstd)"


@pytest.mark.parametrize("size", [5, PARALLEL_READ_BYTES])
def test_a_read_error_names_the_file(tmp_path: pathlib.Path, size: int) -> None:
    """The descriptor is redirected to a folder, which cannot be read."""
    path = tmp_path / "reads.fq"
    path.write_bytes(TEXT)
    folder = os.open(tmp_path, os.O_RDONLY)
    with open_bytes(str(path), threads=2) as source:
        links = {number: os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
        (descriptor,) = (int(number) for number, link in links.items() if link == str(path))
        os.dup2(folder, descriptor)
        target = memoryview(bytearray(size))
        with pytest.raises(IsADirectoryError) as raised:
            [*iter(lambda: source.readinto(target), 0)]
        assert raised.value.filename == str(path)
    os.close(folder)
