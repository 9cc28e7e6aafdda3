"""Every kernel compiles for every GPU that readmap is meant for. Needs neither a GPU nor a driver."""

import os
import pathlib

import pytest

KERNELS = sorted((pathlib.Path(__file__).resolve().parent.parent / "kernels").glob("*.cu"))
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
    assert KERNELS


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("path", KERNELS, ids=[path.name for path in KERNELS])
def test_compiles_to_a_cubin(path: pathlib.Path, arch: str) -> None:
    from readmap.backend.nvrtc import compile_cubin

    assert compile_cubin(path, arch).startswith(b"\x7fELF")
