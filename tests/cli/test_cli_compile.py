"""readmap compile: its code runs without a compiler, from a folder that may be read-only."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from readmap.backend.compilation import host_compiler as compiler
from readmap.backend.compilation.signatures import GENERIC, generic_types
from readmap.backend.compilation.sources import modules
from readmap.cli import compile, main

ROOT = Path(__file__).resolve().parents[2]

# Compiles only for the level of this machine.
COMPILER = """#!/bin/sh
case " $* " in *" -march={level} "*) exec {compiled} "$@";; esac
while [ "$1" != -o ]; do shift; done
: > "$2"
"""


@pytest.fixture
def quick(compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the compiler by a fast one."""
    script = tmp_path / "c++"
    script.write_text(COMPILER.format(level=compiler.native_level(), compiled=shlex.quote(compiled)))
    script.chmod(0o755)
    monkeypatch.setattr(compiler, "compiler_command", lambda: [str(script)])


def variants(module: str) -> int:
    count = 1
    for name in generic_types(module):
        count *= len(GENERIC[name])
    return count


def test_prebuilt_code_needs_no_compiler(
    quick: None, tmp_path: Path, demo_index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "code"
    assert main(["compile", "--into", str(folder), "--no-gpu", "-t", "2", "--json", str(tmp_path / "json")]) == 0
    captured = capsys.readouterr()
    files = sorted(folder.iterdir())
    assert sorted(captured.out.splitlines()) == [str(file) for file in files]
    assert f"{len(files)} files" in captured.err
    assert len(files) == sum(map(variants, modules(for_gpu=False))) * len(compiler.levels())
    assert all(file.stat().st_mode & stat.S_IROTH for file in files)

    folder.chmod(0o555)
    (tmp_path / "empty").mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in ("CXX", "PATH", "READMAP_INDEX")}
    environment = {**kept, "PATH": str(tmp_path / "empty"), "READMAP_CACHE": str(folder), "HOME": "/nonexistent"}
    reads = str(ROOT / "data/demo.fq.gz")
    search = [sys.executable, "-m", "readmap", "search", reads, "-x", str(demo_index), "--device", "cpu", "-q"]
    done = subprocess.run(search, cwd=ROOT, env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 5006

    environment["READMAP_CACHE"] = str(tmp_path / "empty")
    done = subprocess.run(search, cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith(b"readmap: error: no C++ compiler was found")
    assert done.stderr.count(b"\n") == 1


def test_code_for_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cuda.bindings")
    monkeypatch.setattr(compile, "modules", lambda **_: ["index/index"])
    arguments = ["compile", "--into", str(tmp_path), "--no-cpu", "--arch", "sm_80,sm_90"]
    assert main(arguments) == 0
    files = sorted(map(str, tmp_path.iterdir()))
    assert sorted(capsys.readouterr().out.splitlines()) == files
    assert len(files) == 2 * variants("index/index")
    for file in tmp_path.iterdir():
        assert file.read_bytes()[:4] == b"\x7fELF"
        assert file.stat().st_mode & stat.S_IROTH
    times = [os.stat(file).st_mtime_ns for file in files]
    assert main([*arguments, "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert [os.stat(file).st_mtime_ns for file in files] == times


def test_without_nvrtc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compile.nvrtc, "load_nvrtc", lambda: None)
    monkeypatch.setattr(compile, "modules", lambda **_: [])
    assert main(["compile", "--into", str(tmp_path)]) == 0
    assert "nothing compiled for GPUs: NVRTC is not installed" in capsys.readouterr().err
    assert main(["compile", "--into", str(tmp_path), "--no-gpu"]) == 0
    assert "NVRTC" not in capsys.readouterr().err


@pytest.mark.parametrize("arch", ["sm90", "", "sm_80,", "sm_80 sm_90", "../sm_80"])
def test_architectures_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], arch: str) -> None:
    assert main(["compile", "--into", str(tmp_path), "--arch", arch]) == 2
    assert capsys.readouterr().err.startswith(f"readmap: error: --arch {arch}: expected names such as sm_90")
    assert list(tmp_path.iterdir()) == []


def test_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["compile", "--into", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == f"readmap: error: {tmp_path / 'file'}: File exists\n"
    monkeypatch.setattr(compiler, "compiler_command", lambda: ["false"])
    assert main(["compile", "--into", str(tmp_path / "code"), "--no-gpu"]) == 1
    assert capsys.readouterr().err.startswith("readmap: error: false could not compile")
    assert list((tmp_path / "code").iterdir()) == []
