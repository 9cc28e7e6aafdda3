"""Records of a batch -> what is known of its fragments; all fragments in the order of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.bam.marking import MAX_FRAGMENTS
from readmap.bam.tags import hash_text
from readmap.errors import UsageError
from readmap.formats.sam_header import ReadGroupInfo

_DESCRIBE = Kernel("duplicates/fragments", "describe_fragments")
_COUNT = Kernel("duplicates/fragments", "count_reads")
_COPY_ROWS, _COPY_BARCODES = (Kernel("duplicates/fragments", f"copy_{what}") for what in ("fragments", "barcodes"))

_HEADER = "duplicates/fragment.cuh"
FRAGMENT = row_dtype(_HEADER, "Fragment")
FRAGMENT_WORDS = FRAGMENT.itemsize // 8
PLACE_BITS, COUNTERS = constant(_HEADER, "PLACE_BITS"), constant(_HEADER, "COUNTERS")
_MISSING, _UNMAPPED_KEY = constant(_HEADER, "MISSING_MATES"), constant(_HEADER, "UNMAPPED_KEY")
_MARGIN, _BLOCK = constant(_HEADER, "MARGIN"), constant("duplicates/fragments.cu", "COUNTED_BLOCK")

#: What a library is called that a read group does not name, or of reads without one.
UNKNOWN_LIBRARY = "Unknown Library"

#: Of a device's memory, the part that fragments may take; what it does not hold goes to the host.
HELD_SHARE = 16

#: Libraries and read groups that there may be.
MAX_READ_GROUPS = 1 << 15


@dataclass(frozen=True)
class _ReadGroups:
    """struct ReadGroups of kernels/duplicates/fragments.cu."""

    names: Array
    numbers: Array
    libraries: Array
    groups: int
    unknown_library: int
    barcode_tag: int


@dataclass(frozen=True)
class FragmentBatch:
    """The fragments of a batch, on its device.

    Attributes:
        rows: int64 [fragments, FRAGMENT_WORDS], FRAGMENT; barcodes: uint64 [fragments], 0 for none.
        counters: uint64 [libraries * COUNTERS]. numbers: int64 [entries], the fragment of each entry.
    """

    rows: Array
    barcodes: Array
    counters: Array
    numbers: Array


@dataclass
class FragmentTable:
    """All fragments, batch by batch.

    Attributes:
        backend: on whose device the batches are.
        libraries: their names, in the order of the alphabet, as metrics list them.
        has_barcodes: whether fragments of different barcodes are no duplicates.
    """

    groups: Sequence[ReadGroupInfo]
    contig_lengths: Sequence[int]
    backend: Backend
    barcode_tag: str | None = None
    libraries: list[str] = field(init=False)
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Raises UsageError where there are too many read groups, or contigs of too many bases."""
        names = {group.library or UNKNOWN_LIBRARY for group in self.groups} or {UNKNOWN_LIBRARY}
        self._seen_unknown = UNKNOWN_LIBRARY in names
        self.libraries = sorted(names | {UNKNOWN_LIBRARY})
        if len(self.groups) > MAX_READ_GROUPS:
            raise UsageError(f"--markdup: {len(self.groups):,} read groups, of which there may be {MAX_READ_GROUPS:,}")
        gaps = np.array([length + 2 * _MARGIN for length in self.contig_lengths], np.uint64)
        if int(gaps.sum()) >= 1 << PLACE_BITS:
            raise UsageError("--markdup: the contigs have more bases than places of fragments hold")
        self._places = self.backend.to_device(np.cumsum(gaps) - gaps + np.uint64(_MARGIN))
        self._read_groups = self._groups_on_device()
        self.backend.synchronize()  # batches have streams of their own
        self.counters = np.zeros((len(self.libraries), COUNTERS), np.int64)
        self._rows: list[Array] = []
        self._barcodes: list[Array] = []
        memory = self.backend.memory()
        self._most_held = memory and memory[1] // HELD_SHARE // FRAGMENT.itemsize

    @property
    def has_barcodes(self) -> bool:
        """Whether fragments of different barcodes are different molecules."""
        return self.barcode_tag is not None

    def describe(self, records: Array, lengths: Array, ends: Array, offsets: Array, together: int = 1) -> FragmentBatch:
        """The fragments of a batch.

        records: uint8, entries of some lengths, int64, 0 where an entry has no record; ends: their inclusive prefix
        sum. offsets: int64 [fragments * together + 1], where the entries of each read of a fragment begin.
        """
        backend, entries, count = self.backend, len(lengths), (len(offsets) - 1) // together
        rows, barcodes = backend.empty((count, FRAGMENT_WORDS), np.int64), backend.empty(count, np.uint64)
        counters = backend.full(self.counters.size, 0, np.uint64)
        numbers = backend.empty(entries, np.int64)
        backend.launch(
            _DESCRIBE,
            count,
            bytes=records,
            lengths=lengths,
            ends=ends,
            offsets=offsets,
            contig_places=self._places,
            read_groups=self._read_groups,
            rows=rows,
            barcodes=barcodes,
            counters=counters,
            numbers=numbers,
            entries=entries,
            together=together,
        )
        backend.launch(_COUNT, -(-count // _BLOCK), rows=rows, counters=counters, size=count)
        return FragmentBatch(rows, barcodes, counters, numbers)

    def add(self, described: FragmentBatch) -> int:
        """Take the fragments of the next batch; the number of its first one."""
        backend, first = self.backend, self._count(len(described.rows))
        self.counters += backend.to_host(described.counters).astype(np.int64).reshape(self.counters.shape)
        is_held = self._most_held is None or self.count <= self._most_held
        self._rows.append(described.rows if is_held else backend.to_host(described.rows).copy())
        if self.has_barcodes:
            self._barcodes.append(described.barcodes if is_held else backend.to_host(described.barcodes).copy())
        return first

    def restore(self, rows: NDArray[np.int64], barcodes: NDArray[np.uint64], counters: NDArray[np.int64]) -> int:
        """Take all fragments that another table had, on the host; the number of the first one.

        Raises ValueError where they are not those of such a table.
        """
        high = rows[:, 0].view(np.uint64)
        of_others = (high >> np.uint64(PLACE_BITS + 1) >= len(self.libraries)) & (high != np.uint64(_UNMAPPED_KEY))
        if counters.shape != self.counters.shape or of_others.any():
            raise ValueError("fragments of other libraries")
        first = self._count(len(rows))
        self.counters += counters
        self._rows.append(rows)
        if self.has_barcodes:
            self._barcodes.append(barcodes)
        return first

    def _count(self, more: int) -> int:
        """Count so many; the number of the first one. Raises UsageError where they cannot be numbered."""
        first, self.count = self.count, self.count + more
        if self.count > MAX_FRAGMENTS:
            raise UsageError(f"--markdup: more than {MAX_FRAGMENTS:,} fragments")
        return first

    def take(self, backend: Backend) -> tuple[Array, Array]:
        """All rows and barcodes, none of these where they do not count, on a device, or on that of the batches; they
        are not held any more."""
        rows = backend.empty((self.count, FRAGMENT_WORDS), np.int64)
        barcodes = backend.empty(self.count if self.has_barcodes else 0, np.uint64)
        for kernel, name, whole, parts in (
            (_COPY_ROWS, "rows", rows, self._rows),
            (_COPY_BARCODES, "barcodes", barcodes, self._barcodes),
        ):
            at = 0
            while parts:  # each is let go where it has been copied, so that all are not there twice
                part = parts.pop(0)
                if not isinstance(part, backend.xp.ndarray):
                    is_here = isinstance(part, np.ndarray)
                    part = backend.to_device(part if is_here else self.backend.to_host(part))
                backend.launch(kernel, len(part), **{name: part}, all=whole[at : at + len(part)])
                at += len(part)
                backend.synchronize()
        return rows, barcodes

    @property
    def lost(self) -> int:
        """Fragments with one read whose mate is mapped too, but has not come."""
        return int(self.counters[:, _MISSING].sum())

    def reported_libraries(self) -> list[tuple[str, NDArray[np.int64]]]:
        """The libraries that metrics tell of, and their counters: those of the header, and others that have reads."""
        return [
            (name, counters)
            for name, counters in zip(self.libraries, self.counters, strict=True)
            if name != UNKNOWN_LIBRARY or self._seen_unknown or counters.any()
        ]

    def _groups_on_device(self) -> _ReadGroups:
        to_device = self.backend.to_device
        numbers = {name: number for number, name in enumerate(self.libraries)}
        of_groups = [numbers[group.library or UNKNOWN_LIBRARY] for group in self.groups]
        hashed = np.array([hash_text(group.name.encode()) for group in self.groups], np.uint64)
        tag = self.barcode_tag.encode() if self.barcode_tag else b"\0\0"
        return _ReadGroups(
            to_device(hashed),
            to_device(np.arange(len(hashed), dtype=np.uint16)),
            to_device(np.array(of_groups, np.uint16)),
            len(hashed),
            numbers[UNKNOWN_LIBRARY],
            tag[0] | tag[1] << 8,
        )
