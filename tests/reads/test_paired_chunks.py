"""Test chunks of pairs: mates together for any sizes, and errors after all complete pairs."""

import gzip
import os
import pathlib
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from chunk_examples import Found, allocate, read
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from readmap.formats import newlines
from readmap.reads.chunks import Chunk, PairLayout, RecordFormat, read_chunks

SIZES = [1, 66, 100, 333, 1 << 20]


@dataclass(frozen=True)
class Files:
    """Two files of pairs, r1 and r2, in a folder."""

    folder: pathlib.Path

    @property
    def paths(self) -> list[pathlib.Path]:
        return [self.folder / "r1", self.folder / "r2"]

    def write(self, one: bytes, two: bytes) -> list[str]:
        """Write the files and return their paths."""
        for path, data in zip(self.paths, (one, two), strict=True):
            path.write_bytes(data)
        return [str(path) for path in self.paths]

    def read(self, one: bytes, two: bytes, size: int = 1 << 20, batch_reads: int | None = None) -> Found:
        self.write(one, two)
        return read(self.paths, size, batch_reads, PairLayout.TWO_FILES)

    def read_one(self, data: bytes, size: int = 1 << 20, batch_reads: int | None = None) -> Found:
        """Read one file of alternating mates."""
        (self.folder / "r").write_bytes(data)
        return read([self.folder / "r"], size, batch_reads, PairLayout.INTERLEAVED)


@pytest.fixture
def files(tmp_path: pathlib.Path) -> Files:
    return Files(tmp_path)


def fastq(count: int, length: int, comment: str = "") -> list[bytes]:
    """Return records with qualities that look like headers."""
    return [f"@r{i}{comment}\n{'ACGT' * length:.{length}}\n+\n{'@' * length}\n".encode() for i in range(count)]


SHORT, LONG = fastq(9, 28, "/1"), fastq(9, 91, " 2:N")
ONE, TWO = b"".join(SHORT), b"".join(LONG)


def alternating(one: list[bytes], two: list[bytes]) -> bytes:
    return b"".join(record for pair in zip(one, two, strict=True) for record in pair)


# Two files.


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("one", "two", "wanted_one", "wanted_two"),
    [
        (b"", b"", b"", b""),
        (b"\n\r\n", b"", b"", b""),
        (gzip.compress(b"", mtime=0), b"\n" * 100, b"", b""),
        (SHORT[0], LONG[0], SHORT[0], LONG[0]),
        (ONE[:-1], TWO, ONE, TWO),
        (ONE, TWO[:-1], ONE, TWO),
        (ONE[:-1], TWO[:-1], ONE, TWO),
        (ONE + b"\n\n\n", TWO, ONE, TWO),
        (ONE, TWO + b"\r\n" * 500, ONE, TWO),
        (ONE + b"\n" * 4, TWO + b"\n" * 90, ONE, TWO),
        (gzip.compress(ONE, mtime=0), TWO, ONE, TWO),
        (ONE, gzip.compress(TWO[:500], mtime=0) + gzip.compress(TWO[500:], mtime=0), ONE, TWO),
        (ONE.replace(b"\n", b"\r\n"), TWO, ONE.replace(b"\n", b"\r\n"), TWO),
        (b"@a\n\n+\n\n" * 20, b"@a\nACGT\n+\nIIII\n" * 20, b"@a\n\n+\n\n" * 20, b"@a\nACGT\n+\nIIII\n" * 20),
    ],
)
def test_fastq(files: Files, one: bytes, two: bytes, wanted_one: bytes, wanted_two: bytes, size: int) -> None:
    for batch_reads in (None, 2, 4):
        result = files.read(one, two, size, batch_reads)
        assert (result.parts, result.error) == ([wanted_one, wanted_two], "")
        assert result.formats <= {RecordFormat.FASTQ}


