"""Every kernel compiles for GPUs, with --all-architectures for all supported ones. Needs no GPU.

Unchanged kernels are not compiled again: their code is in readmap's cache.
"""

import os
import re
import tomllib
from itertools import chain

import pytest
from session import ARCHITECTURES

from readmap.backend.compilation import nvrtc
from readmap.backend.compilation.signatures import variant
from readmap.backend.compilation.sources import folder, modules

MODULES = modules(for_gpu=True)


@pytest.fixture(scope="module")
def compiler() -> None:
    try:
        import cuda.bindings  # noqa: F401
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"cuda.bindings is not installed ({error}): pip install -e '.[test]'")


def test_tested_architectures() -> None:
    assert MODULES
    assert sorted(ARCHITECTURES) == sorted(nvrtc.ARCHITECTURES)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.usefixtures("compiler")
def test_compiles_to_a_cubin(module: str, architecture: str) -> None:
    code = nvrtc.cubin(module, variant(module, ()), architecture).read_bytes()
    assert b".version" in code if architecture.startswith("compute_") else code.startswith(b"\x7fELF")


def test_kernels_include_downwards_only() -> None:
    """Kernel folders obey the import layers of the package folders of the same name; common is the lowest."""
    contracts = tomllib.loads((folder().parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in contracts[0]["layers"]] + [{"common"}]
    depth = {name: level for level, layer in enumerate(layers) for name in layer}
    for path in chain(folder().rglob("*.cu"), folder().rglob("*.cuh")):
        name = path.parent.name
        for included in re.findall(r'#include "(\w+)/', path.read_text()):
            assert included == name or depth[included] > depth[name], (path, included)
