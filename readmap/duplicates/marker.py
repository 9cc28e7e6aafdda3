"""The duplicates of a run: its fragments come batch by batch, and when all have come it is known which are marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.marking import TAIL, Marking
from readmap.bam.order import SortedRecords, number_fragments
from readmap.duplicates.fragments import FragmentBatch, FragmentTable
from readmap.duplicates.metrics import LibraryMetrics, SetSizes, write_metrics
from readmap.duplicates.sets import DuplicateSets, find_duplicates
from readmap.errors import UsageError
from readmap.formats.sam_header import ReadGroupInfo

#: Pixels within which clusters are one, of flow cells without a pattern.
OPTICAL_DISTANCE = 100

#: Memory of a device that a fragment takes while duplicates are found.
FINDING_BYTES = 200


@dataclass(frozen=True)
class DuplicateRules:
    """What duplicates are, and what becomes of them.

    Attributes:
        distance: in pixels, of optical duplicates; 0 where none are looked for.
        barcode_tag: the tag whose text, or its absence, fragments of a molecule share; None for none.
        is_removed: whether they are left out. has_type: whether they get DT, SQ for optical ones, else LB.
    """

    distance: int = OPTICAL_DISTANCE
    barcode_tag: str | None = None
    is_removed: bool = False
    has_type: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError where the tag is none."""
        if self.barcode_tag is not None and not re.fullmatch("[A-Za-z][A-Za-z0-9]", self.barcode_tag):
            raise UsageError(f"--barcode-tag {self.barcode_tag}: expected a tag of two characters, as RX")


class DuplicateMarker:
    """Which fragments are duplicates; `begin` comes first, then fragments are described and taken, in their order."""

    def __init__(self, rules: DuplicateRules, backend: Backend) -> None:
        """backend: on whose device the records are, and where duplicates are found, if it has the memory."""
        self._rules = rules
        self._backend = backend
        self._table: FragmentTable | None = None
        self._found: DuplicateSets | None = None
        self._marks: NDArray[np.uint8] | None = None

    def begin(self, groups: Sequence[ReadGroupInfo], contig_lengths: Sequence[int]) -> None:
        """The read groups and the contigs of the header. Raises UsageError where there are too many."""
        self._table = FragmentTable(groups, contig_lengths, self._backend, self._rules.barcode_tag)

    @property
    def table(self) -> FragmentTable:
        """All fragments so far."""
        if self._table is None:
            raise TypeError("no header has come")
        return self._table

    def take(self, described: FragmentBatch, run: SortedRecords) -> None:
        """The next batch: its fragments, and the run of its records, which get their numbers."""
        number_fragments(run, self.table.add(described), self._backend)

    def marking(self, backend: Backend) -> Marking:
        """What is marked, on a device; all fragments have come."""
        if self._marks is None:
            self._find()
        assert self._marks is not None
        return Marking(backend.to_device(self._marks), TAIL, self._rules.is_removed, self._rules.has_type)

    @property
    def libraries(self) -> list[LibraryMetrics]:
        """The metrics of each library, once the duplicates are known."""
        return [LibraryMetrics.of(name, counters) for name, counters in self.table.reported_libraries()]

    def metrics(self, command_line: str) -> str:
        """The text of their file, once the duplicates are known."""
        if self._found is None:
            raise TypeError("the duplicates are not known yet")
        sizes = SetSizes.of(self._found.sizes, self._found.optical, self._found.alone)
        return write_metrics(self.libraries, sizes, command_line)

    def _find(self) -> None:
        table, backend = self.table, self._backend
        memory = backend.memory()
        if memory is not None and memory[0] < FINDING_BYTES * table.count:
            backend = CpuBackend(backend.threads)
        with backend.thread_stream():
            rows, barcodes = table.take(backend)
            found = find_duplicates(rows, barcodes, table.counters.size, self._rules.distance, backend)
            self._marks = backend.to_host(found.marks)
        table.counters += found.counters.reshape(table.counters.shape)
        self._found = found
