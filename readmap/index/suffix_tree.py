"""SuffixArray -> SuffixTree: the flattened edges of the paper by Encarnação et al., built by kernels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.errors import UsageError
from readmap.index.reference import DeviceReference

_GROUP = constant("index/longest_prefixes.cuh", "GROUP")
_BLOCK = constant("index/suffix_tree.cu", "BLOCK")
EDGES_PER_NODE = constant("index/suffix_tree.cuh", "EDGES_PER_NODE")
ENTRY_BYTES = row_dtype("index/suffix_tree.cuh", "Entry").itemsize

#: Slices, for each lane of the device, in which common prefixes are measured. Each begins with a comparison that in a
#: text of one letter is as long as the text.
SLICES = 512

#: Bytes a base: of the edges, of which there are at most as many nodes as bases, and of building them, with the order
#: and the common prefixes twice. Usually the edges take 41.
EDGE_BYTES, TREE_BYTES = 64, 13 + 64

#: Starts and bounds are 32 bits.
MAX_TREE_BASES = 2**32 - 1

#: Bases that the table of entries resolves: 4^10 entries are 16 MB, which a GPU's cache holds.
MAX_ENTRY_BASES = 10

_NEIGHBOURS, _SHARE = Kernel("index/suffix_tree", "find_neighbours"), Kernel("index/suffix_tree", "share_prefixes")
_ORDER, _MINIMA = Kernel("index/suffix_tree", "order_prefixes"), Kernel("index/suffix_tree", "take_minima")
_MARK, _OPEN = Kernel("index/suffix_tree", "mark_nodes"), Kernel("index/suffix_tree", "open_nodes")
_WRITE, _CLOSE = Kernel("index/suffix_tree", "write_edges"), Kernel("index/suffix_tree", "close_nodes")
_ENTER = Kernel("index/suffix_tree", "enter_tree")

Edges = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True)
class Prefixes:
    """The common prefixes of neighbouring suffixes under their pyramid of minima; struct Pyramid of the kernels.

    values: uint32, level behind level. offsets: int64 [levels + 1], where each begins.
    """

    values: Array
    offsets: Array


@dataclass(frozen=True)
class _Nodes:
    """Inner nodes but the root: marks, uint64, a bit a rank; mark_ends, int64, marks up to and with each word."""

    marks: Array
    mark_ends: Array


def refuse_large(length: int) -> None:
    """Raise UsageError where a reference of so many places has no suffix tree."""
    if length > MAX_TREE_BASES:
        raise UsageError(f"a suffix tree holds references below 2^32 bases, this one has {length:,}")


def build_suffix_tree(held: DeviceReference, length: int, suffixes: Array, backend: Backend) -> Array:
    """The tree's edges, uint32 [4 * nodes, 4]; see kernels/index/suffix_tree.cuh.

    length: of the reference, with barriers. suffixes: the suffix array on the device. Beside the tree itself this takes
    up to 9 bytes a base.
    """
    count = len(suffixes)
    prefixes = build_lcp(held, length, suffixes, backend)
    blocks = -(-count // _BLOCK)
    marks, counts = backend.empty(blocks, np.uint64), backend.empty(blocks, np.int64)
    backend.launch(_MARK, blocks, prefixes=prefixes, marks=marks, counts=counts, suffix_count=count)
    mark_ends, inner = backend.ends(counts)
    nodes = _Nodes(marks, mark_ends)
    edges = backend.empty(((inner + 1) * EDGES_PER_NODE, 4), np.uint32)
    tree = {"prefixes": prefixes, "nodes": nodes, "edges": edges, "suffix_count": count}
    backend.launch(_OPEN, count + 1, **tree)
    backend.launch(_WRITE, count, reference=held, suffixes=suffixes, **tree)
    backend.launch(_CLOSE, inner + 1, edges=edges)
    return edges


def build_tree_entries(edges: Array, bases: int, backend: Backend) -> Array:
    """Where walks begin whose first `bases` bases are known: int64 [4^bases, 2], struct Entry of suffix_tree.cuh."""
    entries = backend.empty((4**bases, 2), np.int64)
    backend.launch(_ENTER, len(entries), edges=edges, entries=entries, entry_bases=bases)
    return entries


def build_lcp(reference: DeviceReference, length: int, suffixes: Array, backend: Backend) -> Prefixes:
    """The LCP array: what each suffix shares with the one before it, no barrier.

    length: of the reference, with barriers. suffixes: the suffix array on the device.
    """
    sizes = [len(suffixes)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // _GROUP))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    by_place = backend.empty(length, np.uint32)
    backend.launch(_NEIGHBOURS, len(suffixes), suffixes=suffixes, before=by_place)
    slice_size = -(-length // (SLICES * backend.lanes))
    slices = -(-length // slice_size)
    backend.launch(_SHARE, slices, reference=reference, before=by_place, length=length, slice_size=slice_size)
    minima = backend.empty(int(offsets[-1]), np.uint32)
    lower, *levels = (minima[begin:end] for begin, end in itertools.pairwise(offsets.tolist()))
    backend.launch(_ORDER, len(suffixes), suffixes=suffixes, by_place=by_place, prefixes=lower)
    for upper in levels:
        backend.launch(_MINIMA, len(upper), lower=lower, upper=upper, size=len(lower))
        lower = upper
    return Prefixes(minima, backend.to_device(offsets))


def first_mismatched_node(held: DeviceReference, length: int, suffixes: Array, edges: Edges, backend: Backend) -> int | None:
    """The smallest node of which an edge is not that of a tree built anew; None where all is well."""
    anew = backend.to_host(build_suffix_tree(held, length, suffixes, backend))
    if len(anew) != len(edges):
        return min(len(anew), len(edges)) // EDGES_PER_NODE
    wrong = np.flatnonzero((anew != edges).any(axis=1))
    return int(wrong[0]) // EDGES_PER_NODE if len(wrong) else None
