"""DeviceQuery and InterleavedSubjects -> the score of its best alignment with every subject."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, declarations
from readmap.database.interleaving import BLOCK_COLUMNS, InterleavedSubjects
from readmap.database.parameters import ScanScoring

#: Scores from here on may be too high for 16 bits; no cell adds as much as is left above.
OVERFLOW = 32_000

#: Rows of the query that the threads of a GPU hold together at most; what each of them may hold, by the kernels that
#: there are, and how many of them may go together.
STRIP_ROWS = constant("database/scan_lanes.cuh", "STRIP_ROWS")
CELLS = [int(name[6:]) for name in declarations("database/scan.cu").kernels() if re.fullmatch(r"score_\d+", name)]
WIDTHS = (4, 8, 16, 32)

#: No end is as far away.
NO_END = 0xFFFFFFFFFFFFFFFF

#: Groups of threads of a GPU that fill the memory of their block together, so that none may be missing.
BLOCK_GROUPS = 4

#: Bytes by which kernels may shift borders, so that vectors are aligned.
ALIGNMENT = constant("common/simd_lanes.cuh", "ALIGNMENT")

#: What a step costs beside its cells, in cells: letters and scores that go from thread to thread; and by how much more
#: it costs where so few threads go together that they meet in the banks of the shared memory.
STEP_CELLS, BANK_CONFLICT_COSTS = 3, {4: 1.3, 8: 1.05}

#: Columns of a stretch that are not cut, so that a thread is not busy with one subject long after all others are done.
#: PIECES: for each group of threads that works at once.
UNCUT, PIECES = 4096, 8

#: Cells of an item of the CPU that are computed in a call at most: what an interrupt waits for.
CALL_CELLS = 1 << 31


class StripShape(NamedTuple):
    """How the query's rows are held: `cells` in each of `width` threads."""

    width: int
    cells: int


@dataclass(frozen=True)
class DeviceQuery:
    """A query on a device.

    Attributes:
        codes: uint8 [rows].
        matrix: int32 [32, 32], scores by codes of the query and the subject.
        gap_open, gap_extend: costs of gaps.
        span: columns of an alignment at most.
        is_narrow: whether 16 bits hold scores below OVERFLOW, and a byte those of letters.
    """

    codes: Array
    rows: int
    matrix: Array
    gap_open: int
    gap_extend: int
    span: int
    is_narrow: bool

    @classmethod
    def of(cls, codes: NDArray[np.uint8], scoring: ScanScoring, backend: Backend) -> DeviceQuery:
        """The query of these codes, which are on the host."""
        scores = scoring.matrix.scores
        highest = int(np.maximum(scores.max(axis=1)[codes], 0).sum())
        is_narrow = scores.min() >= -128 and scores.max() <= 127
        matrix = backend.to_device(np.ascontiguousarray(scores, np.int32))
        # Every letter of a gap costs some of the score that letters have made.
        span = len(codes) + highest // scoring.gap_extend
        gaps = scoring.gap_open, scoring.gap_extend
        return cls(backend.to_device(codes), len(codes), matrix, *gaps, span, bool(is_narrow))


@dataclass(frozen=True)
class ColumnRanges:
    """ColumnRanges of groups' columns.

    Attributes:
        offsets: int64 [stretches + 1] on the host, where borders begin if there are any, and the last one's end.
        starts, columns, groups: int64, int32 and int32 [stretches] on the device: of each stretch where its columns
            begin, how many it has, and its group.
        border_starts: int64 [stretches] on the device, the offsets without the last one.
    """

    offsets: NDArray[np.int64]
    starts: Array
    columns: Array
    groups: Array
    border_starts: Array

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.offsets) - 1

    def part(self, first: int, end: int) -> ColumnRanges:
        """The stretches from `first` to before `end`."""
        return ColumnRanges(self.offsets[first : end + 1], *(array[first:end] for array in self._arrays))

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return self.starts, self.columns, self.groups, self.border_starts

    def joined(self, others: ColumnRanges, backend: Backend) -> ColumnRanges:
        """These and others, whose borders begin where those of these end."""
        arrays = []
        for own, other in zip(self._arrays, others._arrays, strict=True):
            both = backend.empty(len(own) + len(other), own.dtype)
            backend.copy_into(both[: len(own)], own)
            backend.copy_into(both[len(own) :], other)
            arrays.append(both)
        return ColumnRanges(np.concatenate([self.offsets, others.offsets[1:]]), *arrays)


