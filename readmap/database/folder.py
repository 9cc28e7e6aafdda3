"""The database's folder on disk: where it is, and what its manifest says."""

from __future__ import annotations

from pathlib import Path

from readmap.backend.checksums import BLOCK_BYTES, block_checksum
from readmap.database.bounds import verify_shapes
from readmap.errors import DatabaseFolderError
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import FolderKind, StoredArrays

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
