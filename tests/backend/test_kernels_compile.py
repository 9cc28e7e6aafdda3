"""Every kernel compiles for every GPU that readmap is meant for. Needs neither a GPU nor a driver."""

import os
import pathlib

import pytest

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels"
MODULES = sorted(path.relative_to(KERNELS).with_suffix("").as_posix() for path in KERNELS.glob("*/*.cu"))
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    try:
        import cuda.core  # noqa: F401
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"cuda.core is not installed ({error}): pip install -e '.[test]'")


def test_there_are_kernels() -> None:
    assert MODULES


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("module", MODULES)
def test_compiles_to_a_cubin(module: str, arch: str) -> None:
    from readmap.backend.compilation.nvrtc import compile_cubin

    assert compile_cubin(module, arch).startswith(b"\x7fELF")
