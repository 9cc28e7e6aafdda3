"""Test split tables and shards: for any file the texts of all shards are its text, cut between records."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bgzf_examples import EOF_BLOCK, blocked
from chunk_examples import allocate
from examples import random_bases

from readmap.errors import DataError
from readmap.formats.byte_source import ByteRange, ByteSource
from readmap.formats.gzip_reader import NO_INFLATERS, Inflaters
from readmap.reads import file_splitter, parallel_gzip, record_file, record_starts, split_table
from readmap.reads.chunks import Chunk, PairLayout, read_chunks
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.shards import RecordLocator, RecordRange, Shard, SplitLanes
from readmap.reads.split_table import SplitFile, SplitTable, read_table

DRAW = random.Random(5)


def fastq(count: int, longest: int = 120, break_: str = "\n", name: str = "read{0}") -> bytes:
    """Return records of any length, also empty ones; qualities may start with '@'."""
    records = []
    for number in range(count):
        bases = random_bases(DRAW, DRAW.randrange(longest))
        qualities = "".join(DRAW.choices("@+IF#", k=len(bases)))
        records += [f"@{name.format(number, number // 2)} x", bases, "+", qualities]
    return "".join(line + break_ for line in records).encode()


def in_lines(text: bytes) -> bytes:
    """Rewrite FASTQ with three lines per sequence, and blank lines before some records."""
    lines = text.decode().splitlines()
    records = []
    for header, bases, plus, qualities in zip(*(lines[k::4] for k in range(4)), strict=True):
        third = len(bases) // 3
        parts = [text[at : at + third or None] for text in (bases, qualities) for at in (0, third, 2 * third)]
        records += (
            ["\n" * DRAW.randrange(3) + header, *parts[:3], plus, *parts[3:]] if third else [header, "", plus, ""]
        )
    return "\n".join(records).encode()


def fasta(count: int) -> bytes:
    parts = []
    for number in range(count):
        bases = random_bases(DRAW, DRAW.randrange(200))
        parts += [f">r{number} > x", *(bases[at : at + 60] for at in range(0, len(bases), 60))]
    return "\r\n".join(parts).encode()


TEXT = fastq(6000)
TEXTS = {
    "lengths": TEXT,
    "CRLF": fastq(1000, break_="\r\n"),
    "no end": TEXT[:-1],
    "lines": in_lines(fastq(600)),
    "some lines": fastq(900) + in_lines(fastq(300)) + b"\n" + fastq(500),
    "blank lines": b"\n\r\n" + fastq(700) + b"\n\n\n",
    "FASTA": b"\n" + fasta(2000),
    "a record": b"@a\nACGT\n+\nIIII",
    "nothing": b"",
}


def flushed(data: bytes, level: int = 6) -> bytes:
    made = zlib.compressobj(level, zlib.DEFLATED, 31)
    parts = [data[at : at + 7000] for at in range(0, len(data), 7000)]
    return b"".join(made.compress(part) + made.flush(zlib.Z_FULL_FLUSH) for part in parts) + made.flush()


def in_members(data: bytes) -> bytes:
    cuts = [0, len(data) // 90, len(data) // 90, len(data) // 3, len(data) // 2, len(data)]
    return b"".join(gzip.compress(data[a:b]) for a, b in itertools.pairwise(cuts)) + bytes(500)


WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "bgzip": lambda data: blocked(data, 5000),
    "one member, stored": lambda data: gzip.compress(data, 0),
    "one member, level 1": lambda data: gzip.compress(data, 1),
    "one member, level 9": lambda data: gzip.compress(data, 9),
    "one member, flushed": flushed,
    "members": in_members,
    "bgzip and members": lambda data: blocked(data[:60_000], 3000)[: -len(EOF_BLOCK)] + gzip.compress(data[60_000:]),
}


@pytest.fixture(autouse=True)
def many_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_gzip, "PART_BYTES", 80_000)
    monkeypatch.setattr(file_splitter, "POINT_SPACING", 30_000)
    monkeypatch.setattr(file_splitter, "RECORDS_PER_MARK", 100)
    monkeypatch.setattr(record_starts, "BUFFER_BYTES", 20_000)
    monkeypatch.setattr(record_starts, "RECORDS_PER_ARRAY", 17)


def split(*paths: Path, threads: int = 2) -> tuple[SplitFile, ...]:
    """Return the entries of a table that was written and read again."""
    files = file_splitter.split_files([*map(str, paths)], threads, lambda records, read, size: None, lambda line: None)
    table = paths[0].with_name("table")
    table.write_bytes(SplitTable("table", files).to_bytes())
    return read_table(str(table)).files


def parts(
    shard: Shard,
    paths: Sequence[Path],
    files: Sequence[SplitFile],
    layouts: Sequence[PairLayout] = (PairLayout.SINGLE,),
) -> list[RecordRange]:
    return reads_of(paths, files, layouts).shard(shard)


def reads_of(paths: Sequence[Path], files: Sequence[SplitFile], layouts: Sequence[PairLayout]) -> SplitLanes:
    return SplitLanes([RecordLocator(str(path), file, 2) for path, file in zip(paths, files, strict=True)], layouts)


def opened(part: RecordRange) -> ByteSource:
    return part.open(2, HOST_INFLATERS)


def read_all(source: ByteSource) -> bytes:
    with source:
        found, target = b"", bytearray(9999)
        while count := source.readinto(memoryview(target)):
            found += target[:count]
    return found


def released(chunks: Iterator[Chunk]) -> None:
    for chunk in chunks:
        chunk.release()


def names(text: bytes) -> list[bytes]:
    return [line for line in text.split(b"\n") if line.startswith((b"@read", b">r", b"@a"))]


@pytest.mark.parametrize(
    "layouts", [[PairLayout.SINGLE, PairLayout.SINGLE], [PairLayout.TWO_FILES], [PairLayout.INTERLEAVED] * 2]
)
def test_shards_that_start_at_marks(tmp_path: Path, layouts: list[PairLayout]) -> None:
    paths = [tmp_path / "1", tmp_path / "2"]
    for path in paths:
        path.write_bytes(fastq(1234))
    reads, whole = reads_of(paths, split(*paths), layouts), [0, 0]
    total, _ = reads.fragments()
    for number in range(1, 8):
        begin, end = (reads.cuts(bound, 100) for bound in Shard(number, 7).bounds(total))
        for at, part in enumerate(reads.ranges(begin, end)):
            assert part.first_record == whole[at]
            assert part.first_record % 100 == 0 or part.first_record == 1234
            assert read_all(opened(part)).count(b"\n") == 4 * (part.end_record - part.first_record)
            whole[at] = part.end_record
    assert whole == [1234, 1234]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", TEXTS)
def test_all_shards_together_are_the_file(tmp_path: Path, writer: str, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(WRITERS[writer](TEXTS[name]))
    (file,) = split(path)
    assert (file.records, file.text_bytes) == (len(names(TEXTS[name])), len(TEXTS[name]))
    for count in (1, 2, 7):
        texts = []
        for number in range(1, count + 1):
            (part,) = parts(Shard(number, count), [path], [file])
            bounds = [file.records * at // count for at in (number - 1, number)]
            assert [part.first_record, part.end_record] == bounds
            texts.append(read_all(opened(part)))
            assert len(names(texts[-1])) == part.end_record - part.first_record
        assert b"".join(texts) == TEXTS[name]


@pytest.mark.parametrize("inflaters", [HOST_INFLATERS, NO_INFLATERS])
@pytest.mark.parametrize("writer", WRITERS)
def test_ranges_between_any_cuts(tmp_path: Path, writer: str, inflaters: Inflaters) -> None:
    """With and without host kernels; a table made with kernels is used without them."""
    path, draw = tmp_path / "file", random.Random(writer)
    path.write_bytes(WRITERS[writer](TEXT))
    (file,) = split(path)
    assert len(file.marks) > 9
    assert file.points is None or len(file.points) > (1 if writer == "bgzip and members" else 2)
    text = RecordLocator(str(path), file, 4)
    whole = names(TEXT)
    cuts = sorted(draw.choices(range(file.records + 1), k=12))
    for first, last in itertools.pairwise(cuts):
        source = text.range(first, last).open(4, inflaters)
        assert source.first_record == first
        assert names(read_all(source)) == whole[first:last]


def test_access_points_inside_a_member(tmp_path: Path) -> None:
    """It is not inflated from its start, and its checksum is verified at the end."""
    path, data = tmp_path / "file", gzip.compress(TEXT)
    path.write_bytes(data)
    (file,) = split(path)
    assert file.points is not None
    assert len(file.points) > 3
    assert not any(point.is_member for point in file.points[1:])
    for size in (1000, 80_000):
        path.write_bytes(bytes(size) + data[size:])
        (part,) = parts(Shard(3, 3), [path], [file])
        assert TEXT.endswith(read_all(opened(part)))
    path.write_bytes(data[:-8] + bytes(4) + data[-4:])
    with pytest.raises(DataError, match="corrupt"):
        read_all(opened(parts(Shard(3, 3), [path], [file])[0]))


def test_a_table_without_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only access point of a member is its start."""
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(TEXT))
    monkeypatch.setattr(file_splitter, "HOST_INFLATERS", NO_INFLATERS)
    (file,) = split(path)
    assert file.points is not None
    assert [point.is_member for point in file.points] == [True]
    texts = [read_all(opened(parts(Shard(number, 2), [path], [file])[0])) for number in (1, 2)]
    assert b"".join(texts) == TEXT


