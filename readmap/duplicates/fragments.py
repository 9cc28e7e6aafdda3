"""Records of a batch -> fragments; the table of all fragments in input order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.tables import Table
from readmap.bam.marking import MAX_FRAGMENTS
from readmap.errors import UsageError
from readmap.formats.sam import ReadGroupInfo, hash_text

_DESCRIBE = Kernel("duplicates/fragments", "describe_fragments")
_COUNT = Kernel("duplicates/fragments", "count_reads")
_COPY_ROWS, _COPY_BARCODES = (Kernel("duplicates/fragments", f"copy_{what}") for what in ("fragments", "barcodes"))

_HEADER = "duplicates/fragment.cuh"
FRAGMENT = row_dtype(_HEADER, "Fragment")
FRAGMENT_WORDS = FRAGMENT.itemsize // 8
POSITION_BITS, COUNTERS = constant(_HEADER, "POSITION_BITS"), constant(_HEADER, "COUNTERS")
_MISSING, _UNMAPPED_KEY = constant(_HEADER, "MISSING_MATES"), constant(_HEADER, "UNMAPPED_KEY")
_MARGIN, _BLOCK = constant(_HEADER, "MARGIN"), constant("duplicates/fragments.cu", "COUNTED_BLOCK")

#: Library of reads without a read group, or whose read group has no LB.
UNKNOWN_LIBRARY = "Unknown Library"

#: Fragments may take 1/HELD_SHARE of the device's memory; further fragments go to the host.
HELD_SHARE = 16

#: Maximum number of libraries and read groups.
MAX_READ_GROUPS = 1 << 15


class _ReadGroups(Table, struct="duplicates/fragments.cu:ReadGroups"):
    """The read groups of the header and their libraries."""


@dataclass(frozen=True)
class FragmentBatch:
    """The fragments of a batch, on its device.

    rows: int64 [fragments, FRAGMENT_WORDS], of dtype FRAGMENT. barcodes: uint64 [fragments], 0 without a barcode.
    counters: uint64 [libraries * COUNTERS]. numbers: int64 [entries], the index of each entry's fragment.
    """

    rows: Array
    barcodes: Array
    counters: Array
    numbers: Array


@dataclass
class FragmentTable:
    """The fragments of all batches; libraries: names, sorted as in the metrics; count: fragments so far."""

    groups: Sequence[ReadGroupInfo]
    contig_lengths: Sequence[int]
    backend: Backend
    barcode_tag: str | None = None
    libraries: list[str] = field(init=False)
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Raise UsageError if there are too many read groups or reference bases."""
        names = {group.library or UNKNOWN_LIBRARY for group in self.groups} or {UNKNOWN_LIBRARY}
        self._seen_unknown = UNKNOWN_LIBRARY in names
        self.libraries = sorted(names | {UNKNOWN_LIBRARY})
        if len(self.groups) > MAX_READ_GROUPS:
            raise UsageError(f"--markdup: {len(self.groups):,} read groups, the maximum is {MAX_READ_GROUPS:,}")
        gaps = np.array([length + 2 * _MARGIN for length in self.contig_lengths], np.uint64)
        if int(gaps.sum()) >= 1 << POSITION_BITS:
            raise UsageError("--markdup: the contigs have too many bases for the positions of fragments")
        self._contig_offsets = self.backend.to_device(np.cumsum(gaps) - gaps + np.uint64(_MARGIN))
        self._read_groups = self._groups_on_device()
        self.backend.synchronize()  # batches use other streams
        self.counters = np.zeros((len(self.libraries), COUNTERS), np.int64)
        self._rows: list[Array] = []
        self._barcodes: list[Array] = []
        memory = self.backend.memory()
        self._max_held = memory and memory[1] // HELD_SHARE // FRAGMENT.itemsize

    @property
    def has_barcodes(self) -> bool:
        """Whether fragments with different barcodes are different molecules."""
        return self.barcode_tag is not None

    def describe(
        self, records: Array, lengths: Array, ends: Array, offsets: Array, reads_per_fragment: int = 1
    ) -> FragmentBatch:
        """Compute the fragments of a batch.

        records: uint8, entries with these lengths, int64, 0 for an entry without a record; ends: their inclusive sum.
            offsets: int64 [fragments * reads_per_fragment + 1], the first entry of each read of a fragment.
        """
        backend, entries, count = self.backend, len(lengths), (len(offsets) - 1) // reads_per_fragment
        rows, barcodes = backend.empty((count, FRAGMENT_WORDS), np.int64), backend.empty(count, np.uint64)
        counters = backend.full(self.counters.size, 0, np.uint64)
        numbers = backend.empty(entries, np.int64)
        inputs = {"bytes": records, "lengths": lengths, "ends": ends, "offsets": offsets, "entries": entries}
        inputs |= {"contig_offsets": self._contig_offsets, "reads_per_fragment": reads_per_fragment}
        outputs = {"rows": rows, "barcodes": barcodes, "counters": counters, "numbers": numbers}
        backend.launch(_DESCRIBE, count, **inputs, **outputs, read_groups=self._read_groups)
        backend.launch(_COUNT, -(-count // _BLOCK), rows=rows, counters=counters, size=count)
        return FragmentBatch(rows, barcodes, counters, numbers)

    def add(self, described: FragmentBatch) -> int:
        """Append the fragments of the next batch; return the index of its first fragment."""
        backend, first = self.backend, self._count(len(described.rows))
        self.counters += backend.to_host(described.counters).astype(np.int64).reshape(self.counters.shape)
        is_held = self._max_held is None or self.count <= self._max_held
        self._rows.append(described.rows if is_held else backend.to_host(described.rows).copy())
        if self.has_barcodes:
            self._barcodes.append(described.barcodes if is_held else backend.to_host(described.barcodes).copy())
        return first

    def restore(self, rows: NDArray[np.int64], barcodes: NDArray[np.uint64], counters: NDArray[np.int64]) -> int:
        """Append fragments of another table, on the host; return the first index. ValueError if they do not fit."""
        high = rows[:, 0].view(np.uint64)
        of_others = (high >> np.uint64(POSITION_BITS + 1) >= len(self.libraries)) & (high != np.uint64(_UNMAPPED_KEY))
        if counters.shape != self.counters.shape or of_others.any():
            raise ValueError("fragments of other libraries")
        first = self._count(len(rows))
        self.counters += counters
        self._rows.append(rows)
        if self.has_barcodes:
            self._barcodes.append(barcodes)
        return first

    def _count(self, more: int) -> int:
        """Count `more` fragments; return the index of the first. Raise UsageError if there are too many."""
        first, self.count = self.count, self.count + more
        if self.count > MAX_FRAGMENTS:
            raise UsageError(f"--markdup: more than {MAX_FRAGMENTS:,} fragments")
        return first

    def take(self, backend: Backend) -> tuple[Array, Array]:
        """Move all rows and barcodes (empty if unused) to `backend`, and out of the table."""
        rows = backend.empty((self.count, FRAGMENT_WORDS), np.int64)
        barcodes = backend.empty(self.count if self.has_barcodes else 0, np.uint64)
        for kernel, name, whole, parts in (
            (_COPY_ROWS, "rows", rows, self._rows),
            (_COPY_BARCODES, "barcodes", barcodes, self._barcodes),
        ):
            at = 0
            while parts:  # each part is freed when copied, to avoid holding all of them twice
                part = parts.pop(0)
                if not isinstance(part, backend.xp.ndarray):
                    is_here = isinstance(part, np.ndarray)
                    part = backend.to_device(part if is_here else self.backend.to_host(part))
                backend.launch(kernel, len(part), **{name: part}, all=whole[at : at + len(part)])
                at += len(part)
                backend.synchronize()
        return rows, barcodes

    @property
    def missing_mates(self) -> int:
        """The number of fragments with one read whose mate is mapped but not in the input."""
        return int(self.counters[:, _MISSING].sum())

    def reported_libraries(self) -> list[tuple[str, NDArray[np.int64]]]:
        """Return the header's libraries, and the unknown library if it has reads, with their counters."""
        return [
            (name, counters)
            for name, counters in zip(self.libraries, self.counters, strict=True)
            if name != UNKNOWN_LIBRARY or self._seen_unknown or counters.any()
        ]

    def _groups_on_device(self) -> _ReadGroups:
        """Return the read groups on the device: hashes of their names, and indices of their libraries."""
        numbers = {name: number for number, name in enumerate(self.libraries)}
        of_groups = [numbers[group.library or UNKNOWN_LIBRARY] for group in self.groups]
        hashed = np.array([hash_text(group.name.encode()) for group in self.groups], np.uint64)
        tag = self.barcode_tag.encode() if self.barcode_tag else b"\0\0"
        arrays: dict[str, Array] = {"names": hashed, "numbers": np.arange(len(hashed), dtype=np.uint16)}
        arrays["libraries"] = np.array(of_groups, np.uint16)
        facts = {"unknown_library": numbers[UNKNOWN_LIBRARY], "barcode_tag": tag[0] | tag[1] << 8}
        on_device = {name: self.backend.to_device(array) for name, array in arrays.items()}
        return _ReadGroups(**on_device, groups=len(hashed), **facts)
