"""Pack queries, find them by every structure, and compare the results with each other and with Python's."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Row
from benchmarks.exact.inputs import Letters, with_last_base_changed
from readmap.backend import Backend
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.index.index import Index
from readmap.index.occurrences import find_occurrences
from readmap.reads.packing import Patterns, pack_patterns
from readmap.strand import Strand

# structure, and whether the prefix table is used; the paper's structures have no such table
STRUCTURES = {
    "array": (IndexStructure.ARRAY, True),
    "tree": (IndexStructure.TREE, True),
    "array without table": (IndexStructure.ARRAY, False),
    "tree without table": (IndexStructure.TREE, False),
}
CHECKED = 64  # queries that Python searches; the same number of queries that differ in one base is searched too
Integers = NDArray[np.int64]
COMPLEMENT = bytes.maketrans(b"ACGT", b"TGCA")


def pack(letters: Letters, backend: Backend) -> Patterns:
    count, length = letters.shape
    starts = backend.to_device(np.arange(count, dtype=np.int64) * length)
    lengths = backend.to_device(np.full(count, length, np.int32))
    return pack_patterns(backend.to_device(letters.reshape(-1)), starts, lengths, backend)


def place_by(name: str, index: Index, backend: Backend) -> DeviceIndex:
    structure, prefix_table = STRUCTURES[name]
    return index.to_device(backend, structure, prefix_table)


def find(
    name: str, patterns: Patterns, placed: DeviceIndex, strand: Strand, backend: Backend
) -> tuple[Integers, Integers]:
    """Return the first ranks (0 if a query is not found) and the counts: int64 [strands, queries] in file order."""
    found = find_occurrences(patterns, placed, strand, STRUCTURES[name][0], backend)
    slots = backend.to_host(patterns.slot_of)
    counts = backend.to_host(found.counts)[:, slots].astype(np.int64)
    return np.where(counts, backend.to_host(found.ranks)[:, slots], 0).astype(np.int64), counts


def check(index: Index, text: bytes, letters: Letters, backends: Iterable[Backend]) -> tuple[Row, Integers]:
    """Compare all searches; return what was compared and the occurrences of each query; exit if two results differ.

    Python searches CHECKED queries, and copies that differ in their last base, on both strands; each structure on each
    backend searches all queries on the forward strand.
    """
    few = np.concatenate([letters[:CHECKED], with_last_base_changed(letters[:CHECKED])])
    truth = [(_places(text, query), _places(text, query.translate(COMPLEMENT)[::-1])) for query in map(bytes, few)]
    compared, expected = list[str](), None
    for backend, name in itertools.product(backends, STRUCTURES):
        placed, called = place_by(name, index, backend), f"{name} on {backend.name}"
        if _located(index, *find(name, pack(few, backend), placed, Strand.BOTH, backend)) != truth:
            sys.exit(f"benchmark: {called} does not find what Python finds, so nothing is timed")
        result = find(name, pack(letters, backend), placed, Strand.FORWARD, backend)
        expected = expected or result
        if not all(map(np.array_equal, result, expected)):
            sys.exit(f"benchmark: {called} and {compared[0]} do not find the same, so nothing is timed")
        compared.append(called)
    assert expected is not None
    python = {"queries": len(few), "occurrences": sum(len(places) for strands in truth for places in strands)}
    return {"checked": True, "same_as_python": python, "same": compared}, expected[1][0]


def _located(index: Index, ranks: Integers, counts: Integers) -> list[tuple[list[int], ...]]:
    """Return the positions of each query for each strand."""
    ends = ranks + counts
    return [
        tuple(sorted(index.suffixes[start:end].tolist()) for start, end in zip(*strands, strict=True))
        for strands in zip(ranks.T, ends.T, strict=True)
    ]


def _places(text: bytes, query: bytes) -> list[int]:
    """Return all positions of a query in the text, including overlapping ones."""
    places, at = [], text.find(query)
    while at >= 0:
        places.append(at)
        at = text.find(query, at + 1)
    return places
