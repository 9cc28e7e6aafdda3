"""The index: opened from its folder or built from FASTA, searched for exact occurrences, loaded on devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, open_backend
from readmap.backend.machine import available_processors
from readmap.errors import BackendError, IndexFolderError, UsageError
from readmap.formats.array_folder import StoredArrays
from readmap.formats.wording import format_bytes, pluralize
from readmap.index import folder
from readmap.index.bounds import verify_arrays
from readmap.index.device import DeviceIndex, HostIndex, IndexStructure
from readmap.index.occurrences import Locations, Occurrences, count_occurrences, find_occurrences, locate
from readmap.index.reference import REFERENCE_ARRAYS, Reference
from readmap.index.suffix_array import Suffixes, first_unsorted_rank
from readmap.index.suffix_tree import EDGES_PER_NODE, MAX_ENTRY_BASES, TREE_BYTES, Edges, first_mismatched_node
from readmap.reads.packing import pack_patterns
from readmap.reads.parsing import reads_from_sequences
from readmap.strand import Strand


@dataclass(frozen=True, repr=False)
class Index:
    """A reference with the structures that search it.

    Attributes
    ----------
    reference : Reference
        The packed contigs.
    suffixes : ndarray of uint32 or uint64, shape (suffixes,)
        Suffix array: positions of all A, C, G and T in the order of their suffixes.
    prefix_table : ndarray of the same dtype, shape (4**table_bases + 1,), or None
        See build_prefix_table. None if the index has only the tree.
    table_bases : int
        Bases resolved by the prefix table.
    edges : ndarray of uint32, shape (4 * nodes, 4), or None
        Suffix tree, see kernels/index/suffix_tree.cuh. None if the index has only the array.
    source : str
        Path of the FASTA file, as given when the index was built.
    stored : StoredArrays or None
        The folder the index was opened from; its arrays are verified whenever they are loaded on a device. None if the
        index was built in memory, or opened with check=False.
    """

    reference: Reference
    suffixes: Suffixes
    prefix_table: Suffixes | None
    table_bases: int
    edges: Edges | None
    source: str
    stored: StoredArrays | None = field(default=None, repr=False, compare=False)
    _loaded: dict[tuple[Any, ...], tuple[DeviceIndex, Backend]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def open(cls, path: str | Path, check: bool = True, alternates: bool = True) -> Index:
        """Open an index folder; its arrays are mapped into memory.

        Parameters
        ----------
        path : str or Path
            The index folder, `ref.fa.readmap`.
        check : bool
            Verify checksums and bounds whenever the arrays are loaded on a device. Without it, a damaged index may
            crash the process or return wrong results.
        alternates : bool
            Read the names of ALT contigs from PREFIX.alt next to PREFIX.readmap, or from ref.fa.alt, if the file
            exists.

        Returns
        -------
        Index

        Raises
        ------
        IndexFolderError
            The folder is missing, incomplete or damaged.
        """
        found = folder.read(Path(path))
        arrays = found.arrays.arrays
        reference = Reference(**{name: arrays[name] for name in REFERENCE_ARRAYS}, contigs=found.contigs)
        table, edges, stored = arrays.get("prefix_table"), arrays.get("edges"), found.arrays if check else None
        index = cls(reference, arrays["suffix_array"], table, found.table_bases, edges, found.source, stored)
        alternates_file = folder.find_alternates_file(Path(path), found.source) if alternates else None
        return index.with_alternates(folder.read_alternates(alternates_file)) if alternates_file else index

    def with_alternates(self, names: Collection[str]) -> Index:
        """Return the index with the contigs of these names marked as ALT contigs."""
        contigs = tuple(replace(contig, alternate=contig.name in names) for contig in self.reference.contigs)
        return replace(self, reference=replace(self.reference, contigs=contigs))

    def __repr__(self) -> str:
        bases, contigs = self.reference.bases, pluralize(len(self.reference.contigs), "contig")
        return f"<Index of {self.source}: {contigs}, {bases:,} bases, {self.structure}>"

    def fetch(self, contig: str, start: int = 0, end: int | None = None) -> str:
        """Return bases of a contig in upper case, with IUPAC's ambiguous letters.

        Parameters
        ----------
        contig : str
            Name of the contig.
        start, end : int
            0-based half-open range on the contig; end=None is the contig's end.

        Returns
        -------
        str

        Raises
        ------
        UsageError
            There is no such contig, or the range is not within it.
        """
        for number, one in enumerate(self.reference.contigs):
            if one.name == contig:
                last = one.length if end is None else end
                if not 0 <= start <= last <= one.length:
                    raise UsageError(f"{contig} has {one.length:,} bases: {start} to {last} is not within it")
                origin = int(self.reference.contig_starts[number])
                return self.reference.letters(origin + start, origin + last).tobytes().decode() if start < last else ""
        raise UsageError(f"the index has no contig {contig!r}")

    def close(self) -> None:
        """Free the device memory used by `count` and `locate`; the next call loads the index again."""
        backends = [backend for _, backend in self._loaded.values()]
        self._loaded.clear()
        for backend in backends:
            backend.release_memory()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, path: str | Path, force: bool = False, threads: int | None = None) -> None:
        """Write the index to a folder, completely or not at all.

        Parameters
        ----------
        path : str or Path
            The folder.
        force : bool
            Replace an existing folder.
        threads : int, optional
            Threads that compute checksums and write; by default all processors that this process may use.

        Raises
        ------
        IndexFolderError
            `path` exists and `force` is False.
        """
        with folder.KIND.writing(Path(path), threads or available_processors(), force) as output:
            folder.write_reference(output, self.reference, self.source, self.table_bases)
            output.add("suffix_array", self.suffixes)
            for name, array in (("prefix_table", self.prefix_table), ("edges", self.edges)):
                if array is not None:
                    output.add(name, array)
            output.commit()

    def check(self, backend: Backend) -> None:
        """Verify on a device that the suffix array is sorted and the tree is the one that belongs to it.

        Arrays of an opened index are also compared with their checksums.

        Raises
        ------
        IndexFolderError
            An array is damaged.
        BackendError
            The device has too little memory.
        """
        length, memory = self.reference.length, backend.memory()
        needed = self.nbytes + self.suffixes.itemsize * length + (TREE_BYTES * length if self.nodes else 0)
        if memory and memory[0] < needed:
            free = f"{backend.name} has {format_bytes(memory[0])} of memory free"
            raise BackendError(f"{free}, the check needs {format_bytes(needed)}")
        reference, order = self.reference.to_device(backend), backend.to_device(self.suffixes)
        if self.stored:
            others = {name: array for name, array in self.stored.arrays.items() if name != "suffix_array"}
            arrays = {name: backend.to_device(array) for name, array in others.items()} | {"suffix_array": order}
            verify_arrays(self.stored, arrays, reference, backend)
            del arrays
        rank = first_unsorted_rank(reference, length, order, backend)
        if rank is not None:
            raise IndexFolderError(f"suffix_array is out of order at rank {rank}")
        if self.edges is None:
            return
        node = first_mismatched_node(reference, length, order, self.edges, backend)
        if node is not None:
            raise IndexFolderError(f"edges contradicts suffix_array at node {node}")

    def host_index(
        self, backend: Backend, structure: IndexStructure = IndexStructure.ARRAY, prefix_table: bool = True
    ) -> HostIndex:
        """Return the arrays that a search by `structure` reads on the backend's device.

        prefix_table: False omits the tables of first bases; a search then starts with the whole array, a walk at the
            root. Raises IndexFolderError if the index was built without one of the arrays.
        """
        table, bases = np.array([0, len(self.suffixes)], self.suffixes.dtype), 0
        edges, entry_bases = np.zeros((EDGES_PER_NODE, 4), np.uint32), 0
        if structure.has_array and prefix_table:
            if self.prefix_table is None:
                raise _missing("prefix table", "array")
            table, bases = self.prefix_table, self.table_bases
        if structure.has_tree:
            if self.edges is None:
                raise _missing("suffix tree", "tree")
            edges, entry_bases = self.edges, min(self.table_bases - 1, MAX_ENTRY_BASES) if prefix_table else 0
        arrays = HostIndex(self.reference, self.suffixes, table, bases, edges, entry_bases, self.stored)
        return arrays.with_table_for(backend) if bases else arrays

    def to_device(
        self, backend: Backend, structure: IndexStructure = IndexStructure.ARRAY, prefix_table: bool = True
    ) -> DeviceIndex:
        """Load the arrays that a search by `structure` reads on a device; BackendError if memory is too small."""
        arrays, memory = self.host_index(backend, structure, prefix_table), backend.memory()
        if memory and memory[0] < arrays.nbytes:
            needed = f"the index needs {format_bytes(arrays.nbytes)} of memory on {backend.name}"
            raise BackendError(f"{needed}, {format_bytes(memory[0])} are free")
        return arrays.to_device(backend)

    @property
    def structure(self) -> IndexStructure:
        """The structures in the index."""
        if self.edges is None:
            return IndexStructure.ARRAY
        return IndexStructure.TREE if self.prefix_table is None else IndexStructure.BOTH

    @property
    def nodes(self) -> int:
        """The number of nodes of the suffix tree; 0 without a tree."""
        return 0 if self.edges is None else len(self.edges) // EDGES_PER_NODE

    def count(
        self,
        queries: Iterable[str | bytes],
        strand: Strand | str = Strand.BOTH,
        *,
        structure: IndexStructure | str | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> NDArray[np.int64]:
        """Count the exact occurrences of sequences.

        Occurrences do not extend over a contig's end or an ambiguous base. A palindrome counts on both strands, and a
        sequence with an ambiguous base occurs nowhere. The index is loaded on the device at the first call and stays
        there until `close`.

        Parameters
        ----------
        queries : iterable of str or bytes
            Sequences of at most 10,000 bases.
        strand : {"both", "forward", "reverse"}
            Strands to search.
        structure : {"array", "tree"}, optional
            By default the suffix array if its prefix table is in the index, else the tree.
        device : str
            "auto", "cpu" or "gpu".
        threads : int, optional
            Host threads; by default all processors that this process may use.

        Returns
        -------
        ndarray of int64, shape (queries,)

        Raises
        ------
        DataError
            A sequence has a character that is not a nucleotide, or more than 10,000 bases.
        BackendError
            The device cannot be used.
        IndexFolderError
            The index was built without the structure.
        """
        found, count, backend = self._find(queries, strand, structure, device, threads)
        return backend.to_host(count_occurrences(found, backend))[:count]

    def locate(
        self,
        queries: Iterable[str | bytes],
        strand: Strand | str = Strand.BOTH,
        *,
        max_per_query: int | None = None,
        structure: IndexStructure | str | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> Locations:
        """Find the exact occurrences of sequences.

        Parameters
        ----------
        queries, strand, structure, device, threads
            As for `count`.
        max_per_query : int, optional
            Maximum number of occurrences to return per sequence; by default all.

        Returns
        -------
        Locations
            Grouped by sequence, forward strand first. Each strand is in suffix array order: by the
            bases that follow, up to an ambiguous base or the contig's end, then by position.

        Raises
        ------
        DataError, BackendError, IndexFolderError
            As for `count`.
        UsageError
            `max_per_query` is negative.
        """
        found, count, backend = self._find(queries, strand, structure, device, threads)
        loaded = self._loaded[device, threads, IndexStructure(structure or self._default_structure)][0]
        return locate(found, count, loaded, max_per_query, backend)

    def _find(
        self,
        queries: Iterable[str | bytes],
        strand: Strand | str,
        structure: IndexStructure | str | None,
        device: str,
        threads: int | None,
    ) -> tuple[Occurrences, int, Backend]:
        """Search on a device, loading the index if needed; return occurrences, number of queries, and backend."""
        chosen = IndexStructure(structure or self._default_structure)
        key = (device, threads, chosen)
        if key not in self._loaded:
            backend = open_backend(device, threads)
            self._loaded[key] = self.to_device(backend, chosen), backend
        loaded, backend = self._loaded[key]
        reads, count = reads_from_sequences(queries, None, backend)
        patterns = pack_patterns(reads.bytes, reads.sequence_starts, reads.lengths, backend)
        return find_occurrences(patterns, loaded, Strand(strand), chosen, backend), count, backend

    @property
    def _default_structure(self) -> IndexStructure:
        return IndexStructure.ARRAY if self.structure.has_array else IndexStructure.TREE

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        arrays = (self.suffixes, self.prefix_table, self.edges)
        return self.reference.nbytes + sum(array.nbytes for array in arrays if array is not None)


def _missing(what: str, structure: str) -> IndexFolderError:
    return IndexFolderError(f"the index has no {what}: build it again with --structure {structure} or --structure both")
