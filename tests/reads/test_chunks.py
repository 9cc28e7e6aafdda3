"""Test chunks of reads: for any sizes all records once and in order, and errors after all complete records."""

import gzip
import pathlib
import queue
import tempfile
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from bgzf_examples import EOF_BLOCK, blocked
from chunk_examples import Found, allocate, read
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats import newlines
from readmap.reads import record_normalization
from readmap.reads.chunks import Chunk, PairLayout, RecordFormat, read_chunks

SIZES = [1, 33, 64, 100, 1 << 20]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "reads.fq"


def read_bytes(path: pathlib.Path, data: bytes, chunk_bytes: int = 1 << 20, batch_reads: int | None = None) -> Found:
    path.write_bytes(data)
    return read([path], chunk_bytes, batch_reads)


RECORD = b"@r1 x\nACGT\n+\nIIII\n"
TRICKY = b"@r1\nAC\n+\n@@\n" + b"@@\nA\n+@\n@\n" + b"@\nACGT\n+\n>>>>\n"
EMPTY_READ = b"@r\n\n+\n\n"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", b""),
        (b"\n", b""),
        (b"\r\n\n\n" * 100, b""),
        (RECORD, RECORD),
        (RECORD[:-1], RECORD),
        (RECORD * 5, RECORD * 5),
        (RECORD * 5 + b"\n", RECORD * 5),
        (RECORD * 5 + b"\r\n\r\n\n", RECORD * 5),
        (RECORD * 5 + b"\n" * 4, RECORD * 5),
        (RECORD * 5 + b"\r\n" * 500, RECORD * 5),
        (TRICKY * 3, TRICKY * 3),
        (EMPTY_READ, EMPTY_READ),
        (EMPTY_READ * 3 + b"\n" * 9, EMPTY_READ * 3),
        (RECORD.replace(b"\n", b"\r\n") * 3, RECORD.replace(b"\n", b"\r\n") * 3),
        (RECORD + b"@long\n" + b"A" * 5000 + b"\n+\n" + b"I" * 5000 + b"\n" + RECORD,) * 2,
    ],
)
def test_fastq(path: pathlib.Path, data: bytes, expected: bytes, size: int) -> None:
    for batch_reads in (None, 1, 2, 1000):
        result = read_bytes(path, data, size, batch_reads)
        assert (result.parts[0], result.error) == (expected, "")
        assert result.formats <= {RecordFormat.FASTQ}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("tail", "place", "found"),
    [
        (b"@r9 x\nACGT\n", "record 4 (r9)", 2),
        (b"@r9\nACGT\n+\n", "record 4 (r9)", 3),
        (b"@r9", "record 4 (r9)", 1),
        (b"@r9\tx\r\nACGT\r\n+\r\n", "record 4 (r9)", 3),
        (b"@r9\nACGT\n\n", "record 4 (r9)", 2),
        (b"@\nACGT\n", "record 4", 2),
        (b"IIII\n", "record 4", 1),
        (b"@r9\n\n+\n", "record 4 (r9)", 3),
    ],
)
def test_truncated_fastq(path: pathlib.Path, tail: bytes, place: str, found: int, size: int) -> None:
    result = read_bytes(path, RECORD * 3 + tail, size)
    assert result.parts[0] == RECORD * 3
    assert result.error == f"{path.name}, {place}: record is truncated: expected 4 lines, found {found}"


def test_one_chunk_if_it_fits(path: pathlib.Path) -> None:
    assert read_bytes(path, RECORD * 10).records == [10]
    assert read_bytes(path, RECORD * 10, 1 << 20, 4).records == [4, 4, 2]
    assert read_bytes(path, RECORD * 10, len(RECORD) * 4 + 1).records == [4, 4, 2]


