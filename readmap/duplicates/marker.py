"""Duplicate marking of a run: fragments are collected batch by batch; then duplicates are found and marked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.marking import FRAGMENT_TAG_BYTES, Marking
from readmap.bam.order import SortedRecords, offset_fragment_ids
from readmap.duplicates.fragments import FragmentBatch, FragmentTable
from readmap.duplicates.metrics import LibraryMetrics, SetSizes, write_metrics
from readmap.duplicates.sets import DuplicateSets, find_duplicates
from readmap.errors import UsageError
from readmap.formats.sam import ReadGroupInfo

#: Default distance of optical duplicates in pixels, Picard's for unpatterned flow cells.
OPTICAL_DISTANCE = 100

#: Device memory per fragment while duplicates are searched.
FINDING_BYTES = 200


@dataclass(frozen=True)
class DuplicateRules:
    """What counts as a duplicate, and what is done with it.

    distance: maximum distance of optical duplicates in pixels; 0 disables them. barcode_tag: tag of the UMI, which
    fragments of a molecule share; None to ignore UMIs. is_removed: leave duplicates out. has_type: tag DT, SQ or LB.
    """

    distance: int = OPTICAL_DISTANCE
    barcode_tag: str | None = None
    is_removed: bool = False
    has_type: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError if the tag is invalid."""
        if self.barcode_tag is not None and not re.fullmatch("[A-Za-z][A-Za-z0-9]", self.barcode_tag):
            raise UsageError(f"--barcode-tag {self.barcode_tag}: expected a tag of two characters, such as RX")


class DuplicateMarker:
    """Finds and marks duplicate fragments: call `set_header`, then `take` for all batches in order, then `marking`."""

    def __init__(self, rules: DuplicateRules, backend: Backend) -> None:
        """backend: the device of the records, on which duplicates are searched if it has enough memory."""
        self._rules, self._backend = rules, backend
        self._table: FragmentTable | None = None
        self._found: DuplicateSets | None = None
        self._marks: NDArray[np.uint8] | None = None

    def set_header(self, groups: Sequence[ReadGroupInfo], contig_lengths: Sequence[int]) -> None:
        """Set the read groups and contigs of the header; raise UsageError if there are too many."""
        self._table = FragmentTable(groups, contig_lengths, self._backend, self._rules.barcode_tag)

    @property
    def table(self) -> FragmentTable:
        if self._table is None:
            raise TypeError("set_header() has not been called")
        return self._table

    def take(self, described: FragmentBatch, run: SortedRecords) -> None:
        """Add the fragments of the next batch, and write their indices into the records of its run."""
        offset_fragment_ids(run, self.table.add(described), self._backend)

    def marking(self, backend: Backend) -> Marking:
        """Return the marks of all fragments on a device; the first call, after the last batch, finds them."""
        if self._marks is None:
            self._marks = self._find()
        return Marking(backend.to_device(self._marks), FRAGMENT_TAG_BYTES, self._rules.is_removed, self._rules.has_type)

    @property
    def libraries(self) -> list[LibraryMetrics]:
        """The metrics of each library, after `marking`."""
        return [LibraryMetrics.of(name, counters) for name, counters in self.table.reported_libraries()]

    def metrics(self, command_line: str) -> str:
        """Return the text of the metrics file, after `marking`."""
        if self._found is None:
            raise TypeError("marking() has not been called")
        sizes = SetSizes.of(self._found.sizes, self._found.optical, self._found.alone)
        return write_metrics(self.libraries, sizes, command_line)

    def _find(self) -> NDArray[np.uint8]:
        """Find all duplicates, on the CPU if the device is too small, and empty the table; return uint8 [fragments]."""
        table, backend = self.table, self._backend
        memory = backend.memory()
        if memory is not None and memory[0] < FINDING_BYTES * table.count:
            backend = CpuBackend(backend.threads)
        with backend.thread_stream():
            rows, barcodes = table.take(backend)
            found = find_duplicates(rows, barcodes, table.counters.size, self._rules.distance, backend)
            marks: NDArray[np.uint8] = backend.to_host(found.marks)
        table.counters += found.counters.reshape(table.counters.shape)
        self._found = found
        return marks
