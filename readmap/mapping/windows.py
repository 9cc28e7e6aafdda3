"""Merge diagonals into windows, the candidate placements of a read, and choose the best window of each read."""

from readmap.backend import Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.device_counts import DeviceList
from readmap.mapping.batch import Batch, Context
from readmap.mapping.diagonals import DiagonalTable
from readmap.mapping.parameters import DIVERGENT_DIFFERENCES

_COUNT = Kernel("mapping/windows", "count_windows")
_READS_PER_BLOCK = constant("mapping/windows.cu", "READS_PER_BLOCK")
_JOIN, _ADD = Kernel("mapping/windows", "replace_windows"), Kernel("mapping/windows", "add_windows")


def replace_windows(slots: DeviceList, diagonals: DiagonalTable, batch: Batch, context: Context) -> None:
    """Replace the windows of the slots by the windows of their diagonals."""
    batch.launch(_JOIN, slots.count, context, selected=slots.indices, found=diagonals)


def add_windows(slots: DeviceList, diagonals: DiagonalTable, max_windows: int, batch: Batch, context: Context) -> None:
    """Append the windows of further diagonals to the windows of the slots, up to `max_windows` a read."""
    batch.launch(_ADD, slots.count, context, selected=slots.indices, found=diagonals, max_windows=max_windows)


def count_windows(batch: Batch, context: Context) -> None:
    """Add the number of windows of all reads to the device counter."""
    reads, total = batch.reads.count, batch.device_counters.total("windows")
    batch.launch(_COUNT, -(-reads // _READS_PER_BLOCK), context, counts=batch.windows.counts, total=total, reads=reads)


_CHOOSE = Kernel("mapping/placement", "choose_windows")


def choose_windows(slots: DeviceList, batch: Batch, context: Context, differences: int = DIVERGENT_DIFFERENCES) -> None:
    """Choose among the windows of the slots; more than `differences` mismatches make a read DIVERGENT."""
    divergent_deficit = differences * (context.scoring.match + context.scoring.mismatch)
    batch.launch(_CHOOSE, slots.count, context, selected=slots.indices, divergent_deficit=divergent_deficit)