@pytest.mark.parametrize(
    ("data", "found"),
    [(b"ACGT\n", "'A'"), (b"\n\nACGT\n", "'A'"), (b"BAM\1", "'B' (it looks like BAM)"), (b"\0", "byte 0x00")],
)
def test_neither_fastq_nor_fasta(path: pathlib.Path, data: bytes, found: str) -> None:
    expected = f"{path.name}: expected FASTQ or FASTA, which start with '@' or '>', found {found}"
    assert read_bytes(path, data).error == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b">a\nACGT\n", b">a\nACGT\n"),
        (b">a\nACGT", b">a\nACGT\n"),
        (b">a x\r\nAC\r\nGT\r\n", b">a x\nACGT\n"),
        (b">a\nAC\nG>T\nA\n>b\nT\n", b">a\nACG>TA\n>b\nT\n"),
        (b">a\n>b\nA\n>c\n\n>d", b">a\n\n>b\nA\n>c\n\n>d\n\n"),
        (b">\n>\n>\n", b">\n\n>\n\n>\n\n"),
        (b">a\n\nAC\n\n\nGT\n\n>b\n\n\n", b">a\nACGT\n>b\n\n"),
        (b">a\rb\nA\rC\r\n", b">a\rb\nA\rC\n"),
        (b">a\n" + b"ACGT\n" * 500 + b">b\nA\n", b">a\n" + b"ACGT" * 500 + b"\n>b\nA\n"),
        (b">a>\n>>\n", b">a>\n\n>>\n\n"),
    ],
)
def test_fasta(path: pathlib.Path, data: bytes, expected: bytes, size: int) -> None:
    for batch_reads in (None, 1, 2):
        result = read_bytes(path, data, size, batch_reads)
        assert (result.parts[0], result.error) == (expected, "")
        assert result.formats == {RecordFormat.FASTA}


@pytest.mark.parametrize("threads", [1, 4])
def test_several_files_of_several_kinds(tmp_path: pathlib.Path, threads: int) -> None:
    contents = [RECORD * 3, b"", gzip.compress(TRICKY), b">a\nAC\nGT\n", b"\n", RECORD]
    paths = [tmp_path / f"reads_{number}" for number in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    result = read(paths, 64, threads=threads)
    assert (result.parts[0], result.error) == (RECORD * 3 + TRICKY + b">a\nACGT\n" + RECORD, "")


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("size", SIZES)
def test_gzip_error_comes_after_its_records(path: pathlib.Path, size: int, threads: int) -> None:
    path.write_bytes(gzip.compress(RECORD * 20) + b"garbage")
    result = read([path], size, threads=threads)
    assert result.parts[0] == RECORD * 20
    assert "7 bytes after the end of the gzip data are not gzip" in result.error
    path.write_bytes(gzip.compress(b">a\nACGT\n" * 20)[:-3])
    result = read([path], size, threads=threads)
    # The last record may continue after the truncation.
    assert result.parts[0] == b">a\nACGT\n" * 19
    assert "unexpected end" in result.error


@pytest.mark.parametrize("size", [33, 1 << 20])
@pytest.mark.parametrize("layout", [PairLayout.SINGLE, PairLayout.INTERLEAVED])
@pytest.mark.parametrize("record", [RECORD, EMPTY_READ, b"@r1\nAC\nGT\n+\nII\nII\n", b">r\nACGT\n"])
def test_bgzf_without_end_of_file_block(path: pathlib.Path, record: bytes, layout: PairLayout, size: int) -> None:
    """After a record it is a warning, as some programs omit the block; within a record or before a mate, an error."""
    missing = "BGZF's end-of-file block is missing"
    for records in (2, 3):
        for cut in range(len(record)):
            data = record * records + record[:cut]
            path.write_bytes(blocked(data, 7).removesuffix(EOF_BLOCK))
            found = read([path], size, layout=layout)
            said = f"{path}: unexpected end of the compressed data after {len(data)} inflated bytes: {missing}"
            # The last line may lack its line break, and a FASTA record may always be complete.
            is_fasta = record.startswith(b">")
            is_whole = cut in (0, len(record) - 1) if record != EMPTY_READ else cut == 0
            whole = records + (cut > 0 and (is_whole or is_fasta))
            if layout is PairLayout.INTERLEAVED and whole % 2:
                whole, is_whole = whole - 1, False
            elif is_fasta:
                is_whole = True
            assert found.warnings == ([f"{said}, which some programs do not write"] if is_whole else [])
            assert found.error == ("" if is_whole else said.replace(f"{path.parent}/", ""))
            assert found.parts[0].count(record[:1]) == whole
            with pytest.raises(DataError, match=missing):
                _ = [chunk.release() for chunk in read_chunks([str(path)], allocate, size, layout=layout)]


def slow_fastq(data: bytes) -> list[bytes]:
    """Return the records of valid FASTQ, without trailing blank lines."""
    text_lines = (data if data.endswith(b"\n") else data + b"\n").split(b"\n")[:-1]
    records = [b"\n".join(text_lines[i : i + 4]) + b"\n" for i in range(0, len(text_lines), 4)]
    while records and not records[-1].strip(b"\r\n"):
        records.pop()
    return records


line = st.text("ACGT@>+I \r", max_size=12).map(str.encode)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(line, line, line), max_size=8),
    st.binary(max_size=0) | st.text("\n", max_size=9).map(str.encode),
    st.integers(1, 200),
    st.none() | st.integers(1, 4),
    st.integers(1, 16),
    st.booleans(),
)
def test_fastq_round_trip(
    records: list[tuple[bytes, ...]], blank: bytes, size: int, batch_reads: int | None, block: int, is_gzip: bool
) -> None:
    data = b"".join(b"@%s\n%s\n+%s\n%s\n" % (*record, record[1]) for record in records) + blank
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(newlines, "BLOCK_BYTES", block)
        written = gzip.compress(data, 1) if is_gzip else data
        result = read_bytes(pathlib.Path(folder) / "reads", written, size, batch_reads)
    assert result.error == ""
    assert result.parts[0] == b"".join(slow_fastq(data))


