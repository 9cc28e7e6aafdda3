"""NVRTC: kernels/*/*.cu as cubins. It needs neither a GPU nor a driver."""

from __future__ import annotations

import threading
from pathlib import Path

from readmap.backend.compilation import cache
from readmap.backend.compilation.signatures import Types, variant
from readmap.backend.compilation.sources import digest, folder
from readmap.errors import BackendError

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
_IMPORTING = threading.Lock()  # several threads compile, and a package half imported is an ImportError to the second
FLAGS = ("-std=c++17",)


def cubin(module: str, types: Types, architecture: str, into: Path | None = None) -> Path:
    """The file of a module's variant for one architecture, compiled where the cache does not hold it."""
    name = cubin_name(module, types, architecture)
    return cache.kept(name, lambda out: _write(out, compile_cubin(module, architecture, types)), into)


def cubin_name(module: str, types: Types, architecture: str) -> str:
    """The name of a module's cubin in the cache, which changes with all that its code depends on."""
    return (
        f"{module.replace('/', '-')}-{architecture}-{digest(module, 'cuda', architecture, *FLAGS, repr(types))}.cubin"
    )


def _write(out: Path, data: bytes) -> None:
    out.write_bytes(data)


def compile_cubin(module: str, architecture: str, types: Types | None = None) -> bytes:
    """The machine code of a module. Types left open are compiled at their first choice."""
    try:
        with _IMPORTING:
            from cuda.core import Program, ProgramOptions
    except ImportError:
        raise BackendError(
            "the GPU's kernels are not compiled yet, and NVRTC is not installed: "
            "pip install 'readmap[cuda13]' (or cuda12)"
        ) from None
    if types is None:
        types = variant(module, ())
    path = folder() / f"{module}.cu"
    options = ProgramOptions(
        std="c++17",
        arch=architecture,
        include_path=[str(folder())],
        define_macro=list(types) or None,
        name=str(path),
    )
    try:
        code = Program(path.read_text(), "c++", options).compile("cubin").code
    except Exception as error:  # cuda.core raises its own NVRTCError, whose module moved between releases
        raise BackendError(f"NVRTC could not compile {path} for {architecture}:\n{error}") from error
    return bytes(code)
