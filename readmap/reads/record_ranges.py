"""The text of a file that was split, from any of its records on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.errors import DataError
from readmap.formats.newlines import LINE_BREAKS
from readmap.formats.byte_range import ByteRange, open_range
from readmap.reads import record_scan
from readmap.reads.bad_records import read_name
from readmap.reads.file_part import RecordRange
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_starts import record_starts
from readmap.reads.split_table import SplitFile


@dataclass(frozen=True)
class RecordLocator:
    """A file, and what its table has of it; threads: that inflate it, where records begin between marks."""

    path: str
    file: SplitFile
    threads: int

    def part(self, first: int, last: int) -> RecordRange:
        """The records [first, last), by their numbers from 0.

        Raises DataError where the file is not as it was, and OSError.
        """
        file = self.file
        if first >= last:
            return RecordRange(self.path, file.identity, first, last, file.records, 0, 0, False, None)
        begin, end, is_last = self._offset_of(first), self._offset_of(last), file.is_whole and last == file.records
        return RecordRange(
            self.path, file.identity, first, last, file.records, begin, end, is_last, file.point_before(begin)
        )

    def cut_between_pairs(self, record: int) -> int:
        """A cut that divides no mates, where those are side by side: in front of a record, or of that before it."""
        if record in (0, self.file.records):
            return record
        for mark in range(self.file.mark_before(record - 1), -1, -1):
            first, begin = self.file.marks[mark].tolist()
            names = self._names(first, begin, record)
            # A row of one name may begin in front of the mark.
            if not first or names[0] != names[record - first - 1]:
                break
        return int(first + cutting.cut_between_pairs(names.__getitem__, record - first, len(names)))

    def _names(self, first: int, begin: int, last: int) -> list[bytes]:
        """Those of the records from `first`, whose text begins at `begin`, to `last`."""
        end = self._offset_of(last + 1)
        with self._range(begin, end) as source:
            starts = np.concatenate([*record_starts(source, first)]).tolist()
        text = bytearray(end - begin)
        with self._range(begin, end) as source:
            source.readinto(memoryview(text))
        records = (text[at:to] for at, to in zip(starts, [*starts[1:], len(text)], strict=True))
        return [read_name(bytes(record).lstrip(LINE_BREAKS).split(b"\n", 1)[0]) for record in records]

    def _offset_of(self, record: int) -> int:
        """Where the text of a record begins; behind the last one, where the file's text ends."""
        file = self.file
        if record in (0, file.records):
            return file.text if record else 0
        mark = file.mark_before(record)
        number, begin = file.marks[mark].tolist()
        if number == record:
            return int(begin)
        end = int(file.marks[mark + 1, 1]) if mark + 1 < len(file.marks) else file.text
        with self._range(begin, end) as source:
            for starts in record_starts(source, number):
                if record < number + len(starts):
                    return int(begin + starts[record - number])
                number += len(starts)
        raise DataError(f"{self.path}, record {number + 1}: expected {file.records:,} records, found no more")

    def _range(self, begin: int, end: int) -> ByteRange:
        return open_range(self.path, begin, end, False, self.file.point_before(begin), self.threads, HOST_INFLATERS)
