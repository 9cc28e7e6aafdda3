"""The arrays of an index where a backend's kernels read them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.formats.array_folder import StoredArrays
from readmap.index.bounds import verify_arrays
from readmap.index.reference import REFERENCE_ARRAYS, DeviceReference, Reference
from readmap.index.suffix_array import Suffixes, build_prefix_table, loaded_table_bases, table_bytes
from readmap.index.suffix_tree import ENTRY_BYTES, Edges, build_tree_entries


class IndexStructure(StrEnum):
    """What finds a query in the reference: the suffix array with its prefix table, the suffix tree, or either."""

    ARRAY = "array"
    TREE = "tree"
    BOTH = "both"

    @property
    def has_array(self) -> bool:
        """Whether the array's prefix table is there; the array itself always is, since it holds the positions."""
        return self is not IndexStructure.TREE

    @property
    def has_tree(self) -> bool:
        """Whether the tree is there."""
        return self is not IndexStructure.ARRAY


@dataclass(frozen=True)
class HostIndex:
    """The arrays of an index that a search reads, on the host.

    Attributes:
        reference, suffixes: the index's.
        prefix_table: as the index's, for `table_bases` bases; for 0 bases, [0, suffixes], where none is wanted; None
            where the device makes a larger one than the index's.
        edges: as the index's; an empty root's where the tree is not wanted.
        entry_bases: those that the table of a tree's entries is to resolve.
        stored: the folder that the arrays come from, to which they are held once they are on the device; None where
            they are not to be checked.
    """

    reference: Reference
    suffixes: Suffixes
    prefix_table: Suffixes | None
    table_bases: int
    edges: Edges
    entry_bases: int
    stored: StoredArrays | None

    @property
    def nbytes(self) -> int:
        """The bytes of memory that it takes on a device."""
        tables = table_bytes(self.table_bases, self.suffixes.dtype) + (ENTRY_BYTES << 2 * self.entry_bases)
        return self.reference.nbytes + int(self.suffixes.nbytes) + int(self.edges.nbytes) + tables

    def with_table_for(self, backend: Backend) -> HostIndex:
        """The same with the prefix table that a device is to have: the index's, or one that it makes."""
        others = self.nbytes - table_bytes(self.table_bases, self.suffixes.dtype)
        bases = loaded_table_bases(self.table_bases, self.suffixes, others, backend)
        return self if bases == self.table_bases else replace(self, prefix_table=None, table_bases=bases)

    def to_device(self, backend: Backend) -> DeviceIndex:
        """The same on a device, or on the CPU in memory.

        Raises IndexFolderError where it was altered since it was written, or would lead kernels out of their arrays.
        """
        names = [contig.name.encode("utf-8", "surrogateescape") for contig in self.reference.contigs]
        offsets = np.concatenate(([0], np.cumsum([len(name) for name in names]))).astype(np.int64)
        reference = self.reference.to_device(backend)
        suffixes, edges = map(backend.hold, (self.suffixes, self.edges))
        table = None if self.prefix_table is None else backend.hold(self.prefix_table)
        letters = backend.to_device(self.reference.barrier_letters)
        if self.stored:
            held = {name: array for name, array in vars(reference).items() if name in REFERENCE_ARRAYS}
            held |= {"barrier_letters": letters, "suffix_array": suffixes}
            for name, own, array in (("prefix_table", self.prefix_table, table), ("edges", self.edges, edges)):
                if own is self.stored.arrays.get(name):  # and not what stands for one that is not wanted
                    held[name] = array
            verify_arrays(self.stored, held, reference, backend)
        if table is None:
            table = build_prefix_table(reference, suffixes, self.table_bases, backend)
        return DeviceIndex(
            self.reference,
            reference,
            suffixes,
            table,
            self.table_bases,
            edges,
            build_tree_entries(edges, self.entry_bases, backend),
            self.entry_bases,
            letters,
            ContigNames(backend.to_device(np.frombuffer(b"".join(names), np.uint8)), backend.to_device(offsets)),
        )


@dataclass(frozen=True)
class ContigNames:
    """The contigs' names: letters, uint8, of all of them; offsets, int64 [contigs + 1], where each begins."""

    letters: Array
    offsets: Array


@dataclass(frozen=True)
class DeviceIndex:
    """The arrays of an index that a search reads, on a backend's device; the attributes are HostIndex's but for these.

    Attributes:
        host: the reference on the host; reference: as kernels take it.
        entries: int64 [4^entry_bases, 2], where walks down the tree begin.
        contig_names: as SAM writes them.
    """

    host: Reference
    reference: DeviceReference
    suffixes: Array
    prefix_table: Array
    table_bases: int
    edges: Array
    entries: Array
    entry_bases: int
    barrier_letters: Array
    contig_names: ContigNames

    def on(self, backend: Backend) -> DeviceIndex:
        """The same on another device, which the thread uses, copied from this one."""
        index: DeviceIndex = _on(self, backend)
        return index

    @functools.cached_property
    def suffix_count(self) -> int:
        """How many suffixes the array holds."""
        return len(self.suffixes)


def _on(group: Any, backend: Backend) -> Any:
    """A group with its arrays on another device, and those of the groups in it."""
    held = {one.name: getattr(group, one.name) for one in fields(group)}
    arrays = {name: backend.bring(value) for name, value in held.items() if isinstance(value, backend.xp.ndarray)}
    groups = {
        name: _on(value, backend) for name, value in held.items() if isinstance(value, DeviceReference | ContigNames)
    }
    return replace(group, **arrays, **groups)
