"""Every kernel compiles for GPUs: for all that readmap is meant for with --all-architectures. It takes no GPU.

A kernel that has not changed is not compiled again: its code stays in readmap's cache.
"""

import os

import pytest
from session import ARCHITECTURES

from readmap.backend.compilation import nvrtc
from readmap.backend.compilation.signatures import variant
from readmap.backend.compilation.sources import modules

MODULES = modules(for_gpu=True)


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    try:
        import cuda.bindings  # noqa: F401
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"cuda.bindings is not installed ({error}): pip install -e '.[test]'")


def test_there_are_kernels() -> None:
    assert MODULES


def test_all_architectures_are_compiled_for() -> None:
    assert sorted(ARCHITECTURES) == sorted(nvrtc.ARCHITECTURES)


@pytest.mark.parametrize("module", MODULES)
def test_compiles_to_a_cubin(module: str, architecture: str) -> None:
    code = nvrtc.cubin(module, variant(module, ()), architecture).read_bytes()
    assert b".version" in code if architecture.startswith("compute_") else code.startswith(b"\x7fELF")
