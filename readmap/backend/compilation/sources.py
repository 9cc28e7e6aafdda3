"""The source files of the kernels: their folder, their includes, and the digest that names their compiled code."""

import functools
import hashlib
import re
from pathlib import Path

from readmap.errors import BackendError

#: Modules that only a GPU uses, and modules that only the host uses.
GPU_ONLY = {"pairwise/sweep_9_to_15_rows", "pairwise/sweep_17_to_24_rows"}
HOST_ONLY = {"common/host_threads"}

_COMMENT = re.compile(r"\s*//[^\n]*")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def folder() -> Path:
    """Return the folder kernels/, which is inside the installed package or next to it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    for path in (package / "kernels", package.parent / "kernels"):
        if (path / "common/portable.cuh").is_file():
            return path
    raise BackendError(f"the kernels' sources were not found next to {package}: the installation is incomplete")


def modules(*, for_gpu: bool) -> list[str]:
    """Return the names FOLDER/NAME of all modules, the files kernels/FOLDER/NAME.cu, for GPUs or for the CPU."""
    names = sorted(path.relative_to(folder()).with_suffix("").as_posix() for path in folder().glob("*/*.cu"))
    excluded = HOST_ONLY if for_gpu else GPU_ONLY
    return [name for name in names if name not in excluded]


@functools.cache
def source(path: str) -> str:
    """Return the text of a file of kernels/; path: FOLDER/NAME.cu or FOLDER/NAME.cuh."""
    return (folder() / path).read_text()


def included(path: str) -> list[str]:
    """Return the headers that a file of kernels/ includes directly."""
    return _INCLUDE.findall(source(path))


@functools.cache
def texts(module: str) -> tuple[str, ...]:
    """Return the texts of kernels/<module>.cu and of all headers that it includes, directly or not."""
    paths = [f"{module}.cu"]
    for path in paths:
        paths += [header for header in included(path) if header not in paths]
    return tuple(map(source, paths))


@functools.cache
def _strip_comments(text: str) -> str:
    return _COMMENT.sub("", text).strip()


def digest(module: str, *parts: str) -> str:
    """Return a digest that names a module's compiled code: of its text and headers without comments, and of `parts`."""
    hash_ = hashlib.sha256()
    for part in (*map(_strip_comments, texts(module)), *parts):
        hash_.update(part.encode())
        hash_.update(b"\0")
    return hash_.hexdigest()[:24]
