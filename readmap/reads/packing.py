"""Reads -> Queries, both orientations of every read, or Patterns, one orientation for exact search: 2 bits per base."""

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.tables import Table
from readmap.reads.length_order import LengthRuns, sort_by_length
from readmap.reads.parsing import Reads

_PACK_QUERIES = Kernel("reads/queries", "pack_queries")
_PACK_PATTERNS = Kernel("reads/patterns", "pack_patterns")
PLANES = 4  # bit planes of a tile of queries: bases and ambiguity masks, in both orientations


class Queries(Table, struct="reads/queries.cuh:Queries"):
    """Reads in slots sorted by length, packed in both orientations; kernels/reads/queries.cuh defines the layout."""

    length_runs: LengthRuns  # the lengths on the host
    replaced: Array  # uint64 [1], number of ambiguous letters other than N, which are written as N

    @property
    def max_length(self) -> int:
        return self.length_runs.max_length


def pack_queries(reads: Reads, backend: Backend) -> Queries:
    """Sort reads by length and pack both orientations of every read."""
    count, slots = reads.count, sort_by_length(reads.lengths, PLANES, 1, backend)
    shared = {
        "order": slots.order,
        "lengths": slots.lengths,
        "tile_offsets": slots.tile_offsets,
        "tile_bits": backend.warp_bits,
        "words": backend.full(slots.words + backend.warp_width, 0, np.uint64),
        "flags": backend.empty(count, np.uint8),
        "hashes": backend.empty(count, np.uint64),
        "replaced": backend.full(1, 0, np.uint64),
    }
    given = {"bytes": reads.bytes, "sequence_starts": reads.sequence_starts, "marks": reads.marks}
    backend.launch(_PACK_QUERIES, count, **given, **shared)
    return Queries(**shared, slot_of=slots.slot_of, length_runs=slots.length_runs)


class Patterns(Table, struct="reads/patterns.cuh:Patterns"):
    """Patterns in slots sorted by length, packed; kernels/reads/patterns.cuh defines the layout."""

    replaced: int  # number of ambiguous letters other than N

    def __len__(self) -> int:
        return len(self.lengths)


def pack_patterns(letters: Array, starts: Array, lengths: Array, backend: Backend) -> Patterns:
    """Pack patterns, at least one: int32 lengths, and int64 starts in the uint8 letters, all on the device."""
    slots, replaced = sort_by_length(lengths, 1, 0, backend), backend.full(1, 0, np.uint64)
    shared = {
        "tile_offsets": slots.tile_offsets,
        "tile_bits": backend.warp_bits,
        "words": backend.full(slots.words, 0, np.uint64),
        "lengths": backend.empty(len(lengths), np.int32),
    }
    given = {"bytes": letters, "order": slots.order, "sequence_starts": starts, "full_lengths": slots.lengths}
    backend.launch(_PACK_PATTERNS, len(lengths), **given, **shared, replaced=replaced)
    return Patterns(**shared, slot_of=slots.slot_of, replaced=int(backend.to_host(replaced)[0]))
