"""Shared fixtures: backends, the folder of large test data, an index of the demo reference, a caching compiler, and the
benchmark script as a module."""

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

#: Why tests marked gpu were deselected, for the report.
DESELECTED = pytest.StashKey[str]()

# The last argument is the output, .NAME.RANDOM; the name of a file in the cache ends with a digest of its contents.
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
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/ with the current output")
    parser.addoption(
        "--all-architectures", action="store_true", help="compile the kernels for all GPU architectures, not only sm_90"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "architecture" in metafunc.fixturenames:
        every = metafunc.config.getoption("--all-architectures")
        metafunc.parametrize("architecture", ARCHITECTURES if every else ARCHITECTURES[:1])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked gpu if there is no CUDA device."""
    from readmap.backend import cuda_available

    deselected = [item for item in items if item.get_closest_marker("gpu")]
    reason = cuda_available() if deselected else None
    if reason is not None:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in set(deselected)]
        config.stash[DESELECTED] = f"{len(deselected)} tests need a GPU and were not run: no CUDA: {reason}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        session.config.workeroutput["deselected"] = session.config.stash.get(DESELECTED, "")  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the line of an xdist worker, which has collected all tests."""
    if line := getattr(node, "workeroutput", {}).get("deselected"):
        node.config.stash[DESELECTED] = line


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if line := config.stash.get(DESELECTED, ""):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """A function that returns a folder by name; the first parallel worker that asks for it fills it."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[pathlib.Path], object]) -> pathlib.Path:
        folder, partial = common / f"once-{name}", common / f"once-{name}.partial"
        with open(common / f"once-{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                partial.mkdir()
                make(partial)
                partial.rename(folder)
        return folder

    return made


# Session scope, because hypothesis rejects function-scoped fixtures.
@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def backends(request: pytest.FixtureRequest) -> str:
    """The name of a backend; the test runs once on each available backend."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of real genomes and reads, which is not part of the repository."""
    folder = pathlib.Path(os.environ.get("READMAP_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"{folder}/data does not exist; set READMAP_SHARED to another folder")
    return folder


@pytest.fixture(scope="session")
def demo_index(once: Once) -> pathlib.Path:
    """The index folder of data/demo.fa.gz, shared by all tests: copy it before changing it."""
    from readmap.cli import main

    def make(folder: pathlib.Path) -> None:
        assert main(["index", str(ROOT / "data/demo.fa.gz"), "-o", str(folder / "demo.readmap"), "-q"]) == 0

    return once("demo", make) / "demo.readmap"


@pytest.fixture
def compiled(once: Once, monkeypatch: pytest.MonkeyPatch) -> str:
    """A compiler, also set as $CXX, that uses readmap's normal cache, for tests with an empty cache of their own."""
    from readmap.backend.compilation import cache

    def make(folder: pathlib.Path) -> None:
        (folder / "c++").write_text(COMPILER.format(cache=shlex.quote(str(cache.folder()))))
        (folder / "c++").chmod(0o755)

    compiler = str(once("compiler", make) / "c++")
    monkeypatch.setenv("CXX", compiler)
    return compiler


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """scripts/benchmark as a module, kept from restarting itself with another interpreter."""
    monkeypatch.setattr(sys, "base_prefix", "elsewhere")
    monkeypatch.setattr(sys, "path", [*sys.path])
    loader = SourceFileLoader("benchmark", str(ROOT / "scripts/benchmark"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_loader("benchmark", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
