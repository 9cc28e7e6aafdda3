"""BAM records -> counts of each read group, on the device of the records."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs
from readmap.backend.tables import Table
from readmap.formats.sam import ReadGroupInfo, hash_text

_FIND = Kernel("qc/records", "find_units")
_COUNT = Kernel("qc/records", "count_records")
_CYCLES = Kernel("qc/records", "count_cycles")

_HEADER = "qc/counts.cuh"
MATES, FLAGS, CYCLES, QUALITIES = (constant(_HEADER, name) for name in ("MATES", "FLAGS", "CYCLES", "QUALITIES"))
BASES, ADAPTERS, INSERTS = (constant(_HEADER, name) for name in ("BASES", "ADAPTERS", "INSERTS"))
ORIENTATIONS, UNIT_COUNTERS = constant(_HEADER, "ORIENTATIONS"), constant(_HEADER, "UNIT_COUNTERS")
_SECTION, _TILE = constant("qc/records.cu", "SECTION"), constant("qc/records.cu", "TILE_CYCLES")


class _Counts(Table, struct="qc/counts.cuh:Counts"):
    """All counts of the records; a unit is the first or the second mates of a read group."""


#: The shape of each array for one read group.
_SHAPES = {
    "records": (MATES, UNIT_COUNTERS),
    "empty": (MATES, FLAGS),
    "inserts": (ORIENTATIONS, INSERTS),
    "qualities": (MATES, CYCLES, QUALITIES),
    "bases": (MATES, CYCLES, BASES),
    "mismatches": (MATES, CYCLES),
    "adapters": (MATES, ADAPTERS, CYCLES),
}


class RecordCounts:
    """Counts of the records of each read group; the last row is for records without a read group of the header."""

    def __init__(self, groups: Sequence[ReadGroupInfo], backend: Backend) -> None:
        """groups: the header's read groups. backend: the device of the records."""
        self._backend, self._groups = backend, len(groups)
        names = np.array([hash_text(group.name.encode()) for group in groups], np.uint64)
        self._names = backend.to_device(names)
        total = len(groups) + 1
        zero = dict.fromkeys(_SHAPES, 0)
        self._counts = _Counts.allocate(backend, units=MATES * total, groups=total, fill=zero)

    def measure(self, records: Array, ends: Array, origin: int) -> None:
        """Add records to the counts; records: uint8 bytes; ends: int64, end of each record relative to `origin`."""
        backend, count = self._backend, len(ends)
        units, indices = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        longest = backend.full(1, 0, np.int32)
        inputs = {"bytes": records, "ends": ends, "origin": origin}
        outputs = {"units": units, "indices": indices, "longest": longest}
        backend.launch(_FIND, count, **inputs, **outputs, names=self._names, groups=self._groups)
        scratch = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        units, order = sort_pairs(units, indices, *scratch, (self._counts.units - 1).bit_length(), backend)
        inputs |= {"units": units, "order": order, "counts": self._counts, "records": count}
        sections = -(-count // _SECTION)
        backend.launch(_COUNT, sections, **inputs)
        tiles = -(-int(backend.to_host(longest)[0]) // _TILE)
        backend.launch(_CYCLES, sections * tiles, **inputs, tiles=tiles)

    def to_host(self) -> dict[str, NDArray[np.int64]]:
        """Return all counts by the names of struct Counts, int64 [groups + 1, ...] with the shapes of _SHAPES."""
        total, host = self._counts.groups, self._backend.to_host
        return {
            name: host(getattr(self._counts, name)).astype(np.int64).reshape(total, *shape)
            for name, shape in _SHAPES.items()
        }
