"""FASTQ bytes -> Reads -> Queries: where each record's parts lie, and both orientations of it packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.errors import DataError
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
        error: uint64 [1], the smallest (record << 8 | code), all ones where no record is bad.
        count: reads.
    """

    bytes: Array
    name_starts: Array
    name_lengths: Array
    sequence_starts: Array
    lengths: Array
    quality_starts: Array
    error: Array
    count: int


@dataclass(frozen=True)
class Queries:
    """Reads in slots ordered by length, packed in both orientations; the layout is that of kernels/queries.cuh.

    Attributes:
        order: int32 [reads], the record in each slot; slot_of: int32 [reads], its inverse.
        words: uint64, four planes a block; block_offsets: int64 [blocks + 1].
        lengths: int32 [reads] by slot; flags, hashes: uint8, uint64 [reads] by slot.
        longest: bases of the longest read.
        replaced: ambiguous letters other than N, which are written as N.
        slot_lengths: lengths on the host, or one int where all are equal.
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
    reads = Reads(
        data,
        backend.empty(records, np.int64),
        backend.empty(records, np.int32),
        backend.empty(records, np.int64),
        backend.empty(records, np.int32),
        backend.empty(records, np.int64),
        backend.full(1, -1, np.int64).view(np.uint64),
        records,
    )
    backend.launch(
        _PARSE,
        records,
        data,
        line_ends,
        reads.name_starts,
        reads.name_lengths,
        reads.sequence_starts,
        reads.lengths,
        reads.quality_starts,
        reads.error,
        lines_a_record,
        LONGEST_READ,
    )
    return reads


def pack_queries(reads: Reads, backend: Backend) -> Queries:
    """Both orientations of every read, packed and interleaved."""
    lengths = backend.to_host(reads.lengths)
    order, host_lengths = _by_length(np.minimum(lengths, LONGEST_READ))
    slot_of = np.empty_like(order)
    slot_of[order] = np.arange(len(order), dtype=np.int32)
    longest_in_block = host_lengths[backend.lanes - 1 :: backend.lanes]
    if len(host_lengths) % backend.lanes:
        longest_in_block = np.append(longest_in_block, host_lengths[-1:])
    plane_words = (longest_in_block.astype(np.int64) + 31) // 32 + 1
    offsets = np.concatenate(([0], np.cumsum(plane_words * (4 * backend.lanes))))
    count = reads.count
    block_offsets = backend.to_device(offsets)
    words = backend.empty(int(offsets[-1]) + backend.lanes, np.uint64)
    slot_lengths = backend.to_device(host_lengths)
    flags, hashes = backend.empty(count, np.uint8), backend.empty(count, np.uint64)
    device_order, counters = backend.to_device(order), backend.full(1, 0, np.uint64)
    backend.launch(
        _PACK,
        count,
        reads.bytes,
        device_order,
        reads.sequence_starts,
        reads.quality_starts,
        slot_lengths,
        block_offsets,
        words,
        flags,
        hashes,
        reads.error,
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


def first_error(reads: Reads, backend: Backend) -> tuple[int, int] | None:
    """The number of the first bad record, from 0, and what is wrong with it (an index into ERRORS)."""
    error = int(backend.to_host(reads.error)[0])
    return None if error == 2**64 - 1 else (error >> 8, error & 255)


def describe_error(data: np.ndarray[Any, Any], record: int, code: int, lines_a_record: int, path: str, first_record: int) -> DataError:
    """The error of a bad record, from the chunk's bytes on the host."""
    lines = bytes(data).split(b"\n", (record + 1) * lines_a_record)[record * lines_a_record :][:lines_a_record]
    lines = [line.removesuffix(b"\r") for line in lines]
    header, sequence = lines[0], lines[1]
    name = header[1:].split()[0].decode("ascii", "replace") if header[1:].split() else "unnamed"
    where = f"{path}, record {first_record + record + 1} ({name}): "
    if code == 1:
        marker = "@" if lines_a_record == 4 else ">"
        where = f"{path}, record {first_record + record + 1}: "
        return DataError(f"{where}expected a header that begins with '{marker}', found {_shown(header)}")
    if code == 2:
        return DataError(f"{where}expected a line that begins with '+', found {_shown(lines[2])}")
    if code == 3:
        return DataError(f"{where}quality has {len(lines[3])} characters, sequence has {len(sequence)}")
    if code == 4:
        at = next(i for i, base in enumerate(sequence.upper()) if base not in b"ACGTUNRYKMSWBDHV")
        return DataError(f"{where}expected a nucleotide at base {at + 1}, found {_shown(sequence[at : at + 1])}")
    if code == 5:
        return DataError(f"{where}the read has {len(sequence)} bases, at most {LONGEST_READ} are mapped")
    at = next(i for i, quality in enumerate(lines[3]) if not 33 <= quality <= 126)
    return DataError(f"{where}quality {at + 1} is {_shown(lines[3][at : at + 1])}, expected '!' to '~'")


def _shown(text: bytes) -> str:
    shown = text[:30].decode("ascii", "backslashreplace")
    return f"'{shown}'" if text else "an empty line"
