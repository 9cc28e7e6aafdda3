"""The folder of a stored database: its manifest, and the checks that keep kernels inside its arrays."""

from pathlib import Path

import numpy as np

from readmap.backend import Backend
from readmap.backend.checksums import BLOCK_BYTES, block_checksum, host_checksums
from readmap.database.letters import LETTERS, PAD
from readmap.errors import DatabaseFolderError
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import FolderKind, StoredArrays

#: Number of PAD codes after the last letter, which kernels may read.
PADDING = 64

#: Letters checked at a time, so that they stay in the cache.
_CHUNK = 1 << 20


def verify_shapes(stored: StoredArrays) -> None:
    """Raise DatabaseFolderError for a wrong dtype or shape or contradictory arrays; reads little of large arrays."""
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
        raise stored.invalid_array("codes", f"does not end with {PADDING} padding codes")
    ends = np.append(starts[1:], letters)
    if (count == 0 and letters) or (starts[:1] != 0).any() or (starts > ends).any():
        raise stored.invalid_array("starts", f"does not partition the {letters:,} letters")
    if (lengths != ends - starts).any():
        raise stored.invalid_array("lengths", "contradicts starts")
    if (lengths[1:] > lengths[:-1]).any():
        raise stored.invalid_array("lengths", "increases, expected the longest sequence first")
    if ((order < 0) | (order >= count)).any() or (np.bincount(order, minlength=count) != 1).any():
        raise stored.invalid_array("order", "does not contain every sequence once")
    _check_titles(stored)


def _check_titles(stored: StoredArrays) -> None:
    """Raise DatabaseFolderError if a title lies outside the text or has no name."""
    titles, offsets = stored.arrays["titles"], stored.arrays["title_offsets"]
    if (offsets[0], offsets[-1]) != (0, len(titles)) or (offsets[1:] <= offsets[:-1]).any():
        raise stored.invalid_array("title_offsets", f"does not partition the {len(titles):,} letters of the titles")
    if (titles[offsets[:-1]] <= ord(" ")).any():
        raise stored.invalid_array("titles", "contains a title that does not start with a name")


def verify_arrays(stored: StoredArrays, backend: Backend) -> None:
    """Raise DatabaseFolderError if an array, of valid shape, differs from its checksum or contains an invalid code."""
    for name, array in stored.arrays.items():
        stored.expect_checksums(name, host_checksums(array, backend))
    codes = stored.arrays["codes"][:-PADDING]
    for start in range(0, len(codes), _CHUNK):
        if int(codes[start : start + _CHUNK].max()) >= len(LETTERS):
            raise stored.invalid_array("codes", f"contains an invalid code at {start:,} to {start + _CHUNK:,}")


KIND = FolderKind("database", "readmap index --database", 3, DatabaseFolderError, block_checksum, BLOCK_BYTES)

ENDING = ".readmapdb"

#: The arrays of a Database; the last two are its titles.
ARRAYS = ("codes", "starts", "lengths", "order", "titles", "title_offsets")


def default_folder(fasta: str) -> Path:
    """Return the default folder for the database of a FASTA file: db.fa.readmapdb for db.fa and db.fa.gz."""
    return Path(fasta.removesuffix(".gz") + ENDING)


def read(path: Path) -> tuple[str, Alphabet, StoredArrays]:
    """Return source, molecule and mapped arrays of a folder; raise DatabaseFolderError if they are inconsistent."""
    stored = KIND.read(path, ARRAYS)
    try:
        source, molecule = str(stored.manifest["source"]), Alphabet(stored.manifest["molecule"])
    except (KeyError, ValueError) as error:
        raise KIND.damaged(path, error) from error
    verify_shapes(stored)
    return source, molecule, stored
