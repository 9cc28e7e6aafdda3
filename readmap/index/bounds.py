"""Checks of a stored index: shapes, checksums, and the bounds that keep every kernel inside the arrays."""

from collections.abc import Mapping

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.checksums import block_checksums
from readmap.backend.compilation.declarations import constant
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import StoredArrays
from readmap.formats.fasta import Contig
from readmap.index.reference import LAST_BARRIER_END, DeviceReference, barrier_words, packed_words
from readmap.index.suffix_array import NO_ERROR
from readmap.index.suffix_tree import EDGES_PER_NODE

_SUFFIXES, _TABLE = Kernel("index/bounds", "check_suffixes"), Kernel("index/bounds", "check_prefix_table")
_EDGES, _BLOCKS = Kernel("index/bounds", "check_edges"), Kernel("index/bounds", "check_barrier_blocks")
_PART = constant("index/bounds.cu", "PART")

_BASES = np.frombuffer(b"ACGT", np.uint8)


def verify_shapes(stored: StoredArrays, contigs: tuple[Contig, ...], table_bases: int) -> None:
    """Raise IndexFolderError if a dtype or shape does not fit the contigs, or a small array is inconsistent."""
    arrays = stored.arrays
    stored.expect_array("contig_starts", [np.int64], len(contigs) + 1)
    starts = arrays["contig_starts"]
    if starts[0] != 0 or (starts[1:] <= starts[:-1]).any():
        raise stored.invalid_array("contig_starts", "does not increase from 0")
    if (np.diff(starts) - 1).tolist() != [contig.length for contig in contigs]:
        raise stored.invalid_array("contig_starts", "contradicts the contigs' lengths")
    length = int(starts[-1])
    stored.expect_array("words", [np.uint64], packed_words(length))
    stored.expect_array("barrier_blocks", [np.uint64], barrier_words(length))
    barred = _expect_barriers(stored, length)
    stored.expect_array("suffix_array", [np.uint32, np.uint64], length - barred)
    if "prefix_table" in arrays:
        stored.expect_array("prefix_table", [arrays["suffix_array"].dtype.type], 4**table_bases + 1)
    if "edges" in arrays:
        nodes = max(len(arrays["edges"]) // EDGES_PER_NODE if arrays["edges"].ndim else 0, 1)
        stored.expect_array("edges", [np.uint32], nodes * EDGES_PER_NODE, 4)


def _expect_barriers(stored: StoredArrays, length: int) -> int:
    """Return the number of ambiguous bases and contig ends of `length` positions; raise if they are invalid."""
    arrays = stored.arrays
    count = max(arrays["barrier_starts"].size, 1)
    for name, dtype in (("barrier_starts", np.int64), ("barrier_ends", np.int64), ("barrier_letters", np.uint8)):
        stored.expect_array(name, [dtype], count)
    starts, ends, letters = (arrays[f"barrier_{what}"] for what in ("starts", "ends", "letters"))
    if starts[0] < 0 or (starts >= ends).any() or (starts[1:] < ends[:-1]).any():
        raise stored.invalid_array("barrier_starts", "has intervals that are empty or overlap")
    if (starts[-1], ends[-1]) != (length, LAST_BARRIER_END):
        wrong = f"does not end with a barrier after the reference's {length:,} positions"
        raise stored.invalid_array("barrier_ends", wrong)
    between, last = letters == 0, arrays["contig_starts"][1:] - 1
    expected = [*last, length], [*(last + 1), LAST_BARRIER_END]
    if not all(np.array_equal(array[between], bounds) for array, bounds in zip((starts, ends), expected, strict=True)):
        raise stored.invalid_array("barrier_letters", "has 0 at other positions than those between contigs")
    known = np.frombuffer(Alphabet.NUCLEOTIDES.table, np.uint8)[letters] == letters
    if not (between | (known & ~np.isin(letters, _BASES))).all():
        raise stored.invalid_array("barrier_letters", "has a letter other than an ambiguous base")
    return int((ends - starts)[:-1].sum())


def verify_arrays(
    stored: StoredArrays, arrays: Mapping[str, Array], reference: DeviceReference, backend: Backend
) -> None:
    """Raise IndexFolderError if a device array differs from its checksum or has an index outside another array."""
    for name, array in arrays.items():
        stored.expect_checksums(name, block_checksums(array, backend))
    length, suffixes = int(stored.arrays["contig_starts"][-1]), len(stored.arrays["suffix_array"])

    def expect(name: str, kernel: Kernel, items: int, **arguments: object) -> None:
        first_invalid = backend.full(1, -1, np.int64).view(np.uint64)
        backend.launch(kernel, items, first_invalid=first_invalid, **arguments)
        if (first := int(backend.to_host(first_invalid)[0])) != NO_ERROR:
            raise stored.invalid_array(name, f"has an invalid element {first:,}")

    expect("barrier_blocks", _BLOCKS, len(reference.barrier_blocks), reference=reference)
    order, size = arrays["suffix_array"], {"suffix_count": suffixes}
    expect("suffix_array", _SUFFIXES, -(-suffixes // _PART), suffixes=order, length=length, **size)
    if "prefix_table" in arrays:
        table = arrays["prefix_table"]
        expect("prefix_table", _TABLE, len(table), table=table, last=len(table) - 1, **size)
    if "edges" in arrays:
        edges = arrays["edges"]
        expect("edges", _EDGES, len(edges), edges=edges, nodes=len(edges) // EDGES_PER_NODE, length=length, **size)
