"""Folders of indexes and databases: which one a user names, and what records hold of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from readmap.cli.common.options import choice
from readmap.database import folder as database_folder
from readmap.database.database import Database
from readmap.formats.alphabets import Alphabet
from readmap.formats.wording import printable
from readmap.index import folder
from readmap.index.index import Index

DATABASES = "Databases"

#: The value of --molecule that leaves the molecule to the file.
AUTO = "auto"


def molecule_option() -> Any:
    """--molecule."""
    return choice(
        "--molecule",
        "What the sequences are: nucleotide, protein or auto, which takes those for nucleotides whose letters are "
        "A, C, G, T, U or N by 90 % or more in the first megabyte (default: auto).",
        (AUTO, *Alphabet),
        DATABASES,
        AUTO,
    )


def molecule_of(name: str) -> Alphabet | None:
    """The molecule that --molecule names; None for that of the file."""
    return None if name == AUTO else Alphabet(name)


def database_named(named: str | None) -> Path | None:
    """The database's folder that a user means: by its name or, where it has no index, by that of its FASTA file."""
    if named is None:
        return None
    path, beside = Path(named), database_folder.default_folder(named)
    if _is_database(path):
        return path
    has_index = folder.KIND.exists(path) or folder.KIND.exists(folder.default_folder(named))
    return beside if path.is_file() and not has_index and database_folder.KIND.exists(beside) else None


def _is_database(path: Path) -> bool:
    is_index, is_database = folder.KIND.exists(path), database_folder.KIND.exists(path)
    # Where the manifest does not say, damaged or absent, the name does.
    return path.suffix == database_folder.ENDING if is_index == is_database else is_database


def database_record(database: Database, path: Path, files: Mapping[str, int]) -> dict[str, Any]:
    """The contents of a database, for programs; files: the bytes of each."""
    return {
        "database": printable(str(path)),
        "format_version": database_folder.KIND.version,
        "source": printable(database.source),
        "molecule": str(database.molecule),
        "sequences": len(database),
        "letters": database.letters,
        "longest": database.longest,
        "bytes": sum(files.values()),
    }


def structure_record(index: Index) -> dict[str, Any]:
    """The arrays of an index beside its suffix array, for programs."""
    return {
        "structure": str(index.structure),
        "table_bases": index.table_bases if index.structure.has_array else 0,
        "nodes": index.nodes,
        "suffix_tree_bytes": 0 if index.edges is None else index.edges.nbytes,
    }
