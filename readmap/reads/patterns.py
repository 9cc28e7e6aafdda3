"""Reads -> Patterns: one orientation with 2 bits per base, for exact search."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.tables import Table
from readmap.reads.length_order import sort_by_length

_PACK = Kernel("reads/patterns", "pack_patterns")


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
        _PACK,
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
