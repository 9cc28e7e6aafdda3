"""SuffixArray -> SuffixTree: the flattened edges of the paper by Encarnação et al., built by kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.errors import UsageError
from readmap.index.reference import DeviceReference, Reference
from readmap.index.suffix_array import Suffixes

GROUP = 32  # of kernels/index/longest_prefixes.cuh
BLOCK = 64  # of kernels/index/suffix_tree.cu

#: Slices, for each lane of the device, in which common prefixes are measured. Each begins with a comparison that in a
#: text of one letter is as long as the text.
SLICES = 512

#: Starts and bounds are 32 bits.
MOST_BASES = 2**32 - 1

EDGES_A_NODE = 4

#: Bases that the table of entries resolves: 4^10 entries are 16 MB, which a GPU's cache holds.
MOST_ENTRY_BASES = 10
ENTRY_BYTES = 16

_NEIGHBOURS, _SHARE = Kernel("index/suffix_tree", "find_neighbours"), Kernel("index/suffix_tree", "share_prefixes")
_ORDER, _MINIMA = Kernel("index/suffix_tree", "order_prefixes"), Kernel("index/suffix_tree", "take_minima")
_MARK, _OPEN = Kernel("index/suffix_tree", "mark_nodes"), Kernel("index/suffix_tree", "open_nodes")
_WRITE, _CLOSE = Kernel("index/suffix_tree", "write_edges"), Kernel("index/suffix_tree", "close_nodes")
_ENTER = Kernel("index/suffix_tree", "enter_tree")

Edges = np.ndarray[Any, np.dtype[np.uint32]]


def refuse_large(length: int) -> None:
    """Raise UsageError where a reference of so many places has no suffix tree."""
    if length > MOST_BASES:
        raise UsageError(f"a suffix tree holds references below 2^32 bases, this one has {length:,}")


def build_suffix_tree(reference: Reference, suffixes: Suffixes, backend: Backend) -> Edges:
    """The tree's edges, uint32 [4 * nodes, 4]; kernels/index/suffix_tree.cuh tells what they hold.

    Beside the tree itself this takes up to 13 bytes a base.
    """
    count, arguments = len(suffixes), reference.to_device(backend)
    order = backend.to_device(suffixes)
    minima, offsets = longest_prefixes(reference, arguments, order, backend)
    blocks = -(-count // BLOCK)
    marks, counts = backend.empty(blocks, np.uint64), backend.empty(blocks, np.int64)
    backend.launch(_MARK, blocks, minima, offsets, marks, counts, count)
    mark_ends, inner = backend.ends(counts)
    edges = backend.empty(((inner + 1) * EDGES_A_NODE, 4), np.uint32)
    backend.launch(_OPEN, count + 1, minima, offsets, marks, mark_ends, edges, count)
    backend.launch(_WRITE, count, *arguments, order, minima, offsets, marks, mark_ends, edges, count)
    backend.launch(_CLOSE, inner + 1, edges)
    return backend.to_host(edges)


def tree_entries(edges: Array, bases: int, backend: Backend) -> Array:
    """Where walks begin whose first `bases` bases are known: int64 [4^bases, 2], struct Entry of suffix_tree.cuh."""
    entries = backend.empty((4**bases, 2), np.int64)
    backend.launch(_ENTER, len(entries), edges, entries, bases)
    return entries


def longest_prefixes(
    reference: Reference, arguments: DeviceReference, suffixes: Array, backend: Backend
) -> tuple[Array, Array]:
    """The LCP array under its pyramid of minima, uint32, and where the levels begin; see index/longest_prefixes.cuh.

    Level 0 is what each suffix shares with the one before it, no barrier. arguments: the reference as
    REFERENCE_ARGUMENTS. suffixes: the suffix array on the device.
    """
    sizes = [len(suffixes)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // GROUP))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    length = reference.length
    by_place = backend.empty(length, np.uint32)
    backend.launch(_NEIGHBOURS, len(suffixes), suffixes, by_place)
    slice_size = -(-length // (SLICES * backend.lanes))
    backend.launch(_SHARE, -(-length // slice_size), *arguments, by_place, length, slice_size)
    minima = backend.empty(int(offsets[-1]), np.uint32)
    backend.launch(_ORDER, len(suffixes), suffixes, by_place, minima)
    for lower, upper, size, entries in zip(offsets, offsets[1:], sizes, sizes[1:], strict=False):
        backend.launch(_MINIMA, entries, minima, lower, upper, size)
    return minima, backend.to_device(offsets)


def first_wrong_node(reference: Reference, suffixes: Suffixes, edges: Edges, backend: Backend) -> int | None:
    """The smallest node of which an edge is not that of a tree built anew; None where all is well."""
    anew = build_suffix_tree(reference, suffixes, backend)
    if len(anew) != len(edges):
        return min(len(anew), len(edges)) // EDGES_A_NODE
    wrong = np.flatnonzero((anew != edges).any(axis=1))
    return int(wrong[0]) // EDGES_A_NODE if len(wrong) else None
