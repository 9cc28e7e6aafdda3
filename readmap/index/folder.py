"""The index's folder on disk: which one a user means, and what its manifest holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from readmap.errors import IndexFolderError, UsageError
from readmap.formats.array_folder import Arrays, FolderKind
from readmap.formats.fasta import Contig
from readmap.formats.replacing import restore_all

KIND = FolderKind("index", 1, IndexFolderError)

#: The environment variable that names the index where a command's options do not.
VARIABLE = "READMAP_INDEX"


def default_folder(fasta: str) -> Path:
    """Where the index of a FASTA file is kept: ref.fa and ref.fa.gz both have ref.fa.readmap."""
    return Path(fasta.removesuffix(".gz") + ".readmap")


def find(named: str | None, option: str = "-x") -> Path:
    """The index that a user means: `named`, else $READMAP_INDEX, else the one *.readmap of the current folder.

    option: what messages call the place of `named`. A name is that of the folder or of the FASTA file that it was made
    from. Raises IndexFolderError where it is neither, UsageError where nothing is named and the current folder does not
    hold just one index.
    """
    if named is not None:
        return _of_name(named, "")
    if variable := os.environ.get(VARIABLE):
        return _of_name(variable, f" (${VARIABLE})")
    restore_all(".readmap")
    found = sorted(str(path) for path in Path().glob("[!.]*.readmap") if KIND.is_there(path))
    if not found:
        raise UsageError(
            f"no index: neither {option} nor ${VARIABLE} names one, and the current folder has no *.readmap "
            "(`readmap index ref.fa` makes ref.fa.readmap)"
        )
    if len(found) > 1:
        raise UsageError(f"several indexes are in the current folder, choose one by {option}: {', '.join(found)}")
    return Path(found[0])


def _of_name(name: str, origin: str) -> Path:
    path = Path(name)
    beside = default_folder(str(path))
    for candidate in (path, beside):
        if KIND.is_there(candidate):
            return candidate
    if path.is_dir():
        raise IndexFolderError(f"{path}{origin} {KIND.why_not(path)}")
    if path.exists():
        raise IndexFolderError(f"{path}{origin} has no index {beside}: `readmap index {path}` makes it")
    raise IndexFolderError(f"there is no index {path}{origin}, nor {beside}")


def read(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> tuple[int, str, tuple[Contig, ...], Arrays]:
    """The bases that the prefix table resolves, the source, the contigs, and the arrays as FolderKind reads them."""
    record, arrays = KIND.read(path, names, optional)
    try:
        contigs = tuple(Contig(str(name), int(length), str(md5)) for name, length, md5 in record["contigs"])
        return int(record["table_bases"]), str(record["source"]), contigs, arrays
    except (KeyError, TypeError, ValueError) as error:
        raise KIND.damaged(path, error) from error
