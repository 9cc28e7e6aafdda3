"""A batch of reads with the arrays that the search stages fill in, and the context that all stages share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.device_counts import Count
from readmap.backend.tables import Table
from readmap.index.device import DeviceIndex
from readmap.mapping.counters import Counters, WorkCounters
from readmap.mapping.device_counters import CapacityEstimates, DeviceCounters
from readmap.mapping.inserts import InsertSize
from readmap.mapping.parameters import DEFAULT_BASES_PER_DIFFERENCE, UNSEARCHED, Pairing, Reporting, Scoring
from readmap.reads.packing import Queries, pack_queries
from readmap.reads.parsing import Reads, absent_mask

WINDOW = row_dtype("mapping/windows.cuh", "Window")
WINDOW_WORDS = WINDOW.itemsize // 8
MAX_WINDOWS = constant("mapping/windows.cuh", "MAX_WINDOWS")

_COPY = Kernel("mapping/windows", "copy_windows")

_NO_PLACEMENT = {"chosen": -1, "unresolved": UNSEARCHED, "unresolved_before_search": UNSEARCHED} | dict.fromkeys(
    ("suboptimal_scores", "mapqs", "variant_phreds", "properly_paired"), 0
)


@dataclass(frozen=True)
class Sample:
    """Properties of a sample, estimated from its first reads; the defaults hold for most samples."""

    bases_per_difference: int = DEFAULT_BASES_PER_DIFFERENCE  # bases in which one is expected
    insert_sizes: tuple[InsertSize, ...] = ()  # of each direction; empty for single reads, or if no size is typical


@dataclass(frozen=True)
class Context:
    """An index on the backend's device, the user's parameters, and the sample model; shared by all stages."""

    index: DeviceIndex
    backend: Backend
    scoring: Scoring = field(default_factory=Scoring)
    pairing: Pairing = field(default_factory=Pairing)
    reporting: Reporting = field(default_factory=Reporting)
    sample: Sample = field(default_factory=Sample)
    capacity_estimates: CapacityEstimates | None = None  # None: the host reads all list sizes back at once


class WindowTable(Table, struct="mapping/windows.cuh:WindowTable"):
    """The windows of all reads by slot; on the host `rows.view(WINDOW)` names the fields of a window."""


class PartitionSeedTable(Table, struct="mapping/partition_seeds.cuh:PartitionSeedTable"):
    """The index look-ups of the partition seeds of all reads."""


class PlacementTable(Table, struct="mapping/placement.cuh:PlacementTable"):
    """The chosen placement of every read by slot."""


@dataclass
class Batch:
    """Reads with their windows and placements, which the stages update in place.

    A batch belongs to one attempt: if device memory runs out, it is dropped, and its reads start again.
    """

    reads: Reads
    queries: Queries
    windows: WindowTable
    placements: PlacementTable
    counters: Counters
    work: WorkCounters
    device_counters: DeviceCounters  # read_back adds them to the other counters
    partition_seeds: PartitionSeedTable | None = None  # until the first read_back

    def launch(self, kernel: Kernel, items: Count, context: Context, **arguments: Any) -> None:
        """Launch a kernel for `items` items; parameters named as in `shared` come from the batch and the context."""
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
        """Return a batch of reads, at least one, that no stage has searched yet."""
        backend, count = context.backend, reads.count
        queries = pack_queries(reads, backend)
        windows = WindowTable.allocate(
            backend, reads=count, fill=dict.fromkeys(("counts", "unexamined_prefixes", "dropped_scores"), 0)
        )
        placements = PlacementTable.allocate(backend, reads=count, fill=_NO_PLACEMENT)
        counters = DeviceCounters(count, backend, context.capacity_estimates)
        backend.copy_into(counters.total("replaced"), queries.replaced)
        return cls(reads, queries, windows, placements, _count_reads(reads, queries, context), WorkCounters(), counters)

    def read_back(self, *sums: tuple[Array, int]) -> list[int]:
        """Add the device counters to `counters` and `work`, reset them, and set `partition_seeds` to None.

        sums: (prefix sums, rows). Returns the last element of each of their rows, on the host. Raises CapacityExceeded
        if a stage found more elements than the capacity of its list.
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
        """Return a new batch of the reads [first, last) with copies of their windows and placements, and new counts."""
        backend, part = context.backend, Batch.of(self.reads.part(first, last), context)
        slots = backend.to_host(self.queries.slot_of)[first + backend.to_host(part.queries.order)]
        for table, own in ((self.windows, part.windows), (self.placements, part.placements)):
            for name, array in table.arrays().items():
                if len(array) == self.reads.count:  # otherwise a row per window
                    setattr(own, name, backend.to_device(backend.to_host(array)[slots]))
        self.copy_windows(backend.to_device(slots), part.windows.rows, context)
        return part

    def copy_windows(self, slots: Array, rows: Array, context: Context) -> None:
        """Copy the windows of the slots, int32, to `rows`, int64 [slots * MAX_WINDOWS, WINDOW_WORDS]."""
        self.launch(_COPY, len(slots), context, selected=slots, copies=rows)


def _count_reads(reads: Reads, queries: Queries, context: Context) -> Counters:
    """Return counters with the counts of reads, single reads and too short reads; absent mates do not count."""
    too_short = queries.length_runs.first_slot_of_length(-(-context.scoring.min_score // context.scoring.match))
    absent = int(np.count_nonzero(absent_mask(reads, context.backend)))
    singles = absent if reads.paired else reads.count
    return Counters(reads=reads.count - absent, singles=singles, too_short=too_short - absent)
