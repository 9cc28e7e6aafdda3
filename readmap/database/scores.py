"""Compute the score of the best alignment of a query with every subject; subjects are interleaved for the lanes."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, declarations
from readmap.backend.tables import Table
from readmap.database.parameters import ScanScoring

_INTERLEAVE = Kernel("database/scan", "interleave")

#: On the CPU, groups have a multiple of this number of columns.
BLOCK_COLUMNS = constant("database/scan_lanes.cuh", "BLOCK_COLUMNS")


@dataclass(frozen=True)
class InterleavedSubjects:
    """Subjects on a device, sorted by decreasing length, in groups of neighbours that share the lanes of a thread.

    letters: uint8 [columns * lanes], interleaved codes of each group (kernels/database/scan_lanes.cuh). subjects:
    number of subjects; the last group may have fewer subjects than lanes. offsets: int64 [groups + 1] on the host,
    first column of each group. starts, sizes, groups: int64, int32 and int32 [groups] on the device: first column,
    number of columns and index of each group.
    """

    letters: Array
    subjects: int
    offsets: NDArray[np.int64]
    starts: Array
    sizes: Array
    groups: Array

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def longer_than(self, columns: int) -> int:
        """Return the number of groups with more columns; they are the first groups."""
        offsets = self.offsets
        return bisect.bisect_left(range(self.count), True, key=lambda i: offsets[i + 1] - offsets[i] <= columns)


def interleave(
    codes: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[Any], backend: Backend
) -> InterleavedSubjects:
    """Copy subjects to the device, where the letters of `lanes_16bit` neighbours alternate, column by column.

    codes: all letters, on the host. starts: offsets in it. lengths: decreasing; the first of a group sets its size.
    """
    lanes = backend.lanes_16bit
    sizes = lengths[::lanes].astype(np.int64)
    if backend.warp_width == 1:
        sizes = -(-sizes // BLOCK_COLUMNS) * BLOCK_COLUMNS
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    letters = backend.empty(int(offsets[-1]) * lanes, np.uint8)
    arrays: dict[str, NDArray[Any]] = {"codes": codes, "starts": starts, "columns": offsets}
    arrays["lengths"] = lengths.astype(np.int32)
    inputs = {name: backend.to_device(array) for name, array in arrays.items()}
    backend.launch(_INTERLEAVE, len(sizes), **inputs, letters=letters, subjects=len(lengths))
    groups = (backend.to_device(each.astype(np.int32)) for each in (sizes, np.arange(len(sizes))))
    return InterleavedSubjects(letters, len(lengths), offsets, inputs["columns"][:-1], *groups)


#: Scores from this value on are recomputed with 32 bits; the score of a cell fits in the remaining range of 16 bits.
OVERFLOW = 32_000

#: Maximum rows of the query in a group of GPU threads; possible rows per thread, one kernel each; possible threads per
#: group.
STRIP_ROWS = constant("database/scan_lanes.cuh", "STRIP_ROWS")
CELLS = [int(name[6:]) for name in declarations("database/scan.cu").kernels() if re.fullmatch(r"score_\d+", name)]
WIDTHS = (4, 8, 16, 32)

#: Encoded end that is after all ends.
NO_END = 0xFFFFFFFFFFFFFFFF

#: Thread groups that fill the shared memory of a GPU block together, so that none may be missing.
BLOCK_GROUPS = 4

#: Bytes by which kernels may shift borders to align their vectors.
ALIGNMENT = constant("common/simd_lanes.cuh", "ALIGNMENT")

#: Overhead of a step in cells (exchange of letters and scores between threads), and the slowdown by bank conflicts in
#: shared memory if few threads work together, by their number.
STEP_CELLS, BANK_CONFLICT_COSTS = 3, {4: 1.3, 8: 1.05}

#: Groups of subjects up to this number of columns are not cut; longer groups are cut so that no thread works long after
#: the other threads have finished. PIECES_PER_GROUP: for each concurrent thread group.
UNCUT_COLUMNS, PIECES_PER_GROUP = 4096, 8

#: Maximum cells of an item per call on the CPU, which limits how long an interrupt waits.
CALL_CELLS = 1 << 31


class StripShape(NamedTuple):
    """How a group of threads holds rows of the query: `cells` rows in each of `width` threads."""

    width: int
    cells: int


class DeviceQuery(Table, struct="database/scan_lanes.cuh:Query"):
    """A query on a device; span: maximum columns of an alignment; is_narrow: 16 bits hold scores below OVERFLOW."""

    span: int
    is_narrow: bool

    @classmethod
    def of(cls, codes: NDArray[np.uint8], scoring: ScanScoring, backend: Backend) -> DeviceQuery:
        """Return a query with its scoring on the device; codes: uint8 [letters] on the host."""
        scores = scoring.matrix.scores
        highest = int(np.maximum(scores.max(axis=1)[codes], 0).sum())
        return cls(
            codes=backend.to_device(codes),
            rows=len(codes),
            matrix=backend.to_device(np.ascontiguousarray(scores, np.int32)),
            gap_open=scoring.gap_open,
            gap_extend=scoring.gap_extend,
            # Gap letters are limited because each of them costs score.
            span=len(codes) + highest // scoring.gap_extend,
            is_narrow=bool(scores.min() >= -128 and scores.max() <= 127),
        )


@dataclass(frozen=True)
class ColumnRanges:
    """Ranges of the interleaved columns of groups.

    offsets: int64 [ranges + 1] on the host, start of each range's borders, if any, and end of the last borders. starts,
    columns, groups: int64, int32 and int32 [ranges] on the device: first column, number of columns and group of each
    range. border_starts: int64 [ranges] on the device, `offsets` without the end.
    """

    offsets: NDArray[np.int64]
    starts: Array
    columns: Array
    groups: Array
    border_starts: Array

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, end: int) -> ColumnRanges:
        return ColumnRanges(self.offsets[first : end + 1], *(array[first:end] for array in self._arrays))

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return self.starts, self.columns, self.groups, self.border_starts

    def append(self, others: ColumnRanges, backend: Backend) -> ColumnRanges:
        """Return these ranges followed by `others`, whose borders start where the borders of these ranges end."""
        arrays = []
        for own, other in zip(self._arrays, others._arrays, strict=True):
            both = backend.empty(len(own) + len(other), own.dtype)
            backend.copy_into(both[: len(own)], own)
            backend.copy_into(both[len(own) :], other)
            arrays.append(both)
        return ColumnRanges(np.concatenate([self.offsets, others.offsets[1:]]), *arrays)


class _Ends(Table, struct="database/scan_lanes.cuh:EndCells"):
    """Ends of the best alignments of subjects."""


def score(query: DeviceQuery, columns: InterleavedSubjects, backend: Backend) -> NDArray[np.int32]:
    """Return the best alignment score of every subject, int32 [subjects], in the order of the interleaved columns."""
    scores = backend.full(columns.count * backend.lanes_16bit, 0, np.int32)
    arguments = {"letters": columns.letters, "scores": scores}
    _launch("score", query, _column_ranges(query, columns, backend), arguments, query.is_narrow, backend)
    found = backend.to_host(scores)
    if query.is_narrow and found.max(initial=0) >= OVERFLOW:
        groups = np.unique(np.flatnonzero(found >= OVERFLOW) // backend.lanes_16bit)
        offsets = columns.offsets
        ranges = _make_ranges(offsets[groups], offsets[groups + 1] - offsets[groups], groups, 0, backend)
        _launch("score", query, ranges, arguments, False, backend)
        found = backend.to_host(scores)
    return found[: columns.subjects]


def _column_ranges(query: DeviceQuery, columns: InterleavedSubjects, backend: Backend) -> ColumnRanges:
    """Return the columns of all groups; pieces of long groups overlap, so that some piece contains each alignment."""
    # Overlaps are computed twice, so pieces are as long as possible while there are enough of them for all threads.
    enough = int(columns.offsets[-1]) // (PIECES_PER_GROUP * backend.concurrent_warps)
    own = _round_to_blocks(max(UNCUT_COLUMNS, 2 * query.span, min(8 * query.span, enough)))
    before = _round_to_blocks(query.span)
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
    cut = _make_ranges(columns.offsets[groups] + firsts, ends - firsts, groups, int(columns.offsets[long]), backend)
    return cut.append(whole.part(long, columns.count), backend)


def _round_to_blocks(columns: int) -> int:
    return -(-columns // BLOCK_COLUMNS) * BLOCK_COLUMNS


def _make_ranges(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], groups: NDArray[np.int64], end: int, backend: Backend
) -> ColumnRanges:
    """Return the ranges of columns of these groups on the device; end: offset in the buffer after the last borders."""
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    offsets += end - offsets[-1]
    arrays = (starts, sizes.astype(np.int32), groups.astype(np.int32), offsets[:-1].copy())
    return ColumnRanges(offsets, *(backend.to_device(array) for array in arrays))


def find_ends(
    query: DeviceQuery, columns: InterleavedSubjects, scores: NDArray[np.int32], backend: Backend
) -> tuple[NDArray[np.int64], ...]:
    """Find where the best alignments end; a subject may have several.

    scores: int32 [subjects], above 0, as computed by `score`. Returns four arrays, int64 [subjects]: row and column of
    the first end in the order of recurrence.cuh, and the maximum row and column of all ends.
    """
    count = columns.count * backend.lanes_16bit
    targets = np.full(count, -1, np.int32)
    targets[: len(scores)] = scores
    firsts = backend.to_device(np.full(count, NO_END, np.uint64))
    ends = _Ends.allocate(backend, subjects=count, firsts=firsts, fill={"last_rows": 0, "last_columns": 0})
    is_narrow = query.is_narrow and bool(scores.max(initial=0) < OVERFLOW)
    arguments = {"letters": columns.letters, "origins": columns.starts, "scores": backend.to_device(targets)}
    arguments["ends"] = ends
    _launch("find_ends", query, _column_ranges(query, columns, backend), arguments, is_narrow, backend)
    keys = backend.to_host(firsts)[: len(scores)]
    first_columns = (~keys & 0xFFFFFFFF).astype(np.int64)
    first_rows = (keys >> 32).astype(np.int64) - first_columns
    lasts = (backend.to_host(array)[: len(scores)].astype(np.int64) for array in (ends.last_rows, ends.last_columns))
    return first_rows, first_columns, *lasts


def _launch(
    name: str, query: DeviceQuery, ranges: ColumnRanges, arguments: dict[str, Any], is_narrow: bool, backend: Backend
) -> None:
    """Launch kernel `name` over slices and rounds of the ranges, in the fastest shape; arguments: further arguments."""
    if not ranges.count or not query.rows:
        return
    shape = _shape(query.rows, ranges, CELLS if is_narrow and name == "score" else CELLS[:1], backend)
    kernel = Kernel("database/scan", f"{name}_{shape.cells if is_narrow else 'broad'}")
    # The thread groups of a block fill its shared memory together: none of them may be missing.
    block = BLOCK_GROUPS * (backend.warp_width // shape.width)
    for part, borders in _slices(query, ranges, shape, is_narrow, backend):
        items = -(-part.count // block) * BLOCK_GROUPS
        for i, own in enumerate(_rounds(query, part, backend)):
            own_arguments = {"ranges": own, "borders": borders, "resumes": i > 0, "width": shape.width}
            backend.launch(kernel, items, query=query, **own_arguments, **arguments)


def _shape(rows: int, ranges: ColumnRanges, sizes: Sequence[int], backend: Backend) -> StripShape:
    """Return the shape with the fewest unused rows and idle steps. rows: query length. sizes: choices of cells."""
    if backend.warp_width == 1:
        return StripShape(1, CELLS[0])
    mean = int(ranges.offsets[-1] - ranges.offsets[0]) / ranges.count
    shapes = [StripShape(width, cells) for width in WIDTHS for cells in sizes]

    def cost(shape: StripShape) -> float:
        strips = -(-rows // (shape.width * shape.cells))
        steps = strips * (mean + shape.width - 1) * BANK_CONFLICT_COSTS.get(shape.width, 1)
        return steps * shape.width * (shape.cells + STEP_CELLS)

    return min((shape for shape in shapes if shape.width * -(-shape.cells // 8) * 8 <= STRIP_ROWS), key=cost)


def _slices(
    query: DeviceQuery, ranges: ColumnRanges, shape: StripShape, is_narrow: bool, backend: Backend
) -> Iterator[tuple[ColumnRanges, Array]]:
    """Yield slices of the ranges whose borders fit in scratch memory, each with a buffer for its borders."""
    border = 4 * backend.lanes_16bit * (1 if is_narrow else 2)
    if backend.warp_width == 1:
        ends = np.arange(ranges.count + 1) * (query.rows * border)
    elif query.rows > shape.width * shape.cells:
        ends = (ranges.offsets - ranges.offsets[0]) * border
    else:
        yield ranges, backend.empty(ALIGNMENT, np.uint8)
        return
    first = 0
    while first < ranges.count:
        last = int(np.searchsorted(ends, ends[first] + backend.scratch_bytes, side="right")) - 1
        last = max(last, first + 1)
        yield ranges.part(first, last), backend.empty(int(ends[last] - ends[first]) + ALIGNMENT, np.uint8)
        first = last


def _rounds(query: DeviceQuery, part: ColumnRanges, backend: Backend) -> Iterator[ColumnRanges]:
    """Yield the ranges cut into consecutive calls of limited duration, so that an interrupt is served in time."""
    step = max(CALL_CELLS // (query.rows * backend.lanes_16bit) // BLOCK_COLUMNS, 1) * BLOCK_COLUMNS
    if backend.warp_width > 1 or (longest := int(part.columns.max())) <= step:
        yield part
        return
    for start in range(0, longest, step):
        columns = np.clip(part.columns - start, 0, step, dtype=np.int32)
        yield replace(part, starts=part.starts + start, columns=columns)
