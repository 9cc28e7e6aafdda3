"""Reads -> Queries: both orientations of every read, with 2 bits per base."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.tables import Table
from readmap.reads.length_order import LengthRuns, sort_by_length
from readmap.reads.parsing import Reads

_PACK = Kernel("reads/queries", "pack_queries")

#: Bit planes of a tile: bases and ambiguity masks, in both orientations.
PLANES = 4


class Queries(Table, struct="reads/queries.cuh:Queries"):
    """Reads in slots sorted by length, packed in both orientations; kernels/reads/queries.cuh defines the layout.

    Attributes:
        length_runs: the lengths on the host.
        replaced: uint64 [1], number of ambiguous letters other than N, which are written as N.
    """

    length_runs: LengthRuns
    replaced: Array

    @property
    def max_length(self) -> int:
        """Bases of the longest read."""
        return self.length_runs.max_length


def pack_queries(reads: Reads, backend: Backend) -> Queries:
    """Sort reads by length and pack both orientations of every read."""
    count, slots = reads.count, sort_by_length(reads.lengths, PLANES, 1, backend)
    words = backend.full(slots.words + backend.warp_width, 0, np.uint64)
    flags, hashes = backend.empty(count, np.uint8), backend.empty(count, np.uint64)
    replaced = backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK,
        count,
        bytes=reads.bytes,
        order=slots.order,
        sequence_starts=reads.sequence_starts,
        lengths=slots.lengths,
        marks=reads.marks,
        tile_offsets=slots.tile_offsets,
        words=words,
        flags=flags,
        hashes=hashes,
        replaced=replaced,
        tile_bits=backend.warp_bits,
    )
    return Queries(
        order=slots.order,
        slot_of=slots.slot_of,
        words=words,
        tile_offsets=slots.tile_offsets,
        lengths=slots.lengths,
        flags=flags,
        hashes=hashes,
        length_runs=slots.length_runs,
        replaced=replaced,
        tile_bits=backend.warp_bits,
    )