def slow_fasta(data: bytes) -> bytes:
    """Return FASTA with two lines per record."""
    out: list[list[bytes]] = []
    for text_line in data.replace(b"\r\n", b"\n").split(b"\n"):
        if text_line.startswith(b">"):
            out.append([text_line, b""])
        else:
            out[-1][1] += text_line
    return b"".join(b"%s\n%s\n" % (header, sequence) for header, sequence in out)


@settings(max_examples=100, deadline=None)
@given(st.text("A>\n\r", max_size=60).map(str.encode), st.integers(1, 100), st.integers(1, 60), st.booleans())
def test_fasta_round_trip(text: bytes, size: int, piece: int, has_end: bool) -> None:
    data = b">" + text + (b"\n" if has_end else b"")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_normalization, "PIECE_BYTES", piece)
        patch.setattr(newlines, "BLOCK_BYTES", 7)
        result = read_bytes(pathlib.Path(folder) / "reads", data, size)
    assert result.error == ""
    # A CR at the end of the file is followed by the missing newline.
    assert result.parts[0] == slow_fasta(data if data.endswith(b"\n") else data + b"\n")


def test_a_fixed_number_of_buffers(path: pathlib.Path) -> None:
    path.write_bytes(RECORD * 1000)
    sizes: list[int] = []

    def count(nbytes: int) -> NDArray[np.uint8]:
        sizes.append(nbytes)
        return allocate(nbytes)

    for chunk in read_chunks([str(path)] * 2, count, 100):
        chunk.release()
    assert sizes == [100, 100, 100]


def test_the_reader_waits_for_a_release(path: pathlib.Path) -> None:
    path.write_bytes(RECORD * 50)
    arrived: queue.Queue[Chunk | None] = queue.Queue()

    def run() -> None:
        for chunk in read_chunks([str(path)], allocate, 100, buffers=2):
            arrived.put(chunk)
        arrived.put(None)

    reader = threading.Thread(target=run)
    reader.start()
    held = [arrived.get(timeout=10), arrived.get(timeout=10)]
    reader.join(0.05)
    assert reader.is_alive()
    assert arrived.empty()
    data = b""
    while chunk := held.pop(0):
        data += chunk.parts[0].tobytes()
        chunk.release()
        if held[-1]:
            held.append(arrived.get(timeout=10))
    assert data == RECORD * 50
    reader.join(10)


def test_chunks_of_a_buffer_share_it(path: pathlib.Path) -> None:
    path.write_bytes(RECORD * 3)
    chunks = list(read_chunks([str(path)], allocate, 1000, batch_reads=1))
    assert len({id(chunk.buffers[0]) for chunk in chunks}) == 1
    for chunk in chunks:
        assert chunk.parts[0].tobytes() == RECORD
        chunk.release()
    with pytest.raises(ValueError, match="released more often than held"):
        chunks[0].release()


def test_missing_file_error_comes_after_earlier_files(path: pathlib.Path) -> None:
    path.write_bytes(RECORD)
    chunks: Iterator[Chunk] = read_chunks([str(path), str(path) + ".missing"], allocate, 100)
    next(chunks).release()
    with pytest.raises(FileNotFoundError):
        next(chunks)
