"""Lengths of reads -> Slots: their order by length, and where the words of each block lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs

_BEGIN, _LAY = Kernel("reads/length_order", "begin_order"), Kernel("reads/length_order", "lay_slots")
_BLOCK = constant("reads/length_order.cu", "BLOCK")

#: Of a word of packed bases.
WORD_BASES = 32


@dataclass(frozen=True)
class Steps:
    """The lengths that reads have, ascending, on the host.

    Attributes:
        slots: int32 [steps], where each length begins; lengths: int32 [steps]. count: of the reads.
    """

    slots: NDArray[np.int32]
    lengths: NDArray[np.int32]
    count: int

    @property
    def longest(self) -> int:
        """Bases of the longest read."""
        return int(self.lengths[-1])

    def length_of(self, slot: int) -> int:
        """Bases of the read in a slot."""
        return int(self.lengths[np.searchsorted(self.slots, slot, "right") - 1])

    def first_of(self, least: int) -> int:
        """The first slot of a read that has so many bases; their number where none has."""
        step = int(np.searchsorted(self.lengths, least))
        return int(self.slots[step]) if step < len(self.slots) else self.count


@dataclass(frozen=True)
class Slots:
    """Records in the order of their lengths, those of one length as they came.

    Attributes:
        order: int32 [records], the record in each slot; slot_of: int32 [records], its inverse.
        lengths: int32 [records] by slot; steps: the same on the host.
        tile_offsets: int64 [blocks + 1], where the words of each block of slots begin; words: of all.
    """

    order: Array
    slot_of: Array
    lengths: Array
    steps: Steps
    tile_offsets: Array
    words: int


def sort_by_length(lengths: Array, planes: int, pads: int, backend: Backend) -> Slots:
    """The slots of at least one read.

    lengths: int32 [records]. planes: of a block; each has words of 32 bases for its longest read, and `pads` more.
    """
    count = len(lengths)
    keys, records = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
    begun = backend.full(2, 0, np.uint32)
    given = {"lengths": lengths, "keys": keys, "records": records, "told": begun, "size": count}
    backend.launch(_BEGIN, -(-count // _BLOCK), **given)
    differing, first = backend.to_host(begun).tolist()
    if bits := differing.bit_length():
        scratch = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        keys, records = sort_pairs(keys, records, *scratch, bits, backend)
    order, slot_of = records.view(np.int32), backend.empty(count, np.int32)
    by_slot = backend.empty(count, np.int32)
    # By length the first slot that has it, -1 where none has; behind them the words.
    known = backend.full((1 << (differing | first).bit_length()) + 1, -1, np.int64)
    sizes = backend.empty((count - 1 >> backend.warp_bits) + 2, np.int64)
    made = {"lengths": by_slot, "slot_of": slot_of, "firsts": known[:-1], "sizes": sizes}
    shape = {"size": count, "tile_bits": backend.warp_bits, "planes": planes, "pads": pads}
    backend.launch(_LAY, count, keys=keys, order=order, **made, **shape)
    tile_offsets = backend.inclusive_sum(sizes)
    if differing:
        backend.copy_into(known[-1:], tile_offsets[-1:])
        told = backend.to_host(known)
        steps, words = np.flatnonzero(told[:-1] >= 0), int(told[-1])
        slots = told[steps]
    else:  # as most reads are; the host knows the rest
        steps, slots = np.full(1, first), np.zeros(1)
        words = (len(sizes) - 1) * (planes * (-(-first // WORD_BASES) + pads) << backend.warp_bits)
    there = Steps(slots.astype(np.int32), steps.astype(np.int32), count)
    return Slots(order, slot_of, by_slot, there, tile_offsets, words)