def test_table_does_not_depend_on_threads(tmp_path: Path) -> None:
    first, second, third = tmp_path / "1.gz", tmp_path / "2.bgz", tmp_path / "3"
    first.write_bytes(gzip.compress(TEXT))
    second.write_bytes(blocked(TEXT))
    third.write_bytes(TEXT)
    tables = [SplitTable("", split(first, second, third, threads=threads)).to_bytes() for threads in (1, 2, 9)]
    assert tables[0] == tables[1] == tables[2]


def chunks(shard: Shard, paths: Sequence[Path], layouts: Sequence[PairLayout]) -> list[tuple[int, int, list[bytes]]]:
    """Return lane, index of the first record and read names of each chunk of a shard."""
    sources = [opened(part) for part in parts(shard, paths, split(*paths), layouts)]
    found = []
    for chunk in read_chunks(sources, allocate, 50_000, 100, 2, layout=layouts):
        found.append((chunk.lane, chunk.first_record, [name for part in chunk.parts for name in names(part.tobytes())]))
        chunk.release()
    return found


def test_pairs_stay_pairs(tmp_path: Path) -> None:
    """In files with different read lengths and compressions."""
    paths = [tmp_path / "1.fq", tmp_path / "2.fq.gz"]
    paths[0].write_bytes(fastq(1001, 200))
    paths[1].write_bytes(gzip.compress(fastq(1001, 30)))
    seen = 0
    for number in range(1, 8):
        for _, first, mates in chunks(Shard(number, 7), paths, [PairLayout.TWO_FILES]):
            assert first == seen
            count = len(mates) // 2
            assert mates == 2 * [b"@read%d x" % k for k in range(first, first + count)]
            seen += count
    assert seen == 1001


