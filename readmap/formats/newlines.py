"""Where the lines of a buffer end."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

NEWLINE = 10
CARRIAGE_RETURN = 13
LINE_BREAKS = b"\r\n"
# The comparison's result stays in the cache for what is made of it.
BLOCK_BYTES = 1 << 18


def line_ends(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The offsets of all newlines, int64 [lines], ascending. data: uint8 [nbytes]."""
    blocks = range(0, len(data), BLOCK_BYTES)
    ends = [np.flatnonzero(data[start : start + BLOCK_BYTES] == NEWLINE) + start for start in blocks]
    return np.concatenate([np.empty(0, np.int64), *ends])


def end_of_text(data: NDArray[np.uint8]) -> int:
    """The offset behind the last byte that is no line break, 0 if there is none. data: uint8 [nbytes]."""
    for stop, block in _blocks_from_end(data):
        texts = np.flatnonzero((block != NEWLINE) & (block != CARRIAGE_RETURN))
        if len(texts):
            return stop - len(block) + int(texts[-1]) + 1
    return 0


def last_line_start(data: NDArray[np.uint8], letter: int) -> int:
    """The offset of the last line that begins with `letter`, 0 if none does behind the first. data: uint8 [nbytes]."""
    for stop, block in _blocks_from_end(data):
        offsets = np.flatnonzero(block == letter) + stop - len(block)
        starts = offsets[(offsets > 0) & (data[offsets - 1] == NEWLINE)]
        if len(starts):
            return int(starts[-1])
    return 0


def _blocks_from_end(data: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    for stop in range(len(data), 0, -BLOCK_BYTES):
        yield stop, data[max(0, stop - BLOCK_BYTES) : stop]
