"""Records of any number of lines -> FASTQ records of four lines, FASTA records of two lines.

FASTQ is parsed as kseq does: the sequence continues up to the line that starts with '+', the qualities up to the number
of bases, and blank lines between records are skipped. From an invalid record on, lines are passed on unchanged; the
parser of records reports the error.
"""

import itertools
from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import CARRIAGE_RETURN, LINE_BREAKS, NEWLINE, last_line_start

#: Bytes read and yielded at a time; small enough to keep everything computed from them in the cache.
PIECE_BYTES = 1 << 19
MAX_BYTES = 1 << 24  # maximum bytes of a FASTQ sequence: bounds the memory used for any file
HEADER_MARK = ord(">")


def four_line_records(
    start: bytes, source: ByteSource, error: DataError | OSError | None = None
) -> Generator[bytes, None, None]:
    """Yield FASTQ records, normalized to four lines each, in pieces.

    start: bytes already read. error: raised instead of reading more. Raises what the source raises, after its text.
    """
    piece: list[bytes] = []
    size = 0
    try:
        lines = _lines(_pieces(start, source, error))
        records = (normalized or raw for raw, normalized in _raw_and_normalized(lines))
        for record in itertools.chain(records, ([line] for line in lines)):  # lines after an invalid record unchanged
            piece += record
            size += sum(map(len, record))
            if size >= PIECE_BYTES:
                yield b"".join(piece)
                piece, size = [], 0
    except (DataError, OSError) as found:
        error = found
    if piece:
        yield b"".join(piece)
    if error:
        raise error


def record_sizes(start: bytes, source: ByteSource) -> Iterator[int]:
    """Yield the size of each record with blank lines before it, 0 for an invalid, last record; start: already read."""
    size = 0

    def measured() -> Iterator[bytes]:
        nonlocal size
        for line in _lines(_pieces(start, source, None)):
            size += len(line)
            yield line

    for _, record in _raw_and_normalized(measured()):
        yield size if record else 0
        size = 0


def _pieces(start: bytes, source: ByteSource, error: DataError | OSError | None) -> Iterator[bytes]:
    """Yield `start` and the rest of the source in pieces; raise `error`, if given, instead of reading the rest."""
    for at in range(0, len(start), PIECE_BYTES):
        yield start[at : at + PIECE_BYTES]
    if error:
        raise error
    target = bytearray(PIECE_BYTES)
    while count := source.readinto(memoryview(target)):
        yield bytes(target[:count])


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines with their line breaks; the last line may lack it. Raises what `pieces` raises, after all lines."""
    line_parts: list[bytes] = []
    error = None
    try:
        for piece in pieces:
            *lines, rest = piece.split(b"\n")
            for line in lines:
                yield b"".join([*line_parts, line, b"\n"])
                line_parts = []
            line_parts.append(rest)
    except (DataError, OSError) as found:
        error = found
    if any(line_parts):
        yield b"".join(line_parts)
    if error:
        raise error


def _raw_and_normalized(lines: Iterator[bytes]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield (raw lines, four normalized lines) per record; stop after an invalid record, which has only raw lines."""
    for header in lines:
        if not header.strip(LINE_BREAKS):
            continue
        try:
            raw, normalized = _parse_record(header, lines)
        except MissingEofBlock as error:  # within a record, which is certainly truncated
            raise DataError(str(error)) from None
        yield raw, normalized
        if not normalized:
            return


def _parse_record(header: bytes, lines: Iterator[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the raw lines and the four normalized lines of a record; the latter are empty if it is invalid."""
    raw, bases, qualities = [header], [], []
    size = 0
    for line in lines:
        raw.append(line)
        size += len(line)
        if line.startswith((b"+", b"@")) or size > MAX_BYTES:
            break
        bases.append(line.rstrip(LINE_BREAKS))
    separator = raw[-1].rstrip(LINE_BREAKS)
    missing = sum(map(len, bases))
    for line in lines if separator.startswith(b"+") else ():
        raw.append(line)
        qualities.append(line.rstrip(LINE_BREAKS))
        missing -= len(qualities[-1])
        if missing <= 0:
            break
    if not header.startswith(b"@") or not qualities or missing:
        return raw, []
    return raw, [header.rstrip(LINE_BREAKS), b"\n", *bases, b"\n", separator, b"\n", *qualities, b"\n"]


def two_line_records(source: ByteSource, start: bytes) -> Generator[bytes, None, None]:
    """Yield each record as a header line and one sequence line, in pieces of whole records.

    Line breaks inside a sequence are removed, and CR before LF everywhere. An empty sequence has an empty line.
    start: the first bytes of `source`, already read; they start with '>'. Raises what `source` raises; MissingEofBlock
    only after all records, since the last record may be complete.
    """
    raw = np.empty(max(PIECE_BYTES, 2 * len(start)), np.uint8)
    raw[: len(start)] = np.frombuffer(start, np.uint8)
    filled = len(start)
    is_at_end, missing_eof = False, None
    while not is_at_end:
        # One byte is reserved for the newline that the last line may lack.
        try:
            count = source.readinto(raw.data[filled:-1])
        except MissingEofBlock as error:
            count, missing_eof = 0, error
        filled += count
        is_at_end = not count
        if is_at_end and raw[filled - 1] != NEWLINE:
            raw[filled] = NEWLINE
            filled += 1
        end = filled if is_at_end else last_line_start(raw[:filled], HEADER_MARK)
        if end:
            yield _to_two_lines(raw[:end]).tobytes()
            raw[: filled - end] = raw[end:filled].copy()
            filled -= end
        elif filled == len(raw) - 1:
            raw = np.concatenate([raw, np.empty_like(raw)])
    if missing_eof:
        raise missing_eof


def _to_two_lines(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert whole FASTA records to two lines each. raw: uint8 [nbytes], starts with '>' and ends with a newline."""
    is_break = raw == NEWLINE
    newlines = np.flatnonzero(is_break)
    starts = np.flatnonzero(raw == HEADER_MARK)
    # For the first start this tests the last byte, which is also a newline.
    starts = starts[raw[starts - 1] == NEWLINE]
    header_ends = newlines[np.searchsorted(newlines, starts)]
    record_ends = np.append(starts[1:], len(raw)) - 1
    is_return = raw == CARRIAGE_RETURN
    if is_return.any():
        is_break[:-1] |= is_return[:-1] & is_break[1:]
    is_kept = ~is_break
    is_kept[header_ends] = True
    is_kept[record_ends] = True
    # Most files have two lines per record already, and selecting bytes is by far the slowest step.
    kept: NDArray[np.uint8] = raw if is_kept.all() else raw[is_kept]
    is_empty = header_ends == record_ends
    if is_empty.any():
        # A record without a sequence line has one newline instead of two.
        kept = np.insert(kept, np.cumsum(is_kept)[header_ends[is_empty]], NEWLINE)
    return kept
