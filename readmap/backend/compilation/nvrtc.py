"""NVRTC, which compiles kernels/*/*.cu to cubins. It needs neither a GPU nor a driver."""

import re
import threading
from pathlib import Path
from typing import Any

from readmap.backend.compilation import cache
from readmap.backend.compilation.signatures import GenericTypes, variant
from readmap.backend.compilation.sources import digest, folder
from readmap.errors import BackendError

#: GPU architectures to precompile: machine code, which also runs on later GPUs of the same generation, and PTX, which
#: drivers compile for the generations to come.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120", "compute_90")
TEGRA = (87, 101)  # GPUs of Tegra processors, which do not run the machine code of other GPUs
FLAGS = ("-std=c++17",)

#: Several threads compile; the second importer of a partially imported package would get an ImportError.
_IMPORTING = threading.Lock()


def cubin(module: str, types: GenericTypes, architecture: str, into: Path | None = None) -> Path:
    """Return the cubin of a module's variant for one architecture, compiled if it is not in the cache."""
    name = cubin_name(module, types, architecture)
    return cache.get_or_create(name, lambda out: _write(out, compile_cubin(module, architecture, types)), into)


def code(module: str, types: GenericTypes, architecture: str) -> Path:
    """Return a file that runs on GPUs of an architecture: shipped with the package, or compiled for it."""
    return _find_shipped_binary(module, types, architecture) or cubin(module, types, architecture)


def is_compiled(module: str, types: GenericTypes, architecture: str) -> bool:
    """Return True if `code` need not compile."""
    is_shipped = _find_shipped_binary(module, types, architecture) is not None
    return is_shipped or cache.contains(cubin_name(module, types, architecture))


def _find_shipped_binary(module: str, types: GenericTypes, architecture: str) -> Path | None:
    """Return the best cubin or PTX file shipped with the package that runs on an architecture, or None."""
    number = int(re.sub(r"\D", "", architecture))
    available = [(kind, int(minimum)) for kind, minimum in (each.split("_") for each in ARCHITECTURES)]
    for kind, minimum in sorted(available, key=lambda each: (each[0] == "sm", each[1]), reverse=True):
        runs_machine_code = minimum // 10 == number // 10 and number not in TEGRA
        runs, candidate = minimum <= number and (kind == "compute" or runs_machine_code), f"{kind}_{minimum}"
        if runs and (path := cache.find_shipped(cubin_name(module, types, candidate))):
            return path
    return None


def cubin_name(module: str, types: GenericTypes, architecture: str) -> str:
    """Return the name of a module's cubin in the cache; it changes with everything the code depends on."""
    sources = digest(module, "cuda", architecture, *FLAGS, repr(types))
    return f"{module.replace('/', '-')}-{architecture}-{sources}.cubin"


def _write(out: Path, data: bytes) -> None:
    out.write_bytes(data)


def load_nvrtc() -> Any:
    """Return the module cuda.bindings.nvrtc, or None if it or its library is not installed."""
    try:
        with _IMPORTING:
            from cuda.bindings import nvrtc
        nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError):
        return None
    return nvrtc


def compile_cubin(module: str, architecture: str, types: GenericTypes | None = None) -> bytes:
    """Compile a module to machine code, or to PTX for compute_NN; types: default, the first choice of each."""
    library = load_nvrtc()
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
            message = log.rstrip(b"\0").decode(errors="replace") or str(error)
            raise BackendError(f"NVRTC could not compile {path} for {architecture}:\n{message}")
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
