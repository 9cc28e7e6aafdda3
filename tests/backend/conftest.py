"""Fixtures of a small module of kernels, in its own folder with an empty cache."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_module import HEADER, MODULE, ROOT, forget

from readmap.backend.compilation import host_compiler, nvrtc, sources


@pytest.fixture
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def tiny(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels with one small module, next to an empty cache folder."""
    folder = tmp_path / "kernels" / "common"
    folder.mkdir(parents=True)
    for name in ("portable.cuh", "host_threads.cu"):
        shutil.copy(ROOT / "kernels" / "common" / name, folder)
    (folder / "tiny.cuh").write_text(HEADER)
    (folder / "tiny.cu").write_text(MODULE)
    for module in (sources, host_compiler, nvrtc):
        monkeypatch.setattr(module, "folder", lambda: folder.parent)
    monkeypatch.setenv("READMAP_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A list to which each compilation of the small module appends its output file."""
    done: list[Path] = []

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            done.extend(path for path in arguments if isinstance(path, Path) and "tiny" in path.name)
            return function(*arguments)

        return noted

    monkeypatch.setattr(host_compiler, "_compile", note(host_compiler._compile))
    monkeypatch.setattr(nvrtc, "_write", note(nvrtc._write))
    return done