def test_interleaved(tmp_path: Path) -> None:
    path = tmp_path / "pairs.fq"
    path.write_bytes(fastq(1002, name="read{1}"))
    found = [chunks(Shard(number, 4), [path], [PairLayout.INTERLEAVED]) for number in range(1, 5)]
    assert [sum(len(reads) for _, _, reads in each) for each in found] == [250, 250, 250, 252]
    together = [name for each in found for _, _, reads in each for name in reads]
    assert together == [b"@read%d x" % (k // 2) for k in range(1002)]


@pytest.mark.parametrize("text", ["FASTQ", "FASTA", "lines"])
def test_adjacent_mates(tmp_path: Path, text: str) -> None:
    """In a run of one name the first and second are mates: no cut separates them, wherever the run starts."""
    path, draw = tmp_path / "mixed", random.Random(8)
    rows = [(number, draw.choice((1, 1, 2, 2, 2, 3, 4, 700 if number == 99 else 2))) for number in range(400)]
    records = [number for number, length in rows for _ in range(length)]
    bases = "ACGT" * 9
    if text == "FASTA":
        data = "".join(f">r{k}/{at % 2 + 1}\n{bases}\n" for at, k in enumerate(records)).encode()
    else:
        data = "".join(f"@read{k}\n{bases}\n+\n{bases}\n" for k in records).encode()
    path.write_bytes(in_lines(data) if text == "lines" else data)
    (file,) = split(path)
    begins = dict.fromkeys(np.cumsum([0, *(length for _, length in rows[:-1])]).tolist())
    middles = {begin + at for begin, (_, length) in zip(begins, rows, strict=True) for at in range(1, length, 2)}
    for count in (2, 7, 60):
        shards = [Shard(number, count) for number in range(1, count + 1)]
        found = [parts(shard, [path], [file], [PairLayout.ADJACENT])[0] for shard in shards]
        cuts = [part.first_record for part in found]
        assert [part.end_record for part in found] == [*cuts[1:], file.records]
        assert not middles & {*cuts}
        assert all(0 <= file.records * k // count - cut <= 1 for k, cut in enumerate(cuts))


def test_lanes(tmp_path: Path) -> None:
    """Shards continue from lane to lane; every lane is present and may be empty."""
    layouts = [PairLayout.TWO_FILES, PairLayout.SINGLE, PairLayout.SINGLE]
    paths = [tmp_path / name for name in ("1.fq", "2.fq", "empty.fq", "3.fa.gz")]
    for path in paths[:2]:
        path.write_bytes(fastq(30))
    paths[2].write_bytes(b"")
    paths[3].write_bytes(gzip.compress(fasta(200)))
    found = [chunks(Shard(number, 5), paths, layouts) for number in range(1, 6)]
    reads = [[sum(len(names) for lane, _, names in each if lane == one) for one in range(3)] for each in found]
    assert reads == [[60, 0, 16], [0, 0, 46], [0, 0, 46], [0, 0, 46], [0, 0, 46]]


def test_messages_use_record_numbers_of_the_file(tmp_path: Path) -> None:
    path, layout = tmp_path / "cut.fa.gz", [PairLayout.INTERLEAVED]
    path.write_bytes(gzip.compress(fasta(2001)))
    (file,) = split(path)
    sources = [opened(part) for part in parts(Shard(3, 3), [path], [file], layout)]
    with pytest.raises(DataError, match=r"has 2,001 records, an odd number: record 2001 \(r2000\) has no mate"):
        released(read_chunks(sources, allocate, 1 << 20, layout=layout))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT)[:-3000], "unexpected end of the compressed data"),
        (blocked(TEXT)[:-3000], "unexpected end of the compressed data"),
        (gzip.compress(TEXT)[:-8] + bytes(8), "the gzip data are corrupt"),
        (gzip.compress(TEXT) + b"more", "4 bytes after the end of the gzip data are not gzip"),
        (TEXT[:-20], "record 6000: expected a header with '@', bases, a line with '+'"),
        (TEXT + b"@a\nACGT\n+\nIII\n", "record 6001: expected a header with '@'"),
        (in_lines(fastq(100)) + b"\nx\n" + fastq(5), "record 101: expected a header with '@'"),
        (b"@" + b"A" * 20_000_000, "record 1: expected a header with '@'"),
        (b"ACGT\n", "expected FASTQ or FASTA, which start with '@' or '>', found 'A'"),
        (b"CRAM" + bytes(100), "is BAM or CRAM: expected FASTQ or FASTA"),
        (blocked(b"BAM\1" + bytes(100)), "is BAM or CRAM: expected FASTQ or FASTA"),
    ],
)
def test_files_that_cannot_be_split(tmp_path: Path, data: bytes, message: str) -> None:
    good, path = tmp_path / "good", tmp_path / "file"
    good.write_bytes(TEXT)
    path.write_bytes(data)
    for threads in (1, 8):
        with pytest.raises(DataError) as raised:
            split(good, path, threads=threads)
        assert message in str(raised.value)
        assert str(path) in str(raised.value)


