"""FASTQ records of any number of lines -> records of four lines.

Records are parsed as kseq does: the sequence continues up to the line that starts with '+', the qualities up
to the number of bases, and blank lines between records are skipped. From an invalid record on, lines are passed on
unchanged; the parser of records reports the error.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import LINE_BREAKS

#: Bytes read and yielded at a time.
PIECE_BYTES = 1 << 19

#: Maximum bytes of a sequence: bounds the memory used for any file.
MAX_BYTES = 1 << 24


def four_line_records(
    start: bytes, source: ByteSource, error: DataError | OSError | None = None
) -> Generator[bytes, None, None]:
    """Yield the records with four lines each, in pieces.

    start: the first bytes of the source, already read. error: raised instead of reading more.
    Raises what the source raises, after the text before that.
    """
    piece: list[bytes] = []
    size = 0
    try:
        for lines in _records(_lines(_pieces(start, source, error))):
            piece += lines
            size += sum(map(len, lines))
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
    """Yield the size of each record including the blank lines before it; yield 0 for an invalid record and stop.

    start: the first bytes of the source, already read. Raises what the source raises, after all records.
    """
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


def _records(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the four lines of each record, and all lines unchanged from an invalid record on."""
    for raw, normalized in _raw_and_normalized(lines):
        yield normalized or raw
    yield from ([line] for line in lines)


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
