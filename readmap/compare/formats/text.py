"""Alignments as people read them: lines of 60 columns, with a stroke between equal letters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readmap.compare.alignments import DELETED, EQUAL, INSERTED
from readmap.compare.columns import expand
from readmap.compare.formats import summary
from readmap.compare.results import Result

WIDTH = 60


def record(result: Result) -> bytes:
    """The summary, the blocks, and a blank line behind each."""
    return summary.record(result) + (b"" if result.is_empty else b"".join(_blocks(result)))


def _blocks(result: Result) -> list[bytes]:
    begin, end = result.aligned_query
    start, stop = result.target_start, result.target_end
    columns = expand(result.operations, result.query[begin:end], result.target[start:stop])
    strokes = np.where(columns.operations == EQUAL, np.uint8(ord("|")), np.uint8(ord(" "))).tobytes()
    rows = columns.query.tobytes(), strokes, columns.target.tobytes()
    first = _places(columns.operations != DELETED, begin, len(result.query) if result.reverse else None)
    second = _places(columns.operations != INSERTED, start, None)
    digits = len(str(max(len(result.query), len(result.target))))
    space = b" " * (digits + 9)
    return [
        b"Query   %*d %b %d\n%b%b\nTarget  %*d %b %d\n\n"
        % (
            *(digits, query[0], rows[0][at : at + WIDTH], query[1]),
            *(space, rows[1][at : at + WIDTH].rstrip()),
            *(digits, target[0], rows[2][at : at + WIDTH], target[1]),
        )
        for at, query, target in zip(range(0, len(strokes), WIDTH), first, second, strict=True)
    ]


def _places(has_letter: NDArray[np.bool_], begin: int, reverse_length: int | None) -> list[tuple[int, int]]:
    """The first and the last letter of each line, from 1; both are the letter before where a line has none.

    reverse_length: of a sequence of which the reverse complement is aligned; its letters are counted from its other
    end, downwards.
    """
    if not len(has_letter):
        return []
    counts = np.add.reduceat(has_letter, np.arange(0, len(has_letter), WIDTH), dtype=np.int64)
    ends = begin + np.cumsum(counts)
    starts = np.minimum(ends - counts + 1, ends)
    if reverse_length is not None:
        starts, ends = reverse_length + 1 - starts, reverse_length + 1 - ends
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
