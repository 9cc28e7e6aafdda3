"""The database's folder on disk: where it is, and what its manifest says."""

from __future__ import annotations

from pathlib import Path

from readmap.errors import DatabaseFolderError
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import Arrays, FolderKind

KIND = FolderKind("database", 1, DatabaseFolderError)

ENDING = ".readmapdb"

#: The arrays of a Database, the last two those of its titles.
ARRAYS = ("codes", "starts", "lengths", "order", "titles", "title_offsets")


def default_folder(fasta: str) -> Path:
    """Where the database of a FASTA file is kept: db.fa and db.fa.gz both have db.fa.readmapdb."""
    return Path(fasta.removesuffix(".gz") + ENDING)


def read(path: Path) -> tuple[str, Alphabet, Arrays]:
    """The source, the molecule and the arrays, mapped. Version, sizes and headers are checked, checksums are not."""
    record, arrays = KIND.read(path, ARRAYS)
    try:
        return str(record["source"]), Alphabet(record["molecule"]), arrays
    except (KeyError, ValueError) as error:
        raise KIND.damaged(path, error) from error