def test_bgzf_without_end_of_file_block(tmp_path: Path) -> None:
    path, warnings = tmp_path / "file", list[str]()
    path.write_bytes(blocked(TEXT)[: -len(EOF_BLOCK)])
    (file,) = file_splitter.split_files([str(path)], 2, lambda records, read, size: None, warnings.append)
    assert "BGZF's end-of-file block is missing, which some programs do not write" in warnings[0]
    for number, is_last in ((1, False), (2, True)):
        told: list[str] = []
        (part,) = parts(Shard(number, 2), [path], [file])
        released(read_chunks([opened(part)], allocate, 1 << 20, warn=told.append))
        assert bool(told) == is_last


def test_unequal_numbers_of_mates(tmp_path: Path) -> None:
    paths = [tmp_path / "1.fq", tmp_path / "2.fq"]
    paths[0].write_bytes(fastq(20))
    paths[1].write_bytes(fastq(19))
    with pytest.raises(DataError, match=r"2.fq has 19 records, .*1.fq has 20"):
        parts(Shard(1, 2), paths, split(*paths), [PairLayout.TWO_FILES])


def test_table_of_a_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(TEXT))
    table = SplitTable("table", split(path))
    assert table.find(str(path)) is table.files[0]
    data = path.read_bytes()
    for changed in (data[:-1], data[:-1] + b"x", b"x" + data[1:], gzip.compress(TEXT[:-7])):
        path.write_bytes(changed)
        with pytest.raises(DataError, match=r"table does not describe .*file as it is now: it was made from .*file"):
            table.find(str(path))


