"""A batch of reads on its way through the stages: what they fill in, and parts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.device_counts import Count
from readmap.backend.tables import Table
from readmap.mapping.context import Context
from readmap.mapping.counters import Counters, WorkCounters
from readmap.mapping.device_counters import DeviceCounters
from readmap.mapping.parameters import UNSEARCHED
from readmap.reads.parsing import Reads, absent_mask
from readmap.reads.queries import Queries, pack_queries

WINDOW = row_dtype("mapping/windows.cuh", "Window")
WINDOW_WORDS = WINDOW.itemsize // 8
MAX_WINDOWS = constant("mapping/windows.cuh", "MAX_WINDOWS")

_COPY = Kernel("mapping/windows", "copy_windows")

_NO_PLACEMENT = {"chosen": -1, "unresolved": UNSEARCHED, "unresolved_before_search": UNSEARCHED} | dict.fromkeys(
    ("suboptimal_scores", "mapqs", "variant_phreds", "properly_paired"), 0
)


class WindowTable(Table, struct="mapping/windows.cuh:WindowTable"):
    """The windows of all slots. On the host `rows.view(WINDOW)` names the fields of a window."""


class PartitionSeedTable(Table, struct="mapping/partition_seeds.cuh:PartitionSeedTable"):
    """The look-ups of all reads' pieces."""


class PlacementTable(Table, struct="mapping/placement.cuh:PlacementTable"):
    """The choice among the windows of every slot."""


@dataclass
class Batch:
    """Reads with the windows and placements that stages fill in place.

    partition_seeds: the look-ups, until the device has told what it counted: by then nothing asks for them any more.
    ledger: what is counted on the device, which `settle` adds to the work and to the counters.
    It belongs to one try: where memory ends on the way, it is dropped, and the reads start again.
    """

    reads: Reads
    queries: Queries
    windows: WindowTable
    placements: PlacementTable
    counters: Counters
    work: WorkCounters
    device_counters: DeviceCounters
    partition_seeds: PartitionSeedTable | None = None

    def launch(self, kernel: Kernel, items: Count, context: Context, **arguments: Any) -> None:
        """Run a kernel over `items` items; what it takes of the batch and of the context goes by the parameters' names.

        arguments: the others.
        """
        shared = {
            "texts": self.reads,
            "queries": self.queries,
            "windows": self.windows,
            "placements": self.placements,
            "index": context.index,
            "reference": context.index.reference,
            "scoring": context.scoring,
            "reporting": context.reporting,
            "bases_per_difference": context.sample.bases_per_difference,
        }
        taken = {name: shared[name] for name in kernel.signature.names if name in shared}
        context.backend.launch(kernel, items, **{**taken, **arguments})

    @classmethod
    def of(cls, reads: Reads, context: Context) -> Batch:
        """At least one read, not searched yet."""
        backend, count = context.backend, reads.count
        queries = pack_queries(reads, backend)
        windows = WindowTable.allocate(
            backend, reads=count, fill=dict.fromkeys(("counts", "unexamined_prefixes", "dropped_scores"), 0)
        )
        placements = PlacementTable.allocate(backend, reads=count, fill=_NO_PLACEMENT)
        counters = DeviceCounters(count, backend, context.capacity_estimates)
        backend.copy_into(counters.total("replaced"), queries.replaced)
        return cls(reads, queries, windows, placements, _counters(reads, queries, context), WorkCounters(), counters)

    def read_back(self, *sums: tuple[Array, int]) -> list[int]:
        """Add up what was counted, and let go of the look-ups: the last of some prefix sums, as Backend.row_ends has them.

        Raises CapacityExceeded where a stage had no room for all that it found.
        """
        counted, tallies, totals = self.device_counters.read_back(*sums)
        self.partition_seeds = None
        if any(tallies):
            self.counters.add_tallies(tallies)
        self.counters.replaced += counted["replaced"]
        self.work.resolved -= counted["unresolved"]
        self.work.add_counts(counted)
        return totals

    def part(self, first: int, last: int, context: Context) -> Batch:
        """The same of the records [first, last) alone."""
        backend, part = context.backend, Batch.of(self.reads.part(first, last), context)
        slots = backend.to_host(self.queries.slot_of)[first + backend.to_host(part.queries.order)]
        for table, own in ((self.windows, part.windows), (self.placements, part.placements)):
            for name, array in table.arrays().items():
                if len(array) == self.reads.count:  # the others are by window
                    setattr(own, name, backend.to_device(backend.to_host(array)[slots]))
        self.copy_windows(backend.to_device(slots), part.windows.rows, context)
        return part

    def copy_windows(self, slots: Array, rows: Array, context: Context) -> None:
        """Copy the windows of slots, int32, to rows as a WindowTable of them has, and leave those that are none."""
        self.launch(_COPY, len(slots), context, selected=slots, copies=rows)


def _counters(reads: Reads, queries: Queries, context: Context) -> Counters:
    least = -(-context.scoring.min_score // context.scoring.match)
    too_short = queries.length_runs.first_slot_of_length(least)
    absent = int(np.count_nonzero(absent_mask(reads, context.backend)))
    return Counters(
        reads=reads.count - absent,
        singles=absent if reads.paired else reads.count,
        too_short=too_short - absent,
    )
