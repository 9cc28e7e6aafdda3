"""Text -> where its records end: by kernels on the host, or without a compiler by NumPy, in twice the time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.formats.lines import line_ends

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_COUNT, _CUT = Kernel("reads/cut", "count_lines", grouped=True), Kernel("reads/cut", "cut_records", grouped=True)
NONE_WRONG = constant("reads/cut.cu", "NONE_WRONG")

#: Text of a block, and threads from which on blocks are worth it: their lines are counted first, which one thread
#: saves.
BLOCK_BYTES, MANY_THREADS = 1 << 20, 4


def find_records(data: Bytes, lines: int, checks: bool, threads: int = 1) -> tuple[Offsets, bool]:
    """The offset of the last newline of each record, int64 [records], and whether one behind them is none.

    data: uint8 [nbytes]. lines: of a record, 4 or 2. checks: the records are FASTQ's: a header, bases, '+' and as many
    qualities, a line each; from one that is not on, none are found.
    """
    backend = host_backend(_CUT.module, threads)
    if backend is None:
        return _without_compiler(data, lines, checks)
    block_bytes = BLOCK_BYTES if threads >= MANY_THREADS else max(len(data), 1)
    blocks, text = -(-len(data) // block_bytes), {"text": data, "size": len(data), "block_bytes": block_bytes}
    before = np.zeros(blocks + 1, np.int64)
    if blocks > 1:
        backend.launch(_COUNT, blocks, counts=before[1:], **text)
        np.cumsum(before, out=before)
    ends, found, wrong = np.empty(len(data) // lines, np.int64), np.empty(blocks, np.int64), np.empty(blocks, np.int64)
    given = {"before": before[:-1], "lines": lines, "checks": checks}
    backend.launch(_CUT, blocks, ends=ends, found=found, wrong=wrong, **given, **text)
    right = min(int(wrong.min(initial=NONE_WRONG)), int(found.max(initial=0)))
    # A copy: the array was made for lines without a letter, and most of its pages were never touched.
    return ends[:right].copy(), bool((wrong < NONE_WRONG).any())


def _without_compiler(data: Bytes, lines: int, checks: bool) -> tuple[Offsets, bool]:
    ends = line_ends(data)
    ends = ends[: len(ends) // lines * lines].reshape(-1, lines)
    count = _count_regular(data, ends) if checks else len(ends)
    return ends[:count, -1], count < len(ends)


def _count_regular(data: Bytes, ends: Offsets) -> int:
    """How many records from the first on are FASTQ's. ends: int64 [records, 4], the newlines of all lines of each."""
    if not len(ends):
        return 0
    starts = np.zeros(len(ends), np.int64)
    starts[1:] = ends[:-1, 3] + 1
    is_regular = (data[starts] == ord("@")) & (data[ends[:, 1] + 1] == ord("+"))
    is_regular &= ends[:, 1] - ends[:, 0] == ends[:, 3] - ends[:, 2]
    return len(ends) if is_regular.all() else int(np.argmin(is_regular))


def cut_beside_mates(name: Callable[[int], bytes], cut: int, known: int) -> int:
    """A cut of records that divides no mates, where those are side by side: `cut`, or one record before it.

    In a row of one name the first and the second are mates, the third and the fourth, and so on. name: of a record, by
    its number, of the first `known` ones. cut: 1 to known.
    """
    last = name(cut - 1)
    if cut < known and name(cut) != last:
        return cut
    first = cut - 1
    while first and name(first - 1) == last:
        first -= 1
    return cut - (cut - first) % 2
