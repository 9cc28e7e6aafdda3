"""Positions of line ends in a buffer."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

NEWLINE = 10
CARRIAGE_RETURN = 13
LINE_BREAKS = b"\r\n"
# The result of a comparison of this size stays in the cache for its next use.
BLOCK_BYTES = 1 << 18


def line_ends(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the offsets of all newlines in data, ascending: int64 [lines]."""
    blocks = range(0, len(data), BLOCK_BYTES)
    ends = [np.flatnonzero(data[start : start + BLOCK_BYTES] == NEWLINE) + start for start in blocks]
    return np.concatenate([np.empty(0, np.int64), *ends])


def end_of_text(data: NDArray[np.uint8]) -> int:
    """Return the offset after the last byte that is not a line break, or 0."""
    for stop, block in _blocks_from_end(data):
        texts = np.flatnonzero((block != NEWLINE) & (block != CARRIAGE_RETURN))
        if len(texts):
            return stop - len(block) + int(texts[-1]) + 1
    return 0


def last_line_start(data: NDArray[np.uint8], letter: int) -> int:
    """Return the offset of the last line, other than the first, that starts with the byte `letter`, or 0."""
    for stop, block in _blocks_from_end(data):
        offsets = np.flatnonzero(block == letter) + stop - len(block)
        starts = offsets[(offsets > 0) & (data[offsets - 1] == NEWLINE)]
        if len(starts):
            return int(starts[-1])
    return 0


def _blocks_from_end(data: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    for stop in range(len(data), 0, -BLOCK_BYTES):
        yield stop, data[max(0, stop - BLOCK_BYTES) : stop]
