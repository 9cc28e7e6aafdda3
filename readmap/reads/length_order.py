"""Lengths of reads -> LengthOrder: reads sorted by length into slots, and the offsets of the words of each tile."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import sort_pairs

_INIT, _FILL = Kernel("reads/length_order", "init_length_sort"), Kernel("reads/length_order", "fill_slots")
_BLOCK = constant("reads/length_order.cu", "BLOCK")
WORD_BASES = 32  # bases per packed word


@dataclass(frozen=True)
class LengthRuns:
    """The runs of slots with reads of one length, ascending, on the host."""

    first_slots: NDArray[np.int32]  # [runs], where each run starts
    lengths: NDArray[np.int32]  # [runs], in bases
    count: int  # of reads

    @property
    def max_length(self) -> int:
        return int(self.lengths[-1])

    def length_of(self, slot: int) -> int:
        return int(self.lengths[np.searchsorted(self.first_slots, slot, "right") - 1])

    def first_slot_of_length(self, min_length: int) -> int:
        """Return the first slot of a read with at least `min_length` bases, or `count`."""
        run = int(np.searchsorted(self.lengths, min_length))
        return int(self.first_slots[run]) if run < len(self.first_slots) else self.count


@dataclass(frozen=True)
class LengthOrder:
    """Reads in stable order of their lengths; a tile is a group of 2^tile_bits consecutive slots."""

    order: Array  # int32 [reads], the record in each slot
    slot_of: Array  # int32 [reads], the inverse of `order`
    lengths: Array  # int32 [reads] by slot
    length_runs: LengthRuns  # the lengths on the host
    tile_offsets: Array  # int64 [tiles + 1], where the words of each tile start
    words: int  # of all tiles


def sort_by_length(lengths: Array, planes: int, pads: int, backend: Backend) -> LengthOrder:
    """Sort reads by length. lengths: int32 [reads], at least one.

    planes: bit planes per tile. A slot has per plane the words for the longest read of its tile, and `pads` more.
    """
    count, tile_bits = len(lengths), backend.warp_bits
    keys, records = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
    varying = backend.full(2, 0, np.uint32)
    arrays = {"lengths": lengths, "keys": keys, "records": records, "varying": varying}
    backend.launch(_INIT, -(-count // _BLOCK), **arrays, size=count)
    differing, first = backend.to_host(varying).tolist()
    if bits := differing.bit_length():
        scratch = backend.empty(count, np.uint64), backend.empty(count, np.uint32)
        keys, records = sort_pairs(keys, records, *scratch, bits, backend)
    order, slot_of = records.view(np.int32), backend.empty(count, np.int32)
    by_slot = backend.empty(count, np.int32)
    # The first slot of each length, -1 for unused lengths; then the number of words.
    slots_and_words = backend.full((1 << (differing | first).bit_length()) + 1, -1, np.int64)
    sizes = backend.empty((count - 1 >> tile_bits) + 2, np.int64)
    outputs = {"lengths": by_slot, "slot_of": slot_of, "first_slots": slots_and_words[:-1], "sizes": sizes}
    shape = {"size": count, "tile_bits": tile_bits, "planes": planes, "pads": pads}
    backend.launch(_FILL, count, keys=keys, order=order, **outputs, **shape)
    tile_offsets = backend.inclusive_sum(sizes)
    if differing:
        backend.copy_into(slots_and_words[-1:], tile_offsets[-1:])
        on_host = backend.to_host(slots_and_words)
        run_lengths, words = np.flatnonzero(on_host[:-1] >= 0), int(on_host[-1])
        first_slots = on_host[run_lengths]
    else:  # the usual case of one length, which needs no copy from the device
        run_lengths, first_slots = np.full(1, first), np.zeros(1)
        words = (len(sizes) - 1) * (planes * (-(-first // WORD_BASES) + pads) << tile_bits)
    runs = LengthRuns(first_slots.astype(np.int32), run_lengths.astype(np.int32), count)
    return LengthOrder(order, slot_of, by_slot, runs, tile_offsets, words)
