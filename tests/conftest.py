"""What several test modules share: the backends, the folder of large test data, an index of the demo reference,
and the script of the benchmarks."""

import importlib.util
import os
import pathlib
import sys
from importlib.machinery import SourceFileLoader
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/ anew from what the code gives")


# The widest scope, since hypothesis refuses fixtures of one function.
@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backends(request: pytest.FixtureRequest) -> str:
    """The name of each backend in turn; a test that takes it runs once on each that is here."""
    name: str = request.param
    if name == "cuda":
        from readmap.backend import cuda_available

        reason = cuda_available()
        if reason is not None:
            pytest.skip(f"no CUDA: {reason}")
    return name


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of real genomes and reads, which is no part of the repository."""
    folder = pathlib.Path(os.environ.get("READMAP_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; READMAP_SHARED names another folder")
    return folder


@pytest.fixture(scope="session")
def demo_index(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The index folder of data/demo.fa.gz. Shared by all tests: copy it before changing it."""
    from readmap.cli import main

    folder = tmp_path_factory.mktemp("demo") / "demo.readmap"
    assert main(["index", str(ROOT / "data/demo.fa.gz"), "-o", str(folder), "-q"]) == 0
    return folder


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """scripts/benchmark as a module, which must not look for another interpreter."""
    monkeypatch.setattr(sys, "base_prefix", "elsewhere")
    monkeypatch.setattr(sys, "path", [*sys.path])
    loader = SourceFileLoader("benchmark", str(ROOT / "scripts/benchmark"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_loader("benchmark", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
