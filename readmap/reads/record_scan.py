"""Text -> where its records end, by host kernels that may also read the text, or by NumPy without a compiler."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.formats.byte_source import ByteRange, ByteSource, FilePosition, PlainSource
from readmap.formats.newlines import line_ends

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_SCAN, _READ, _JOIN = (Kernel("reads/record_scan", f"{verb}_segments") for verb in ("scan", "read_and_scan", "join"))
_BEFORE_INVALID, _OUT_OF_SPACE = (constant("reads/record_scan.cu", name) for name in ("BEFORE_INVALID", "OUT_OF_SPACE"))

#: Bytes of a segment. A segment has space for all its records if they have at least MIN_RECORD_BYTES on average.
SEGMENT_BYTES, MIN_RECORD_BYTES = 1 << 20, 32


@dataclass(frozen=True)
class _ScanFormat:
    """struct ScanFormat of kernels/reads/record_scan.cu."""

    lines: int
    checks_fastq: bool


@dataclass(frozen=True)
class _Segments:
    """struct Segments of kernels/reads/record_scan.cu."""

    record_ends: Offsets
    record_counts: Offsets
    first_starts: Offsets
    next_starts: Offsets
    text_ends: Offsets
    count: int
    segment_bytes: int
    capacity: int

    @classmethod
    def of(cls, size: int, segment_bytes: int, capacity: int) -> Self:
        """Allocate the segments of a text of `size` bytes."""
        count = -(-size // max(segment_bytes, 1))
        counts, first_starts, next_starts, text_ends = np.empty((4, count), np.int64)
        ends = np.empty(count * capacity, np.int64)
        return cls(ends, counts, first_starts, next_starts, text_ends, count, segment_bytes, capacity)


@dataclass(frozen=True)
class RecordEnds:
    """Where the complete records at the front of a text end."""

    ends: Offsets  # [records], the offset of the last newline of each record
    is_irregular: bool  # the next record is not FASTQ of four lines
    filled: int  # bytes of text in memory


def scan_records(data: Bytes, lines: int, checks_fastq: bool, threads: int = 1) -> RecordEnds:
    """Return where the records of `data`, uint8 [nbytes], end.

    lines: per record, 4 or 2. checks_fastq: stop before a record that is not header, bases, '+', a quality per base.
    """
    if backend := host_backend(_SCAN.module, threads):
        return _scan(data, _ScanFormat(lines, checks_fastq), backend)
    ends = line_ends(data)
    ends = ends[: len(ends) // lines * lines].reshape(-1, lines)
    count = _count_regular(data, ends) if checks_fastq else len(ends)
    return RecordEnds(ends[:count, -1], count < len(ends), len(data))


def read_and_scan_records(
    source: ByteSource, data: Bytes, filled: int, lines: int, checks_fastq: bool, threads: int = 1
) -> RecordEnds | None:
    """Fill `data` from `source` after its first `filled` bytes, and return where the records in it end.

    Return None, without reading, if the source is not an uncompressed file or no compiler is available.
    """
    backend = host_backend(_READ.module, threads)
    if not backend or not isinstance(source, PlainSource | ByteRange) or (position := source.position()) is None:
        return None
    target = data if position.max_bytes is None else data[: filled + position.max_bytes]
    found = _scan(target, _ScanFormat(lines, checks_fastq), backend, filled, position)
    source.skip(found.filled - filled)
    return found


def _scan(
    data: Bytes, format: _ScanFormat, backend: Backend, filled: int = 0, rest: FilePosition | None = None
) -> RecordEnds:
    """Scan the text in `data` by kernels; rest: file position from which they first fill it after `filled` bytes."""
    segments = _Segments.of(len(data), SEGMENT_BYTES, SEGMENT_BYTES // MIN_RECORD_BYTES)
    arguments = {"text": data, "segments": segments, "format": format, "size": len(data)}
    if rest is None:
        backend.launch(_SCAN, segments.count, **arguments)
    else:
        backend.launch(_READ, segments.count, **arguments, file=rest.file, filled=filled, offset=rest.offset)
    ends, stop, filled, status = _join(arguments, backend)
    if status == _OUT_OF_SPACE:  # records of few bytes; a line may be empty
        data = data[stop:filled]
        segments = _Segments.of(len(data), len(data), len(data) // format.lines)
        arguments |= {"text": data, "segments": segments, "size": len(data)}
        backend.launch(_SCAN, 1, **arguments)
        more, _, _, status = _join(arguments, backend)
        ends = np.concatenate([ends, more + stop])
    return RecordEnds(ends, status == _BEFORE_INVALID, filled)


def _join(arguments: dict[str, Any], backend: Backend) -> tuple[Offsets, int, int, int]:
    """Return the ends of all records in the scanned segments, the last end, the bytes of text, and a ScanEnd."""
    result = np.empty(4, np.int64)
    backend.launch(_JOIN, 1, **arguments, result=result)
    count, stop, filled, status = result.tolist()
    segments: _Segments = arguments["segments"]
    # Copied, because record_ends takes a quarter of the size of the text.
    return segments.record_ends[:count].copy(), stop, filled, status


def _count_regular(data: Bytes, ends: Offsets) -> int:
    """Count FASTQ records up to the first without @, + or equal lengths. ends: int64 [records, 4], their newlines."""
    if not len(ends):
        return 0
    starts = np.zeros(len(ends), np.int64)
    starts[1:] = ends[:-1, 3] + 1
    is_regular = (data[starts] == ord("@")) & (data[ends[:, 1] + 1] == ord("+"))
    is_regular &= ends[:, 1] - ends[:, 0] == ends[:, 3] - ends[:, 2]
    return len(ends) if is_regular.all() else int(np.argmin(is_regular))


def cut_between_pairs(name: Callable[[int], bytes], cut: int, known: int) -> int:
    """Return `cut`, or `cut` - 1 if the records cut - 1 and cut are adjacent mates.

    In a run of records with one name the first and second are mates, the third and fourth, and so on. name: returns the
    name of a record; only indices below `known` are valid. cut: record index from 1 to `known`.
    """
    last = name(cut - 1)
    if cut < known and name(cut) != last:
        return cut
    first = cut - 1
    while first and name(first - 1) == last:
        first -= 1
    return cut - (cut - first) % 2
