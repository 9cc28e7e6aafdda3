"""Ranges of records of a file that was scanned by readmap split, and how to locate their text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.errors import DataError
from readmap.formats.byte_source import ByteRange, open_range
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.gzip_reader import Inflaters
from readmap.formats.newlines import LINE_BREAKS
from readmap.reads.bad_records import read_name
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_scan import cut_between_pairs
from readmap.reads.record_starts import record_starts
from readmap.reads.split_table import FileIdentity, SplitFile, identify_file


@dataclass(frozen=True)
class RecordRange:
    """Consecutive records of a file, to be sent to the process that reads them.

    Attributes:
        path: the file's path. identity: identity of its contents when it was split.
        first_record, end_record: 0-based, half-open.
        file_records: number of records of the file, as far as known.
        text_start, text_end: bytes of the file's text.
        is_last: the file ends with these records.
        point: access point of gzip from which the text is inflated; None for a plain file.
    """

    path: str
    identity: FileIdentity
    first_record: int
    end_record: int
    file_records: int
    text_start: int
    text_end: int
    is_last: bool
    point: AccessPoint | None

    def open(self, threads: int, inflaters: Inflaters) -> ByteRange:
        """Open the text of the records. threads, inflaters: as for open_bytes.

        Raises OSError if the file cannot be opened; reading raises DataError if the file has changed or, after its last
        record, is longer than it was.
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
