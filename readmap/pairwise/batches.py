"""Align pairs of any lengths: most in batches (score and end first, then the path), long pairs one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.radix_sort import argsort_columns
from readmap.backend.tables import Table
from readmap.backend.team import Team
from readmap.pairwise.alignments import PairAlignments, join_alignments
from readmap.pairwise.device_sequences import DeviceSequences, Integers
from readmap.pairwise.long_pairs import align_long
from readmap.pairwise.matrix import DPMatrix
from readmap.pairwise.parameters import CompareSettings, DeviceScheme, Mode, ScoringScheme

#: Bytes of a scratch buffer that kernels may lose to align their vectors.
ALIGNMENT = constant("common/simd_lanes.cuh", "ALIGNMENT")
#: Cells per second of a pair in one GPU thread, path included; seconds of a pair aligned alone; batches faster than
#: MIN_SECONDS are not split.
THREAD_CELLS, ALONE_SECONDS, MIN_SECONDS = 1e7, 0.01, 0.05
#: Letters added to each sequence when memory is estimated.
MARGIN = constant("pairwise/pair_schedule.cu", "MARGIN")

_KEY_SCORES, _KEY_PATHS = Kernel("pairwise/pair_schedule", "key_scores"), Kernel("pairwise/pair_schedule", "key_paths")
_FILL = Kernel("pairwise/pair_schedule", "fill_operations")
_BAND_WORDS = row_dtype("pairwise/pair_blocks.cuh", "BlockBand").itemsize // 4


@dataclass(frozen=True)
class _Batch:
    """A batch in which query i is aligned with target i; module: kernel module; pairs above `max_cells` are skipped."""

    queries: DeviceSequences
    targets: DeviceSequences
    scheme: DeviceScheme
    mode: Mode
    module: str
    max_cells: int
    backend: Backend

    @property
    def pairs(self) -> int:
        return len(self.queries)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of all kernels that depend on the sequences and the scoring."""
        return {"pairs": self, "scheme": self.scheme, "mode": self.mode.code}


class _Ends(Table, struct="pairwise/batches.cuh:AlignmentEnds"):
    """Scores and ends of alignments, in the order of the input."""


class _Paths(Table, struct="pairwise/batches.cuh:AlignmentPaths"):
    """Paths of alignments, in the order of the input."""


@dataclass(frozen=True)
class _Order:
    """Pairs (uint32 indices) of similar sizes for a kernel; bits of a score, 16 or 32; lanes: pairs per item."""

    pairs: Array
    bits: int
    lanes: int


class _Blocks(Table, struct="pairwise/batches.cuh:Blocks"):
    """Blocks of sorted pairs, one block per warp."""


