"""Output for people: a summary of each alignment, and its letters in lines of 60 columns."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from readmap.formats.wording import decode_name
from readmap.pairwise.alignments import DELETED, EQUAL, INSERTED
from readmap.pairwise.results import Counts, Result, Results


def summary_record(result: Result) -> bytes:
    """Return the summary of one result, followed by a blank line."""
    return "".join(f"{label:<10} {text}\n" for label, text in _summary_lines(result)).encode() + b"\n"


def _summary_lines(result: Result) -> Iterator[tuple[str, str]]:
    """Yield label and text of each line of a summary; positions are 1-based, inclusive."""
    yield "query", _sequence(result.query_name, len(result.query), result.query_start, result.query_end)
    yield "target", _sequence(result.target_name, len(result.target), result.target_start, result.target_end)
    if result.is_empty:
        yield "score", f"{result.score:,}, nothing aligned"
        return
    yield "strand", "reverse, the query's reverse complement" if result.reverse else "forward"
    yield "score", f"{result.score:,}"
    if result.identity is None:
        return
    yield "identity", f"{result.identity:.2%} of {result.columns:,} columns: {result.different:,} differ"
    letters = f" of {result.gaps:,} letters: {result.inserted:,} of the query, {result.deleted:,} of the target"
    yield "gaps", f"{result.gap_openings:,}{letters if result.gaps else ''}"


def _sequence(name: bytes, length: int, start: int, end: int) -> str:
    """Describe a sequence and its aligned range; start, end: 0-based, half-open, -1 if unknown."""
    text = f"{decode_name(name)}, {length:,} letters"
    if start < 0 and end < 0:
        return text
    parts = [f"from {start + 1:,}"] if start >= 0 else []
    return f"{text}, aligned {' '.join([*parts, f'to {end:,}' if end >= 0 else 'on'])}"


WIDTH = 60


def records(results: Results) -> Iterator[bytes]:
    """Yield the summary and the blocks of letters of each pair."""
    columns = results.expanded
    strokes = np.where(columns.operations == EQUAL, np.uint8(ord("|")), np.uint8(ord(" ")))
    rows = columns.query.tobytes(), strokes.tobytes(), columns.target.tobytes()
    sizes = results.sums(results.lengths)
    blocks = -(-sizes // WIDTH)
    # The blocks of all pairs at once: their columns, and the positions of their letters.
    pair = np.repeat(np.arange(len(sizes)), blocks)
    starts = (np.cumsum(sizes) - sizes)[pair] + WIDTH * _count_up(pair, blocks)
    ends = np.minimum(starts + WIDTH, np.cumsum(sizes)[pair])
    alignments = results.alignments
    first = _positions(columns.operations != DELETED, starts, alignments.query_starts, pair, blocks)
    second = _positions(columns.operations != INSERTED, starts, alignments.target_starts, pair, blocks)
    lengths = (results.queries.lengths + 1)[pair]
    first = [np.where(results.reverse[pair], lengths - positions, positions) for positions in first]
    columns_of_blocks = [each.tolist() for each in (starts, ends, *first, *second)]
    end = 0
    for result, count in zip(results, blocks.tolist(), strict=True):
        start, end = end, end + count
        digits = len(str(max(len(result.query), len(result.target))))
        lines = [
            _block(rows, digits, *block) for block in zip(*(each[start:end] for each in columns_of_blocks), strict=True)
        ]
        yield summary_record(result) + b"".join(lines)


def _block(rows: tuple[bytes, bytes, bytes], digits: int, start: int, end: int, *positions: int) -> bytes:
    """Return columns [start, end) of `rows` as text; positions: first, last in the query, first, last in the target."""
    query, strokes, target = (row[start:end] for row in rows)
    return b"Query   %*d %b %d\n%*s%b\nTarget  %*d %b %d\n\n" % (
        *(digits, positions[0], query, positions[1]),
        *(digits + 9, b"", strokes.rstrip()),
        *(digits, positions[2], target, positions[3]),
    )


def _count_up(pair: Counts, blocks: Counts) -> Counts:
    return np.arange(len(pair)) - (np.cumsum(blocks) - blocks)[pair]


def _positions(
    has_letter: NDArray[np.bool_], starts: Counts, alignment_starts: Counts, pair: Counts, blocks: Counts
) -> list[Counts]:
    """Return the 1-based positions of the first and last letter of a sequence in each block, two arrays int64 [blocks].

    A block without letters has the position of the letter before. has_letter: bool [columns]. starts: first column of a
    block. alignment_starts: by pair, 0-based. pair: index of each block's pair. blocks: number of blocks of each pair.
    """
    if not len(starts):
        return [starts, starts]
    counts = np.add.reduceat(has_letter, starts, dtype=np.int64)
    before = np.cumsum(counts) - counts
    first_of_pair = np.minimum(np.cumsum(blocks) - blocks, len(before) - 1)
    ends = alignment_starts[pair] + before - before[first_of_pair][pair] + counts
    return [np.minimum(ends - counts + 1, ends), ends]
