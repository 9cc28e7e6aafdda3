"""Index -> DeviceIndex: the arrays of an index where a backend's kernels read them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.errors import BackendError, IndexFolderError
from readmap.index.suffix_array import reference_arguments
from readmap.index.suffix_tree import MOST_ENTRY_BASES, tree_entries

if TYPE_CHECKING:
    from readmap.index.index import Index


class Structure(StrEnum):
    """What finds a query in the reference: the suffix array with its prefix table, the suffix tree, or either."""

    ARRAY = "array"
    TREE = "tree"
    BOTH = "both"

    @property
    def has_array(self) -> bool:
        """Whether the array's prefix table is there; the array itself always is, since it tells the places."""
        return self is not Structure.TREE

    @property
    def has_tree(self) -> bool:
        """Whether the tree is there."""
        return self is not Structure.ARRAY


@dataclass(frozen=True)
class DeviceIndex:
    """An index whose arrays lie on a backend's device.

    Attributes:
        index: what was placed.
        reference: what kernels take as REFERENCE_ARGUMENTS.
        suffixes: as the index's.
        prefix_table: as the index's, for `table_bases` bases; for 0 bases, [0, suffixes], where none is wanted.
        edges: as the index's; an empty root's where the tree is not wanted.
        entries: int64 [4^entry_bases, 2], where walks down the tree begin; for 0 bases where no table is wanted.
    """

    index: Index
    reference: tuple[Any, ...]
    suffixes: Array
    prefix_table: Array
    table_bases: int
    edges: Array
    entries: Array
    entry_bases: int
    barrier_letters: Array
    contig_names: Array
    contig_name_offsets: Array

    @functools.cached_property
    def suffix_count(self) -> int:
        """How many suffixes the array holds."""
        return len(self.suffixes)


def place(
    index: Index, backend: Backend, structure: Structure = Structure.ARRAY, prefix_table: bool = True
) -> DeviceIndex:
    """Copy what a search by `structure` reads to a device, or on the CPU into memory.

    prefix_table: False leaves the tables of first bases out: a search begins with the whole array, a walk at the root.
    Raises BackendError where the arrays do not fit, IndexFolderError where the index was built without one of them.
    """
    table, bases = np.array([0, len(index.suffixes)], index.suffixes.dtype), 0
    edges = np.zeros((4, 4), np.uint32)
    if structure.has_array and prefix_table:
        if index.prefix_table is None:
            raise _missing("prefix table", "array")
        table, bases = index.prefix_table, index.table_bases
    if structure.has_tree:
        if index.edges is None:
            raise _missing("suffix tree", "tree")
        edges = index.edges
    needed, memory = placed_bytes(index, structure, prefix_table), backend.memory()
    if memory and memory[0] < needed:
        raise BackendError(f"the index needs {needed} bytes of memory on {backend.name}, {memory[0]} are free")
    held_edges, entry_bases = backend.hold(edges), _entry_bases(index, structure, prefix_table)
    names = [contig.name.encode("utf-8", "surrogateescape") for contig in index.reference.contigs]
    offsets = np.concatenate(([0], np.cumsum([len(name) for name in names]))).astype(np.int64)
    return DeviceIndex(
        index,
        reference_arguments(index.reference, backend),
        backend.hold(index.suffixes),
        backend.hold(table),
        bases,
        held_edges,
        tree_entries(held_edges, entry_bases, backend),
        entry_bases,
        backend.to_device(index.reference.barrier_letters),
        backend.to_device(np.frombuffer(b"".join(names), np.uint8)),
        backend.to_device(offsets),
    )


def placed_bytes(index: Index, structure: Structure, prefix_table: bool = True) -> int:
    """The bytes of memory that `place` takes."""
    table = index.prefix_table if structure.has_array and prefix_table else None
    edges = index.edges if structure.has_tree else None
    entries = 16 << 2 * _entry_bases(index, structure, prefix_table)
    return (
        index.reference.nbytes + entries + sum(int(a.nbytes) for a in (index.suffixes, table, edges) if a is not None)
    )


def _entry_bases(index: Index, structure: Structure, prefix_table: bool) -> int:
    return min(index.table_bases - 1, MOST_ENTRY_BASES) if structure.has_tree and prefix_table else 0


def _missing(what: str, structure: str) -> IndexFolderError:
    return IndexFolderError(
        f"the index holds no {what}: build it again with --structure {structure}, or both, to have it"
    )
