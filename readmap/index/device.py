"""The index arrays that a search reads, on the host (HostIndex) and on a device (DeviceIndex)."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.backend.tables import Table
from readmap.formats.array_folder import StoredArrays
from readmap.index.bounds import verify_arrays
from readmap.index.reference import REFERENCE_ARRAYS, DeviceReference, Reference
from readmap.index.suffix_array import Suffixes, build_prefix_table, loaded_table_bases, table_bytes
from readmap.index.suffix_tree import ENTRY_BYTES, Edges, build_tree_entries


class IndexStructure(StrEnum):
    """The structures an index is searched with: suffix array with prefix table, suffix tree, or both."""

    ARRAY = "array"
    TREE = "tree"
    BOTH = "both"

    @property
    def has_array(self) -> bool:
        """Whether the prefix table is included; the suffix array always is, because it has the positions."""
        return self is not IndexStructure.TREE

    @property
    def has_tree(self) -> bool:
        return self is not IndexStructure.ARRAY


@dataclass(frozen=True)
class HostIndex:
    """The index arrays that a search reads, on the host.

    reference, suffixes: as in Index. prefix_table: the index's table; [0, suffixes] for 0 bases if no table is wanted;
    None if the device builds a table of more bases. table_bases: bases resolved by the prefix table. edges: the index's
    edges; the edges of an empty root if the tree is not wanted. entry_bases: bases to be resolved by the table of tree
    entries. stored: the folder of the arrays, which are verified after loading; None to skip verification.
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
        """The bytes of device memory that the index takes."""
        tables = table_bytes(self.table_bases, self.suffixes.dtype) + (ENTRY_BYTES << 2 * self.entry_bases)
        return self.reference.nbytes + int(self.suffixes.nbytes) + int(self.edges.nbytes) + tables

    def with_table_for(self, backend: Backend) -> HostIndex:
        """Return the index for a device: prefix_table=None and more table_bases if a larger table fits there."""
        others = self.nbytes - table_bytes(self.table_bases, self.suffixes.dtype)
        bases = loaded_table_bases(self.table_bases, self.suffixes, others, backend)
        return self if bases == self.table_bases else replace(self, prefix_table=None, table_bases=bases)

    def to_device(self, backend: Backend) -> DeviceIndex:
        """Copy the index to a device, verify it if `stored`, build missing tables; IndexFolderError if damaged."""
        names = [contig.name.encode("utf-8", "surrogateescape") for contig in self.reference.contigs]
        offsets = np.concatenate(([0], np.cumsum([len(name) for name in names]))).astype(np.int64)
        reference = self.reference.to_device(backend)
        suffixes, edges = map(backend.to_device_random_access, (self.suffixes, self.edges))
        table = None if self.prefix_table is None else backend.to_device_random_access(self.prefix_table)
        letters = backend.to_device(self.reference.barrier_letters)
        if self.stored:
            loaded = {name: array for name, array in vars(reference).items() if name in REFERENCE_ARRAYS}
            loaded |= {"barrier_letters": letters, "suffix_array": suffixes}
            for name, own, array in (("prefix_table", self.prefix_table, table), ("edges", self.edges, edges)):
                if own is self.stored.arrays.get(name):  # else it is a placeholder
                    loaded[name] = array
            verify_arrays(self.stored, loaded, reference, backend)
        if table is None:
            table = build_prefix_table(reference, suffixes, self.table_bases, backend)
        entries, text = build_tree_entries(edges, self.entry_bases, backend), np.frombuffer(b"".join(names), np.uint8)
        return DeviceIndex(
            *(self.reference, reference, suffixes, table, self.table_bases, edges, entries, self.entry_bases, letters),
            ContigNames(letters=backend.to_device(text), offsets=backend.to_device(offsets)),
        )


class ContigNames(Table, struct="common/text.cuh:ContigNames"):
    """The names of all contigs."""


@dataclass(frozen=True)
class DeviceIndex:
    """The index arrays that a search reads, on a device; further attributes as in HostIndex.

    host: the reference on the host. reference: the kernels' struct Reference. entries: int64 [4^entry_bases, 2], the
    tree entries: start nodes of walks whose first bases are known. contig_names: names as SAM prints them.
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

    def copy_to(self, backend: Backend) -> DeviceIndex:
        """Return a copy of the index on another device, which must be the calling thread's current device."""
        copies: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Table):
                copies[one.name] = value.copy_to(backend)
            elif isinstance(value, backend.xp.ndarray):
                copies[one.name] = backend.copy_from_peer(value)
        return replace(self, **copies)

    @functools.cached_property
    def suffix_count(self) -> int:
        return len(self.suffixes)
