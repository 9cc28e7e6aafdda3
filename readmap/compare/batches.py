"""Batches of pairs: the score and the end of every alignment, then its path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.compare.alignments import Alignments
from readmap.compare.letters import Letters
from readmap.compare.parameters import Mode, Scores

#: What kernels lose at most of a scratch buffer to have their vectors aligned.
ALIGNMENT = 64

_KEY_SCORES, _KEY_PATHS = Kernel("batches", "key_scores"), Kernel("batches", "key_paths")
_FILL = Kernel("batches", "fill_operations")


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

    def kernel(self, name: str) -> Kernel:
        """The kernel for such scores."""
        return Kernel("batches", f"{name}_{self.bits}")


def align_batch(
    queries: Letters, targets: Letters, scores: Scores, mode: Mode, backend: Backend, score_only: bool = False
) -> Alignments:
    """The alignment of query i with target i, in the order of the input.

    As many queries as targets, at least one, none of them longer than 2^28 letters; a group of pairs has to fit in the
    scratch memory, or is given more.
    """
    count = len(queries)
    costs = (mode.number, *scores.arguments())
    offsets = (queries.offsets, targets.offsets)
    letters = (queries.codes, queries.offsets, targets.codes, targets.offsets)
    ends = (backend.empty(count, np.int32), backend.empty(count, np.int64), backend.empty(count, np.int64))

    keys, wide = backend.empty(count, np.int64), backend.full(1, 0, np.uint64)
    backend.launch(_KEY_SCORES, count, *offsets, keys, wide, *costs)
    narrow = count - int(backend.to_host(wide)[0])
    for order in _orders(keys, narrow, backend):
        _run(order, "frame_scores", offsets, "score_pairs", (*letters,), ends, costs, backend)

    starts = (backend.full(count, -1, np.int64), backend.full(count, -1, np.int64))
    if score_only:
        none = backend.full(count, 0, np.int64)
        return Alignments(ends[0], starts[0], ends[1], starts[1], ends[2], none, backend.empty(0, np.uint32))

    shifts, widths = backend.empty(count, np.int32), backend.empty(count, np.int32)
    backend.launch(_KEY_PATHS, count, *offsets, *ends, shifts, widths, keys, *costs)
    total = int(queries.host_offsets[-1]) + int(targets.host_offsets[-1])
    moves = backend.empty(total // 16 + count, np.uint32)
    move_counts, counts = backend.empty(count, np.int32), backend.empty(count, np.int64)
    for order in _orders(keys, narrow, backend):
        shapes = (*ends[1:], shifts, widths)
        results = (*starts, moves, move_counts, counts)
        _run(order, "frame_paths", shapes, "trace_pairs", (*letters, *ends, shifts), results, costs, backend)
    operation_ends, total = backend.ends(counts)
    operations = backend.empty(total, np.uint32)
    backend.launch(_FILL, count, *offsets, moves, move_counts, counts, operation_ends, operations)
    return Alignments(ends[0], starts[0], ends[1], starts[1], ends[2], operation_ends, operations)


def _orders(keys: Array, narrow: int, backend: Backend) -> Iterator[_Order]:
    """The pairs by their keys: those that 16 bits suffice for, of which there are `narrow`, and the others."""
    pairs = backend.xp.argsort(keys, kind="stable")
    if narrow:
        yield _Order(pairs[:narrow], 16, backend.narrow_lanes)
    if narrow < len(keys):
        yield _Order(pairs[narrow:], 32, backend.wide_lanes)


def _run(
    order: _Order,
    frame: str,
    shapes: tuple[Array, ...],
    kernel: str,
    inputs: tuple[Array, ...],
    results: tuple[Array, ...],
    costs: tuple[int, ...],
    backend: Backend,
) -> None:
    """Launch a kernel over slices of the pairs whose blocks fit in the scratch memory."""
    count = len(order.pairs)
    groups = -(-count // order.lanes)
    blocks = -(-groups // backend.lanes)
    frames, sizes = backend.empty((blocks, 4), np.int32), backend.empty(blocks, np.int64)
    backend.launch(order.kernel(frame), blocks, *shapes, order.pairs, frames, sizes, count)
    ends, _ = backend.ends(sizes)
    slices = _slices(backend.to_host(ends), backend.scratch_bytes)
    scratch = backend.empty(max(size for _, _, size in slices) + ALIGNMENT, np.uint8)
    for first, last, _ in slices:
        items = min(last * backend.lanes, groups) - first * backend.lanes
        arguments = (*inputs, order.pairs, frames, ends, scratch, *results, first, count)
        backend.launch(order.kernel(kernel), items, *arguments, *costs)


def _slices(ends: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> list[tuple[int, int, int]]:
    """Ranges of blocks, each at least one, and their bytes, at most `limit` where more than one block."""
    slices, first, begin = [], 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, begin + limit, side="right")), first + 1)
        end = int(ends[last - 1])
        slices.append((first, last, end - begin))
        first, begin = last, end
    return slices
