"""Records of BAM -> counts of each read group, on the device where the records lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs
from readmap.bam.tags import hash_text
from readmap.formats.sam_header import ReadGroupInfo

_FIND = Kernel("qc/records", "find_units")
_COUNT = Kernel("qc/records", "count_records")
_CYCLES = Kernel("qc/records", "count_cycles")

_HEADER = "qc/counts.cuh"
MATES, FLAGS, CYCLES, QUALITIES = (constant(_HEADER, name) for name in ("MATES", "FLAGS", "CYCLES", "QUALITIES"))
BASES, ADAPTERS, INSERTS = (constant(_HEADER, name) for name in ("BASES", "ADAPTERS", "INSERTS"))
ORIENTATIONS, UNIT_COUNTERS = constant(_HEADER, "ORIENTATIONS"), constant(_HEADER, "UNIT_COUNTERS")
_SECTION, _TILE = constant("qc/records.cu", "SECTION"), constant("qc/records.cu", "TILE_CYCLES")


@dataclass(frozen=True)
class _Counts:
    """struct Counts of kernels/qc/counts.cuh: uint64, flat; a unit is a read group's first or second mates."""

    records: Array
    empty: Array
    inserts: Array
    qualities: Array
    bases: Array
    mismatches: Array
    adapters: Array
    units: int
    groups: int


#: Of the arrays: the elements of a read group.
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
    """What is counted of the records of each read group, and of those that have none of the header's, the last one."""

    def __init__(self, groups: Sequence[ReadGroupInfo], backend: Backend) -> None:
        """groups: of the header. backend: on whose device the records are."""
        self._backend, self._groups = backend, len(groups)
        names = np.array([hash_text(group.name.encode()) for group in groups], np.uint64)
        self._names = backend.to_device(names)
        total = len(groups) + 1
        arrays = {name: backend.full(total * int(np.prod(shape)), 0, np.uint64) for name, shape in _SHAPES.items()}
        self._counts = _Counts(**arrays, units=MATES * total, groups=total)

    def measure(self, records: Array, ends: Array, origin: int) -> None:
        """Count some records: their bytes, uint8, and where each ends, int64, from `origin` on."""
        backend, count = self._backend, len(ends)
        units, numbers = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        longest = backend.full(1, 0, np.int32)
        given = {"bytes": records, "ends": ends, "origin": origin}
        made = {"units": units, "numbers": numbers, "longest": longest}
        backend.launch(_FIND, count, **given, **made, names=self._names, groups=self._groups)
        scratch = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        units, order = sort_pairs(units, numbers, *scratch, (self._counts.units - 1).bit_length(), backend)
        given |= {"units": units, "order": order, "counts": self._counts, "records": count}
        sections = -(-count // _SECTION)
        backend.launch(_COUNT, sections, **given)
        tiles = -(-int(backend.to_host(longest)[0]) // _TILE)
        backend.launch(_CYCLES, sections * tiles, **given, tiles=tiles)

    def to_host(self) -> dict[str, NDArray[np.int64]]:
        """All counts, int64 [groups + 1, ...] by the names of struct Counts, as _SHAPES has the rest."""
        total, host = self._counts.groups, self._backend.to_host
        return {
            name: host(getattr(self._counts, name)).astype(np.int64).reshape(total, *shape)
            for name, shape in _SHAPES.items()
        }
