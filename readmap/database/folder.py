"""The database's folder on disk: where it is, and what its manifest says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from readmap.backend import Backend
from readmap.backend.checksums import BLOCK_BYTES, block_checksum, host_checksums
from readmap.database.letters import LETTERS, PAD
from readmap.errors import DatabaseFolderError
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import FolderKind, StoredArrays

#: Codes of PAD behind the last letter, which kernels may read.
PADDING = 64

#: Letters that are looked at together: they stay in the cache.
_PART = 1 << 20


def verify_shapes(stored: StoredArrays) -> None:
    """Raise where an array has another dtype or shape than the others ask for, or sequences do not lie as they must.

    Looks into the arrays that have an element for each sequence, and at the titles' first letters.
    """
    arrays = stored.arrays
    count = arrays["lengths"].size
    for name in ("lengths", "starts", "order"):
        stored.expect_array(name, [np.int64], count)
    stored.expect_array("title_offsets", [np.int64], count + 1)
    for name in ("codes", "titles"):
        stored.expect_array(name, [np.uint8], arrays[name].size)
    lengths, starts, order = arrays["lengths"], arrays["starts"], arrays["order"]
    letters = len(arrays["codes"]) - PADDING
    if letters < 0 or (arrays["codes"][letters:] != PAD).any():
        raise stored.invalid_array("codes", f"does not end with {PADDING} codes of no letter")
    ends = np.append(starts[1:], letters)
    if (count == 0 and letters) or (starts[:1] != 0).any() or (starts > ends).any():
        raise stored.invalid_array("starts", f"does not divide the {letters:,} letters")
    if (lengths != ends - starts).any():
        raise stored.invalid_array("lengths", "contradicts starts")
    if (lengths[1:] > lengths[:-1]).any():
        raise stored.invalid_array("lengths", "rises: the longest sequence comes first")
    if ((order < 0) | (order >= count)).any() or (np.bincount(order, minlength=count) != 1).any():
        raise stored.invalid_array("order", "does not have every sequence's number once")
    _expect_titles(stored)


def _expect_titles(stored: StoredArrays) -> None:
    """Raise where a title is outside the text, or has no name."""
    titles, offsets = stored.arrays["titles"], stored.arrays["title_offsets"]
    if (offsets[0], offsets[-1]) != (0, len(titles)) or (offsets[1:] <= offsets[:-1]).any():
        raise stored.invalid_array("title_offsets", f"does not divide the {len(titles):,} letters of the titles")
    if (titles[offsets[:-1]] <= ord(" ")).any():
        raise stored.invalid_array("titles", "has a title that does not begin with a name")


def verify_arrays(stored: StoredArrays, backend: Backend) -> None:
    """Raise where an array was altered since it was written, or holds what is no letter's code.

    backend: where the checksums are computed; `verify_shapes` was before.
    """
    for name, array in stored.arrays.items():
        stored.expect_checksums(name, host_checksums(array, backend))
    codes = stored.arrays["codes"][:-PADDING]
    for begin in range(0, len(codes), _PART):
        if int(codes[begin : begin + _PART].max()) >= len(LETTERS):
            raise stored.invalid_array("codes", f"holds what is no letter's code in the {_PART:,} from {begin:,} on")


KIND = FolderKind("database", "readmap index --database", 3, DatabaseFolderError, block_checksum, BLOCK_BYTES)

ENDING = ".readmapdb"

#: The arrays of a Database, the last two those of its titles.
ARRAYS = ("codes", "starts", "lengths", "order", "titles", "title_offsets")


def default_folder(fasta: str) -> Path:
    """Where the database of a FASTA file is kept: db.fa and db.fa.gz both have db.fa.readmapdb."""
    return Path(fasta.removesuffix(".gz") + ENDING)


def read(path: Path) -> tuple[str, Alphabet, StoredArrays]:
    """The source, the molecule and the arrays, mapped; raises DatabaseFolderError where they do not fit each other.

    What the large arrays hold is not looked at.
    """
    stored = KIND.read(path, ARRAYS)
    try:
        source, molecule = str(stored.record["source"]), Alphabet(stored.record["molecule"])
    except (KeyError, ValueError) as error:
        raise KIND.damaged(path, error) from error
    verify_shapes(stored)
    return source, molecule, stored
