import errno
import gzip
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from examples import random_bases, random_quality
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.errors import DataError
from readmap.formats.compression import ByteSource
from readmap.reads import fastq_reads
from readmap.reads.chunks import read_chunks
from readmap.reads.fastq_reads import have_four_lines, with_four_lines

Record = tuple[str, str, str]


def read(path: Path, chunk_bytes: int = 1 << 20) -> list[bytes]:
    """The lines of all chunks."""
    lines = []
    for chunk in read_chunks([str(path)], lambda size: np.empty(size, np.uint8), chunk_bytes):
        lines += chunk.parts[0].tobytes().split(b"\n")[:-1]
        chunk.release()
    return lines


records = st.lists(
    st.tuples(st.text("abc", min_size=1, max_size=5), st.integers(0, 40), st.integers(1, 50)), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    shapes=records,
    blanks=st.lists(st.integers(0, 2), min_size=13, max_size=13),
    line_break=st.sampled_from(["\n", "\r\n"]),
    chunk_bytes=st.sampled_from([1, 100, 1 << 20]),
    seed=st.randoms(use_true_random=False),
)
def test_any_lines(
    tmp_path_factory: pytest.TempPathFactory,
    shapes: list[tuple[str, int, int]],
    blanks: list[int],
    line_break: str,
    chunk_bytes: int,
    seed: random.Random,
) -> None:
    """Sequences and qualities in lines of any width, and blank lines between records."""
    lines, expected = [""] * blanks[-1], []
    for (name, length, width), blank in zip(shapes, blanks, strict=False):
        bases, quality = random_bases(seed, length), random_quality(seed, length)
        cut = range(0, max(length, 1), width)
        lines += [f"@{name} x", *(bases[i : i + width] for i in cut), "+"]
        lines += [*(quality[i : i + width] for i in cut), *[""] * blank]
        expected += [f"@{name} x", bases, "+", quality]
    path = tmp_path_factory.mktemp("any") / "x.fq"
    path.write_text(line_break.join([*lines, ""]), newline="")
    assert [line.rstrip(b"\r").decode() for line in read(path, chunk_bytes)] == expected


@pytest.mark.parametrize(
    ("data", "is_regular"),
    [
        (b"", True),
        (b"@r\nAC\n+\nII\n", True),
        (b"@r\r\nAC\r\n+\r\nII\r\n@s\r\n\r\n+\r\n\r\n", True),
        (b"@r\nAC\n+\nII\n@s\nA", True),
        (b"@r\nAC\n+\nII\n\n@s\nA\n+\nI\n", False),
        (b"@r\nA\nC\n+\nI\nI\n", False),
        (b"\n@r\nAC\n+\nII\n", False),
        (b"@r\nAC\n+\nIII\n", False),
    ],
)
def test_which_files_have_four_lines(data: bytes, is_regular: bool) -> None:
    assert have_four_lines(np.frombuffer(data, np.uint8)) is is_regular


def test_pieces_and_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastq_reads, "PIECE_BYTES", 1000)
    path = tmp_path / "x.fq.gz"
    path.write_bytes(gzip.compress(b"".join(b"@r%d\nAC\nGT\n+\nI\nIII\n\n" % i for i in range(5_000))))
    assert read(path)[4::4] == [b"@r%d" % i for i in range(1, 5_000)]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match="unexpected end of the compressed data"):
        read(path)


@pytest.mark.parametrize(
    ("broken", "raised"),
    [
        (b"@r2\nAC\nGT\nIIII\n@r3\nA\n+\nI\n", None),
        (b"@r2\nAC\nGT\n+\nIIIII\n", None),
        (b"@r2\nAC\nGT\n+\nII", "record is truncated: expected 4 lines"),
        (b"r2\nAC\n+\nII\n", None),
    ],
)
def test_what_is_no_record_is_given_as_it_is(tmp_path: Path, broken: bytes, raised: str | None) -> None:
    """The faults of records are found where they are parsed."""
    path = tmp_path / "x.fq"
    path.write_bytes(b"@r1\nA\nC\n+\nII\n" + broken)
    lines: list[bytes] = []
    collect: Callable[[], None] = lambda: lines.extend(read(path))  # noqa: E731
    if raised:
        with pytest.raises(DataError, match=raised):
            collect()
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("readmap.reads.record_file.RecordFile._truncated", lambda self, tail: None)
        collect()
    assert lines[:4] == [b"@r1", b"AC", b"+", b"II"]
    assert lines[4:8] == broken.split(b"\n")[:4]


class Faulty(ByteSource):
    """A file that cannot be read once, and then can be read on: what was to come between is lost."""

    name = "x.fq"

    def __init__(self, *pieces: bytes | None) -> None:
        self._pieces = list(pieces)

    def readinto(self, target: memoryview) -> int:
        piece = self._pieces.pop(0) if self._pieces else b""
        if piece is None:
            raise OSError(errno.EIO, "Input/output error", self.name)
        target[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("record", [b"@r\nAC\n+\nII\n", b"@r\nA\nC\n+\nII\n"])
def test_a_fault_at_the_beginning_is_not_forgotten(record: bytes) -> None:
    source = with_four_lines(Faulty(record[2:], None, record), record[:2])
    target = bytearray(100)
    assert target[: source.readinto(memoryview(target))] == b"@r\nAC\n+\nII\n"
    with pytest.raises(OSError, match="Input/output error"):
        source.readinto(memoryview(target))
