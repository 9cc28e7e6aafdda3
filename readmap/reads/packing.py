"""Reads -> Queries, both orientations of every read, or Patterns, one orientation for exact search: 2 bits per base."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.tables import Table
from readmap.reads.length_order import LengthRuns, sort_by_length
from readmap.reads.parsing import Reads

_PACK_QUERIES = Kernel("reads/queries", "pack_queries")
_PACK_PATTERNS = Kernel("reads/patterns", "pack_patterns")

#: Bit planes of a tile of queries: bases and ambiguity masks, in both orientations.
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
        _PACK_QUERIES,
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


class Patterns(Table, struct="reads/patterns.cuh:Patterns"):
    """Patterns in slots sorted by length, packed; kernels/reads/patterns.cuh defines the layout.

    replaced: number of ambiguous letters other than N.
    """

    replaced: int

    def __len__(self) -> int:
        return len(self.lengths)


def pack_patterns(letters: Array, starts: Array, lengths: Array, backend: Backend) -> Patterns:
    """Pack at least one pattern.

    letters: uint8. starts: int64 [patterns], positions in `letters`. lengths: int32 [patterns]. All are on the device.
    """
    slots = sort_by_length(lengths, 1, 0, backend)
    words, packed_lengths = backend.full(slots.words, 0, np.uint64), backend.empty(len(lengths), np.int32)
    replaced = backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK_PATTERNS,
        len(lengths),
        bytes=letters,
        order=slots.order,
        sequence_starts=starts,
        full_lengths=slots.lengths,
        tile_offsets=slots.tile_offsets,
        words=words,
        lengths=packed_lengths,
        replaced=replaced,
        tile_bits=backend.warp_bits,
    )
    letters_replaced = int(backend.to_host(replaced)[0])
    return Patterns(
        words=words,
        tile_offsets=slots.tile_offsets,
        lengths=packed_lengths,
        slot_of=slots.slot_of,
        tile_bits=backend.warp_bits,
        replaced=letters_replaced,
    )
