"""Batches of pairs: the score and the end of every alignment, then its path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.pairwise.alignments import Alignments
from readmap.pairwise.letters import Letters
from readmap.pairwise.parameters import Mode, Scheme

#: What kernels lose at most of a scratch buffer to have their vectors aligned.
ALIGNMENT = 64
#: Cells a second of a pair in a thread of a GPU, with its path, and the seconds of a pair that is aligned alone; less
#: than some seconds are not worth a look.
THREAD_CELLS, ALONE_SECONDS, FEW_SECONDS = 1e7, 0.01, 0.05
#: Letters that count in addition to a sequence's own (kernels/pairwise/pair_schedule.cu).
MARGIN = 24

_KEY_SCORES, _KEY_PATHS = Kernel("pairwise/pair_schedule", "key_scores"), Kernel("pairwise/pair_schedule", "key_paths")
_FILL = Kernel("pairwise/pair_schedule", "fill_operations")


@dataclass(frozen=True)
class _Batch:
    """Query i is to be aligned with target i.

    Attributes:
        scores, mode: of the alignments.
        most_cells: of a pair; larger ones are passed over.
        narrow, wide: the numbers of pairs whose scores 16 bits suffice for, and of those that take 32.
    """

    queries: Letters
    targets: Letters
    scores: Scheme
    mode: Mode
    most_cells: int
    narrow: int
    wide: int

    @property
    def offsets(self) -> tuple[Array, ...]:
        return self.queries.offsets, self.targets.offsets

    @property
    def limits(self) -> tuple[int, ...]:
        """Mode and limits, as kernels take them."""
        return self.mode.number, *self.scores.limits

    @property
    def letters(self) -> tuple[Array, ...]:
        """What kernels take as PAIR_ARGUMENTS."""
        return self.queries.codes, self.queries.offsets, self.targets.codes, self.targets.offsets


@dataclass(frozen=True)
class _Ends:
    """Where alignments end, in the order of the input: scores int32, query_ends and target_ends int64, all [pairs]."""

    scores: Array
    query_ends: Array
    target_ends: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.scores, self.query_ends, self.target_ends


@dataclass(frozen=True)
class _Order:
    """Pairs that go through a kernel together, neighbours alike.

    Attributes:
        pairs: int64, the numbers of the pairs.
        bits: of a score.
        lanes: pairs of a group, which is an item of the kernel.
    """

    pairs: Array
    bits: int
    lanes: int

    def kernel(self, module: str, name: str) -> Kernel:
        """The kernel for scores of so many bits."""
        return Kernel(module, f"{name}_{self.bits}")


def too_large(queries: Letters, targets: Letters, limit: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The numbers of the pairs that `align_batch` passes over; limit: cells of the largest one that it does not."""
    if (queries.longest + MARGIN) * (targets.longest + MARGIN) <= limit:
        return np.empty(0, np.int64)
    return np.flatnonzero((queries.lengths + MARGIN) * (targets.lengths + MARGIN) > limit)


def most_cells(backend: Backend) -> int:
    """Cells of the largest pair of which a block fits in the scratch memory, at four bits of directions each."""
    return 2 * backend.scratch_bytes // (backend.lanes * backend.narrow_lanes)


def worthwhile_cells(queries: Letters, targets: Letters, backend: Backend) -> int:
    """Cells of the largest pair with which a batch is sooner done, if larger ones are aligned one by one."""
    limit, largest = most_cells(backend), (queries.longest + MARGIN) * (targets.longest + MARGIN)
    if backend.lanes == 1 or largest < FEW_SECONDS * THREAD_CELLS:
        return limit
    cells = np.sort((queries.lengths + MARGIN) * (targets.lengths + MARGIN))[::-1]
    seconds = np.arange(len(cells)) * ALONE_SECONDS + cells / THREAD_CELLS
    return min(limit, int(cells[seconds.argmin()]))


def align_batch(
    queries: Letters,
    targets: Letters,
    scores: Scheme,
    mode: Mode,
    backend: Backend,
    score_only: bool = False,
    limit: int | None = None,
) -> Alignments:
    """The alignment of query i with target i, in the order of the input.

    As many queries as targets. Those that are `too_large` are passed over: an empty alignment stands for each of them.
    limit: None is most_cells.
    """
    count = len(queries)
    keys, numbers = backend.empty(count, np.int64), backend.full(2, 0, np.uint64)
    limit, limits = most_cells(backend) if limit is None else limit, (mode.number, *scores.limits)
    backend.launch(_KEY_SCORES, count, queries.offsets, targets.offsets, keys, numbers, limit, *limits)
    wide, large = map(int, backend.to_host(numbers))
    batch = _Batch(queries, targets, scores, mode, limit, count - wide - large, wide)
    ends = _find_ends(batch, keys, backend)
    if not score_only:
        return _trace(batch, ends, keys, backend)
    unknown, none = backend.full(count, -1, np.int64), backend.full(count, 0, np.int64)
    operations = backend.empty(0, np.uint32)
    return Alignments(ends.scores, unknown, ends.query_ends, unknown, ends.target_ends, none, operations)


