"""Compiled code: what came with the package, and the folder of what is compiled on this machine.

That folder's code runs as whoever starts readmap: only the user, or root, may have put it there.

A file's name says what it was made from and, by a digest, what it holds: module-<made from>-<holds>.so. So a file that
was cut off or altered is known, and made anew.
"""

from __future__ import annotations

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

#: What folders held when they were listed last: a run asks for every kernel, and older versions leave many files.
_listed: dict[Path, list[str]] = {}


#: Held while a file is looked for and made: of a team each device's thread wants the same code at once.
_making: dict[str, threading.Lock] = {}

#: What a wheel has, of the same names.
SHIPPED = Path(__file__).resolve().parents[2] / "compiled"


class Folder(NamedTuple):
    """Where compiled code is. refusal: why it is not where it was to be, in words; "" where it is."""

    path: Path
    refusal: str


@functools.cache
def chosen() -> Folder:
    """$READMAP_CACHE, else $XDG_CACHE_HOME/readmap, else ~/.cache/readmap; else a private one for this run."""
    named = os.environ.get("READMAP_CACHE")
    try:
        place = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "readmap"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        if distrust := _distrust(place.stat()):
            return Folder(_private(), f"{place} {distrust}, and code in it would run as you")
        if os.access(place, os.W_OK | os.X_OK) or named:
            return Folder(place, "")  # prebuilt code may be in a read-only image
        return Folder(_private(), f"{place} cannot be written")
    except (OSError, RuntimeError) as error:
        return Folder(_private(), str(error))


def folder() -> Path:
    """The folder alone."""
    return chosen().path


def holds(name: str) -> bool:
    """Whether the file is there that is made from what `name` says."""
    return (shipped(name) or _find(folder(), name)) is not None


def shipped(name: str) -> Path | None:
    """The file that came with the package, if it holds what its name says; it is trusted as the package is."""
    if SHIPPED not in _listed:
        _list(SHIPPED)
    for path in _named(_listed.get(SHIPPED, []), SHIPPED, name):
        with contextlib.suppress(OSError):
            if _is_whole(path, name):
                return path
    return None


@contextlib.contextmanager
def alone(report: Callable[[str], None]) -> Iterator[None]:
    """One process at a time, so that of many which lack the same code one compiles it; `report` hears of the others."""
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


def kept(name: str, make: Callable[[Path], None], into: Path | None = None) -> Path:
    """The file that is made from what `name` says; where it is absent or damaged, `make` writes it.

    into: a folder that is to have it, whatever else has.
    """
    if not into and (found := shipped(name)):
        return found
    directory = into or folder()
    with _making.setdefault(name, threading.Lock()):
        return _find(directory, name) or _made(directory, name, make)


def _made(directory: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The file, newly made; in a folder of this run where that one cannot be written."""
    if not os.access(directory, os.W_OK):
        directory = _private()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    os.close(descriptor)
    try:
        make(Path(temporary))
        with open(temporary, "rb") as made:
            place = directory / _full_name(name, made.read())
            os.fchmod(made.fileno(), 0o644)  # an image's cache is read by other users
            os.fsync(made.fileno())
        os.replace(temporary, place)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return place


def _find(directory: Path, name: str) -> Path | None:
    """The file, if it holds what its name says; one that does not is removed, where that is allowed."""
    return _find_among(_listed.get(directory, []), directory, name) or _find_among(_list(directory), directory, name)


def _list(directory: Path) -> list[str]:
    """The names in a folder, which are remembered."""
    with contextlib.suppress(OSError):
        _listed[directory] = os.listdir(directory)
    return _listed.get(directory, [])


def _find_among(names: list[str], directory: Path, name: str) -> Path | None:
    for path in _named(names, directory, name):
        with contextlib.suppress(OSError):  # another run removed it
            if _is_whole(path, name) and not _distrust(path.stat()):
                return path
            path.unlink()
    return None


def _named(names: list[str], directory: Path, name: str) -> Iterator[Path]:
    """Of files with such names those that may be the wanted one."""
    stem, ending = os.path.splitext(name)
    return (directory / each for each in names if each.startswith(f"{stem}-") and each.endswith(ending))


def _is_whole(path: Path, name: str) -> bool:
    """Whether a file holds what its name says."""
    return path.name == _full_name(name, path.read_bytes())


def _full_name(name: str, contents: bytes) -> str:
    stem, ending = os.path.splitext(name)
    return f"{stem}-{hashlib.blake2b(contents, digest_size=12).hexdigest()}{ending}"


def _distrust(status: os.stat_result) -> str:
    """Why what is there may be somebody else's, in words; "" where it is not."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({status.st_uid})"
    if stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return ""


@functools.cache
def _private() -> Path:
    """A folder of this run alone, removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="readmap-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
