"""FASTA records of any number of lines -> records of two lines, so that they are parsed like FASTQ."""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from readmap.formats.byte_source import ByteSource
from readmap.formats.gzip_reader import MissingEofBlock
from readmap.formats.newlines import CARRIAGE_RETURN, NEWLINE, last_line_start

# Small enough to keep a piece and everything computed from it in the cache.
PIECE_BYTES = 1 << 19
HEADER_MARK = ord(">")


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
    """Convert whole records. raw: uint8 [nbytes], starts with '>' and ends with a newline."""
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
