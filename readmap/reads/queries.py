"""Reads -> Queries: both orientations of every read, packed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.reads.parsing import Reads
from readmap.reads.length_order import Steps, sort_by_length

_PACK = Kernel("reads/queries", "pack_queries")

#: Of a block: the bases and the ambiguous ones, in either orientation.
PLANES = 4


@dataclass(frozen=True)
class Queries:
    """Reads in slots ordered by length, packed in both orientations; the layout is that of kernels/reads/queries.cuh.

    Attributes:
        order: int32 [reads], the record in each slot; slot_of: int32 [reads], its inverse.
        words: uint64, four planes a block; tile_offsets: int64 [blocks + 1].
        lengths: int32 [reads] by slot; flags, hashes: uint8, uint64 [reads] by slot.
        steps: the lengths on the host.
        replaced: uint64 [1], ambiguous letters other than N, which are written as N.
        tile_bits: a block has 2^tile_bits slots.
    """

    order: Array
    slot_of: Array
    words: Array
    tile_offsets: Array
    lengths: Array
    flags: Array
    hashes: Array
    steps: Steps
    replaced: Array
    tile_bits: int

    @property
    def longest(self) -> int:
        """Bases of the longest read."""
        return self.steps.max_length


def pack_queries(reads: Reads, backend: Backend) -> Queries:
    """Both orientations of every read, packed and interleaved."""
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
        slots.order,
        slots.slot_of,
        words,
        slots.tile_offsets,
        slots.lengths,
        flags,
        hashes,
        slots.length_runs,
        replaced,
        backend.warp_bits,
    )
