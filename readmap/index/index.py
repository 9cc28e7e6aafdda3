"""The index as a whole: built from a FASTA file, opened from its folder, placed on a device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, open_backend
from readmap.errors import BackendError, IndexFolderError
from readmap.formats.compression import open_bytes
from readmap.formats.fasta import read_fasta
from readmap.index import folder
from readmap.index.reference import Reference, build_reference
from readmap.index.suffix_array import (
    Suffixes,
    build_prefix_table,
    build_suffix_array,
    first_disorder,
    reference_arguments,
    table_bases,
)

#: Told what is being done, a line a stage, and the bytes read while the FASTA file is.
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Index:
    """A reference with the structures that search it.

    Attributes:
        reference: the packed contigs.
        suffixes: uint32 or uint64 [bases that are A, C, G or T], places in the order of their suffixes.
        prefix_table: as suffixes' dtype, [4^table_bases + 1]; see build_prefix_table.
        table_bases: the bases that the table resolves.
        source: the FASTA file it was made from, as it was named.
    """

    reference: Reference
    suffixes: Suffixes
    prefix_table: Suffixes
    table_bases: int
    source: str

    @classmethod
    def open(cls, path: str | Path) -> Index:
        """The index in a folder, its arrays mapped into memory; raises IndexFolderError where it is not whole."""
        manifest, arrays = folder.read(Path(path), (*_REFERENCE_ARRAYS, "suffix_array", "prefix_table"))
        reference = Reference(**{name: arrays[name] for name in _REFERENCE_ARRAYS}, contigs=tuple(manifest.contigs))
        return cls(reference, arrays["suffix_array"], arrays["prefix_table"], manifest.table_bases, manifest.source)

    def write(self, path: str | Path, force: bool = False) -> None:
        """Keep the index in a folder, whole or not at all; IndexFolderError where `path` exists, unless `force`."""
        arrays = {name: getattr(self.reference, name) for name in _REFERENCE_ARRAYS}
        arrays |= {"suffix_array": self.suffixes, "prefix_table": self.prefix_table}
        folder.write(
            Path(path), folder.Manifest(self.table_bases, self.source, list(self.reference.contigs)), arrays, force
        )

    def check(self, backend: Backend) -> None:
        """Raise IndexFolderError where the suffix array is not in order."""
        rank = first_disorder(self.reference, self.suffixes, backend)
        if rank is not None:
            raise IndexFolderError(f"suffix_array is out of order at rank {rank}")

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        reference = sum(getattr(self.reference, name).nbytes for name in _REFERENCE_ARRAYS)
        return int(reference + self.suffixes.nbytes + self.prefix_table.nbytes)


_REFERENCE_ARRAYS = ("words", "barrier_blocks", "barrier_starts", "barrier_ends", "barrier_letters", "contig_starts")


@dataclass(frozen=True)
class DeviceIndex:
    """An index whose arrays lie on a backend's device; `reference` is what kernels take as REFERENCE_ARGUMENTS."""

    index: Index
    reference: tuple[Any, ...]
    suffixes: Array
    prefix_table: Array
    barrier_letters: Array
    contig_names: Array
    contig_name_offsets: Array

    @functools.cached_property
    def suffix_count(self) -> int:
        """How many suffixes the array holds."""
        return len(self.suffixes)


def place(index: Index, backend: Backend) -> DeviceIndex:
    """Copy an index to a device, or on the CPU into memory; raises BackendError where it does not fit."""
    memory = backend.memory()
    if memory and memory[0] < index.nbytes:
        raise BackendError(f"the index needs {index.nbytes} bytes of memory on {backend.name}, {memory[0]} are free")
    names = [contig.name.encode("utf-8", "surrogateescape") for contig in index.reference.contigs]
    offsets = np.concatenate(([0], np.cumsum([len(name) for name in names]))).astype(np.int64)
    return DeviceIndex(
        index,
        reference_arguments(index.reference, backend),
        backend.hold(index.suffixes),
        backend.hold(index.prefix_table),
        backend.to_device(index.reference.barrier_letters),
        backend.to_device(np.frombuffer(b"".join(names), np.uint8)),
        backend.to_device(offsets),
    )


def build_index(
    fasta: str | Path,
    *,
    threads: int | None = None,
    force_64_bits: bool = False,
    progress: Progress | None = None,
) -> Index:
    """Index a FASTA file, plain, gzip or bgzip, `-` for standard input.

    Args:
        fasta: the file's path.
        threads: for the kernels; default, the processors that this process may use.
        force_64_bits: store 64-bit places whatever the size.
        progress: called with each stage's name and the bytes read so far.

    Raises:
        DataError: the file is not FASTA, or a contig of it is empty, doubled or no nucleotide sequence.
    """
    tell = progress or (lambda stage, done: None)
    backend = open_backend("cpu", threads)
    with open_bytes(str(fasta), backend_threads(threads)) as source:
        sequences = read_fasta(source, lambda done: tell("read", done))
    tell("pack", 0)
    reference, text = build_reference(sequences, backend)
    del sequences
    tell("sort suffixes", 0)
    suffixes = build_suffix_array(text, force_64_bits)
    del text
    tell("prefix table", 0)
    bases = table_bases(len(suffixes))
    table = build_prefix_table(reference, suffixes, bases, backend)
    return Index(reference, suffixes, table, bases, str(fasta))


def backend_threads(threads: int | None) -> int:
    """Threads for inflating bgzip blocks."""
    from readmap.backend.cpu import available_processors

    return threads or available_processors()
