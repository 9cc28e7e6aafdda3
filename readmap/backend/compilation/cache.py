"""The folder of compiled code. Files are named by content and moved into place whole: many processes do no harm."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


@functools.cache
def folder() -> Path:
    """$READMAP_CACHE, else $XDG_CACHE_HOME/readmap, else ~/.cache/readmap; a private temporary one if not writable."""
    named = os.environ.get("READMAP_CACHE")
    place = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "readmap"
    try:
        place.mkdir(parents=True, exist_ok=True)
        if os.access(place, os.W_OK | os.X_OK):
            return place
    except (OSError, RuntimeError):
        pass
    if named and place.is_dir():
        return place  # prebuilt code in a read-only image
    private = Path(tempfile.mkdtemp(prefix="readmap-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def holds(name: str) -> bool:
    """Whether the cache has the file `name`."""
    return (folder() / name).exists()


def kept(name: str, make: Callable[[Path], None], into: Path | None = None) -> Path:
    """The file `name` of the cache; where it is absent, `make` writes it under a temporary name first."""
    place = (into or folder()) / name
    if place.exists():
        return place
    directory = place.parent
    if not os.access(directory, os.W_OK):
        directory = Path(tempfile.mkdtemp(prefix="readmap-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        place = directory / name
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    os.close(descriptor)
    try:
        make(Path(temporary))
        os.chmod(temporary, 0o644)  # an image's cache is read by other users
        os.replace(temporary, place)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return place
