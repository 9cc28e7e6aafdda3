"""The bytes of a file from one place of its text to another, without reading the rest."""

from __future__ import annotations

from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, FilePosition, GeneratorSource, PlainSource
from readmap.formats.file_errors import NamedFile
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.gzip_reader import Inflaters, inflate_from

#: What is skipped at a time.
SKIPPED_BYTES = 1 << 19


class ByteRange(ByteSource):
    """Bytes of another source, which is closed with it.

    delivered: how many have been read.
    """

    def __init__(self, source: ByteSource, skipped: int = 0, size: int | None = None, is_last: bool = True) -> None:
        """skipped: of the source's bytes, in front of the first. size: None for all others. is_last: whether the source
        ends behind them, which is seen to."""
        self.name = source.name
        self.delivered = 0
        self._source, self._skipped = source, skipped
        self._end, self._is_last = size, is_last

    def read_progress(self) -> tuple[int, int] | None:
        """Bytes of the text where its size is known, else as of the source."""
        return self._source.read_progress() if self._end is None else (self.delivered, self._end)

    def position(self) -> FilePosition | None:
        """As of a PlainSource; None of other sources, and behind the last byte."""
        source = self._source
        place = source.position() if isinstance(source, PlainSource) and not self._skipped else None
        if place is None or self._end is None:
            return place
        left = self._end - self.delivered
        return place._replace(max_bytes=left) if left else None

    def skip(self, count: int) -> None:
        """As of a PlainSource."""
        assert isinstance(self._source, PlainSource)
        self._source.skip(count)
        self.delivered += count

    def readinto(self, target: memoryview) -> int:
        """As of every source; raises DataError too where the source does not end where it should."""
        while self._skipped:
            scratch = memoryview(bytearray(min(self._skipped, SKIPPED_BYTES)))
            self._skipped -= self._some(scratch)
        if self._end is None:
            count = self._source.readinto(target)
        elif self.delivered < self._end:
            count = self._some(target[: self._end - self.delivered]) if target else 0
        else:
            count = 0
            if self._is_last and self._source.readinto(memoryview(bytearray(1))):
                raise DataError(f"{self.name}: expected the end of the file, found more than its table tells of")
        self.delivered += count
        return count

    def close(self) -> None:
        """Closes the source."""
        self._source.close()

    def _some(self, target: memoryview) -> int:
        """Read at least one byte."""
        count = self._source.readinto(target)
        if not count:
            raise DataError(f"{self.name}: the file ends before the place that its table tells of")
        return count


def open_range(
    path: str, begin: int, end: int, is_last: bool, point: AccessPoint | None, threads: int, inflaters: Inflaters
) -> ByteRange:
    """The text [begin, end) of a file.

    is_last: whether it ends there. point: of gzip, one that is not behind `begin`. threads, inflaters: as open_bytes
    has them. Raises OSError where the file cannot be opened.
    """
    file = NamedFile(path)
    if point is None:
        file.seek(begin)
        return ByteRange(PlainSource(file, path, b"", threads), 0, end - begin, is_last)
    pieces = inflate_from(file, path, point, threads, inflaters)
    return ByteRange(GeneratorSource(path, pieces, file), begin - point.text, end - begin, is_last)
