"""The host's C++ compiler, which compiles kernels/*/*.cu to shared libraries for an instruction set level."""

import functools
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from readmap.backend.compilation import cache
from readmap.backend.compilation.signatures import GenericTypes, kernel_signatures
from readmap.backend.compilation.sources import digest, folder
from readmap.errors import BackendError

FLAGS = ("-std=c++17", "-O3", "-fwrapv", "-fPIC", "-shared", "-pthread", "-fno-exceptions", "-fno-rtti")

#: The instruction set levels of each architecture, highest first, with the processor flags (as named by Linux) that
#: identify a level. The only level of aarch64 includes NEON.
LEVELS: dict[str, dict[str, set[str]]] = {
    "x86_64": {
        "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
        "x86-64-v3": {"avx2", "bmi1", "bmi2", "fma", "movbe", "f16c"},
        "x86-64-v2": {"popcnt", "sse4_1", "sse4_2", "ssse3", "cx16"},
        "x86-64": set(),
    },
    "aarch64": {"armv8-a": set()},
}

NATIVE = "native"  # the level of any other architecture; its code runs only on this machine


def levels(machine: str | None = None) -> list[str]:
    """Return the levels to precompile for an architecture, by default this machine's."""
    return list(LEVELS.get(machine or platform.machine(), [NATIVE]))


@functools.cache
def native_level() -> str:
    """Return the highest instruction set level, such as x86-64-v3, that this machine's processor supports."""
    known = LEVELS.get(platform.machine(), {NATIVE: set()})
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return list(known)[-1]
    found = set(flags.split())
    return next(name for name, needed in known.items() if needed <= found)


@functools.cache
def compiler_command() -> list[str]:
    """Return the C++ compiler's command: $CXX, g++, clang++, c++, or zig from PyPI. Raises BackendError if none."""
    named = os.environ.get("CXX", "").split()
    for candidate in (named, ["g++"], ["clang++"], ["c++"]):
        if candidate and shutil.which(candidate[0]):
            return candidate
    try:
        import ziglang  # type: ignore[import-not-found]  # noqa: F401

        return [sys.executable, "-m", "ziglang", "c++"]
    except ImportError:
        raise BackendError(
            "no C++ compiler was found, and the CPU's kernels are not compiled yet: install g++ (apt install g++), "
            "or pip install ziglang, or set $CXX; $READMAP_CACHE may name a folder that `readmap compile` filled"
        ) from None


def library(module: str, types: GenericTypes, for_level: str | None = None, into: Path | None = None) -> Path:
    """Return the path of a module's shared library, in the cache or the folder `into`; compile it if it is missing."""
    target = for_level or native_level()
    name = library_name(module, types, target)
    return cache.get_or_create(name, lambda out: _compile(module, types, target, out), into)


def library_name(module: str, types: GenericTypes, for_level: str) -> str:
    """Return the name of a module's library in the cache; it changes with everything the code depends on."""
    machine = next((name for name, known in LEVELS.items() if for_level in known), platform.machine())
    system = f"{platform.system()}-{machine}"
    return f"{module.replace('/', '-')}-{digest(module, 'cpu', system, for_level, *FLAGS, repr(types))}.so"


def _compile(module: str, types: GenericTypes, chosen: str, out: Path) -> None:
    """Compile a module for the level `chosen` to the file `out`. Raises BackendError with the compiler's errors."""
    given = [f"-I{folder()}", *(f"-D{name}={value}" for name, value in types)]
    lines = [f'#include "{module}.cu"', *(f"HOST_ENTRY({kernel})" for kernel in kernel_signatures(module))]
    # Zig spells the levels with underscores.
    target = chosen.replace("-", "_") if "ziglang" in compiler_command() else chosen
    line = [*compiler_command(), *FLAGS, f"-march={target}", *given, "-x", "c++", "-", "-o", str(out)]
    done = subprocess.run(line, input="\n".join([*lines, ""]), capture_output=True, text=True)
    if done.returncode:
        source = folder() / f"{module}.cu"
        raise BackendError(f"{' '.join(compiler_command())} could not compile {source}:\n{done.stderr.strip()}")
