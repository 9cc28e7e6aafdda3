"""SuffixArray -> SuffixTree: the flat edge array of Encarnação et al., built by kernels."""

import itertools
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.tables import Table
from readmap.errors import UsageError
from readmap.index.reference import DeviceReference

_GROUP = constant("index/lcp.cuh", "GROUP")
_BLOCK = constant("index/suffix_tree.cu", "BLOCK")
EDGES_PER_NODE = constant("index/suffix_tree.cuh", "EDGES_PER_NODE")
ENTRY_BYTES = row_dtype("index/suffix_tree.cuh", "Entry").itemsize

#: Slices per lane in which the LCP is computed. Each slice starts with a comparison that, in a text of one letter, is
#: as long as the text.
SLICES = 512

#: Bytes per base of the edges (usually 41; the maximum is one node per base), and of building them, with the suffix
#: array and the LCP twice.
EDGE_BYTES, TREE_BYTES = 64, 13 + 64

#: Starts and bounds of edges are 32 bits.
MAX_TREE_BASES = 2**32 - 1

#: Bases resolved by the table of tree entries: 4^10 entries take 16 MB, which fit into a GPU's cache.
MAX_ENTRY_BASES = 10

_PHI, _PLCP = Kernel("index/suffix_tree", "compute_phi"), Kernel("index/suffix_tree", "compute_plcp")
_PERMUTE, _MINIMA = Kernel("index/suffix_tree", "permute_lcp"), Kernel("index/suffix_tree", "reduce_minima")
_MARK, _OPEN = Kernel("index/suffix_tree", "mark_nodes"), Kernel("index/suffix_tree", "open_nodes")
_WRITE, _CLOSE = Kernel("index/suffix_tree", "write_edges"), Kernel("index/suffix_tree", "close_nodes")
_FILL_ENTRIES = Kernel("index/suffix_tree", "fill_entries")

Edges = np.ndarray[Any, np.dtype[np.uint32]]


class LcpPyramid(Table, struct="index/lcp.cuh:LcpPyramid"):
    """The LCP array under a pyramid of minima."""


class _Nodes(Table, struct="index/suffix_tree.cu:Nodes"):
    """The inner nodes except the root."""


def refuse_large(length: int) -> None:
    """Raise UsageError if a reference of `length` positions is too large for a suffix tree."""
    if length > MAX_TREE_BASES:
        raise UsageError(f"a suffix tree supports fewer than 2^32 bases, the reference has {length:,}")


def build_suffix_tree(device_reference: DeviceReference, length: int, suffixes: Array, backend: Backend) -> Array:
    """Return the edges of the tree, uint32 [4 * nodes, 4] (suffix_tree.cuh); takes up to 9 more bytes per base."""
    count = len(suffixes)
    prefixes = build_lcp(device_reference, length, suffixes, backend)
    blocks = -(-count // _BLOCK)
    marks, counts = backend.empty(blocks, np.uint64), backend.empty(blocks, np.int64)
    backend.launch(_MARK, blocks, prefixes=prefixes, marks=marks, counts=counts, suffix_count=count)
    mark_ends, inner = backend.inclusive_sum_with_total(counts)
    nodes = _Nodes(marks=marks, mark_ends=mark_ends)
    edges = backend.empty(((inner + 1) * EDGES_PER_NODE, 4), np.uint32)
    tree = {"prefixes": prefixes, "nodes": nodes, "edges": edges, "suffix_count": count}
    backend.launch(_OPEN, count + 1, **tree)
    backend.launch(_WRITE, count, reference=device_reference, suffixes=suffixes, **tree)
    backend.launch(_CLOSE, inner + 1, edges=edges)
    return edges


def build_tree_entries(edges: Array, bases: int, backend: Backend) -> Array:
    """Return the start nodes of walks whose first `bases` bases are known: int64 [4^bases, 2], struct Entry."""
    entries = backend.empty((4**bases, 2), np.int64)
    backend.launch(_FILL_ENTRIES, len(entries), edges=edges, entries=entries, entry_bases=bases)
    return entries


def build_lcp(reference: DeviceReference, length: int, suffixes: Array, backend: Backend) -> LcpPyramid:
    """Return the LCP array with its minima: bases shared by each suffix and its predecessor, up to a barrier."""
    sizes = [len(suffixes)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // _GROUP))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    plcp = backend.empty(length, np.uint32)
    backend.launch(_PHI, len(suffixes), suffixes=suffixes, plcp=plcp)
    slice_size = -(-length // (SLICES * backend.warp_width))
    slices = -(-length // slice_size)
    backend.launch(_PLCP, slices, reference=reference, plcp=plcp, length=length, slice_size=slice_size)
    minima = backend.empty(int(offsets[-1]), np.uint32)
    lower, *levels = (minima[start:end] for start, end in itertools.pairwise(offsets.tolist()))
    backend.launch(_PERMUTE, len(suffixes), suffixes=suffixes, plcp=plcp, prefixes=lower)
    for upper in levels:
        backend.launch(_MINIMA, len(upper), lower=lower, upper=upper, size=len(lower))
        lower = upper
    return LcpPyramid(values=minima, offsets=backend.to_device(offsets))


def first_mismatched_node(
    device_reference: DeviceReference, length: int, suffixes: Array, edges: Edges, backend: Backend
) -> int | None:
    """Return the smallest node with an edge that differs from a newly built tree; None if all are equal."""
    expected = backend.to_host(build_suffix_tree(device_reference, length, suffixes, backend))
    if len(expected) != len(edges):
        return min(len(expected), len(edges)) // EDGES_PER_NODE
    wrong = np.flatnonzero((expected != edges).any(axis=1))
    return int(wrong[0]) // EDGES_PER_NODE if len(wrong) else None
