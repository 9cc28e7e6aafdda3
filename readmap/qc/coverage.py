"""Sorted BAM records -> depth of coverage of each base, per sample; mates that overlap count once.

events     +1  +1     -1  +1    -1 |  -1        of a chunk of records, sorted by position
depth       1   2      1   2     1 |            up to the frontier: later records start there or after
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs
from readmap.backend.tables import Table
from readmap.formats.sam import ReadGroupInfo, hash_text

_SOURCE = "qc/coverage.cu"
_COUNT, _LIST = Kernel("qc/coverage", "count_events"), Kernel("qc/coverage", "list_events")
_BOUNDS, _MERGE = Kernel("qc/coverage", "find_bounds"), Kernel("qc/coverage", "merge_events")
_SWEEP = Kernel("qc/coverage", "sweep_events")
_POSITION_BITS, _END_OF_POSITIONS = constant(_SOURCE, "POSITION_BITS"), constant(_SOURCE, "END_OF_POSITIONS")
_SECTION = constant(_SOURCE, "SECTION")
DEPTHS, COVERED = constant(_SOURCE, "DEPTHS"), constant(_SOURCE, "COVERED")

#: Depths whose breadth (share of bases that reach them) is reported; their counters follow the sum in a contig's row.
BREADTHS = (1, 10, 20, 30)


class _CoverageLayout(Table, struct="qc/coverage.cu:Layout"):
    """The contigs, and the samples of the read groups."""


@dataclass(frozen=True)
class _Events:
    """Sorted events: positions, uint64, position and sample; changes, uint64, of the depth, two's complement."""

    positions: Array
    changes: Array

    def part(self, start: int, end: int) -> _Events:
        return _Events(self.positions[start:end], self.changes[start:end])


@dataclass(frozen=True)
class CoverageEvents:
    """The events of consecutive records; bounds: end of each sample; frontier: no later record starts before it."""

    events: _Events
    bounds: list[int]
    frontier: int


