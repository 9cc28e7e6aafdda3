"""Text -> where its records end: by kernels on the host, or without a compiler by NumPy, in twice the time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.formats.lines import line_ends

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_CUT = Kernel("reads/cut", "cut_records", grouped=True)
_NONE_WRONG = constant("reads/cut.cu", "NONE_WRONG")

#: Text of a block, bytes of a record below which a block may have no room for all of them, and threads from which on
#: there is more than one.
BLOCK_BYTES, RECORD_BYTES, MANY_THREADS = 1 << 20, 64, 2


def find_records(data: Bytes, lines: int, checks: bool, threads: int = 1) -> tuple[Offsets, bool]:
    """The offset of the last newline of each record, int64 [records], and whether one behind them is none.

    data: uint8 [nbytes]. lines: of a record, 4 or 2. checks: the records are FASTQ's: a header, bases, '+' and as many
    qualities, a line each; from one that is not on, none are found.
    """
    backend = host_backend(_CUT.module, threads)
    if backend is None:
        return _without_compiler(data, lines, checks)
    if threads < MANY_THREADS or len(data) <= BLOCK_BYTES:
        return _find_in_one(data, lines, checks, backend)
    blocks, room = -(-len(data) // BLOCK_BYTES), BLOCK_BYTES // RECORD_BYTES
    ends = np.empty((blocks, room), np.int64)
    found, begins, stops, wrong = _cut(data, ends, BLOCK_BYTES, lines, checks, backend)
    # Blocks are right as long as each begins where the one before has stopped.
    breaks = np.flatnonzero((begins[1:] != stops[:-1]) | (wrong[:-1] < _NONE_WRONG))
    right = int(breaks[0]) + 1 if len(breaks) else blocks
    offsets = [own[:count] for own, count in zip(ends, found[:right].tolist(), strict=False)]
    is_irregular = bool(wrong[right - 1] < _NONE_WRONG)
    if right < blocks and not is_irregular:
        stop = int(stops[right - 1])
        rest, is_irregular = _find_in_one(data[stop:], lines, checks, backend)
        offsets.append(rest + stop)
    return np.concatenate(offsets), is_irregular


def _find_in_one(data: Bytes, lines: int, checks: bool, backend: Backend) -> tuple[Offsets, bool]:
    """The same by one thread."""
    if not len(data):
        return np.empty(0, np.int64), False
    ends = np.empty((1, len(data) // lines), np.int64)
    found, _, _, wrong = _cut(data, ends, len(data), lines, checks, backend)
    # A copy: the array was made for lines without a letter, and most of its pages were never touched.
    return ends[0, : found[0]].copy(), bool(wrong[0] < _NONE_WRONG)


def _cut(
    data: Bytes, ends: Offsets, block_bytes: int, lines: int, checks: bool, backend: Backend
) -> tuple[Offsets, Offsets, Offsets, Offsets]:
    """Cut each block; see the kernel. ends: int64 [blocks, room]."""
    blocks, room = ends.shape
    found, begins, stops, wrong = np.empty((4, blocks), np.int64)
    told = {"ends": ends.reshape(-1), "found": found, "begins": begins, "stops": stops, "wrong": wrong}
    shape = {"size": len(data), "block_bytes": block_bytes, "room": room, "lines": lines, "checks": checks}
    backend.launch(_CUT, blocks, text=data, **told, **shape)
    return found, begins, stops, wrong


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
