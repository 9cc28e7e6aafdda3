"""The bytes of a file between two offsets of its decompressed text, without reading the rest of the file."""

from __future__ import annotations

from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource, FilePosition, GeneratorSource, PlainSource
from readmap.formats.file_errors import NamedFile
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.gzip_reader import Inflaters, inflate_from

#: Bytes read and dropped at a time.
SKIPPED_BYTES = 1 << 19


class ByteRange(ByteSource):
    """A range of another source, which is closed with the range.

    delivered: bytes read so far.
    """

    def __init__(self, source: ByteSource, skipped: int = 0, size: int | None = None, is_last: bool = True) -> None:
        """skipped: bytes of the source before the range. size: None for all bytes that remain. is_last: the source is
        expected to end at the end of the range."""
        self.name = source.name
        self.delivered = 0
        self._source, self._skipped = source, skipped
        self._end, self._is_last = size, is_last

    def read_progress(self) -> tuple[int, int] | None:
        return self._source.read_progress() if self._end is None else (self.delivered, self._end)

    def position(self) -> FilePosition | None:
        """Return the position of the next byte in a plain file; None at the end and for other sources."""
        source = self._source
        position = source.position() if isinstance(source, PlainSource) and not self._skipped else None
        if position is None or self._end is None:
            return position
        left = self._end - self.delivered
        return position._replace(max_bytes=left) if left else None

    def skip(self, count: int) -> None:
        """Skip bytes that the caller has read through `position`."""
        assert isinstance(self._source, PlainSource)
        self._source.skip(count)
        self.delivered += count

    def readinto(self, target: memoryview) -> int:
        """Fill `target` as ByteSource does. Raises DataError if the source does not end where expected."""
        while self._skipped:
            scratch = memoryview(bytearray(min(self._skipped, SKIPPED_BYTES)))
            self._skipped -= self._read_some(scratch)
        if self._end is None:
            count = self._source.readinto(target)
        elif self.delivered < self._end:
            count = self._read_some(target[: self._end - self.delivered]) if target else 0
        else:
            count = 0
            if self._is_last and self._source.readinto(memoryview(bytearray(1))):
                raise DataError(f"{self.name}: expected the end of the file, found more data than in its split table")
        self.delivered += count
        return count

    def close(self) -> None:
        self._source.close()

    def _read_some(self, target: memoryview) -> int:
        count = self._source.readinto(target)
        if not count:
            raise DataError(f"{self.name}: the file ends before an offset of its split table")
        return count


def open_range(
    path: str, start: int, end: int, is_last: bool, point: AccessPoint | None, threads: int, inflaters: Inflaters
) -> ByteRange:
    """Open the decompressed text [start, end) of a file.

    is_last: the text is expected to end there. point: for gzip, an access point at or before `start`; None for a plain
    file. threads, inflaters: as for `open_bytes`. Raises OSError if the file cannot be opened.
    """
    file = NamedFile(path)
    if point is None:
        file.seek(start)
        return ByteRange(PlainSource(file, path, b"", threads), 0, end - start, is_last)
    pieces = inflate_from(file, path, point, threads, inflaters)
    return ByteRange(GeneratorSource(path, pieces, file), start - point.text, end - start, is_last)
