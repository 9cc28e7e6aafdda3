"""A folder of .npy arrays with a manifest of their shapes and checksums, written atomically."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.errors import ReadmapError
from readmap.formats.array_files import ArrayFiles, Checksum
from readmap.formats.atomic_files import replace_folder, restore_folder, temporary_folder
from readmap.formats.file_errors import NPY_HEADER_ERRORS, file_name_context
from readmap.version import __version__

MANIFEST = "manifest.json"
PREFIX = "readmap "
#: The end of a manifest before and after its own checksum is inserted.
_END, _SEAL = b"\n}", b',\n "blake2b": "?"\n}'

Arrays = dict[str, np.ndarray[Any, Any]]
Manifest = dict[str, Any]


@dataclass(frozen=True)
class StoredArrays:
    """The memory-mapped arrays of a folder, and its manifest."""

    kind: FolderKind
    path: Path
    manifest: Manifest
    arrays: Arrays

    def invalid_array(self, name: str, found: str) -> ReadmapError:
        """Return the error for an invalid array; found: what is wrong, follows the file name in the message."""
        return self.kind.error(f"{self.path}: {name}.npy {found}; {self.kind.rebuild_hint}")

    def expect_array(self, name: str, dtypes: Sequence[type[np.generic]], *shape: int) -> None:
        """Raise if an array does not have this shape and one of the dtypes."""
        array = self.arrays[name]
        if array.dtype not in dtypes or array.shape != shape or not array.flags.c_contiguous:
            expected = " or ".join(np.dtype(dtype).name for dtype in dtypes)
            found = f"holds {array.dtype} {list(array.shape)}"
            raise self.invalid_array(name, f"{found}, expected {expected} {list(shape)}")

    def expect_checksums(self, name: str, found: NDArray[np.uint64]) -> None:
        """Raise if the checksums of an array's blocks differ from the manifest."""
        expected, sums = self.manifest["arrays"][name]["checksums"], _in_hex(found.tolist())
        if sums != expected:
            altered = [i for i, both in enumerate(zip_longest(sums, expected)) if both[0] != both[1]]
            blocks = f"{len(altered)} of its {len(sums)} blocks, from block {altered[0]} on"
            raise self.invalid_array(name, f"was altered: {blocks}")


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder (index, database), and the operations on its folders."""

    noun: str  # for messages and the manifest
    command: str  # builds such a folder
    version: int  # of the format; folders of another version are rejected
    error: type[ReadmapError]  # raised if a folder is invalid
    checksum: Checksum
    block_bytes: int  # size of each checksummed block but the last

    def exists(self, path: Path) -> bool:
        """Return True if `path` looks like a folder of this kind; `read` reports what is wrong with it."""
        restore_folder(path)
        return (path / MANIFEST).is_file() and not self._other_format(path)

    def describe_mismatch(self, path: Path) -> str:
        """Describe, for a message, why `path` is not a folder of this kind."""
        if other := self._other_format(path):
            return f"is a {other} and no {PREFIX}{self.noun}"
        return f"is no {PREFIX}{self.noun}: it has no {MANIFEST}"

    def expect_replaceable(self, path: Path, force: bool) -> None:
        """Raise if `path` exists and must not be replaced, or is not of this kind."""
        restore_folder(path)
        if not path.exists():
            return
        if not force:
            raise self.error(f"{path} exists already: --force replaces it")
        if not self.exists(path):
            raise self.error(f"{path} exists and is no {PREFIX}{self.noun}: it is not replaced")

    def expect_writable(self, path: Path) -> None:
        """Raise OSError if the parent folder of `path` is missing or not writable."""
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"the folder for the {self.noun} is missing", str(path.parent))
        if not os.access(path.parent, os.W_OK | os.X_OK):
            reason = f"no permission to write the {self.noun} there (-o names another place)"
            raise PermissionError(errno.EACCES, reason, str(path.parent))

    @contextlib.contextmanager
    def writing(self, path: Path, threads: int, force: bool) -> Iterator[PendingFolder]:
        """Yield a temporary folder to fill, removed at exit unless committed to `path`; force: `path` may exist."""
        self.expect_replaceable(path, force)
        target = Path(os.path.realpath(path))  # replaces the target of a symbolic link, not the link
        with contextlib.ExitStack() as stack:
            with self._writing_context(path):
                folder = stack.enter_context(temporary_folder(target))
            yield stack.enter_context(PendingFolder(self, path, folder, target, threads))

    @contextlib.contextmanager
    def _writing_context(self, path: Path) -> Iterator[None]:
        """Convert an OSError to one about `path` that says what was being written."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}, while writing the {self.noun}", str(path)) from error

    def read(self, path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> StoredArrays:
        """Map the arrays `names`, and the `optional` arrays that exist, without checking their contents."""
        record = self._read_manifest(path)
        try:
            present = [*names, *(name for name in optional if name in record["arrays"])]
            arrays = {name: self._map_array(path, name, record["arrays"][name]) for name in present}
            return StoredArrays(self, path, record, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise self.damaged(path, error) from error

    def damaged(self, path: Path, error: Exception) -> ReadmapError:
        """Return the error for an invalid manifest."""
        return self.error(f"{path}: {MANIFEST} is damaged ({error}); {self.rebuild_hint}")

    def _read_manifest(self, path: Path) -> Manifest:
        """Read the manifest. Raises if it is missing, damaged or altered, or of another kind or version."""
        restore_folder(path)
        try:
            with file_name_context(str(path / MANIFEST)):
                text = (path / MANIFEST).read_bytes()
                record = json.loads(text)
        except (FileNotFoundError, NotADirectoryError):
            raise self.error(f"{path} {self.describe_mismatch(path)}") from None
        except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
            raise self.error(f"{path}: {MANIFEST} is damaged: {error}") from error
        if not isinstance(record, dict) or record.get("format") != PREFIX + self.noun:
            if self._other_format(path):
                raise self.error(f"{path} {self.describe_mismatch(path)}")
            raise self.error(f"{path}: {MANIFEST} does not describe a {PREFIX}{self.noun}")
        if record.get("version") != self.version:
            version = f"format version {record.get('version')}, expected {self.version}"
            raise self.error(f"{path} has {version}; {self._rebuild_command(path, record)}")
        if text != _sealed(_unsealed(text)):
            raise self.error(f"{path}: {MANIFEST} is damaged or was altered; {self.rebuild_hint}")
        return record

    def _map_array(self, path: Path, name: str, entry: Manifest) -> np.ndarray[Any, Any]:
        """Map the array in NAME.npy. Raises if it is missing, or its size or header differ from the manifest entry."""
        file = path / f"{name}.npy"
        if not isinstance(entry["checksums"], list):
            raise TypeError(f"{name} has no list of checksums")
        if not file.is_file():
            raise self.error(f"{path}: {name}.npy is missing; {self.rebuild_hint}")
        size = file.stat().st_size
        if size != entry["bytes"]:
            raise self.error(f"{path}: {name}.npy has {size} bytes, expected {entry['bytes']}; {self.rebuild_hint}")
        try:
            with file_name_context(str(file)):
                array: np.ndarray[Any, Any] = np.load(file, mmap_mode="r")
        except (*NPY_HEADER_ERRORS, MemoryError) as error:  # MemoryError: nested brackets in the header
            raise self.error(f"{path}: {name}.npy is not an array: {error}") from error
        if str(array.dtype) != entry["dtype"] or list(array.shape) != entry["shape"]:
            expected = f"{entry['dtype']} {entry['shape']}"
            raise self.error(f"{path}: {name}.npy holds {array.dtype} {array.shape}, expected {expected}")
        return array

    @property
    def rebuild_hint(self) -> str:
        return f"build the {self.noun} again"

    def _rebuild_command(self, path: Path, record: Manifest) -> str:
        """Return the command that rebuilds the folder, or `rebuild_hint` if its source is unknown."""
        source = record.get("source")
        if not isinstance(source, str) or source == "-" or not source.isprintable():
            return self.rebuild_hint
        return f"`{self.command} {shlex.quote(source)} -o {shlex.quote(str(path))} --force` renews it"

    def _other_format(self, path: Path) -> str:
        """Return the format in the manifest if `path` is another kind of readmap folder, else ""."""
        try:
            record = json.loads((path / MANIFEST).read_bytes())
        except (OSError, ValueError, RecursionError):
            return ""
        name = record.get("format") if isinstance(record, dict) else None
        return name if isinstance(name, str) and name.startswith(PREFIX) and name != PREFIX + self.noun else ""


class PendingFolder(ArrayFiles):
    """A folder being written, at the temporary path `path`; a PendingOutput."""

    def __init__(self, kind: FolderKind, name: Path, path: Path, target: Path, threads: int) -> None:
        """name: for messages. target: final path, whose folder is replaced."""
        super().__init__(path, kind.checksum, kind.block_bytes, threads, functools.partial(kind._writing_context, name))
        self._target, self._kind = target, kind
        self._facts: Manifest = {}
        self._lists: Manifest = {}
        self._is_whole = False

    def describe(self, facts: Manifest, lists: Manifest | None = None) -> None:
        """Set the entries of the manifest before and after the arrays; may be called until `finish`."""
        self._facts, self._lists = facts, lists or {}

    def finish(self) -> None:
        """Wait for all arrays, write the manifest, and set permissions. Raises OSError, and errors of threads."""
        if self._is_whole:
            return
        entries = self.close()
        record = {
            "format": PREFIX + self._kind.noun,
            "version": self._kind.version,
            "made_by": f"{PREFIX}{__version__}",
            **self._facts,
            "arrays": {name: entry | {"checksums": _in_hex(entry["checksums"])} for name, entry in entries.items()},
            **self._lists,
        }
        with self.naming():
            (self.path / MANIFEST).write_bytes(_sealed(json.dumps(record, indent=1).encode()))
            os.chmod(self.path, 0o777 & ~_umask())
        self._is_whole = True

    def commit(self) -> None:
        """Finish, and rename the folder to its final path, where it replaces a folder. Raises as `finish` does."""
        self.finish()
        with self.naming():
            replace_folder(self.path, self._target)


def sizes(path: Path) -> dict[str, int]:
    """Return the size in bytes of every file of a folder, by name."""
    return {file.name: file.stat().st_size for file in sorted(path.iterdir())}


def _sealed(text: bytes) -> bytes:
    checksum = hashlib.blake2b(text, digest_size=16).hexdigest()
    return text.removesuffix(_END) + _SEAL.replace(b"?", checksum.encode())


def _unsealed(text: bytes) -> bytes:
    return text[: text.rfind(_SEAL[: _SEAL.index(b"?")])] + _END


def _in_hex(checksums: Iterable[int]) -> list[str]:
    return [f"{checksum:016x}" for checksum in checksums]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