def _find_ends(batch: _Batch, keys: Array, backend: Backend) -> _Ends:
    count = len(batch.queries)
    ends = _Ends(*(backend.full(count, 0, dtype) for dtype in (np.int32, np.int64, np.int64)))
    for order in _orders(batch, keys, backend):
        _run("frame_scores", batch.offsets, "score_pairs", batch.letters, ends.arrays, order, batch, backend)
    return ends


def _trace(batch: _Batch, ends: _Ends, keys: Array, backend: Backend) -> Alignments:
    """The paths back from the ends; `keys` are written anew."""
    count = len(batch.queries)
    shifts, widths = backend.empty(count, np.int32), backend.empty(count, np.int32)
    given = (*batch.offsets, *ends.arrays, shifts, widths, keys, batch.most_cells)
    backend.launch(_KEY_PATHS, count, *given, *batch.limits)
    starts = backend.full(count, 0, np.int64), backend.full(count, 0, np.int64)
    letters = batch.queries.count + batch.targets.count
    moves = backend.empty(letters // 16 + count, np.uint32)
    move_counts, counts = backend.full(count, 0, np.int32), backend.full(count, 0, np.int64)
    shapes = ends.query_ends, ends.target_ends, shifts, widths
    inputs = *batch.letters, *ends.arrays, shifts
    results = *starts, moves, move_counts, counts
    for order in _orders(batch, keys, backend):
        _run("frame_paths", shapes, "trace_pairs", inputs, results, order, batch, backend)
    operation_ends, total = backend.ends(counts)
    operations = backend.empty(total, np.uint32)
    backend.launch(_FILL, count, *batch.offsets, moves, move_counts, counts, operation_ends, operations)
    return Alignments(ends.scores, starts[0], ends.query_ends, starts[1], ends.target_ends, operation_ends, operations)


def _orders(batch: _Batch, keys: Array, backend: Backend) -> Iterator[_Order]:
    """The pairs by their keys; the last ones are those that are passed over."""
    if batch.narrow + batch.wide == 0:
        return
    pairs = backend.xp.argsort(keys, kind="stable")
    if batch.narrow:
        yield _Order(pairs[: batch.narrow], 16, backend.narrow_lanes)
    if batch.wide:
        yield _Order(pairs[batch.narrow : batch.narrow + batch.wide], 32, backend.wide_lanes)


def _run(
    frame: str,
    shapes: tuple[Array, ...],
    kernel: str,
    inputs: tuple[Array, ...],
    results: tuple[Array, ...],
    order: _Order,
    batch: _Batch,
    backend: Backend,
) -> None:
    """Launch `kernel` over slices of the order whose blocks fit in the scratch memory; `frame` tells what they need."""
    count = len(order.pairs)
    groups = -(-count // order.lanes)
    blocks = -(-groups // backend.lanes)
    frames, sizes = backend.empty((blocks, 4), np.int32), backend.empty(blocks, np.int64)
    backend.launch(order.kernel("pairwise/pair_schedule", frame), blocks, *shapes, order.pairs, frames, sizes, count)
    ends, _ = backend.ends(sizes)
    slices = _slices(backend.to_host(ends), backend.scratch_bytes)
    scratch = backend.empty(max(size for _, _, size in slices) + ALIGNMENT, np.uint8)
    costs = batch.mode.number, *batch.scores.arguments(backend)
    module = batch.scores.module("batches", batch.mode)
    for first, last, _ in slices:
        items = min(last * backend.lanes, groups) - first * backend.lanes
        arguments = (*inputs, order.pairs, frames, ends, scratch, *results, first, count, *costs)
        backend.launch(order.kernel(module, kernel), items, *arguments)


def _slices(ends: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> list[tuple[int, int, int]]:
    """Ranges of blocks, and the bytes that each range needs: `limit` at most, or one block's."""
    slices, first, begin = [], 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, begin + limit, side="right")), first + 1)
        end = int(ends[last - 1])
        slices.append((first, last, end - begin))
        first, begin = last, end
    return slices
