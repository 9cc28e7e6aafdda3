"""The cache of compiled kernels."""

import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tiny_module import HEADER, ROOT, forget, run_add

from readmap.backend import open_backend
from readmap.backend.compilation import cache, host_compiler
from readmap.errors import BackendError


def test_code_is_compiled_once(tiny: Path, backends: str, compilations: list[Path]) -> None:
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 1
    forget()
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 1
    assert compilations[0].parent == tiny.parents[1] / "cache"
    kept = [path.name for path in (tiny.parents[1] / "cache").glob("*tiny*")]
    assert len(kept) == 1
    assert re.fullmatch(r"common-tiny-.*[0-9a-f]{24}-[0-9a-f]{24}\.(so|cubin)", kept[0])


@pytest.mark.parametrize("name", ["tiny.cuh", "tiny.cu", "portable.cuh"])
def test_code_is_compiled_again_when_a_source_changes(
    tiny: Path, backends: str, compilations: list[Path], name: str
) -> None:
    run_add(open_backend(backends))
    text = (tiny / name).read_text()
    (tiny / name).write_text(text.replace("x + 1", "x + 2") + "\nconst i32 EDITED = 1;\n")
    forget()
    first = 2 if name == "tiny.cuh" else 1
    assert run_add(open_backend(backends)) == list(range(first, 10 + first))
    assert len(compilations) == 2
    (tiny / name).write_text(text)
    forget()
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 2


def test_comments_and_files_that_are_not_included_do_not_matter(tiny: Path, compilations: list[Path]) -> None:
    run_add(open_backend("cpu"))
    (tiny / "other.cuh").write_text("error\n")
    (tiny / "tiny.cu").write_text((tiny / "tiny.cu").read_text() + "// edited\n")
    forget()
    run_add(open_backend("cpu"))
    assert len(compilations) == 1


