"""Reads -> Patterns: packed once, in the layout that an exact search reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel

_PACK = Kernel("reads/patterns", "pack_patterns")

Integers = np.ndarray[Any, np.dtype[np.int64]]


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
    order, slot_of, host_lengths = by_length(backend.to_host(lengths))
    offsets = interleaved_offsets(host_lengths, backend.lanes, lambda longest: (longest + 31) // 32)
    words = backend.full(int(offsets[-1]), 0, np.uint64)
    block_offsets, packed_lengths = backend.to_device(offsets), backend.empty(len(order), np.int32)
    replaced = backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK,
        len(order),
        bytes=letters,
        order=backend.to_device(order),
        sequence_starts=starts,
        full_lengths=backend.to_device(host_lengths),
        block_offsets=block_offsets,
        words=words,
        lengths=packed_lengths,
        replaced=replaced,
        lane_bits=backend.lane_bits,
    )
    letters_replaced = int(backend.to_host(replaced)[0])
    held_slots = backend.to_device(slot_of)
    return Patterns(held_slots, words, block_offsets, packed_lengths, backend.lane_bits, letters_replaced)


def by_length(lengths: Any) -> tuple[Any, Any, Any]:
    """The stable order by length, int32, its inverse, and the lengths in it."""
    if lengths[0] == lengths[-1] and lengths.min() == lengths.max():
        same = np.arange(len(lengths), dtype=np.int32)
        return same, same, lengths
    # NumPy sorts numbers of 16 bits by digits, ten times as fast.
    keys = lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths
    order = np.argsort(keys, kind="stable").astype(np.int32)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order), dtype=np.int32)
    return order, inverse, lengths[order]


def interleaved_offsets(lengths: Any, lanes: int, words: Callable[[Integers], Integers]) -> Integers:
    """Where the words of each block begin, and behind the last one their number; words: of a slot, by its longest read.

    lengths: int32, ascending.
    """
    longest_in_block = lengths[lanes - 1 :: lanes]
    if len(lengths) % lanes:
        longest_in_block = np.append(longest_in_block, lengths[-1:])
    sizes = words(longest_in_block.astype(np.int64)) * lanes
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
