"""The index as a whole: built from a FASTA file, opened from its folder, asked where sequences occur."""

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
from readmap.formats.wording import pluralize
from readmap.index import folder
from readmap.index.alternates import find_alternates_file, read_alternates
from readmap.index.bounds import verify_arrays
from readmap.index.device import DeviceIndex, HostIndex, IndexStructure
from readmap.index.occurrences import Locations, Occurrences, find_occurrences, locate, count_occurrences
from readmap.index.reference import REFERENCE_ARRAYS, Reference
from readmap.index.suffix_array import Suffixes, first_unsorted_rank
from readmap.index.suffix_tree import EDGES_PER_NODE, MAX_ENTRY_BASES, TREE_BYTES, Edges, first_mismatched_node
from readmap.reads.parsing import reads_from_sequences
from readmap.reads.patterns import pack_patterns
from readmap.strand import Strand


@dataclass(frozen=True, repr=False)
class Index:
    """A reference with the structures that search it.

    Attributes:
        reference: the packed contigs.
        suffixes: uint32 or uint64 [bases that are A, C, G or T], places in the order of their suffixes.
        prefix_table: as suffixes' dtype, [4^table_bases + 1]; see build_prefix_table. None where only the tree is.
        table_bases: the bases that the table resolves.
        edges: uint32 [4 * nodes, 4], the suffix tree; see kernels/index/suffix_tree.cuh. None where only the array is.
        source: the FASTA file it was made from, as it was named.
        stored: the folder it was opened from, to which its arrays are held when they are loaded on a device; None
            where it was built, or is not to be checked.
    """

    reference: Reference
    suffixes: Suffixes
    prefix_table: Suffixes | None
    table_bases: int
    edges: Edges | None
    source: str
    stored: StoredArrays | None = field(default=None, repr=False, compare=False)
    _held: dict[tuple[Any, ...], tuple[DeviceIndex, Backend]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def open(cls, path: str | Path, check: bool = True, alternates: bool = True) -> Index:
        """The index in a folder, its arrays mapped into memory; raises IndexFolderError where it is not whole.

        alternates: whether the contigs that PREFIX.alt, beside PREFIX.readmap, or ref.fa.alt names are ALT contigs.
        check: whether its arrays are held to their checksums, and to what keeps kernels inside them, each time they
            are loaded on a device. Without it an index that was damaged may do anything.
        """
        found = folder.read(Path(path))
        arrays = found.arrays.arrays
        reference = Reference(**{name: arrays[name] for name in REFERENCE_ARRAYS}, contigs=found.contigs)
        index = cls(
            reference,
            arrays["suffix_array"],
            arrays.get("prefix_table"),
            found.table_bases,
            arrays.get("edges"),
            found.source,
            found.arrays if check else None,
        )
        beside = find_alternates_file(Path(path), found.source) if alternates else None
        return index.with_alternates(read_alternates(beside)) if beside else index

    def with_alternates(self, names: Collection[str]) -> Index:
        """The same where the contigs of some names are ALT contigs."""
        contigs = tuple(replace(contig, alternate=contig.name in names) for contig in self.reference.contigs)
        return replace(self, reference=replace(self.reference, contigs=contigs))

    def __repr__(self) -> str:
        bases, contigs = self.reference.bases, pluralize(len(self.reference.contigs), "contig")
        return f"<Index of {self.source}: {contigs}, {bases:,} bases, {self.structure}>"

    def fetch(self, contig: str, start: int = 0, end: int | None = None) -> str:
        """The bases of a contig from a 0-based start to before an end, in upper case, with IUPAC's ambiguous letters.

        Raises UsageError where there is no such contig, or start and end are not within it.
        """
        for number, one in enumerate(self.reference.contigs):
            if one.name == contig:
                last = one.length if end is None else end
                if not 0 <= start <= last <= one.length:
                    raise UsageError(f"{contig} has {one.length:,} bases: {start} to {last} is no part of it")
                begin = int(self.reference.contig_starts[number])
                return self.reference.letters(begin + start, begin + last).tobytes().decode() if start < last else ""
        raise UsageError(f"the index has no contig {contig!r}")

    def close(self) -> None:
        """Free the memory of the devices on which count and locate searched; they search anew when they are called."""
        backends = [backend for _, backend in self._held.values()]
        self._held.clear()
        for backend in backends:
            backend.release_memory()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, path: str | Path, force: bool = False, threads: int | None = None) -> None:
        """Keep the index in a folder, whole or not at all; IndexFolderError where `path` exists, unless `force`.

        threads: that sum and write; default, the processors that this process may use.
        """
        with folder.KIND.writing(Path(path), threads or available_processors(), force) as output:
            folder.begin(output, self.reference, self.source, self.table_bases)
            output.add("suffix_array", self.suffixes)
            for name, array in (("prefix_table", self.prefix_table), ("edges", self.edges)):
                if array is not None:
                    output.add(name, array)
            output.commit()

    def check(self, backend: Backend) -> None:
        """Raise IndexFolderError where the suffix array is not in order, or an edge of the tree contradicts it.

        The arrays of one that was opened are held to their checksums before.
        """
        length, memory = self.reference.length, backend.memory()
        needed = self.nbytes + self.suffixes.itemsize * length + (TREE_BYTES * length if self.nodes else 0)
        if memory and memory[0] < needed:
            raise BackendError(f"{backend.name} has {memory[0]:,} bytes of memory free, the check needs {needed:,}")
        reference, order = self.reference.to_device(backend), backend.to_device(self.suffixes)
        if self.stored:
            others = {name: array for name, array in self.stored.arrays.items() if name != "suffix_array"}
            held = {name: backend.to_device(array) for name, array in others.items()} | {"suffix_array": order}
            verify_arrays(self.stored, held, reference, backend)
            del held
        rank = first_unsorted_rank(reference, length, order, backend)
        if rank is not None:
            raise IndexFolderError(f"suffix_array is out of order at rank {rank}")
        if self.edges is None:
            return
        node = first_mismatched_node(reference, length, order, self.edges, backend)
        if node is not None:
            raise IndexFolderError(f"edges contradicts suffix_array at node {node}")

    def on_host(self, backend: Backend, structure: IndexStructure = IndexStructure.ARRAY, prefix_table: bool = True) -> HostIndex:
        """The arrays that a search by `structure` reads on a device.

        prefix_table: False leaves the tables of first bases out: a search begins with the whole array, a walk at the
        root. Raises IndexFolderError where the index was built without one of the arrays.
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
        """The arrays of `on_host` on a device; raises BackendError where it does not fit."""
        arrays, memory = self.on_host(backend, structure, prefix_table), backend.memory()
        if memory and memory[0] < arrays.nbytes:
            raise BackendError(
                f"the index needs {arrays.nbytes} bytes of memory on {backend.name}, {memory[0]} are free"
            )
        return arrays.to_device(backend)

    @property
    def structure(self) -> IndexStructure:
        """The structures that the index holds."""
        if self.edges is None:
            return IndexStructure.ARRAY
        return IndexStructure.TREE if self.prefix_table is None else IndexStructure.BOTH

    @property
    def nodes(self) -> int:
        """The nodes of the suffix tree, 0 where there is none."""
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
        """How often each sequence occurs exactly, int64 [queries]; a palindrome counts on both strands.

        One with an ambiguous base occurs nowhere, and none over a contig's end or an ambiguous base of the reference.
        structure: array or tree, by default what the index holds, the array first. The index is copied to the device
        at the first call and stays there.

        Raises:
            DataError: a sequence holds what is no nucleotide, or more than 10,000 bases.
            BackendError, IndexFolderError: the device cannot be used; the index was built without that structure.
        """
        found, count, backend = self._find(queries, strand, structure, device, threads)
        return backend.to_host(count_occurrences(found, backend))[:count]

    def locate(
        self,
        queries: Iterable[str | bytes],
        strand: Strand | str = Strand.BOTH,
        *,
        most: int | None = None,
        structure: IndexStructure | str | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> Locations:
        """Where each sequence occurs exactly, at most `most` places each; otherwise as `count`.

        A sequence's places on the forward strand come first, and on each strand they are in the order of what follows
        them in the reference up to an ambiguous base or the contig's end, then of their places.
        """
        found, count, backend = self._find(queries, strand, structure, device, threads)
        held = self._held[device, threads, IndexStructure(structure or self._usual)][0]
        return locate(found, count, held, most, backend)

    def _find(
        self,
        queries: Iterable[str | bytes],
        strand: Strand | str,
        structure: IndexStructure | str | None,
        device: str,
        threads: int | None,
    ) -> tuple[Occurrences, int, Backend]:
        """The ranges of the queries, how many queries there are, and the backend that found them."""
        chosen = IndexStructure(structure or self._usual)
        key = (device, threads, chosen)
        if key not in self._held:
            backend = open_backend(device, threads)
            self._held[key] = self.to_device(backend, chosen), backend
        held, backend = self._held[key]
        reads, count = reads_from_sequences(queries, None, backend)
        patterns = pack_patterns(reads.bytes, reads.sequence_starts, reads.lengths, backend)
        return find_occurrences(patterns, held, Strand(strand), chosen, backend), count, backend

    @property
    def _usual(self) -> IndexStructure:
        return IndexStructure.ARRAY if self.structure.has_array else IndexStructure.TREE

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        arrays = (self.suffixes, self.prefix_table, self.edges)
        return self.reference.nbytes + sum(array.nbytes for array in arrays if array is not None)


def _missing(what: str, structure: str) -> IndexFolderError:
    return IndexFolderError(
        f"the index holds no {what}: build it again with --structure {structure}, or both, to have it"
    )
