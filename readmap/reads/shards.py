"""Shards: consecutive parts of all reads, as ranges of records of their files.

lane 1, R1   |r r r r r r r|r r r|
lane 1, R2   |r r r r r r r|r r r|            the same records of both files
lane 2                           |r r r r|r r r r r r r|
shards        1             2             3

A fragment is a pair, or a single read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from readmap.errors import DataError
from readmap.formats.byte_source import ByteRange, open_range
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.gzip_reader import Inflaters
from readmap.formats.newlines import LINE_BREAKS
from readmap.reads.bad_records import read_name
from readmap.reads.chunks import PairLayout
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_scan import cut_between_pairs
from readmap.reads.record_starts import record_starts
from readmap.reads.split_table import FileIdentity, SplitFile, check_equal_record_counts, identify_file


@dataclass(frozen=True)
class RecordRange:
    """Consecutive records of a file, to be sent to the process that reads them."""

    path: str
    identity: FileIdentity  # of the contents when the file was split
    first_record: int  # 0-based
    end_record: int
    file_records: int  # number of records of the file, as far as known
    text_start: int  # bytes of the file's text
    text_end: int
    is_last: bool  # the file ends with these records
    point: AccessPoint | None  # of gzip, from which the text is inflated; None for a plain file

    def open(self, threads: int, inflaters: Inflaters) -> ByteRange:
        """Open the text of the records. threads: to read or inflate it. inflaters: for gzip. Raises OSError.

        Reading raises DataError if the file has changed or, after its last record, is longer than it was.
        """
        source = open_range(self.path, self.text_start, self.text_end, self.is_last, self.point, threads, inflaters)
        source.first_record = self.first_record
        return source

    def check_unchanged(self) -> None:
        """Raise DataError if the file's contents have changed, and OSError."""
        if identify_file(self.path) != self.identity:
            raise DataError(f"{self.path} has changed since it was split")


@dataclass(frozen=True)
class RecordLocator:
    """A file and its entry of a table; threads: that inflate the text between marks."""

    path: str
    file: SplitFile
    threads: int

    def range(self, first: int, end: int) -> RecordRange:
        """Return the records [first, end). Raises DataError if the file has changed, and OSError."""
        file = self.file
        if first >= end:
            return RecordRange(self.path, file.identity, first, end, file.records, 0, 0, False, None)
        start, stop, is_last = self._offset_of(first), self._offset_of(end), file.is_whole and end == file.records
        point = file.point_before(start)
        return RecordRange(self.path, file.identity, first, end, file.records, start, stop, is_last, point)

    def cut_between_pairs(self, record: int) -> int:
        """Return `record`, or one less if the records record - 1 and record are adjacent mates."""
        if record in (0, self.file.records):
            return record
        for mark in range(self.file.mark_before(record - 1), -1, -1):
            first, start = self.file.marks[mark].tolist()
            names = self._names(first, start, record)
            # A run of one name may start before the mark.
            if not first or names[0] != names[record - first - 1]:
                break
        return int(first + cut_between_pairs(names.__getitem__, record - first, len(names)))

    def _names(self, first: int, start: int, last: int) -> list[bytes]:
        """Return the names of the records `first` to `last`, inclusive. start: text offset of `first`."""
        end = self._offset_of(last + 1)
        with self._open(start, end) as source:
            starts = np.concatenate([*record_starts(source, first)]).tolist()
        text = bytearray(end - start)
        with self._open(start, end) as source:
            source.readinto(memoryview(text))
        records = (text[at:to] for at, to in zip(starts, [*starts[1:], len(text)], strict=True))
        return [read_name(bytes(record).lstrip(LINE_BREAKS).split(b"\n", 1)[0]) for record in records]

    def _offset_of(self, record: int) -> int:
        """Return the text offset of a record, or the end of the text after the last record."""
        file = self.file
        if record in (0, file.records):
            return file.text_bytes if record else 0
        mark = file.mark_before(record)
        index, start = file.marks[mark].tolist()
        if index == record:
            return int(start)
        end = int(file.marks[mark + 1, 1]) if mark + 1 < len(file.marks) else file.text_bytes
        with self._open(start, end) as source:
            for starts in record_starts(source, index):
                if record < index + len(starts):
                    return int(start + starts[record - index])
                index += len(starts)
        raise DataError(f"{self.path}: expected {file.records:,} records, found {index:,}")

    def _open(self, start: int, end: int) -> ByteRange:
        return open_range(self.path, start, end, False, self.file.point_before(start), self.threads, HOST_INFLATERS)


@dataclass(frozen=True)
class Shard:
    """Part `number`, 1-based, of `count` equal parts."""

    number: int
    count: int

    def bounds(self, total: int) -> tuple[int, int]:
        """Return start and end of the shard among `total` items."""
        return total * (self.number - 1) // self.count, total * self.number // self.count


@dataclass(frozen=True)
class SplitLanes:
    """The files of all lanes, as far as they have been scanned, in the order of the lanes; one layout per lane."""

    locators: Sequence[RecordLocator]
    layouts: Sequence[PairLayout]

    @property
    def lanes(self) -> Iterator[tuple[PairLayout, list[RecordLocator]]]:
        """Yield layout and files of each lane."""
        remaining = iter(self.locators)
        for layout in self.layouts:
            yield layout, [next(remaining) for _ in range(layout.files)]

    def fragments(self) -> tuple[int, bool]:
        """Return the number of consecutive fragments known from the first on, and whether these are all fragments.

        Raises DataError if two files of mates have different numbers of records.
        """
        total = 0
        for layout, lane in self.lanes:
            files = [each.file for each in lane]
            records = min(file.records for file in files)
            if not all(file.is_whole for file in files):
                return total + records // layout.records_per_fragment, False
            if layout is PairLayout.TWO_FILES:
                check_equal_record_counts([each.path for each in lane], files)
            total += -(-records // layout.records_per_fragment)
        return total, True

    def cuts(self, fragment: int, multiple: int = 1) -> list[int]:
        """Return for each file the index of the record at which a shard starts or ends, near `fragment`.

        multiple: 1 or even; cuts are rounded down to multiples of it, except at the end of a file, so that they fall on
        marks of a table. With 1 the sizes of shards differ by at most one fragment. Raises DataError and OSError.
        """
        cuts, before = list[int](), 0
        for layout, lane in self.lanes:
            records = min(each.file.records for each in lane)
            fragments = -(-records // layout.records_per_fragment)
            record = min(max(fragment - before, 0), fragments) * layout.records_per_fragment
            cut = records if record >= records else record - record % multiple
            cuts += [lane[0].cut_between_pairs(cut) if layout is PairLayout.ADJACENT else cut] * len(lane)
            before += fragments
        return cuts

    def ranges(self, start: Sequence[int], end: Sequence[int]) -> list[RecordRange]:
        """Return the records of each file between two cuts, which may be none. Raises as RecordLocator does."""
        return [each.range(first, stop) for each, first, stop in zip(self.locators, start, end, strict=True)]

    def shard(self, shard: Shard) -> list[RecordRange]:
        """Return the records of a shard, a range of each file. Raises DataError if a file has changed, and OSError."""
        total, _ = self.fragments()
        start, end = (self.cuts(bound) for bound in shard.bounds(total))
        return self.ranges(start, end)
