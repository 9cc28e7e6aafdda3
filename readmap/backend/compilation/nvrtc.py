"""NVRTC: kernels/*/*.cu as cubins. It needs neither a GPU nor a driver."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from readmap.backend.compilation import cache
from readmap.backend.compilation.signatures import Types, variant
from readmap.backend.compilation.sources import digest, folder
from readmap.errors import BackendError

#: Of GPUs: machine code for each of these and for younger ones of the same generation, and PTX, which drivers compile,
#: for the generations to come.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120", "compute_90")

#: GPUs that share a processor's memory, which do not run the machine code of others.
TEGRA = (87, 101)

_IMPORTING = threading.Lock()  # several threads compile, and a package half imported is an ImportError to the second
FLAGS = ("-std=c++17",)


def cubin(module: str, types: Types, architecture: str, into: Path | None = None) -> Path:
    """The file of a module's variant for one architecture, compiled where there is none."""
    name = cubin_name(module, types, architecture)
    return cache.get_or_create(name, lambda out: _write(out, compile_cubin(module, architecture, types)), into)


def code(module: str, types: Types, architecture: str) -> Path:
    """A file that runs on GPUs of an architecture: what came with the package, else what is compiled for it."""
    return _shipped(module, types, architecture) or cubin(module, types, architecture)


def is_compiled(module: str, types: Types, architecture: str) -> bool:
    """Whether that is there."""
    found = _shipped(module, types, architecture) is not None
    return found or cache.contains(cubin_name(module, types, architecture))


def _shipped(module: str, types: Types, architecture: str) -> Path | None:
    """What came with the package and runs on an architecture."""
    number = int(re.sub(r"\D", "", architecture))
    for candidate in sorted(ARCHITECTURES, key=_order, reverse=True):
        kind, least = candidate.split("_")
        runs = int(least) <= number and (
            kind == "compute" or (int(least) // 10 == number // 10 and number not in TEGRA)
        )
        if runs and (found := cache.find_shipped(cubin_name(module, types, candidate))):
            return found
    return None


def _order(architecture: str) -> tuple[bool, int]:
    """Machine code is above PTX."""
    kind, number = architecture.split("_")
    return kind == "sm", int(number)


def cubin_name(module: str, types: Types, architecture: str) -> str:
    """The name of a module's cubin in the cache, which changes with all that its code depends on."""
    return (
        f"{module.replace('/', '-')}-{architecture}-{digest(module, 'cuda', architecture, *FLAGS, repr(types))}.cubin"
    )


def _write(out: Path, data: bytes) -> None:
    out.write_bytes(data)


def loaded() -> Any:
    """NVRTC; None where it, or its library, is not installed."""
    try:
        with _IMPORTING:
            from cuda.bindings import nvrtc
        nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError):
        return None
    return nvrtc


def compile_cubin(module: str, architecture: str, types: Types | None = None) -> bytes:
    """The machine code of a module, or its PTX for compute_NN. Types left open are compiled at their first choice."""
    library = loaded()
    if library is None:
        raise BackendError(
            "the GPU's kernels are not compiled yet, and NVRTC is not installed: "
            "pip install 'readmap[cuda13]' (or cuda12)"
        )
    if types is None:
        types = variant(module, ())
    path, is_ptx = folder() / f"{module}.cu", architecture.startswith("compute_")

    def call(function: str, *arguments: Any) -> Any:
        error, *results = getattr(library, f"nvrtc{function}")(*arguments)
        if int(error):
            log = b"" if function != "CompileProgram" else bytes(call("GetProgramLogSize", program))
            if log:
                call("GetProgramLog", program, log)
            said = log.rstrip(b"\0").decode(errors="replace") or str(error)
            raise BackendError(f"NVRTC could not compile {path} for {architecture}:\n{said}")
        return results[0] if results else None

    options = [*FLAGS, f"--gpu-architecture={architecture}", f"-I{folder()}"]
    options += [f"-D{name}={value}" for name, value in types]
    program = call("CreateProgram", path.read_bytes(), str(path).encode(), 0, [], [])
    try:
        call("CompileProgram", program, len(options), [option.encode() for option in options])
        kind = "PTX" if is_ptx else "CUBIN"
        code = bytes(call(f"Get{kind}Size", program))
        call(f"Get{kind}", program, code)
    finally:
        call("DestroyProgram", program)
    return code
