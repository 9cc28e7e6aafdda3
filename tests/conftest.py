"""What several test modules share: the backends, the folder of large test data, an index of the demo reference,
a compiler that compiles nothing twice, and the script of the benchmarks."""

import fcntl
import importlib.util
import os
import pathlib
import shlex
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from typing import Any

import pytest
from session import ARCHITECTURES, Once

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A file that the cache lacks is made under a temporary name, .NAME.RANDOM, and handed to the compiler last; its name in
# the cache ends with a digest of what it holds.
COMPILER = """#!/bin/sh
for out; do :; done
name=${{out##*/.}}
stem={cache}/${{name%.so.*}}
cp "$stem"-*.so "$out" 2>/dev/null && exit
g++ "$@" || exit
digest=$(b2sum -l 96 "$out")
known=$stem-${{digest%% *}}.so
cp "$out" "$known.$$" && mv "$known.$$" "$known"
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/ anew from what the code gives")
    parser.addoption("--all-architectures", action="store_true", help="compile the kernels for all GPUs, not for sm_90")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "architecture" in metafunc.fixturenames:
        every = metafunc.config.getoption("--all-architectures")
        metafunc.parametrize("architecture", ARCHITECTURES if every else ARCHITECTURES[:1])


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """A function: a folder by its name, filled by whichever of the parallel workers asks for it first."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[pathlib.Path], object]) -> pathlib.Path:
        folder, begun = common / f"once-{name}", common / f"once-{name}.begun"
        with open(common / f"once-{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                begun.mkdir()
                make(begun)
                begun.rename(folder)
        return folder

    return made


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
    if not (folder / "data").is_dir():
        pytest.skip(f"{folder}/data is not there; READMAP_SHARED names another folder")
    return folder


@pytest.fixture(scope="session")
def demo_index(once: Once) -> pathlib.Path:
    """The index folder of data/demo.fa.gz. Shared by all tests: copy it before changing it."""
    from readmap.cli import main

    def make(folder: pathlib.Path) -> None:
        assert main(["index", str(ROOT / "data/demo.fa.gz"), "-o", str(folder / "demo.readmap"), "-q"]) == 0

    return once("demo", make) / "demo.readmap"


@pytest.fixture
def compiled(once: Once, monkeypatch: pytest.MonkeyPatch) -> str:
    """A compiler, $CXX too, that takes from readmap's cache and adds to it: for tests whose own cache is empty."""
    from readmap.backend.compilation import cache

    def make(folder: pathlib.Path) -> None:
        (folder / "c++").write_text(COMPILER.format(cache=shlex.quote(str(cache.folder()))))
        (folder / "c++").chmod(0o755)

    compiler = str(once("compiler", make) / "c++")
    monkeypatch.setenv("CXX", compiler)
    return compiler


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
