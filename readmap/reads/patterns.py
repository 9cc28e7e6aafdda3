"""Reads -> Patterns: packed once, in the layout that an exact search reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.reads.length_order import slots_of

_PACK = Kernel("reads/patterns", "pack_patterns")


@dataclass(frozen=True)
class Patterns:
    """Patterns in slots ordered by length, packed; the layout is that of kernels/reads/patterns.cuh.

    Attributes:
        slot_of: int32 [patterns], the slot of each record.
        words: uint64; block_offsets: int64 [blocks + 1].
        lengths: int32 [patterns] by slot, 0 where a base is ambiguous.
        lane_bits: a block has 2^lane_bits slots.
        replaced: ambiguous letters other than N.
    """

    slot_of: Array
    words: Array
    block_offsets: Array
    lengths: Array
    lane_bits: int
    replaced: int

    def __len__(self) -> int:
        return len(self.lengths)


def pack_patterns(letters: Array, starts: Array, lengths: Array, backend: Backend) -> Patterns:
    """At least one pattern, packed.

    letters: uint8; starts: int64 [patterns], where each begins; lengths: int32 [patterns]; all on the device.
    """
    slots = slots_of(lengths, 1, 0, backend)
    words, packed_lengths = backend.full(slots.words, 0, np.uint64), backend.empty(len(lengths), np.int32)
    replaced = backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK,
        len(lengths),
        bytes=letters,
        order=slots.order,
        sequence_starts=starts,
        full_lengths=slots.lengths,
        block_offsets=slots.block_offsets,
        words=words,
        lengths=packed_lengths,
        replaced=replaced,
        lane_bits=backend.lane_bits,
    )
    letters_replaced = int(backend.to_host(replaced)[0])
    return Patterns(slots.slot_of, words, slots.block_offsets, packed_lengths, backend.lane_bits, letters_replaced)
