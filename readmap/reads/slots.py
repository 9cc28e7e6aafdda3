"""Lengths of reads -> Slots: their order by length, and where the words of each block lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.marks import list_marked
from readmap.backend.sorting import sort_pairs

_BEGIN, _LAY = Kernel("reads/slots", "begin_order", grouped=True), Kernel("reads/slots", "lay_slots")
_TELL = Kernel("reads/slots", "tell_steps")
_BLOCK = constant("reads/slots.cu", "BLOCK")

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
        block_offsets: int64 [blocks + 1], where the words of each block of slots begin; words: of all.
    """

    order: Array
    slot_of: Array
    lengths: Array
    steps: Steps
    block_offsets: Array
    words: int


def slots_of(lengths: Array, planes: int, pads: int, backend: Backend) -> Slots:
    """The slots of at least one read.

    lengths: int32 [records]. planes: of a block; each has words of 32 bases for its longest read, and `pads` more.
    """
    count = len(lengths)
    keys, records = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
    told = backend.full(2, 0, np.uint32)
    given = {"lengths": lengths, "keys": keys, "records": records, "told": told, "size": count}
    backend.launch(_BEGIN, -(-count // _BLOCK), **given)
    differing, first = backend.to_host(told).tolist()
    if bits := differing.bit_length():
        scratch = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        keys, records = sort_pairs(keys, records, *scratch, bits, backend)
    order, slot_of = records.view(np.int32), backend.empty(count, np.int32)
    by_slot, marks = backend.empty(count, np.int32), backend.empty(count, np.uint8)
    sizes = backend.empty((count - 1 >> backend.lane_bits) + 2, np.int64)
    made = {"lengths": by_slot, "slot_of": slot_of, "steps": marks, "sizes": sizes}
    shape = {"size": count, "lane_bits": backend.lane_bits, "planes": planes, "pads": pads}
    backend.launch(_LAY, count, keys=keys, order=order, **made, **shape)
    if differing:
        block_offsets, words = backend.ends(sizes)
        return Slots(order, slot_of, by_slot, _steps(marks, by_slot, backend), block_offsets, words)
    # Of one length, as most reads are, the host knows the rest.
    steps = Steps(np.zeros(1, np.int32), np.full(1, first, np.int32), count)
    words = (len(sizes) - 1) * (planes * (-(-first // WORD_BASES) + pads) << backend.lane_bits)
    return Slots(order, slot_of, by_slot, steps, backend.prefix_sums(sizes), words)


def _steps(marks: Array, lengths: Array, backend: Backend) -> Steps:
    slots = list_marked(marks, 1, backend)
    if len(marks) <= backend.few:
        return Steps(slots, lengths[slots], len(marks))
    told = backend.empty(2 * len(slots), np.int32)
    backend.launch(_TELL, len(slots), slots=slots, lengths=lengths, told=told)
    firsts, steps = backend.to_host(told).reshape(-1, 2).T
    return Steps(firsts, steps, len(marks))