def find_large_pairs(
    queries: DeviceSequences, targets: DeviceSequences, limit: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indices of pairs with more than `limit` cells, which align_batch skips."""
    if (queries.longest + MARGIN) * (targets.longest + MARGIN) <= limit:
        return np.empty(0, np.int64)
    return np.flatnonzero((queries.lengths + MARGIN) * (targets.lengths + MARGIN) > limit)


def max_cells(backend: Backend) -> int:
    """Return the cells of the largest pair whose block fits in the scratch memory, at four traceback bits per cell."""
    return 2 * backend.scratch_bytes // (backend.warp_width * backend.lanes_16bit)


def choose_cell_limit(queries: DeviceSequences, targets: DeviceSequences, backend: Backend) -> int:
    """Return the cells above which pairs are aligned one by one, chosen to minimize the estimated time of all pairs."""
    limit, largest = max_cells(backend), (queries.longest + MARGIN) * (targets.longest + MARGIN)
    if backend.warp_width == 1 or largest < MIN_SECONDS * THREAD_CELLS:
        return limit
    cells = np.sort((queries.lengths + MARGIN) * (targets.lengths + MARGIN))[::-1]
    seconds = np.arange(len(cells)) * ALONE_SECONDS + cells / THREAD_CELLS
    return min(limit, int(cells[seconds.argmin()]))


def align_batch(
    queries: DeviceSequences,
    targets: DeviceSequences,
    scores: ScoringScheme,
    mode: Mode,
    backend: Backend,
    score_only: bool = False,
    limit: int | None = None,
) -> PairAlignments:
    """Align query i with target i for every i; pairs above `limit` cells (default max_cells) get an empty alignment."""
    count = len(queries)
    limit = max_cells(backend) if limit is None else limit
    module, scheme = scores.kernel_module("batches", mode), scores.to_device(backend)
    batch = _Batch(queries, targets, scheme, mode, module, limit, backend)
    keys, counts_by_class = backend.empty(count, np.int64), backend.full(2, 0, np.uint64)
    backend.launch(_KEY_SCORES, count, **batch.arguments, keys=keys, counts=counts_by_class, max_cells=limit)
    wide, large = map(int, backend.to_host(counts_by_class))
    narrow = count - wide - large
    ends = _Ends.allocate(backend, pairs=count, fill={"scores": 0, "query_ends": 0, "target_ends": 0})
    for order in _orders(keys, narrow, wide, backend):
        _launch("score_bands", {"pairs": batch}, "score_pairs", {"ends": ends}, order, batch)
    if not score_only:
        return _trace(batch, ends, keys, narrow, wide)
    unknown, none = backend.full(count, -1, np.int64), backend.full(count, 0, np.int64)
    operations = backend.empty(0, np.uint32)
    return PairAlignments(ends.scores, unknown, ends.query_ends, unknown, ends.target_ends, none, operations)


def _trace(batch: _Batch, ends: _Ends, keys: Array, narrow: int, wide: int) -> PairAlignments:
    """Trace back from `ends`, overwriting `keys`; return the alignments. narrow, wide: numbers of 16-, 32-bit pairs."""
    backend, count, empty = batch.backend, batch.pairs, batch.backend.empty
    shifts, widths = empty(count, np.int32), empty(count, np.int32)
    shapes = {"ends": ends, "shifts": shifts, "widths": widths}
    backend.launch(_KEY_PATHS, count, **batch.arguments, **shapes, keys=keys, max_cells=batch.max_cells)
    words = (batch.queries.count + batch.targets.count) // 16 + count
    starts = dict.fromkeys(("query_starts", "target_starts", "move_counts", "run_counts"), 0)
    paths = _Paths.allocate(backend, pairs=count, moves=empty(words, np.uint32), fill=starts)
    for order in _orders(keys, narrow, wide, backend):
        own = {"ends": ends, "shifts": shifts, "paths": paths}
        _launch("path_bands", shapes, "trace_pairs", own, order, batch)
    operation_ends, total = backend.inclusive_sum_with_total(paths.run_counts)
    operations = empty(total, np.uint32)
    backend.launch(_FILL, count, pairs=batch, paths=paths, operation_ends=operation_ends, operations=operations)
    ranges = (paths.query_starts, ends.query_ends, paths.target_starts, ends.target_ends)
    return PairAlignments(ends.scores, *ranges, operation_ends, operations)


def _orders(keys: Array, narrow: int, wide: int, backend: Backend) -> Iterator[_Order]:
    """Yield the pairs with 16-bit scores and those with 32-bit scores, sorted by their keys; skip large pairs."""
    if narrow + wide == 0:
        return
    pairs = argsort_columns([(keys.view(np.uint64), 63)], backend)
    if narrow:
        yield _Order(pairs[:narrow], 16, backend.lanes_16bit)
    if wide:
        yield _Order(pairs[narrow : narrow + wide], 32, backend.lanes_32bit)


def _launch(
    band: str, shapes: dict[str, Any], kernel: str, arguments: dict[str, Any], order: _Order, batch: _Batch
) -> None:
    """Launch `kernel` with `arguments` over slices of the order whose blocks fit in scratch memory.

    band, shapes: kernel that computes the bytes of each block, and its arguments.
    """
    backend, count = batch.backend, len(order.pairs)
    groups = -(-count // order.lanes)
    blocks = -(-groups // backend.warp_width)
    bands, sizes = backend.empty((blocks, _BAND_WORDS), np.int32), backend.empty(blocks, np.int64)
    band_kernel = Kernel("pairwise/pair_schedule", f"{band}_{order.bits}")
    backend.launch(band_kernel, blocks, **shapes, order=order.pairs, bands=bands, bytes=sizes, count=count)
    ends = backend.inclusive_sum(sizes)
    slices = _slices(backend.to_host(ends), backend.scratch_bytes)
    scratch = backend.empty(max(size for _, _, size in slices) + ALIGNMENT, np.uint8)
    arguments |= batch.arguments | {"scratch": scratch}
    arguments["blocks"] = _Blocks(order=order.pairs, bands=bands, memory_ends=ends, count=count)
    for first, last, _ in slices:
        items = min(last * backend.warp_width, groups) - first * backend.warp_width
        backend.launch(Kernel(batch.module, f"{kernel}_{order.bits}"), items, **arguments, first_block=first)


def _slices(ends: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> list[tuple[int, int, int]]:
    """Return (first block, end, bytes) of slices of `limit` bytes at most or of one block; ends: summed block bytes."""
    slices, first, start = [], 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, start + limit, side="right")), first + 1)
        end = int(ends[last - 1])
        slices.append((first, last, end - start))
        first, start = last, end
    return slices


def align_pairs(
    queries: DeviceSequences,
    targets: DeviceSequences,
    scores: ScoringScheme,
    mode: Mode,
    backend: Backend,
    score_only: bool = False,
) -> PairAlignments:
    """Align query i with target i for every i, and return the alignments, on the device, in the order of the input."""
    limit = choose_cell_limit(queries, targets, backend)
    batch = align_batch(queries, targets, scores, mode, backend, score_only, limit)
    large = find_large_pairs(queries, targets, limit)
    if len(large) == 0:
        return batch
    codes = [[letters.codes[slice(*_range(letters, pair))] for letters in (queries, targets)] for pair in large]
    matrices = [DPMatrix(query, target, scores, mode, backend) for query, target in codes]
    found = [align_long([matrix], CompareSettings(scores, score_only), Team.of(backend)) for matrix in matrices]
    return _merged(batch, large, found, backend)


def _range(letters: DeviceSequences, index: int) -> tuple[int, int]:
    end = int(letters.lengths[: index + 1].sum())
    return end - int(letters.lengths[index]), end


def _merged(batch: PairAlignments, indices: Integers, found: list[PairAlignments], backend: Backend) -> PairAlignments:
    """Replace the empty alignments of a batch at `indices` (ascending) by those in `found`, which are on the host."""
    host, start = batch.to_host(backend), 0
    parts = []
    for index, own in zip(indices.tolist(), found, strict=True):
        parts += [host.part(start, index), own]
        start = index + 1
    merged = join_alignments([*parts, host.part(start, len(host))])
    return PairAlignments(**{name: backend.to_device(array) for name, array in vars(merged).items()})
