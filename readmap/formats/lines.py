"""Where the lines of a buffer end, by counts of blocks: fast, and without an integer a line."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

NEWLINE = 10
CARRIAGE_RETURN = 13
LINE_BREAKS = b"\r\n"
# The comparison's result stays in the cache for the count.
BLOCK_BYTES = 1 << 18


class LineIndex:
    """The number of lines of some bytes, and the end of each.

    total: int: lines that end with a newline.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        """data: uint8 [nbytes], not changed as long as the index is used."""
        self._data = data
        blocks = (data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES))
        self._sums = np.cumsum([np.count_nonzero(block == NEWLINE) for block in blocks], dtype=np.int64)
        self.total = int(self._sums[-1]) if len(data) else 0
        self._block = -1
        self._newlines = np.empty(0, np.int64)

    def end(self, count: int) -> int:
        """The offset behind the first `count` lines, their last newline included; count is at most `total`."""
        if not count:
            return 0
        block = int(np.searchsorted(self._sums, count))
        start = block * BLOCK_BYTES
        if block != self._block:
            self._block = block
            self._newlines = np.flatnonzero(self._data[start : start + BLOCK_BYTES] == NEWLINE)
        before = int(self._sums[block - 1]) if block else 0
        return start + int(self._newlines[count - before - 1]) + 1

    def count_before(self, offset: int) -> int:
        """The number of newlines in the bytes before `offset`."""
        block = offset // BLOCK_BYTES
        before = int(self._sums[block - 1]) if block else 0
        return before + int(np.count_nonzero(self._data[block * BLOCK_BYTES : offset] == NEWLINE))


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