@pytest.mark.parametrize("size", SIZES)
def test_fasta(files: Files, size: int) -> None:
    one, two = b">a\nAC\nGT\n>b\r\n>c\nA", b">a x\nAC\n>b\nACGTACGTAC\n>c\n\n"
    wanted = [b">a\nACGT\n>b\n\n>c\nA\n", b">a x\nAC\n>b\nACGTACGTAC\n>c\n\n"]
    for batch_reads in (None, 2):
        result = files.read(one, two, size, batch_reads)
        assert (result.parts, result.error, result.formats) == (wanted, "", {RecordFormat.FASTA})


def test_two_formats(files: Files) -> None:
    result = files.read(ONE, b">a\nACGT\n")
    assert result.records == []
    assert result.error == "r1 is FASTQ and r2 is FASTA: files of pairs must have the same format"
    assert files.read(b">a\nACGT\n", ONE).error.startswith("r1 is FASTA and r2 is FASTQ")


def test_batches_contain_whole_pairs(files: Files) -> None:
    assert files.read(ONE, TWO).records == [9]
    assert files.read(ONE, TWO, batch_reads=7).records == [3, 3, 3]
    assert files.read(ONE, TWO, batch_reads=8).records == [4, 4, 1]
    assert files.read(ONE, TWO, batch_reads=1).records == [1] * 9


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("one", "two", "pairs", "message"),
    [
        (4, 9, 4, "r1 has 4 records, r2 has more: record 5 (r4) has no mate"),
        (9, 8, 8, "r2 has 8 records, r1 has more: record 9 (r8/1) has no mate"),
        (0, 9, 0, "r1 has 0 records, r2 has more: record 1 (r0) has no mate"),
        (1, 0, 0, "r2 has 0 records, r1 has more: record 1 (r0/1) has no mate"),
        (1, 2, 1, "r1 has 1 record, r2 has more: record 2 (r1) has no mate"),
    ],
)
def test_files_of_different_length(files: Files, one: int, two: int, pairs: int, message: str, size: int) -> None:
    for ending in (b"", b"\n\n", b"\n" * 40):
        result = files.read(b"".join(SHORT[:one]) + ending, b"".join(LONG[:two]), size)
        assert result.parts == [b"".join(SHORT[:pairs]), b"".join(LONG[:pairs])]
        assert result.error == message


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("first", [False, True])
def test_gzip_error_comes_after_its_pairs(files: Files, first: bool, size: int) -> None:
    """Also if the other file has longer records, so that many records of the corrupt file wait for mates."""
    one, two = (SHORT * 20, LONG * 20) if first else (LONG * 20, SHORT * 20)
    broken = gzip.compress(b"".join(two[:150])) + b"garbage"
    result = files.read(b"".join(one), broken, size)
    assert result.parts == [b"".join(one[:150]), b"".join(two[:150])]
    assert "r2: 7 bytes after the end of the gzip data are not gzip" in result.error
    result = files.read(broken, b"".join(one[:149]), size)
    assert result.parts == [b"".join(two[:149]), b"".join(one[:149])]
    assert "r2 has 149 records, r1 has more" in result.error


@pytest.mark.parametrize("data", [b"ACGT\n", b"\n\nACGT\n"])
def test_a_file_without_reads_stops_at_once(files: Files, data: bytes) -> None:
    assert files.read(ONE, data).error.startswith("r2: expected FASTQ or FASTA, which start with '@' or '>'")
    assert files.read(data, ONE).records == []


# Buffers.


def sizes_of_buffers(files: Files, one: bytes, two: bytes, chunk_bytes: int) -> tuple[list[int], list[int]]:
    """Return the sizes of the allocated buffers, and the bytes of the chunks."""
    paths = files.write(one, two)
    allocated: list[int] = []
    taken = []

    def count(nbytes: int) -> NDArray[np.uint8]:
        allocated.append(nbytes)
        return allocate(nbytes)

    for chunk in read_chunks(paths, count, chunk_bytes, layout=PairLayout.TWO_FILES):
        taken.append(sum(map(len, chunk.parts)))
        chunk.release()
    assert sum(taken) == len(one) + len(two)
    return allocated, taken


