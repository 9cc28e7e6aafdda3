"""The folder on disk: manifest.json and plain .npy arrays, written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readmap.errors import IndexFolderError, UsageError
from readmap.formats.fasta import Contig

FORMAT_VERSION = 1
MANIFEST = "manifest.json"

#: The environment variable that names the index where a command's options do not.
VARIABLE = "READMAP_INDEX"

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Manifest:
    """What an index holds beside its arrays."""

    table_bases: int
    source: str
    contigs: list[Contig]


def default_folder(fasta: str) -> Path:
    """Where the index of a FASTA file is kept: ref.fa and ref.fa.gz both have ref.fa.readmap."""
    return Path(fasta.removesuffix(".gz") + ".readmap")


def is_index(path: Path) -> bool:
    """Whether a folder looks like an index; `read` tells what is wrong with it."""
    return (path / MANIFEST).is_file()


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
    found = sorted(str(path) for path in Path().glob("[!.]*.readmap") if is_index(path))
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
        if is_index(candidate):
            return candidate
    if path.is_dir():
        raise IndexFolderError(f"{path}{origin} is no readmap index: it has no {MANIFEST}")
    if path.exists():
        raise IndexFolderError(f"{path}{origin} has no index {beside}: `readmap index {path}` makes it")
    raise IndexFolderError(f"there is no index {path}{origin}, nor {beside}")


def sizes(path: Path) -> dict[str, int]:
    """The bytes on disk of every file of an index."""
    return {file.name: file.stat().st_size for file in sorted(path.iterdir())}


def write(path: Path, manifest: Manifest, arrays: Arrays, force: bool) -> None:
    """Write beside `path`, then rename; raises IndexFolderError where `path` exists, unless `force`."""
    refuse_existing(path, force)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        entries = {}
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array)
            entries[name] = {
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "bytes": (temporary / f"{name}.npy").stat().st_size,
                "blake2b": _checksum(temporary / f"{name}.npy"),
            }
        record = {
            "format": "readmap index",
            "version": FORMAT_VERSION,
            "source": manifest.source,
            "table_bases": manifest.table_bases,
            "arrays": entries,
            "contigs": [[contig.name, contig.length, contig.md5] for contig in manifest.contigs],
        }
        record["blake2b"] = _digest(record)
        (temporary / MANIFEST).write_text(json.dumps(record, indent=1))
        os.chmod(temporary, 0o777 & ~_umask())
        if path.exists():
            os.rename(path, temporary / "replaced")
        os.rename(temporary, path)
        shutil.rmtree(path / "replaced", ignore_errors=True)
    except OSError as error:
        # NumPy keeps the reason to itself.
        reason = error.strerror or "not all could be written (a full disk, a quota)"
        raise OSError(error.errno, f"{reason}, while writing the index", str(path)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_existing(path: Path, force: bool) -> None:
    """Raise IndexFolderError where the target exists and may not be replaced, or is no index."""
    if not path.exists():
        return
    if not force:
        raise IndexFolderError(f"{path} exists already: --force replaces it")
    if not (path / MANIFEST).is_file():
        raise IndexFolderError(f"{path} exists and is no readmap index: it is not replaced")


def expect_writable(path: Path) -> None:
    """Raise OSError where the folder that is to hold the index is missing or not writable."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder for the index is missing", str(path.parent))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES, "no permission to write the index there (-o names another place)", str(path.parent)
        )


def read(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> tuple[Manifest, Arrays]:
    """The manifest and the arrays `names`, and those of `optional` that it has, mapped.

    Version, sizes and headers are checked, checksums are not.
    """
    record = _manifest(path)
    try:
        held = [*names, *(name for name in optional if name in record["arrays"])]
        arrays = {name: _mapped(path, name, record["arrays"][name]) for name in held}
        contigs = [Contig(str(name), int(length), str(md5)) for name, length, md5 in record["contigs"]]
        return Manifest(int(record["table_bases"]), str(record["source"]), contigs), arrays
    except (KeyError, TypeError, ValueError) as error:
        raise IndexFolderError(f"{path}: {MANIFEST} is damaged ({error}); build the index again") from error


def _mapped(path: Path, name: str, entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    """One array, its size and header as the manifest's entry tells."""
    file = path / f"{name}.npy"
    if not file.is_file():
        raise IndexFolderError(f"{path}: {name}.npy is missing; build the index again")
    size = file.stat().st_size
    if size != entry["bytes"]:
        raise IndexFolderError(f"{path}: {name}.npy has {size} bytes, expected {entry['bytes']}; build the index again")
    try:
        array: np.ndarray[Any, Any] = np.load(file, mmap_mode="r")
    except (ValueError, SyntaxError, tokenize.TokenError) as error:  # what NumPy's header parser lets through
        raise IndexFolderError(f"{path}: {name}.npy is not an array: {error}") from error
    if str(array.dtype) != entry["dtype"] or list(array.shape) != entry["shape"]:
        raise IndexFolderError(
            f"{path}: {name}.npy holds {array.dtype} {array.shape}, expected {entry['dtype']} {entry['shape']}"
        )
    return array


def verify_checksums(path: Path) -> None:
    """Raise IndexFolderError where an array's bytes are not those that were written."""
    for name, entry in _manifest(path)["arrays"].items():
        found = _checksum(path / f"{name}.npy")
        if found != entry["blake2b"]:
            raise IndexFolderError(f"{path}: {name}.npy was altered: checksum {found}, expected {entry['blake2b']}")


def _manifest(path: Path) -> dict[str, Any]:
    try:
        record = json.loads((path / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise IndexFolderError(f"{path} is no readmap index: it has no {MANIFEST}") from None
    except ValueError as error:  # no JSON, or no text
        raise IndexFolderError(f"{path}: {MANIFEST} is damaged: {error}") from error
    if not isinstance(record, dict) or record.get("format") != "readmap index":
        raise IndexFolderError(f"{path}: {MANIFEST} is not that of a readmap index")
    if record.get("version") != FORMAT_VERSION:
        raise IndexFolderError(
            f"{path} has format version {record.get('version')}, expected {FORMAT_VERSION}; build the index again"
        )
    if record.get("blake2b") != _digest(record):
        raise IndexFolderError(f"{path}: {MANIFEST} is damaged or was altered; build the index again")
    return record


def _digest(record: dict[str, Any]) -> str:
    """The checksum of a manifest's other entries."""
    others = {name: value for name, value in record.items() if name != "blake2b"}
    return hashlib.blake2b(json.dumps(others, sort_keys=True).encode(), digest_size=16).hexdigest()


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
