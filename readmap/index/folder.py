"""The index's folder on disk: which one a user means, and what its manifest holds."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from readmap.backend.checksums import BLOCK_BYTES, block_checksum
from readmap.errors import IndexFolderError, UsageError
from readmap.formats.array_folder import FolderKind, PendingFolder, StoredArrays
from readmap.formats.fasta import CONTIG_NAME, Contig
from readmap.formats.atomic_files import restore_folders
from readmap.index.bounds import verify_shapes
from readmap.index.reference import REFERENCE_ARRAYS, Reference
from readmap.index.suffix_array import MAX_TABLE_BASES

KIND = FolderKind("index", "readmap index", 3, IndexFolderError, block_checksum, BLOCK_BYTES)

#: The environment variable that names the index where a command's options do not.
VARIABLE = "READMAP_INDEX"


#: Of files of an index of bwa or bwa-mem2.
BWA_EXTENSIONS = (".bwt", ".bwt.2bit.64", ".amb")


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
    restore_folders(".readmap")
    found = sorted(str(path) for path in Path().glob("[!.]*.readmap") if KIND.exists(path))
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
        if KIND.exists(candidate):
            return candidate
    if path.is_dir():
        raise IndexFolderError(f"{path}{origin} {KIND.describe_mismatch(path)}")
    if path.exists():
        raise IndexFolderError(f"{path}{origin} has no index {beside}: `readmap index {path}` makes it")
    if any(Path(f"{path}{ending}").exists() for ending in BWA_EXTENSIONS):
        made = f"`readmap index -p {path} REF.fa` makes it of the FASTA file"
        raise IndexFolderError(
            f"{path}{origin} is bwa's index, which readmap does not read; there is no {beside}: {made}"
        )
    raise IndexFolderError(f"there is no index {path}{origin}, nor {beside}")


def begin(output: PendingFolder, reference: Reference, source: str, table_bases: int) -> None:
    """Begin to write an index, as far as its reference goes."""
    contigs = [[contig.name, contig.length, contig.md5] for contig in reference.contigs]
    output.describe({"source": source, "table_bases": table_bases}, {"contigs": contigs})
    for name in REFERENCE_ARRAYS:
        output.add(name, getattr(reference, name))


@dataclass(frozen=True)
class StoredIndex:
    """What the folder of an index holds: its arrays, and of its manifest the facts that Index has as attributes."""

    arrays: StoredArrays
    contigs: tuple[Contig, ...]
    table_bases: int
    source: str


def read(path: Path) -> StoredIndex:
    """The index in a folder, its arrays mapped; raises IndexFolderError where it is not whole, or no array fits it.

    What the large arrays hold is not looked at.
    """
    stored = KIND.read(path, (*REFERENCE_ARRAYS, "suffix_array"), ("prefix_table", "edges"))
    try:
        contigs = tuple(Contig(str(name), int(length), str(md5)) for name, length, md5 in stored.record["contigs"])
        bases, source = int(stored.record["table_bases"]), str(stored.record["source"])
        _expect_contigs(contigs)
        if not 1 <= bases <= MAX_TABLE_BASES:
            raise ValueError(f"a prefix table of {bases} bases")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise KIND.damaged(path, error) from error
    verify_shapes(stored, contigs, bases)
    return StoredIndex(stored, contigs, bases, source)


def _expect_contigs(contigs: Sequence[Contig]) -> None:
    """Raise ValueError where contigs cannot be those of a reference."""
    if not contigs or len({contig.name for contig in contigs}) < len(contigs):
        raise ValueError("no contigs, or two of one name")
    for contig in contigs:
        if not CONTIG_NAME.fullmatch(contig.name.encode("utf-8", "surrogateescape")):
            raise ValueError(f"{contig.name!r} is no contig's name")
        if not re.fullmatch("[0-9a-f]{32}", contig.md5):
            raise ValueError(f"{contig.md5!r} is no MD5")
