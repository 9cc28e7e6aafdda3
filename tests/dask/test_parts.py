"""The parts of shards: all reads, however gradually it is known where they are."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bgzf_examples import blocked

from readmap.dask import shard_plan
from readmap.dask.shard_plan import HALVINGS, equal_parts, sized_parts
from readmap.errors import DataError
from readmap.reads import file_splitter, parallel_gzip, record_starts
from readmap.reads.chunks import PairLayout
from readmap.reads.file_splitter import FileSplitter, split_files
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.shards import RecordLocator, RecordRange, SplitLanes
from readmap.reads.split_table import SplitFile

DRAW = random.Random(83)
MARKED = 10
SINGLE, PAIRS, INTERLEAVED, ADJACENT = (
    PairLayout.SINGLE,
    PairLayout.TWO_FILES,
    PairLayout.INTERLEAVED,
    PairLayout.ADJACENT,
)
WRITERS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, lambda data: blocked(data, 3000)]


@pytest.fixture(autouse=True)
def many_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_gzip, "PART_BYTES", 20_000)
    monkeypatch.setattr(file_splitter, "POINT_SPACING", 9_000)
    monkeypatch.setattr(record_starts, "BUFFER_BYTES", 4_000)
    for module in (file_splitter, shard_plan):
        monkeypatch.setattr(module, "RECORDS_PER_MARK", MARKED)


def fastq(count: int, together: int = 1) -> bytes:
    """Return FASTQ of records of various lengths; `together` consecutive records share a name."""
    lengths = [DRAW.randrange(1, 90) for _ in range(count)]
    return b"".join(
        b"@read%d\n%b\n+\n%b\n" % (at // together, b"A" * length, b"@" * length) for at, length in enumerate(lengths)
    )


def split(texts: Sequence[bytes], folder: Path, write: Callable[[bytes], bytes] = bytes) -> list[RecordLocator]:
    """Files of texts, whose records are all known."""
    paths = [folder / f"{number}.fq" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(write(text))
    files = split_files([*map(str, paths)], 2, lambda records, read, size: None, lambda line: None)
    return [RecordLocator(file.name, file, 2) for file in files]


def known_to(file: SplitFile, marks: int) -> SplitFile:
    """Return what is known of a file after some marks: the records before the last mark."""
    if marks > len(file.marks):
        return file
    known = file.marks[:marks]
    records, text = known[-1].tolist() if marks else (0, 0)
    points = None if file.points is None else [point for point in file.points if marks and point.text <= text]
    return replace(file, records=records, text_bytes=text, marks=known, points=points, is_whole=False)


def gradually(texts: Sequence[RecordLocator], layouts: Sequence[PairLayout], at_once: int) -> Callable[[], SplitLanes]:
    """Of the files in turn some marks more are known from call to call."""
    known = [0] * len(texts)

    def tell() -> SplitLanes:
        reads = SplitLanes([replace(t, file=known_to(t.file, n)) for t, n in zip(texts, known, strict=True)], layouts)
        for number, text in enumerate(texts):
            if known[number] <= len(text.file.marks):
                known[number] += DRAW.randrange(at_once + 1)
                if DRAW.randrange(3):
                    break
        return reads

    return tell


def text_of(part: RecordRange) -> bytes:
    found, target = b"", bytearray(999)
    with part.open(2, HOST_INFLATERS) as source:
        assert source.first_record == part.first_record
        while count := source.readinto(memoryview(target)):
            found += target[:count]
    return found


def told(found: Iterator[list[RecordRange] | None]) -> list[list[RecordRange]]:
    return [one for one in found if one is not None]


def expect_all(found: list[list[RecordRange]], texts: Sequence[bytes]) -> None:
    """Check that the shards in order give all texts, and that each has whole records."""
    for number, text in enumerate(texts):
        of_file = [one[number] for one in found]
        assert [part.first_record for part in of_file] == [0, *(part.end_record for part in of_file[:-1])]
        assert b"".join(map(text_of, of_file)) == text
        assert of_file[-1].end_record == text.count(b"\n") // 4


def expect_sizes(reads: list[int], size: int) -> None:
    """Shards grow to the given size, and the last ones shrink."""
    near, least = 4 * MARKED, size >> HALVINGS
    assert max(reads) <= size + near
    for number, count in enumerate(reads[:-1]):
        following = sum(reads[number + 1 :])
        begins = abs(count - min(least << number, size)) <= near
        assert begins or abs(count - following) <= near
    assert reads[-1] <= least * 3 // 2 + near


LANES: list[tuple[list[PairLayout], list[int]]] = [
    ([SINGLE], [1003]),
    ([PAIRS], [777, 777]),
    ([INTERLEAVED], [900]),
    ([ADJACENT], [901]),
    ([PAIRS, SINGLE, SINGLE, PAIRS], [300, 300, 0, 150, 222, 222]),
    ([SINGLE], [0]),
    ([PAIRS, SINGLE], [3, 3, 1]),
]


@pytest.mark.parametrize(
    ("write", "layouts", "counts"), [(w, *lane) for w, lane in zip(WRITERS * 3, LANES, strict=False)]
)
def test_what_is_known_at_once_and_gradually_is_the_same(
    layouts: list[PairLayout], counts: list[int], write: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    together = 2 if layouts[0] in (INTERLEAVED, ADJACENT) else 1
    texts = [fastq(count, together) for count in counts]
    files = split(texts, tmp_path, write)
    whole = SplitLanes(files, layouts)
    for size in (60, 200, 5_000):
        found = told(sized_parts(lambda: whole, size))
        expect_all(found, texts)
        if len(layouts) == 1:
            expect_sizes([sum(part.end_record - part.first_record for part in one) for one in found], size)
        for at_once in (1, 9):
            again = told(sized_parts(gradually(files, layouts, at_once), size))
            assert [
                [(p.first_record, p.end_record, p.text_start, p.text_end, p.is_last) for p in one] for one in again
            ] == [[(p.first_record, p.end_record, p.text_start, p.text_end, p.is_last) for p in one] for one in found]
            expect_all(again, texts)


def test_a_shard_is_told_before_all_reads_are_known(tmp_path: Path) -> None:
    files = split([fastq(600), fastq(600)], tmp_path)
    known = [known_to(text.file, marks) for text, marks in zip(files, (31, 40), strict=True)]
    reads = SplitLanes([replace(text, file=file) for text, file in zip(files, known, strict=True)], [PAIRS])
    found = sized_parts(lambda: reads, 400)
    shards = [one or [] for one in itertools.islice(found, 4)]
    # Of 300 pairs that are known there may be but a few more: less than a shard and a half are left.
    assert [[part.end_record for part in shard] for shard in shards] == [[20, 20], [70, 70], [170, 170], []]


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_equal_parts_wait_for_all(tmp_path: Path, count: int) -> None:
    texts = [fastq(333), fastq(333)]
    files = split(texts, tmp_path, gzip.compress)
    found = [*equal_parts(gradually(files, [PAIRS], 5), count)]
    assert found[0] is None
    assert len(told(iter(found))) == count
    expect_all(told(iter(found)), texts)


@pytest.mark.parametrize("make", [lambda known: sized_parts(known, 50), lambda known: equal_parts(known, 3)])
def test_mates_are_as_many(tmp_path: Path, make: Callable[[Callable[[], SplitLanes]], Iterator[object]]) -> None:
    files = split([fastq(300), fastq(299)], tmp_path)
    with pytest.raises(DataError, match=r"1\.fq has 299 records, .*0\.fq has 300"):
        [*make(gradually(files, [PAIRS], 3))]


@pytest.mark.parametrize(
    ("write", "layouts"), [*((write, [PAIRS]) for write in WRITERS), (gzip.compress, [SINGLE, SINGLE])]
)
def test_files_that_are_being_split(tmp_path: Path, write: Callable[[bytes], bytes], layouts: list[PairLayout]) -> None:
    texts, paths = [fastq(3000), fastq(3000)], [tmp_path / "1", tmp_path / "2"]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(write(text))
    with FileSplitter([*map(str, paths)], 8, lambda line: None) as splitting:

        def known() -> SplitLanes:
            splitting.wait(0)
            return SplitLanes([RecordLocator(file.name, file, 2) for file in splitting.files], layouts)

        found = told(sized_parts(known, 100))
        assert splitting.wait()
        assert splitting.progress[0] == 6000
    assert len(found) > 60
    expect_all(found, texts)


def test_a_file_that_is_another_one_now(tmp_path: Path) -> None:
    (text,) = split([fastq(50)], tmp_path)
    (part,) = next(sized_parts(lambda: SplitLanes([text], [SINGLE]), 1000)) or []
    part.check_unchanged()
    Path(text.path).write_bytes(fastq(51))
    with pytest.raises(DataError, match=r"0\.fq has changed since it was split"):
        part.check_unchanged()
