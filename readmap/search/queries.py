"""FASTQ bytes -> Reads -> Queries: where each record's parts lie, and both orientations of it packed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.search.parameters import LONGEST_READ

BLOCK_BYTES = 4096  # of kernels/reads.cu

_COUNT = Kernel("reads", "count_newlines")
_FIND = Kernel("reads", "find_newlines")
_PARSE = Kernel("reads", "parse_records")
_PACK = Kernel("reads", "pack_queries")


@dataclass(frozen=True)
class Reads:
    """The records of a batch, in the order of the input, as places in its bytes.

    Attributes:
        bytes: uint8 [nbytes] on the device.
        name_starts: int64 [reads]; name_lengths: int32 [reads], without /1 and /2.
        sequence_starts: int64 [reads]; lengths: int32 [reads], bases.
        quality_starts: int64 [reads], -1 where a read has no qualities.
        count: reads in front of the first bad record.
        bad: what is wrong with that record, an error code of kernels/reads.cu; None where all are good.
    """

    bytes: Array
    name_starts: Array
    name_lengths: Array
    sequence_starts: Array
    lengths: Array
    quality_starts: Array
    count: int
    bad: int | None


@dataclass(frozen=True)
class Queries:
    """Reads in slots ordered by length, packed in both orientations; the layout is that of kernels/queries.cuh.

    Attributes:
        order: int32 [reads], the record in each slot; slot_of: int32 [reads], its inverse.
        words: uint64, four planes a block; block_offsets: int64 [blocks + 1].
        lengths: int32 [reads] by slot; flags, hashes: uint8, uint64 [reads] by slot.
        longest: bases of the longest read.
        replaced: ambiguous letters other than N, which are written as N.
        host_lengths: int32 [reads] by slot, on the host.
        arguments: what kernels take as QUERY_ARGUMENTS.
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
    arguments: tuple[Any, ...]


def find_reads(data: Array, records: int, lines_a_record: int, backend: Backend) -> Reads:
    """The places of all records in a chunk's bytes, uint8 [nbytes] on the device."""
    blocks = -(-len(data) // BLOCK_BYTES)
    counts = backend.empty(blocks, np.int64)
    backend.launch(_COUNT, blocks, data, counts, len(data))
    ends, lines = backend.ends(counts)
    line_ends = backend.empty(lines, np.int64)
    backend.launch(_FIND, blocks, data, ends, line_ends, len(data))
    if lines != records * lines_a_record:
        raise AssertionError(f"a chunk of {records} records has {lines} lines")
    error = backend.full(1, -1, np.int64).view(np.uint64)
    reads = Reads(
        data,
        backend.empty(records, np.int64),
        backend.empty(records, np.int32),
        backend.empty(records, np.int64),
        backend.empty(records, np.int32),
        backend.empty(records, np.int64),
        records,
        None,
    )
    fields = (reads.name_starts, reads.name_lengths, reads.sequence_starts, reads.lengths, reads.quality_starts)
    backend.launch(_PARSE, records, data, line_ends, *fields, error, lines_a_record, LONGEST_READ)
    return _before_error(reads, error, backend)


def _before_error(reads: Reads, error: Array, backend: Backend) -> Reads:
    """The reads in front of the first bad one; later stages see no others."""
    found = int(backend.to_host(error)[0])
    if found == 2**64 - 1:
        return reads
    count, code = found >> 8, found & 255
    names = ("name_starts", "name_lengths", "sequence_starts", "lengths", "quality_starts")
    return replace(reads, count=count, bad=code, **{name: getattr(reads, name)[:count] for name in names})


def pack_queries(reads: Reads, backend: Backend) -> Queries:
    """Both orientations of every read, packed and interleaved."""
    order, host_lengths = _by_length(backend.to_host(reads.lengths))
    slot_of = np.empty_like(order)
    slot_of[order] = np.arange(len(order), dtype=np.int32)
    longest_in_block = host_lengths[backend.lanes - 1 :: backend.lanes]
    if len(host_lengths) % backend.lanes:
        longest_in_block = np.append(longest_in_block, host_lengths[-1:])
    plane_words = (longest_in_block.astype(np.int64) + 31) // 32 + 1
    offsets = np.concatenate(([0], np.cumsum(plane_words * (4 * backend.lanes))))
    count = reads.count
    block_offsets = backend.to_device(offsets)
    words = backend.full(int(offsets[-1]) + backend.lanes, 0, np.uint64)
    slot_lengths = backend.to_device(host_lengths)
    flags, hashes = backend.empty(count, np.uint8), backend.empty(count, np.uint64)
    device_order, counters = backend.to_device(order), backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK,
        count,
        reads.bytes,
        device_order,
        reads.sequence_starts,
        slot_lengths,
        block_offsets,
        words,
        flags,
        hashes,
        counters,
        backend.lanes,
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
        int(backend.to_host(counters)[0]),
        host_lengths,
        (words, block_offsets, slot_lengths, flags, backend.lanes),
    )


def _by_length(lengths: Any) -> tuple[Any, Any]:
    """The stable order by length, int32, and the lengths in it."""
    if lengths[0] == lengths[-1] and lengths.min() == lengths.max():
        return np.arange(len(lengths), dtype=np.int32), lengths
    order = np.argsort(lengths, kind="stable").astype(np.int32)
    return order, lengths[order]
