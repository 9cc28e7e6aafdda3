"""The index folder on disk: its manifest, how the user's choice of index is resolved, and the file of ALT contigs."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from readmap.backend.checksums import BLOCK_BYTES, block_checksum
from readmap.errors import IndexFolderError, UsageError
from readmap.formats.array_folder import FolderKind, PendingFolder, StoredArrays
from readmap.formats.atomic_files import restore_folders
from readmap.formats.fasta import CONTIG_NAME, Contig
from readmap.formats.file_errors import file_name_context
from readmap.index.bounds import verify_shapes
from readmap.index.reference import REFERENCE_ARRAYS, Reference
from readmap.index.suffix_array import MAX_TABLE_BASES

KIND = FolderKind("index", "readmap index", 3, IndexFolderError, block_checksum, BLOCK_BYTES)

#: Environment variable with the default index of the commands.
INDEX_VARIABLE = "READMAP_INDEX"

#: Endings of the files of a bwa or bwa-mem2 index.
BWA_EXTENSIONS = (".bwt", ".bwt.2bit.64", ".amb")


def default_folder(fasta: str) -> Path:
    """Return the index folder of a FASTA file: ref.fa.readmap for both ref.fa and ref.fa.gz."""
    return Path(fasta.removesuffix(".gz") + ".readmap")


def find(named: str | None, option: str = "-x") -> Path:
    """Return the index folder named by the user, else by $READMAP_INDEX, else the only *.readmap in this folder.

    named: an index folder or its FASTA file. option: for messages. Raises IndexFolderError or UsageError otherwise.
    """
    if named is not None:
        return _resolve(named, "")
    if variable := os.environ.get(INDEX_VARIABLE):
        return _resolve(variable, f" (${INDEX_VARIABLE})")
    restore_folders(".readmap")
    found = sorted(str(path) for path in Path().glob("[!.]*.readmap") if KIND.exists(path))
    if not found:
        raise UsageError(
            f"no index: neither {option} nor ${INDEX_VARIABLE} names one, and the current folder has no *.readmap "
            "(`readmap index ref.fa` makes ref.fa.readmap)"
        )
    if len(found) > 1:
        raise UsageError(f"several indexes are in the current folder, choose one by {option}: {', '.join(found)}")
    return Path(found[0])


def _resolve(name: str, origin: str) -> Path:
    """Return the index folder named `name`, or made from a FASTA file of this name; origin: for messages."""
    path = Path(name)
    folder = default_folder(str(path))
    for candidate in (path, folder):
        if KIND.exists(candidate):
            return candidate
    if path.is_dir():
        raise IndexFolderError(f"{path}{origin} {KIND.describe_mismatch(path)}")
    if path.exists():
        raise IndexFolderError(f"{path}{origin} has no index {folder}: `readmap index {path}` makes it")
    if any(Path(f"{path}{ending}").exists() for ending in BWA_EXTENSIONS):
        missing = f"there is no {folder}: `readmap index -p {path} REF.fa` builds it from the FASTA file"
        raise IndexFolderError(f"{path}{origin} is bwa's index, which readmap does not read; {missing}")
    raise IndexFolderError(f"there is no index {path}{origin}, nor {folder}")


def write_reference(output: PendingFolder, reference: Reference, source: str, table_bases: int) -> None:
    """Write an index's manifest and reference arrays. source: FASTA file. table_bases: bases of the prefix table."""
    contigs = [[contig.name, contig.length, contig.md5] for contig in reference.contigs]
    output.describe({"source": source, "table_bases": table_bases}, {"contigs": contigs})
    for name in REFERENCE_ARRAYS:
        output.add(name, getattr(reference, name))


@dataclass(frozen=True)
class StoredIndex:
    """The arrays of an index folder, and the facts in its manifest; fields as in Index."""

    arrays: StoredArrays
    contigs: tuple[Contig, ...]
    table_bases: int
    source: str


def read(path: Path) -> StoredIndex:
    """Read the manifest and map the arrays of an index folder; IndexFolderError if it is incomplete or inconsistent."""
    stored = KIND.read(path, (*REFERENCE_ARRAYS, "suffix_array"), ("prefix_table", "edges"))
    try:
        contigs = tuple(Contig(str(name), int(length), str(md5)) for name, length, md5 in stored.manifest["contigs"])
        bases, source = int(stored.manifest["table_bases"]), str(stored.manifest["source"])
        _expect_contigs(contigs)
        if not 1 <= bases <= MAX_TABLE_BASES:
            raise ValueError(f"a prefix table of {bases} bases")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise KIND.damaged(path, error) from error
    verify_shapes(stored, contigs, bases)
    return StoredIndex(stored, contigs, bases, source)


def _expect_contigs(contigs: Sequence[Contig]) -> None:
    """Raise ValueError if there is no contig, a name is invalid or repeated, or a checksum is not an MD5."""
    if not contigs or len({contig.name for contig in contigs}) < len(contigs):
        raise ValueError("no contigs, or two of one name")
    for contig in contigs:
        if not CONTIG_NAME.fullmatch(contig.name.encode("utf-8", "surrogateescape")):
            raise ValueError(f"{contig.name!r} is not a valid contig name")
        if not re.fullmatch("[0-9a-f]{32}", contig.md5):
            raise ValueError(f"{contig.md5!r} is not an MD5")


def find_alternates_file(path: Path, source: str) -> str | None:
    """Return bwa's file of ALT contigs next to the index folder `path` or its FASTA file `source`; None if missing."""
    names = (str(path).removesuffix(".readmap"), source, source.removesuffix(".gz"))
    return next((f"{name}.alt" for name in names if os.path.isfile(f"{name}.alt")), None)


def read_alternates(path: str) -> frozenset[str]:
    """Return the names of ALT contigs, the first column except SAM header lines; OSError if unreadable."""
    with file_name_context(path), open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        names = (line.rstrip("\r\n").split("\t", 1)[0] for line in file)
        return frozenset(name for name in names if name and not name.startswith("@"))