@pytest.mark.parametrize("size", [3_000, 1 << 20])
def test_plain_ranges_are_scanned_while_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Up to the end of the range, or up to the premature end of the file."""
    reads, read_and_scan_records = list[int](), record_file.read_and_scan_records

    def reading(source: Any, data: Any, filled: int, *more: Any) -> Any:
        found = read_and_scan_records(source, data, filled, *more)
        reads.append(found.filled - filled if found else 0)
        return found

    monkeypatch.setattr(record_file, "read_and_scan_records", reading)
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    (file,) = split(path)
    seen = list[bytes]()
    for number in range(1, 4):
        (part,) = parts(Shard(number, 3), [path], [file])
        reads.clear()
        for chunk in read_chunks([opened(part)], allocate, size):
            assert chunk.first_record == len(seen)
            seen += names(chunk.parts[0].tobytes())
            chunk.release()
        size_of_part = part.text_end - part.text_start
        assert size_of_part - 16 <= sum(reads) <= size_of_part  # the first bytes tell the format
    assert seen == names(TEXT)
    path.write_bytes(TEXT[:-40_000])
    with pytest.raises(DataError, match="ends before an offset of its split table"):
        released(read_chunks([opened(parts(Shard(3, 3), [path], [file])[0])], allocate, size))
    path.write_bytes(TEXT + b"@x\nA\n+\nI\n")
    with pytest.raises(DataError, match="expected the end of the file, found more"):
        released(read_chunks([opened(parts(Shard(3, 3), [path], [file])[0])], allocate, size))


@pytest.mark.parametrize("good", [0, 22_000, 22_005, 22_021])
def test_read_error_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: int) -> None:
    """A failed read is not the end of the file; if reading continues, all records are found."""
    path, record = tmp_path / "file", b"@read 00000\nACG\n+\n!!!\n"
    path.write_bytes(record * 4096)
    place, bad = ByteRange.position, os.open("/", os.O_RDONLY)  # no file

    def lost(source: ByteRange) -> Any:
        found, left = place(source), good - source.delivered
        return found and (found._replace(max_bytes=left) if left > 0 else found._replace(file=bad))

    monkeypatch.setattr(ByteRange, "position", lost)
    (file,) = split(path)
    assert (file.records, file.text_bytes, file.is_whole) == (4096, 4096 * len(record), True)
    assert all(text % len(record) == 0 for _, text in file.marks.tolist())
    os.close(bad)


def test_invalid_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table = tmp_path / "file", tmp_path / "table"
    path.write_bytes(gzip.compress(TEXT))
    split(path)
    data = table.read_bytes()
    np.savez(tmp_path / "other", np.arange(3))
    place = data.index(b'"records": 6000')
    wrong_tables = {
        "cut": data[:-50],
        "cut in front": data[10:],
        "nothing": b"",
        "text": b"a table\n",
        "other arrays": (tmp_path / "other.npz").read_bytes(),
        "altered": data[: place + 11] + b"9" + data[place + 12 :],
    }
    for wrong_data in wrong_tables.values():
        table.write_bytes(wrong_data)
        with pytest.raises(DataError, match=r"table: not a table of readmap split, or damaged: "):
            read_table(str(table))
    with pytest.raises(OSError, match="none"):
        read_table(str(tmp_path / "none"))
    table.write_bytes(data)
    monkeypatch.setattr(split_table, "VERSION", 3)
    with pytest.raises(DataError, match="has format version 1, expected 3: run readmap split again"):
        read_table(str(table))


def test_altered_tables(tmp_path: Path) -> None:
    """Undetected changes do not affect the contents: times, and sizes that are stored twice."""
    path, table = tmp_path / "file", tmp_path / "table"
    path.write_bytes(gzip.compress(TEXT))
    files, data, draw = split(path), table.read_bytes(), random.Random(3)
    for at in draw.choices(range(len(data)), k=300):
        table.write_bytes(data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1 :])
        with contextlib.suppress(DataError):
            assert SplitTable("", read_table(str(table)).files).to_bytes() == SplitTable("", files).to_bytes()