@dataclass(frozen=True)
class _Ends:
    """Where alignments end: uint64 and int32 [subjects] on the device, the first end as a number, and the last ones."""

    firsts: Array
    last_rows: Array
    last_columns: Array


def score(query: DeviceQuery, columns: InterleavedSubjects, backend: Backend) -> NDArray[np.int32]:
    """The score of every subject, int32 [subjects], in the order of the columns."""
    scores = backend.full(columns.count * backend.lanes_16bit, 0, np.int32)
    results = {"scores": scores}
    _launch("score", query, _stretches(query, columns, backend), columns, results, query.is_narrow, backend)
    found = backend.to_host(scores)
    if query.is_narrow and found.max(initial=0) >= OVERFLOW:
        groups = np.unique(np.flatnonzero(found >= OVERFLOW) // backend.lanes_16bit)
        offsets = columns.offsets
        stretches = _made(offsets[groups], offsets[groups + 1] - offsets[groups], groups, 0, backend)
        _launch("score", query, stretches, columns, results, False, backend)
        found = backend.to_host(scores)
    return found[: columns.subjects]


def _stretches(query: DeviceQuery, columns: InterleavedSubjects, backend: Backend) -> ColumnRanges:
    """The columns of all groups: those of each that has many in pieces, of the others a stretch each.

    Neighbouring pieces overlap by all columns that an alignment may have, so that one of them has it all.
    """
    # What overlaps is computed twice: pieces are as long as there are enough of them for all threads.
    enough = int(columns.offsets[-1]) // (PIECES * backend.concurrent_warps)
    own, before = _multiple(max(UNCUT, 2 * query.span, min(8 * query.span, enough))), _multiple(query.span)
    whole = ColumnRanges(columns.offsets, columns.starts, columns.sizes, columns.groups, columns.starts)
    long = columns.longer_than(own + before)
    if long == 0:
        return whole
    sizes = np.diff(columns.offsets[: long + 1])
    pieces = -(-sizes // own)
    groups = np.repeat(np.arange(long), pieces)
    firsts = (np.arange(len(groups)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * own
    ends = np.minimum(firsts + own, sizes[groups])
    firsts = np.maximum(firsts - before, 0)
    cut = _made(columns.offsets[groups] + firsts, ends - firsts, groups, int(columns.offsets[long]), backend)
    return cut.joined(whole.part(long, columns.count), backend)


def _multiple(columns: int) -> int:
    """So many columns or some more: whole blocks on every device."""
    return -(-columns // BLOCK_COLUMNS) * BLOCK_COLUMNS


def _made(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], groups: NDArray[np.int64], end: int, backend: Backend
) -> ColumnRanges:
    """ColumnRanges of these columns, on the device; end: of their borders."""
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    offsets += end - offsets[-1]
    arrays = (starts, sizes.astype(np.int32), groups.astype(np.int32), offsets[:-1].copy())
    return ColumnRanges(offsets, *(backend.to_device(array) for array in arrays))


def find_ends(
    query: DeviceQuery, columns: InterleavedSubjects, scores: NDArray[np.int32], backend: Backend
) -> tuple[NDArray[np.int64], ...]:
    """Where the best alignments end, of which there may be several of a subject; scores: int32 [subjects], above 0.

    Of each subject, int64 [subjects]: row and column of the first end (comparison.cuh), the last row and the last
    column of any.
    """
    count = columns.count * backend.lanes_16bit
    targets = np.full(count, -1, np.int32)
    targets[: len(scores)] = scores
    firsts = backend.to_device(np.full(count, NO_END, np.uint64))
    ends = _Ends(firsts, backend.full(count, 0, np.int32), backend.full(count, 0, np.int32))
    is_narrow = query.is_narrow and bool(scores.max(initial=0) < OVERFLOW)
    arguments = {"origins": columns.starts, "scores": backend.to_device(targets), "ends": ends}
    _launch("find_ends", query, _stretches(query, columns, backend), columns, arguments, is_narrow, backend)
    keys = backend.to_host(firsts)[: len(scores)]
    first_columns = (~keys & 0xFFFFFFFF).astype(np.int64)
    first_rows = (keys >> 32).astype(np.int64) - first_columns
    lasts = (backend.to_host(array)[: len(scores)].astype(np.int64) for array in (ends.last_rows, ends.last_columns))
    return first_rows, first_columns, *lasts


def _launch(
    what: str,
    query: DeviceQuery,
    stretches: ColumnRanges,
    columns: InterleavedSubjects,
    arguments: dict[str, Any],
    is_narrow: bool,
    backend: Backend,
) -> None:
    if not stretches.count or not query.rows:
        return
    shape = _shape(query.rows, stretches, CELLS if is_narrow and what == "score" else CELLS[:1], backend)
    kernel = Kernel("database/scan", f"{what}_{shape.cells if is_narrow else 'broad'}")
    # The groups of threads of a block fill its memory together: none of them may be missing.
    block = BLOCK_GROUPS * (backend.warp_width // shape.width)
    for part, borders in _slices(query, stretches, shape, is_narrow, backend):
        for number, own in enumerate(_rounds(query, part, backend)):
            backend.launch(
                kernel,
                -(-part.count // block) * BLOCK_GROUPS,
                query=query,
                letters=columns.letters,
                stretches=own,
                borders=borders,
                width=shape.width,
                goes_on=number > 0,
                **arguments,
            )


def _shape(rows: int, stretches: ColumnRanges, sizes: Sequence[int], backend: Backend) -> StripShape:
    """The shape that wastes least: rows that the query does not have, and steps until all threads are at work.

    sizes: cells that a thread may hold.
    """
    if backend.warp_width == 1:
        return StripShape(1, CELLS[0])
    mean = int(stretches.offsets[-1] - stretches.offsets[0]) / stretches.count
    shapes = [StripShape(width, cells) for width in WIDTHS for cells in sizes]

    def cost(shape: StripShape) -> float:
        strips = -(-rows // (shape.width * shape.cells))
        steps = strips * (mean + shape.width - 1) * BANK_CONFLICT_COSTS.get(shape.width, 1)
        return steps * shape.width * (shape.cells + STEP_CELLS)

    return min((shape for shape in shapes if shape.width * -(-shape.cells // 8) * 8 <= STRIP_ROWS), key=cost)


def _slices(
    query: DeviceQuery, stretches: ColumnRanges, shape: StripShape, is_narrow: bool, backend: Backend
) -> Iterator[tuple[ColumnRanges, Array]]:
    """ColumnRanges whose borders fit in the scratch memory, and room for these."""
    border = 4 * backend.lanes_16bit * (1 if is_narrow else 2)
    if backend.warp_width == 1:
        ends = np.arange(stretches.count + 1) * (query.rows * border)
    elif query.rows > shape.width * shape.cells:
        ends = (stretches.offsets - stretches.offsets[0]) * border
    else:
        yield stretches, backend.empty(ALIGNMENT, np.uint8)
        return
    first = 0
    while first < stretches.count:
        last = int(np.searchsorted(ends, ends[first] + backend.scratch_bytes, side="right")) - 1
        last = max(last, first + 1)
        yield stretches.part(first, last), backend.empty(int(ends[last] - ends[first]) + ALIGNMENT, np.uint8)
        first = last


def _rounds(query: DeviceQuery, part: ColumnRanges, backend: Backend) -> Iterator[ColumnRanges]:
    """The stretches, cut for calls that do not last too long, one behind the other."""
    step = max(CALL_CELLS // (query.rows * backend.lanes_16bit) // BLOCK_COLUMNS, 1) * BLOCK_COLUMNS
    if backend.warp_width > 1 or (most := int(part.columns.max())) <= step:
        yield part
        return
    for begin in range(0, most, step):
        columns = np.clip(part.columns - begin, 0, step, dtype=np.int32)
        yield replace(part, starts=part.starts + begin, columns=columns)
