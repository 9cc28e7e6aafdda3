import errno
import gzip
import itertools
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from chunk_examples import read as read_chunk_by_chunk
from examples import random_bases, random_quality
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.backend.cpu import CpuBackend
from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, GeneratorSource
from readmap.reads import record_normalization
from readmap.reads.chunks import PairLayout, read_chunks
from readmap.reads.parsing import parse_reads
from readmap.reads.record_normalization import four_line_records

Record = tuple[str, str, str]


def read(path: Path, chunk_bytes: int = 1 << 20) -> list[bytes]:
    """Return the lines of all chunks."""
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
    """Sequences and qualities with lines of any width, and blank lines between records."""
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


def of_any_lines(record: bytes, number: int) -> bytes:
    """Return a record of four lines rewritten with 6, 8 or 5 lines, or with blank lines before it."""
    header, bases, separator, quality = record.splitlines()
    first, rest = slice(None, 1), slice(1, None)
    lines = (
        [header, bases[first], bases[rest], separator, quality[first], quality[rest]],
        [header, bases[first], bases[rest], b"", separator, quality[first], quality[rest], b""],
        [header, bases, separator, quality[first], quality[rest]],
        [b"", b"", b"", b"", header, bases, separator, quality],
    )[number % 4]
    return b"\n".join([*lines, b""])


RECORDS = [f"@r{i}\n{'ACGT' * i:.{2 + i}}\n+\n{'@' * (2 + i)}\n".encode() for i in range(2, 22)]
FILE = b"".join(RECORDS)


@pytest.mark.parametrize("first", range(len(RECORDS)))
def test_irregular_records(tmp_path: Path, first: int) -> None:
    """For any chunk size: one irregular record, every second record from it on, or all records from it on."""
    path = tmp_path / "x.fq"
    for step in (1, 2, len(RECORDS)):
        for shift in range(4):
            others = {i: of_any_lines(RECORDS[i], i + shift) for i in range(first, len(RECORDS), step)}
            data = b"".join(others.get(i, record) for i, record in enumerate(RECORDS))
            path.write_bytes(data if shift else gzip.compress(data[:100]) + gzip.compress(data[100:]))
            for size in (1, 50, 130, 131, 132, 133, 300, 1 << 20):
                found = read_chunk_by_chunk([path], size)
                assert (found.parts, found.error) == ([FILE], "")


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("first", range(0, len(RECORDS), 3))
def test_irregular_records_in_one_of_two_files(tmp_path: Path, side: int, first: int) -> None:
    for step in (1, 3, len(RECORDS)):
        pair = [FILE, FILE]
        others = {i: of_any_lines(RECORDS[i], i) for i in range(first, len(RECORDS), step)}
        pair[side] = b"".join(others.get(i, record) for i, record in enumerate(RECORDS))
        paths = [tmp_path / "x_1.fq", tmp_path / "x_2.fq"]
        for path, data in zip(paths, pair, strict=True):
            path.write_bytes(data)
        for size in (1, 66, 133, 500, 1 << 20):
            for batch_reads in (None, 6):
                found = read_chunk_by_chunk(paths, size, batch_reads, PairLayout.TWO_FILES)
                assert (found.parts, found.error) == ([FILE, FILE], "")
        (tmp_path / "x.fq").write_bytes(pair[side])
        for size in (1, 66, 133, 500, 1 << 20):
            found = read_chunk_by_chunk([tmp_path / "x.fq"], size, None, PairLayout.INTERLEAVED)
            assert (found.parts, found.error) == ([FILE], "")


@pytest.mark.parametrize("first", [0, 1, 7, 18])
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (b"@bad\nACGT\n-\nIIII\n", "(bad): expected a line starting with '+', found '-'"),
        (b"@bad\nACGT\n+\nIII\n", "(bad): quality has 3 characters, sequence has 4"),
        (b"bad\nACGT\n+\nIIII\n", ": expected a header starting with '@', found 'bad'"),
        (b"@bad\nAC!T\n+\nIIII\n", "(bad): expected a nucleotide at base 3, found '!'"),
        (b"@bad\nAC\n!T\n+\nIIII\n", "(bad): expected a nucleotide at base 3, found '!'"),
    ],
)
def test_errors_have_the_index_of_their_record(
    tmp_path: Path, first: int, size: int, broken: bytes, complaint: str
) -> None:
    """With and without irregular records before it."""
    path, backend = tmp_path / "x.fq", CpuBackend(1)
    for before in (b"".join(RECORDS[:19]), b"".join(map(of_any_lines, RECORDS[:19], range(first, first + 19)))):
        path.write_bytes(b"".join(RECORDS[:first]) + before + broken + FILE)
        good, error = 0, ""
        for chunk in read_chunks([str(path)], lambda size: np.empty(size, np.uint8), size):
            reads = parse_reads(backend.to_device(chunk.parts[0]), chunk.reads, 4, backend)
            good += reads.count
            if reads.bad is not None:
                error = str(chunk.error(reads.bad))
                break
            chunk.release()
        assert good == first + 19
        assert error == f"{path}, record {first + 20}{' ' if complaint[0] == '(' else ''}{complaint}"


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """A pipe cannot seek and returns short reads."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = FILE * 500 + b"".join(map(of_any_lines, RECORDS, range(20))) * 500 + FILE * 500
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    found = read_chunk_by_chunk([path], 20_000)
    writer.join()
    assert (found.parts, found.error) == ([FILE * 1500], "")


def test_pieces_and_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_normalization, "PIECE_BYTES", 1000)
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
def test_invalid_records_are_passed_on(tmp_path: Path, broken: bytes, raised: str | None) -> None:
    """Invalid records are reported by the parser."""
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
    """A file whose read fails once and then continues, so that bytes are lost."""

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
def test_read_error_is_reported(record: bytes) -> None:
    chunks = read_chunks([Faulty(record, None, record)], lambda size: np.empty(size, np.uint8), 1 << 20)
    assert next(chunks).parts[0].tobytes() == b"@r\nAC\n+\nII\n"
    with pytest.raises(OSError, match="Input/output error"):
        next(chunks)


def test_endless_record_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept in memory as a whole, for example FASTA after FASTQ."""
    monkeypatch.setattr(record_normalization, "MAX_BYTES", 1000)
    lines = itertools.chain([b"@r\n"], itertools.repeat(b"ACGT\n"))
    pieces = four_line_records(b"", GeneratorSource("x.fq", (line for line in lines)))
    assert next(pieces).startswith(b"@r\nACGT\nACGT\nACGT\n")
    pieces.close()
