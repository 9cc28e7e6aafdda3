"""Folders of indexes and databases: which one a user means, and their contents for JSON reports."""

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
#: The value of --molecule that guesses the molecule from the sequences.
AUTO = "auto"


def molecule_option() -> Any:
    """Return the option --molecule: nucleotide, protein or auto."""
    return choice(
        "--molecule",
        "nucleotide, protein, or auto: nucleotide if 90 % of the first megabyte are ACGTU or N (default: auto).",
        (AUTO, *Alphabet),
        panel=DATABASES,
        default=AUTO,
    )


def molecule_of(name: str) -> Alphabet | None:
    """Return the molecule that --molecule names, or None for auto."""
    return None if name == AUTO else Alphabet(name)


def find_database(name: str | None) -> Path | None:
    """Return the folder of the database that a user means, or None if `name` is not a database.

    name: path of the folder, or of the FASTA file it was made from if this file has no index.
    """
    if name is None:
        return None
    path, default = Path(name), database_folder.default_folder(name)
    if _is_database(path):
        return path
    has_index = folder.KIND.exists(path) or folder.KIND.exists(folder.default_folder(name))
    return default if path.is_file() and not has_index and database_folder.KIND.exists(default) else None


def _is_database(path: Path) -> bool:
    is_index, is_database = folder.KIND.exists(path), database_folder.KIND.exists(path)
    # The ending decides if the manifest is damaged or missing.
    return path.suffix == database_folder.ENDING if is_index == is_database else is_database


def database_as_json(database: Database, path: Path, files: Mapping[str, int]) -> dict[str, Any]:
    """Return the contents of a database for the JSON report; files: the bytes of each file."""
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


def structure_as_json(index: Index) -> dict[str, Any]:
    """Return the search structures of an index for the JSON report."""
    return {
        "structure": str(index.structure),
        "table_bases": index.table_bases if index.structure.has_array else 0,
        "nodes": index.nodes,
        "suffix_tree_bytes": 0 if index.edges is None else index.edges.nbytes,
    }
