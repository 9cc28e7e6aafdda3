"""Text -> where its records end: by kernels on the host, which may read it before, or without a compiler by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.formats.byte_source import ByteSource, FilePosition, PlainSource
from readmap.formats.newlines import line_ends
from readmap.formats.byte_range import ByteRange

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_CUT, _READ, _JOIN = (Kernel("reads/record_scan", f"{name}_blocks") for name in ("cut", "read", "join"))
_BEFORE_WRONG, _WITHOUT_ROOM = (constant("reads/record_scan.cu", name) for name in ("BEFORE_WRONG", "WITHOUT_ROOM"))

#: Text of a block, and bytes of a record below which a block may have no room for all of them.
BLOCK_BYTES, RECORD_BYTES = 1 << 20, 32


@dataclass(frozen=True)
class _Format:
    lines: int
    checks: bool


@dataclass(frozen=True)
class _Blocks:
    """What the blocks of a text hold; see kernels/reads/record_scan.cu."""

    ends: Offsets
    found: Offsets
    begins: Offsets
    stops: Offsets
    reached: Offsets
    blocks: int
    block_bytes: int
    room: int

    @classmethod
    def of(cls, size: int, block_bytes: int, room: int) -> Self:
        """Those of a text of so many bytes."""
        blocks = -(-size // max(block_bytes, 1))
        found, begins, stops, reached = np.empty((4, blocks), np.int64)
        return cls(np.empty(blocks * room, np.int64), found, begins, stops, reached, blocks, block_bytes, room)


@dataclass(frozen=True)
class Records:
    """Where the records of a text end.

    ends: the offset of the last newline of each, int64 [records]. is_irregular: whether one behind them is none.
    filled: the bytes of the text, where they were read.
    """

    ends: Offsets
    is_irregular: bool
    filled: int


def find_records(data: Bytes, lines: int, checks: bool, threads: int = 1) -> Records:
    """The records of a text.

    data: uint8 [nbytes]. lines: of a record, 4 or 2. checks: the records are FASTQ's: a header, bases, '+' and as many
    qualities, a line each; from one that is not on, none are found.
    """
    backend = host_backend(_CUT.module, threads)
    return _find(data, _Format(lines, checks), backend) if backend else _without_compiler(data, lines, checks)


def read_records(
    source: ByteSource, data: Bytes, filled: int, lines: int, checks: bool, threads: int = 1
) -> Records | None:
    """The same of a text of which the first bytes are there, and the others are read before, as many as the source has.

    None where its bytes lie in no file as they are, or without a compiler: then none are read.
    """
    backend = host_backend(_READ.module, threads)
    if not backend or not isinstance(source, PlainSource | ByteRange) or (place := source.position()) is None:
        return None
    room = data if place.max_bytes is None else data[: filled + place.max_bytes]
    found = _find(room, _Format(lines, checks), backend, filled, place)
    source.skip(found.filled - filled)
    return found


def _find(data: Bytes, format: _Format, backend: Backend, filled: int = 0, rest: FilePosition | None = None) -> Records:
    blocks = _Blocks.of(len(data), BLOCK_BYTES, BLOCK_BYTES // RECORD_BYTES)
    what = {"text": data, "blocks": blocks, "format": format, "size": len(data)}
    if rest is None:
        backend.launch(_CUT, blocks.blocks, **what)
    else:
        backend.launch(_READ, blocks.blocks, **what, file=rest.file, filled=filled, offset=rest.offset)
    ends, stop, filled, ending = _joined(what, backend)
    if ending == _WITHOUT_ROOM:  # lines may have no letter
        data = data[stop:filled]
        what |= {"text": data, "blocks": _Blocks.of(len(data), len(data), len(data) // format.lines), "size": len(data)}
        backend.launch(_CUT, 1, **what)
        others, _, _, ending = _joined(what, backend)
        ends = np.concatenate([ends, others + stop])
    return Records(ends, ending == _BEFORE_WRONG, filled)


def _joined(what: dict[str, Any], backend: Backend) -> tuple[Offsets, int, int, int]:
    """The ends of all records of a text, where the last one ends, how far the text goes, and how that ended."""
    told = np.empty(4, np.int64)
    backend.launch(_JOIN, 1, **what, told=told)
    count, stop, filled, ending = told.tolist()
    blocks: _Blocks = what["blocks"]
    return blocks.ends[:count].copy(), stop, filled, ending  # room for all takes a quarter of the text


def _without_compiler(data: Bytes, lines: int, checks: bool) -> Records:
    ends = line_ends(data)
    ends = ends[: len(ends) // lines * lines].reshape(-1, lines)
    count = _count_regular(data, ends) if checks else len(ends)
    return Records(ends[:count, -1], count < len(ends), len(data))


def _count_regular(data: Bytes, ends: Offsets) -> int:
    """How many records from the first on are FASTQ's. ends: int64 [records, 4], the newlines of all lines of each."""
    if not len(ends):
        return 0
    starts = np.zeros(len(ends), np.int64)
    starts[1:] = ends[:-1, 3] + 1
    is_regular = (data[starts] == ord("@")) & (data[ends[:, 1] + 1] == ord("+"))
    is_regular &= ends[:, 1] - ends[:, 0] == ends[:, 3] - ends[:, 2]
    return len(ends) if is_regular.all() else int(np.argmin(is_regular))


def cut_between_pairs(name: Callable[[int], bytes], cut: int, known: int) -> int:
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
