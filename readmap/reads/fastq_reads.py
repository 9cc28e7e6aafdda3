"""FASTQ of four lines a record, and what has others: it is normalised to them, from the first such record on.

A record is read as kseq does: a sequence goes on up to the line that begins with '+', its qualities until they are as
many, and blank lines between records are none. What is no such record is given as it is: what is wrong with it is found
where records are parsed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import LINE_BREAKS

#: What is read and given at a time.
PIECE_BYTES = 1 << 19

#: What is longer is no record: whatever the file is, it is not held as a whole.
MOST_BYTES = 1 << 24


def four_line_records(
    start: bytes, source: ByteSource, fault: DataError | OSError | None = None
) -> Generator[bytes, None, None]:
    """The records in four lines each, in pieces.

    start: the first bytes of the source, already read. fault: raised instead of reading on.
    Raises what the source raises, behind what came before it.
    """
    piece: list[bytes] = []
    size = 0
    try:
        for lines in _records(_lines(_pieces(start, source, fault))):
            piece += lines
            size += sum(map(len, lines))
            if size >= PIECE_BYTES:
                yield b"".join(piece)
                piece, size = [], 0
    except (DataError, OSError) as error:
        fault = error
    if piece:
        yield b"".join(piece)
    if fault:
        raise fault


def record_sizes(start: bytes, source: ByteSource) -> Iterator[int]:
    """The bytes of each record, with the blank lines in front of it; 0 in place of the first that is none.

    start: the first bytes of the source, already read. Raises what the source raises, behind all records.
    """
    size = 0

    def measured() -> Iterator[bytes]:
        nonlocal size
        for line in _lines(_pieces(start, source, None)):
            size += len(line)
            yield line

    for _, record in _given_records(measured()):
        yield size if record else 0
        size = 0


def _pieces(start: bytes, source: ByteSource, fault: DataError | OSError | None) -> Iterator[bytes]:
    for begin in range(0, len(start), PIECE_BYTES):
        yield start[begin : begin + PIECE_BYTES]
    if fault:
        raise fault
    target = bytearray(PIECE_BYTES)
    while count := source.readinto(memoryview(target)):
        yield bytes(target[:count])


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """With their line breaks, which the last one may lack. Raises what `pieces` raises, behind all of them."""
    begun: list[bytes] = []
    fault = None
    try:
        for piece in pieces:
            *lines, rest = piece.split(b"\n")
            for line in lines:
                yield b"".join([*begun, line, b"\n"])
                begun = []
            begun.append(rest)
    except (DataError, OSError) as error:
        fault = error
    if any(begun):
        yield b"".join(begun)
    if fault:
        raise fault


def _records(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Four lines of each record; from one that is none on, all lines as they are. Raises what `lines` raises."""
    for given, record in _given_records(lines):
        yield record or given
    yield from ([line] for line in lines)


def _given_records(lines: Iterator[bytes]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """The lines of each record, as they are and as four; of one that is none there are not four, and it is the last."""
    for header in lines:
        if not header.strip(LINE_BREAKS):
            continue
        try:
            given, record = _record(header, lines)
        except MissingEofBlock as error:  # within a record, which is cut short for sure
            raise DataError(str(error)) from None
        yield given, record
        if not record:
            return


def _record(header: bytes, lines: Iterator[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The lines of a record that begins so, as they are and as four; none are the four where it is none."""
    given, bases, qualities = [header], [], []
    size = 0
    for line in lines:
        given.append(line)
        size += len(line)
        if line.startswith((b"+", b"@")) or size > MOST_BYTES:
            break
        bases.append(line.rstrip(LINE_BREAKS))
    separator = given[-1].rstrip(LINE_BREAKS)
    missing = sum(map(len, bases))
    for line in lines if separator.startswith(b"+") else ():
        given.append(line)
        qualities.append(line.rstrip(LINE_BREAKS))
        missing -= len(qualities[-1])
        if missing <= 0:
            break
    if not header.startswith(b"@") or not qualities or missing:
        return given, []
    return given, [header.rstrip(LINE_BREAKS), b"\n", *bases, b"\n", separator, b"\n", *qualities, b"\n"]
