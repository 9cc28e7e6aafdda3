"""Time searches of packed queries on CPU and GPU, and the steps before the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Row, timed
from benchmarks.exact.inputs import Letters
from benchmarks.exact.searches import STRUCTURES, pack, place_by
from readmap.backend import Array, Backend, open_backend
from readmap.backend.buffers import BufferPool
from readmap.index.device import DeviceIndex
from readmap.index.index import Index
from readmap.index.occurrences import find_occurrences
from readmap.reads.chunks import read_chunks
from readmap.reads.packing import Patterns, pack_patterns
from readmap.reads.parsing import parse_reads
from readmap.run.chunk_plan import plan_chunks
from readmap.strand import Strand

LONGEST = 10.0  # seconds after which no further round is timed
TRANSFERRED = ("words", "tile_offsets", "lengths")


def time_cpu(index: Index, letters: Letters, sizes: Sequence[int], runs: int, threads: int) -> list[Row]:
    """Return seconds by structure and number of queries on one thread, and with a prefix table also on several."""
    rows = []
    packed = [pack(letters[:size], open_backend("cpu", threads)) for size in sizes]
    for name in STRUCTURES:
        placed = place_by(name, index, open_backend("cpu", 1))
        for count in _powers_of_two(threads if STRUCTURES[name][1] else 1):
            backend = open_backend("cpu", count)
            for patterns in packed:
                seconds = search_seconds(name, patterns, placed, Strand.FORWARD, runs, backend)
                rows.append(
                    {"structure": name, "threads": count, "queries": len(patterns), "seconds": round(seconds, 7)}
                )
    return rows


def _powers_of_two(most: int) -> list[int]:
    return [*(1 << i for i in range(most.bit_length()) if 1 << i < most), most]


def time_both_strands(index: Index, letters: Letters, runs: int, backend: Backend) -> list[Row]:
    """Return the seconds of a search of both strands by each structure."""
    rows, patterns = [], pack(letters, backend)
    for name in STRUCTURES:
        placed = place_by(name, index, backend)
        seconds = search_seconds(name, patterns, placed, Strand.BOTH, runs, backend)
        rows.append({"structure": name, "device": backend.name, "queries": len(patterns), "seconds": round(seconds, 7)})
    return rows


def time_gpu(index: Index, letters: Letters, sizes: Sequence[int], runs: int, backend: Backend) -> list[Row]:
    """Return the seconds of the parts of each structure's search for each number of queries."""
    pinned = pin_index(index, backend)
    return [
        time_parts(name, pinned, pack(letters[:size], backend), runs, backend) for name in STRUCTURES for size in sizes
    ]


def time_packing(queries: Path, backend: Backend) -> Row:
    """Return the seconds of copying, parsing and packing the first chunk of a file of queries."""
    chunk = next(read_chunks([str(queries)], backend.host_buffer, plan_chunks([backend]).nbytes))
    for seconds in (dict[str, float](), measured := dict[str, float]()):  # the first round may run a compiler
        with timed(seconds, "copy_seconds", backend):
            data = backend.upload(chunk.parts)
        with timed(seconds, "parse_seconds", backend):
            found = parse_reads(data, chunk.records, chunk.format.value, backend)
        with timed(seconds, "pack_seconds", backend):
            pack_patterns(found.bytes, found.sequence_starts, found.lengths, backend)
    return {"device": backend.name, "queries": chunk.records, **measured}


def search_seconds(
    name: str, patterns: Patterns, placed: DeviceIndex, strand: Strand, runs: int, backend: Backend
) -> float:
    """Return the median seconds of a search of packed queries: its kernel including the launch."""
    rounds: list[float] = []
    while len(rounds) < runs and sum(rounds) < LONGEST:
        seconds: dict[str, float] = {}
        with timed(seconds, "search", backend):
            find_occurrences(patterns, placed, strand, STRUCTURES[name][0], backend)
        rounds.append(seconds["search"])
    return sorted(rounds)[len(rounds) // 2]


def time_parts(name: str, index: Index, patterns: Patterns, runs: int, backend: Backend) -> Row:
    """Return the seconds of the GPU's parts in the round of median total time, with host arrays in pinned memory.

    index: see `pin_index`. The suffix array is transferred with the tree, since it contains the positions; the tree's
    prefix table is computed on the device, which counts as a part of the transfer.
    """
    on_host = {field: pin(backend.to_host(getattr(patterns, field)), backend) for field in TRANSFERRED}
    pool, rounds = BufferPool(backend.host_buffer, 1, 2), list[dict[str, float]]()
    for _ in range(1 + runs):  # the first round allocates
        rounds.append(seconds := dict[str, float]())
        with timed(seconds, "total_seconds", backend):
            with timed(seconds, "index_transfer_seconds", backend):
                placed = place_by(name, index, backend)
            with timed(seconds, "query_transfer_seconds", backend):
                given = replace(patterns, **{field: backend.to_device(array) for field, array in on_host.items()})
            with timed(seconds, "kernel_seconds", backend):
                found = find_occurrences(given, placed, Strand.FORWARD, STRUCTURES[name][0], backend)
            with timed(seconds, "result_transfer_seconds", backend):
                results = [backend.download(_bytes(array), pool) for array in (found.ranks, found.counts)]
                for _, arrived in results:
                    arrived()
        for result, _ in results:
            result.release()
    usual = sorted(rounds[1:], key=lambda one: one["total_seconds"])[runs // 2]
    return {"structure": name, "queries": len(patterns), **{part: round(value, 7) for part, value in usual.items()}}


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def pin(array: NDArray[Any], backend: Backend) -> NDArray[Any]:
    """Return a copy in pinned memory, from which the device reads fastest."""
    held = backend.host_buffer(max(array.nbytes, 1))[: array.nbytes].view(array.dtype).reshape(array.shape)
    held[...] = array
    return held


def pin_index(index: Index, backend: Backend) -> Index:
    """Return the index with all its large arrays pinned."""

    def pinned(of: Any) -> dict[str, Any]:
        return {name: pin(array, backend) for name, array in vars(of).items() if isinstance(array, np.ndarray)}

    return replace(index, reference=replace(index.reference, **pinned(index.reference)), **pinned(index))
