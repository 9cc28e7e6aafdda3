"""Compiled kernels: those shipped with the package, and the cache folder of those compiled on this machine.

Code in the cache runs as the user of readmap, so only files of this user or of root are trusted.

A file's name states what it was made from and a digest of its contents: module-<sources>-<contents>.so. A truncated or
altered file is detected by its name and compiled again.
"""

import atexit
import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

#: File names of each folder when it was last listed: a run asks for all kernels, and old versions leave many files.
_listings: dict[Path, list[str]] = {}

#: A lock per file name, held while the file is looked up and compiled: the threads of a team ask for the same code.
_locks: dict[str, threading.Lock] = {}

SHIPPED = Path(__file__).resolve().parents[2] / "compiled"  # the folder of the wheel's precompiled kernels


class Folder(NamedTuple):
    """The cache folder; refusal: why the configured folder is not used, "" if it is."""

    path: Path
    refusal: str


@functools.cache
def choose_folder() -> Folder:
    """Return $READMAP_CACHE, $XDG_CACHE_HOME/readmap or ~/.cache/readmap; if not usable, a private temporary folder."""
    configured = os.environ.get("READMAP_CACHE")
    try:
        path = Path(configured or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if not configured:
            path /= "readmap"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if reason := _why_untrusted(path.stat()):
            return Folder(_private_folder(), f"{path} {reason}, and code in it would run as you")
        if os.access(path, os.W_OK | os.X_OK) or configured:
            return Folder(path, "")  # a container image may have precompiled code in a read-only folder
        return Folder(_private_folder(), f"{path} cannot be written")
    except (OSError, RuntimeError) as error:
        return Folder(_private_folder(), str(error))


def folder() -> Path:
    return choose_folder().path


def contains(name: str) -> bool:
    """Return True if the file for `name` is shipped or cached."""
    return (find_shipped(name) or _find(folder(), name)) is not None


def find_shipped(name: str) -> Path | None:
    """Return the path of the compiled file for `name` shipped with the package; None if missing or damaged."""
    file_names = _listings[SHIPPED] if SHIPPED in _listings else _refresh_listing(SHIPPED)
    for path in _candidates(file_names, SHIPPED, name):
        with contextlib.suppress(OSError):
            if _is_intact(path, name):
                return path
    return None


@contextlib.contextmanager
def compile_lock(report: Callable[[str], None]) -> Iterator[None]:
    """Lock the cache folder, so that one process at a time compiles; `report` that another process holds the lock."""
    descriptor = os.open(folder(), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                report("another run is compiling kernels: waiting for it")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def get_or_create(name: str, make: Callable[[Path], None], into: Path | None = None) -> Path:
    """Return the path of the compiled file for `name`, shipped or in `into`; if missing, create it by make(path)."""
    if not into and (path := find_shipped(name)):
        return path
    directory = into or folder()
    with _locks.setdefault(name, threading.Lock()):
        return _find(directory, name) or _create_file(directory, name, make)


def _create_file(directory: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Create a file by make(path) and return its path, in a temporary folder if `directory` cannot be written."""
    if not os.access(directory, os.W_OK):
        directory = _private_folder()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    os.close(descriptor)
    try:
        make(Path(temporary))
        with open(temporary, "rb") as file:
            path = directory / _full_name(name, file.read())
            os.fchmod(file.fileno(), 0o644)  # other users read the cache of a container image
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path


def _find(directory: Path, name: str) -> Path | None:
    """Return the intact and trusted file for `name`, or None; delete files that are not, if allowed."""
    return _find_intact(_listings.get(directory, []), directory, name) or _find_intact(
        _refresh_listing(directory), directory, name
    )


def _refresh_listing(directory: Path) -> list[str]:
    """List a folder, remember its file names and return them."""
    with contextlib.suppress(OSError):
        _listings[directory] = os.listdir(directory)
    return _listings.get(directory, [])


def _find_intact(file_names: list[str], directory: Path, name: str) -> Path | None:
    """Return the intact, trusted file for `name` among `file_names`, or None; delete files that are not."""
    for path in _candidates(file_names, directory, name):
        with contextlib.suppress(OSError):  # another run deleted it
            if _is_intact(path, name) and not _why_untrusted(path.stat()):
                return path
            path.unlink()
    return None


def _candidates(file_names: list[str], directory: Path, name: str) -> Iterator[Path]:
    """Yield the files that were made for `name`, with any contents."""
    stem, ending = os.path.splitext(name)
    return (directory / each for each in file_names if each.startswith(f"{stem}-") and each.endswith(ending))


def _is_intact(path: Path, name: str) -> bool:
    """Return True if the contents match the digest in the file's name."""
    return path.name == _full_name(name, path.read_bytes())


def _full_name(name: str, contents: bytes) -> str:
    stem, ending = os.path.splitext(name)
    return f"{stem}-{hashlib.blake2b(contents, digest_size=12).hexdigest()}{ending}"


def _why_untrusted(status: os.stat_result) -> str:
    """Return why another user may have written a file or folder, as the end of a sentence; "" if none can have."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({status.st_uid})"
    if stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return ""


@functools.cache
def _private_folder() -> Path:
    """Create a temporary folder for this run; it is deleted at exit."""
    path = Path(tempfile.mkdtemp(prefix="readmap-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