@pytest.mark.parametrize(("one", "two"), [(28, 91), (91, 28), (100, 100), (1, 400), (400, 1)])
def test_buffers_do_not_grow_if_lengths_differ(files: Files, one: int, two: int) -> None:
    allocated, taken = sizes_of_buffers(files, b"".join(fastq(5_000, one)), b"".join(fastq(5_000, two)), 20_000)
    assert set(allocated) == {10_000}
    assert len(allocated) <= 6
    # Every chunk except the last fills at least half a buffer of one file.
    assert min(taken[:-1]) >= 4_000
    assert max(taken) <= 20_000


def test_buffers_grow_for_a_long_record_only(files: Files) -> None:
    records = fastq(300, 20)
    longer = [*records[:150], fastq(151, 4_000)[150], *records[151:]]
    allocated, _ = sizes_of_buffers(files, b"".join(records), b"".join(longer), 2_000)
    assert max(allocated) < 4 * 8_000
    assert sum(size > 1_000 for size in allocated) <= 5


def test_small_files_take_one_buffer_each(files: Files) -> None:
    assert sizes_of_buffers(files, ONE, TWO, 20_000) == ([10_000] * 2, [len(ONE) + len(TWO)])


def test_held_chunks_are_not_overwritten(files: Files) -> None:
    """No buffer is overwritten while a chunk uses it."""
    one, two = b"".join(fastq(200, 28)), b"".join(fastq(200, 91))
    paths = files.write(one, two)
    held: list[tuple[Chunk, list[bytes]]] = []
    found: list[bytes] = []
    for chunk in read_chunks(paths, allocate, 2_000, layout=PairLayout.TWO_FILES):
        held.append((chunk, [part.tobytes() for part in chunk.parts]))
        if len(held) == 2:
            oldest, parts = held.pop(0)
            assert [part.tobytes() for part in oldest.parts] == parts
            found.append(parts[1])
            oldest.release()
    assert b"".join([*found, held[0][1][1]]) == two


def test_pipes_written_alternately(tmp_path: pathlib.Path) -> None:
    """Unless both are read at once, the writer fills one pipe and blocks for ever."""
    count = 20_000  # several times what a pipe holds
    paths = [str(tmp_path / name) for name in ("r1", "r2")]
    for path in paths:
        os.mkfifo(path)

    one, two = (os.fdopen(os.open(path, os.O_RDWR), "wb") for path in paths)  # so that to open one waits for nobody

    def write() -> None:
        for _ in range(count // 100):
            one.write(b"@r\nACGT\n+\nIIII\n" * 100)
            one.flush()
            two.write(b"@r\nTTGT\n+\nIIII\n" * 100)
            two.flush()
        one.close()
        two.close()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    records = 0
    for chunk in read_chunks(paths, lambda size: np.empty(size, np.uint8), 1 << 20, layout=PairLayout.TWO_FILES):
        records += chunk.records
        chunk.release()
    writer.join(10)
    assert records == count


# One file with alternating mates.


@pytest.mark.parametrize("batch_reads", [None, 2, 5])
def test_every_size_of_one_file(files: Files, batch_reads: int | None) -> None:
    data = alternating(SHORT, LONG)
    path = files.folder / "r"
    path.write_bytes(data)
    for size in range(1, len(data) + 100, 3):
        result = read([path], size, batch_reads, PairLayout.INTERLEAVED)
        assert (result.parts, result.error) == ([data], "")


def test_batches_of_one_file(files: Files) -> None:
    data = alternating(SHORT, LONG)
    assert files.read_one(data).records == [18]
    assert files.read_one(data, batch_reads=7).records == [6, 6, 6]
    assert files.read_one(data, batch_reads=1).records == [2] * 9


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("count", "tail", "message"),
    [
        (4, b"", ""),
        (4, b"\n\n\n\n\n", ""),
        (0, SHORT[0], "r has 1 record, an odd number: record 1 (r0/1) has no mate"),
        (4, SHORT[4], "r has 9 records, an odd number: record 9 (r4/1) has no mate"),
        (4, SHORT[4][:-1], "r has 9 records, an odd number: record 9 (r4/1) has no mate"),
        (4, SHORT[4] + b"\n" * 30, "r has 9 records, an odd number: record 9 (r4/1) has no mate"),
        (4, SHORT[4] + b"@r4\nAC\n", "r, record 10 (r4): record is truncated: expected 4 lines, found 2"),
        (4, b"@r4\nAC\n", "r, record 9 (r4): record is truncated: expected 4 lines, found 2"),
    ],
)
def test_odd_or_truncated_end_of_one_file(files: Files, count: int, tail: bytes, message: str, size: int) -> None:
    pairs = alternating(SHORT[:count], LONG[:count])
    result = files.read_one(pairs + tail, size)
    assert (result.parts, result.error) == ([pairs], message)


