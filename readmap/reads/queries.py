"""Reads -> Queries: both orientations of every read, packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.reads.parsing import Reads
from readmap.reads.patterns import by_length, interleaved_offsets

_PACK = Kernel("reads/queries", "pack_queries")


@dataclass(frozen=True)
class Queries:
    """Reads in slots ordered by length, packed in both orientations; the layout is that of kernels/reads/queries.cuh.

    Attributes:
        order: int32 [reads], the record in each slot; slot_of: int32 [reads], its inverse.
        words: uint64, four planes a block; block_offsets: int64 [blocks + 1].
        lengths: int32 [reads] by slot; flags, hashes: uint8, uint64 [reads] by slot.
        longest: bases of the longest read.
        replaced: ambiguous letters other than N, which are written as N.
        host_lengths: int32 [reads] by slot, on the host.
        lane_bits: a block has 2^lane_bits slots.
    """

    order: Array
    slot_of: Array
    words: Array
    block_offsets: Array
    lengths: Array
    flags: Array
    hashes: Array
    longest: int
    replaced: int
    host_lengths: np.ndarray[Any, np.dtype[np.int32]]
    lane_bits: int


def pack_queries(reads: Reads, backend: Backend) -> Queries:
    """Both orientations of every read, packed and interleaved."""
    order, slot_of, host_lengths = by_length(backend.to_host(reads.lengths))
    offsets = interleaved_offsets(host_lengths, backend.lanes, lambda longest: 4 * ((longest + 31) // 32 + 1))
    count = reads.count
    block_offsets = backend.to_device(offsets)
    words = backend.full(int(offsets[-1]) + backend.lanes, 0, np.uint64)
    slot_lengths = backend.to_device(host_lengths)
    flags, hashes = backend.empty(count, np.uint8), backend.empty(count, np.uint64)
    device_order, replaced = backend.to_device(order), backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK,
        count,
        bytes=reads.bytes,
        order=device_order,
        sequence_starts=reads.sequence_starts,
        lengths=slot_lengths,
        marks=reads.marks,
        block_offsets=block_offsets,
        words=words,
        flags=flags,
        hashes=hashes,
        replaced=replaced,
        lane_bits=backend.lane_bits,
    )
    return Queries(
        device_order,
        backend.to_device(slot_of),
        words,
        block_offsets,
        slot_lengths,
        flags,
        hashes,
        int(host_lengths[-1]),
        int(backend.to_host(replaced)[0]),
        host_lengths,
        backend.lane_bits,
    )
