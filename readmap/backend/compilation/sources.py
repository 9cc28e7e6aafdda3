"""The kernels' sources: where they lie, what they include, and the digest by which compiled code is kept."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

from readmap.errors import BackendError

#: Modules that only a GPU has a use for, and only the host.
FOR_GPUS = {"pairwise/sweep_9_to_15_rows", "pairwise/sweep_17_to_24_rows"}
FOR_HOSTS = {"common/host_threads"}

_COMMENT = re.compile(r"\s*//[^\n]*")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def folder() -> Path:
    """The folder of the kernels: inside the installed package, else beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "kernels", package.parent / "kernels"):
        if (place / "common/portable.cuh").is_file():
            return place
    raise BackendError(f"the kernels' sources are not beside {package}: the installation is incomplete")


def modules(*, for_gpu: bool) -> list[str]:
    """All modules that a GPU has a use for, or a CPU, as ROOM/NAME: one a kernels/ROOM/NAME.cu file."""
    names = sorted(path.relative_to(folder()).with_suffix("").as_posix() for path in folder().glob("*/*.cu"))
    others = FOR_HOSTS if for_gpu else FOR_GPUS
    return [name for name in names if name not in others]


@functools.cache
def source(path: str) -> str:
    """The text of a file of kernels/, ROOM/NAME.cu or ROOM/NAME.cuh."""
    return (folder() / path).read_text()


def included(path: str) -> list[str]:
    """The headers that a file of kernels/ names itself."""
    return _INCLUDE.findall(source(path))


@functools.cache
def texts(module: str) -> tuple[str, ...]:
    """The text of a module, and those of all headers that it takes."""
    paths = [f"{module}.cu"]
    for path in paths:
        paths += [header for header in included(path) if header not in paths]
    return tuple(map(source, paths))


def digest(module: str, *parts: str) -> str:
    """Return a digest that names a module's compiled code: of its text and headers without comments, and of `parts`."""
    sum_ = hashlib.sha256()
    for part in (*(_COMMENT.sub("", text).strip() for text in texts(module)), *parts):
        sum_.update(part.encode())
        sum_.update(b"\0")
    return sum_.hexdigest()[:24]