# Random inputs.


def slow_records(data: bytes) -> Iterator[bytes]:
    """Yield the complete records of FASTQ, without trailing blank lines."""
    text = data.rstrip(b"\r\n").split(b"\n") if data.strip(b"\r\n") else []
    padding = (data if data.endswith(b"\n") else data + b"\n")[len(data.rstrip(b"\r\n")) :].split(b"\n")[:-1]
    text_lines = [*text[:-1], text[-1] + padding[0], *padding[1:]] if text else []
    for i in range(0, len(text), 4):
        if i + 4 <= len(text_lines):
            yield b"\n".join(text_lines[i : i + 4]) + b"\n"


line = st.text("ACGT@>+I ", max_size=12).map(str.encode)
file = st.lists(st.tuples(line, line, line), max_size=6)


def written(records: list[tuple[bytes, ...]]) -> bytes:
    return b"".join(b"@%s\n%s\n+%s\n%s\n" % (*record, record[1]) for record in records)


@settings(max_examples=200, deadline=None)
@given(
    file,
    file,
    st.integers(0, 12),
    st.integers(1, 300),
    st.none() | st.integers(1, 6),
    st.integers(1, 16),
    st.booleans(),
)
def test_any_two_files(
    one: list[tuple[bytes, ...]],
    two: list[tuple[bytes, ...]],
    cut: int,
    size: int,
    batch_reads: int | None,
    block: int,
    is_gzip: bool,
) -> None:
    """The pairs are the complete records of both files; any rest is an error."""
    first, second = written(one), written(two)
    second = second[: len(second) - cut]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(newlines, "BLOCK_BYTES", block)
        one_file = gzip.compress(first, 1) if is_gzip else first
        result = Files(pathlib.Path(folder)).read(one_file, second, size, batch_reads)
    pairs = list(zip(slow_records(first), slow_records(second), strict=False))
    assert result.parts == [b"".join(pair[0] for pair in pairs), b"".join(pair[1] for pair in pairs)]
    ends = second if second.endswith(b"\n") or not second.strip(b"\r\n") else second + b"\n"
    is_whole = ends == result.parts[1] or not ends.removeprefix(result.parts[1]).strip(b"\r\n")
    assert (result.error == "") == (is_whole and first == result.parts[0])


def test_halves(files: Files) -> None:
    """Each half has its own reference to the buffers, and its own first record."""
    files.write(ONE, TWO)
    (files.folder / "r").write_bytes(alternating(SHORT, LONG))
    cases = [
        ([files.folder / "r"], PairLayout.INTERLEAVED),
        (files.paths, PairLayout.TWO_FILES),
        (files.paths[:1], PairLayout.SINGLE),
    ]
    for paths, layout in cases:
        (chunk,) = read_chunks(list(map(str, paths)), allocate, 1 << 20, layout=layout)
        waiting, done = [chunk], [b""] * layout.files
        while waiting:
            chunk = waiting.pop(0)
            if chunk.records > layout.records_per_fragment:
                waiting[:0] = chunk.halves()
                continue
            assert chunk.records == layout.records_per_fragment
            assert chunk.first_record * chunk.format.value == done[0].count(b"\n")
            done = [before + part.tobytes() for before, part in zip(done, chunk.parts, strict=True)]
            chunk.release()
        assert done == [path.read_bytes() for path in paths]
        with pytest.raises(ValueError, match="released more often than held"):
            chunk.release()