def test_flags_and_processor_level_are_part_of_the_name(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow, wide = (("suffix_t", "u32"),), (("suffix_t", "u64"),)
    names = {host_compiler.library("common/tiny", narrow, level).name for level in host_compiler.levels()}
    names.add(host_compiler.library("common/tiny", wide).name)
    monkeypatch.setattr(host_compiler, "FLAGS", tuple(flag.replace("-O3", "-O0") for flag in host_compiler.FLAGS))
    names.add(host_compiler.library("common/tiny", narrow).name)
    assert len(names) == len(host_compiler.levels()) + 2


def test_compile_errors_are_reported(tiny: Path) -> None:
    (tiny / "tiny.cuh").write_text(HEADER.replace("x + 1", "y + 1"))
    with pytest.raises(BackendError, match=r"could not compile .*tiny\.cu:(.|\n)*'?y'?"):
        run_add(open_backend("cpu"))
    assert list((tiny.parents[1] / "cache").iterdir()) == []


@pytest.mark.parametrize("name", ["READMAP_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_cache_folder_by_environment(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("READMAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path / "place"))
    below = {"READMAP_CACHE": "place", "XDG_CACHE_HOME": "place/readmap", "HOME": "place/.cache/readmap"}[name]
    assert cache.folder() == tmp_path / below
    assert cache.folder().is_dir()


def test_readmap_cache_has_priority(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("READMAP_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert cache.folder() == tmp_path / "READMAP_CACHE"


def test_private_folder_if_home_cannot_be_written(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in place of the folder: not even root can create a folder there."""
    (tmp_path / "file").write_text("")
    for name in ("READMAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert cache.folder().is_dir()
    assert not cache.folder().is_relative_to(tmp_path / "file")
    assert cache.folder().stat().st_mode & 0o077 == 0


def forbid_writing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make the folder look as on a read-only file system: permissions do not restrict root."""
    access = os.access

    def refuse(path: Any, mode: int, **options: Any) -> bool:
        return not (Path(path) == folder and mode & os.W_OK) and access(path, mode, **options)

    monkeypatch.setattr(os, "access", refuse)


def test_precompiled_code_in_a_read_only_folder(
    tiny: Path, compilations: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tiny.parents[1] / "cache"
    run_add(open_backend("cpu"))
    before = sorted(place.iterdir())
    forget()
    forbid_writing(monkeypatch, place)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 1
    assert sorted(place.iterdir()) == before


def test_missing_code_of_a_read_only_folder(
    tiny: Path, compilations: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tiny.parents[1] / "cache"
    place.mkdir()
    forbid_writing(monkeypatch, place)
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 1
    assert list(place.iterdir()) == []


def test_incomplete_files_are_deleted(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get_or_create("code.so", fail, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_folders_writable_by_others_are_refused(tiny: Path, compilations: list[Path], mode: int) -> None:
    """Another user could have written the code, which would run as this user."""
    place = tiny.parents[1] / "cache"
    run_add(open_backend("cpu"))
    place.chmod(mode)
    forget()
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 2
    assert cache.choose_folder().refusal == f"{place} can be written by other users, and code in it would run as you"
    assert cache.folder().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("owner", "mode", "reason"),
    [
        (os.geteuid(), 0o40755, ""),
        (0, 0o40755, ""),
        (os.geteuid() + 1, 0o40755, f"belongs to another user ({os.geteuid() + 1})"),
        (os.geteuid(), 0o100664, "can be written by other users"),
    ],
)
def test_trusted_owners_and_modes(owner: int, mode: int, reason: str) -> None:
    assert cache._why_untrusted(os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))) == reason


@pytest.mark.parametrize("damage", ["cut", "altered", "writable"])
def test_damaged_code_is_compiled_again(tiny: Path, compilations: list[Path], damage: str) -> None:
    run_add(open_backend("cpu"))
    (file,) = (tiny.parents[1] / "cache").glob("*tiny*")
    code = file.read_bytes()
    if damage == "writable":
        file.chmod(0o666)
    else:
        file.unlink()  # it is mapped
        file.write_bytes(code[:3000] if damage == "cut" else code[:3000] + b"?" + code[3001:])
    forget()
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 2
    (again,) = (tiny.parents[1] / "cache").glob("*tiny*")
    assert again.stat().st_mode & 0o777 == 0o644


def test_one_run_compiles_at_a_time(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READMAP_CACHE", str(tmp_path))
    waits = threading.Event()

    def wait() -> None:
        with cache.compile_lock(lambda _: waits.set()):
            pass

    with cache.compile_lock(pytest.fail):
        other = threading.Thread(target=wait)
        other.start()
        assert waits.wait(60)
        assert other.is_alive()
    other.join(60)
    assert not other.is_alive()


def test_concurrent_threads_create_a_file_once(tmp_path: Path) -> None:
    """Every thread sees no file or a complete one, which only one thread creates."""
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        with path.open("w") as out:
            for _ in range(100):
                out.write("0123456789" * 100)

    def use(_: int) -> int:
        return len(cache.get_or_create("code.so", make, tmp_path).read_text())

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(50))) == {100_000}
    assert len(list(tmp_path.iterdir())) == len(made) == 1


def test_concurrent_processes(tmp_path: Path) -> None:
    program = (
        "import numpy as np; from readmap.backend import Kernel, open_backend\n"
        "ends, lasts = np.arange(6), np.zeros(2, np.int64)\n"
        "kernel = Kernel('common/inclusive_sum', 'copy_row_ends')\n"
        "open_backend('cpu').launch(kernel, 2, ends=ends, lasts=lasts, row_size=3)\n"
        "assert lasts.tolist() == [2, 5]"
    )
    environment = {**os.environ, "READMAP_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    made = sorted(path.name.rsplit("-", 2)[0] for path in tmp_path.iterdir())
    assert made == ["common-host_threads", "common-inclusive_sum"]
