"""A part of a file of reads, as one process tells another of it."""

from __future__ import annotations

from dataclasses import dataclass

from readmap.errors import DataError
from readmap.formats.gzip_reader import Inflaters
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.byte_range import ByteRange, open_range
from readmap.reads.split_table import Identity, identify


@dataclass(frozen=True)
class RecordRange:
    """Some neighbouring records of a file.

    Attributes:
        path: of the file. identity: what it was when it was split.
        first, last: the numbers of the first record, from 0, and of the first one behind them.
        records: that the file has, as far as that is known.
        begin, end: where their text begins and ends in the file's text.
        is_last: whether the file ends behind them.
        point: of gzip, from which their text is inflated; None of a plain file.
    """

    path: str
    identity: Identity
    first: int
    last: int
    records: int
    begin: int
    end: int
    is_last: bool
    point: AccessPoint | None

    def open(self, threads: int, inflaters: Inflaters) -> ByteRange:
        """Their text; behind the last one of the file its end is read too.

        threads, inflaters: what inflates it, as open_bytes has them. Raises OSError where the file cannot be opened;
        the text raises DataError where the file is not as it was.
        """
        source = open_range(self.path, self.begin, self.end, self.is_last, self.point, threads, inflaters)
        source.first_record = self.first
        return source

    def check_unchanged(self) -> None:
        """Raise DataError where another file lies there now, and OSError."""
        if identify(self.path) != self.identity:
            raise DataError(f"{self.path} is not the file any more of whose records this is a part")
