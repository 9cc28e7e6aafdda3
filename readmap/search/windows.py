"""Diagonals -> Windows: the places where each read may belong, the best first."""

from __future__ import annotations

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.diagonals import Diagonals

_COUNT = Kernel("search/windows", "count_windows", by_block=True)
_COUNTED_TOGETHER = constant("search/windows.cu", "COUNTED_TOGETHER")
_JOIN, _ADD = Kernel("search/windows", "join_diagonals"), Kernel("search/windows", "add_diagonals")


def join_diagonals(slots: Array, diagonals: Diagonals, batch: Batch, context: Context) -> None:
    """Replace the windows of the slots, int32, by those that their diagonals make."""
    batch.launch(_JOIN, len(slots), context, selected=slots, found=diagonals)


def add_diagonals(slots: Array, diagonals: Diagonals, most: int, batch: Batch, context: Context) -> None:
    """Put the windows that further diagonals of the slots, int32, make behind those that they have, up to `most`."""
    batch.launch(_ADD, len(slots), context, selected=slots, found=diagonals, most=most)


def count_windows(batch: Batch, context: Context) -> None:
    """Add the windows of all reads to the batch's totals."""
    reads, total = batch.reads.count, batch.total("windows")
    batch.launch(_COUNT, -(-reads // _COUNTED_TOGETHER), context, counts=batch.windows.counts, total=total, reads=reads)