class Coverage:
    """Depths of all bases. Records are measured on several threads and accumulated in order.

    histogram: uint64 [samples * DEPTHS], bases by depth; covered: uint64 [samples * contigs * COVERED]; missing_mc:
    uint64 [samples], later mates of proper pairs without MC, whose overlaps count twice; on the device.
    """

    def __init__(
        self, groups: Sequence[ReadGroupInfo], samples: Sequence[int], lengths: Sequence[int], backend: Backend
    ) -> None:
        """samples: sample index of each read group, then of records without a group. lengths: contig lengths."""
        self._backend = backend
        names = np.array([hash_text(group.name.encode()) for group in groups], np.uint64)
        arrays = {"contigs": np.cumsum([0, *(length + 1 for length in lengths)]), "names": names}
        arrays["samples"] = np.array(samples, np.uint16)
        on_device = {name: backend.to_device(array) for name, array in arrays.items()}
        self._layout = _CoverageLayout(**on_device, contig_count=len(lengths), groups=len(groups))
        self._samples = max(samples) + 1
        self._bits = _POSITION_BITS + (self._samples - 1).bit_length()
        self.histogram = backend.full(self._samples * DEPTHS, 0, np.uint64)
        self.covered = backend.full(self._samples * len(lengths) * COVERED, 0, np.uint64)
        self.missing_mc = backend.full(self._samples, 0, np.uint64)
        self._left: dict[int, _Events] = {}

    def measure(self, records: Array, ends: Array, origin: int) -> CoverageEvents:
        """Return the changes of depth by records: uint8 bytes, int64 ends from `origin`; count missing MC tags."""
        backend, count = self._backend, len(ends)
        inputs = {"bytes": records, "ends": ends, "origin": origin, "layout": self._layout}
        events, frontier = backend.empty(count, np.int64), backend.empty(1, np.int64)
        outputs = {"events": events, "frontier": frontier, "missing_mc": self.missing_mc}
        backend.launch(_COUNT, count, **inputs, **outputs, records=count)
        event_ends, total = backend.inclusive_sum_with_total(events)
        positions, changes, *scratch = (backend.empty(total, np.uint64) for _ in range(4))
        listed = {"event_ends": event_ends, "positions": positions, "changes": changes, "events": total}
        backend.launch(_LIST, count, **inputs, **listed)
        found = _Events(*sort_pairs(positions, changes, scratch[0], scratch[1], self._bits, backend))
        ends_of_samples = [(sample << _POSITION_BITS) + _END_OF_POSITIONS for sample in range(self._samples)]
        return CoverageEvents(found, self._count_up_to(found, ends_of_samples), int(backend.to_host(frontier)[0]))

    def accumulate(self, measured: CoverageEvents) -> None:
        """Count depths up to the frontier of the next records, in order, by their events; keep the later events."""
        for sample, (start, end) in enumerate(zip([0, *measured.bounds], measured.bounds, strict=False)):
            events = measured.events.part(start, end)
            if left := self._left.pop(sample, None):
                events = self._merged(left, events)
            if len(events.positions):
                self._sweep(sample, events, measured.frontier)
        self._backend.synchronize()  # the events' memory belongs to another thread, which reuses it

    def finish(self) -> None:
        """Count the remaining events; no records follow."""
        for sample in [*self._left]:
            self._sweep(sample, self._left.pop(sample), _END_OF_POSITIONS)
        self._backend.synchronize()

    def to_host(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return int64 histogram [samples, DEPTHS], covered [samples, contigs, COVERED] and missing_mc [samples]."""
        host, samples = self._backend.to_host, self._samples
        counts = (self.histogram, self.covered, self.missing_mc)
        histogram, covered, missing_mc = (host(one).astype(np.int64) for one in counts)
        return histogram.reshape(samples, DEPTHS), covered.reshape(samples, -1, COVERED), missing_mc

    def _sweep(self, sample: int, events: _Events, frontier: int) -> None:
        """Count a sample's depths before the frontier, and keep its later events for the next records."""
        backend, contigs = self._backend, self._layout.contig_count
        (size,) = self._count_up_to(events, [(sample << _POSITION_BITS) + frontier])
        first = sample * contigs * COVERED
        depths = backend.inclusive_sum(events.changes[:size].view(np.int64))
        inputs = {"positions": events.positions[:size], "depths": depths, "size": size, "frontier": frontier}
        inputs |= {"contigs": self._layout.contigs, "contig_count": contigs}
        histogram = self.histogram[sample * DEPTHS : (sample + 1) * DEPTHS]
        covered = self.covered[first : first + contigs * COVERED]
        backend.launch(_SWEEP, -(-size // _SECTION), **inputs, histogram=histogram, covered=covered)
        depth = int(backend.to_host(depths[-1:])[0]) if size else 0
        rest = events.part(size, len(events.positions))
        if depth or len(rest.positions):
            position = np.array([(sample << _POSITION_BITS) + frontier], np.uint64)
            change = np.array([depth], np.int64).view(np.uint64)
            carried = _Events(backend.to_device(position), backend.to_device(change))
            self._left[sample] = self._merged(carried, rest)

    def _merged(self, one: _Events, other: _Events) -> _Events:
        """Return the events of two sorted lists, sorted by position."""
        backend, size, others = self._backend, len(one.positions), len(other.positions)
        positions, changes = backend.empty(size + others, np.uint64), backend.empty(size + others, np.uint64)
        inputs = {"positions": one.positions, "changes": one.changes, "size": size, "others": others}
        inputs |= {"other_positions": other.positions, "other_changes": other.changes}
        backend.launch(_MERGE, size + others, **inputs, merged_positions=positions, merged_changes=changes)
        return _Events(positions, changes)

    def _count_up_to(self, events: _Events, bounds: list[int]) -> list[int]:
        """Return for each bound the number of events at positions not greater than it."""
        backend, found = self._backend, self._backend.empty(len(bounds), np.int64)
        inputs = {"positions": events.positions, "bounds": backend.to_device(np.array(bounds, np.uint64))}
        backend.launch(_BOUNDS, len(bounds), **inputs, found=found, size=len(events.positions))
        numbers: list[int] = backend.to_host(found).tolist()
        return numbers
