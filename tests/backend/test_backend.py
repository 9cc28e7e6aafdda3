"""The backends: declarations read from the sources, arguments that are checked, compiled code kept by content."""

import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readmap.backend import Backend, Kernel, cpu, cuda_available, open_backend
from readmap.backend.compilation import cache, host_compiler, nvrtc, signatures, sources
from readmap.backend.compilation.signatures import Parameter
from readmap.errors import BackendError, UsageError

ROOT = Path(__file__).resolve().parents[2]

HEADER = """
#pragma once
#include "common/portable.cuh"
#define TINY_ARGUMENTS const i32 *numbers, \\
    i64 shift
HOST_DEVICE i32 changed(i32 x) { return x + 1; }
"""
MODULE = """
#include "common/tiny.cuh"

// The sums, and how often each item was visited.
KERNEL void add(i64 begin, i64 end, TINY_ARGUMENTS, i32* sums, u8* visits) {
    FOR_EACH(item, begin, end) {
        sums[item] = changed(numbers[item]) + (i32)shift;
        visits[item] += 1;
    }
}

KERNEL void take(i64 begin, i64 end, const u8* bytes, const i8* little, const u16* halves, const u32 *words,
                 const u64* longs, const suffix_t* suffixes, suffix_t* table, i64* sizes, u8 a, i32 b, u64 c) {
    FOR_EACH(item, begin, end) sizes[item] = (i64)sizeof(suffix_t);
}

#define DOUBLED(name, type)                                       \\
    KERNEL void name(i64 begin, i64 end, TINY_ARGUMENTS, i32* out) { \\
        FOR_EACH(item, begin, end) out[item] = 2 * numbers[item];  \\
    }

DOUBLED(doubled, i32)
DOUBLED(doubled_again, i32)
"""
ADD, TAKE = Kernel("common/tiny", "add"), Kernel("common/tiny", "take")


def forget() -> None:
    """Drop what the process knows of the sources and of compiled code."""
    for function in (
        *(sources.source, signatures.generic_types, signatures.signatures, cpu._library, cpu._function),
        *(host_compiler.command, cache.folder, cuda_available),
    ):
        function.cache_clear()
    if "readmap.backend.cuda" in sys.modules:
        sys.modules["readmap.backend.cuda"]._module.cache_clear()


@pytest.fixture
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def tiny(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels with one small module, and an empty cache of compiled code beside it."""
    folder = tmp_path / "kernels" / "common"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "kernels" / "common" / "portable.cuh", folder)
    (folder / "tiny.cuh").write_text(HEADER)
    (folder / "tiny.cu").write_text(MODULE)
    for module in (sources, host_compiler, nvrtc):
        monkeypatch.setattr(module, "folder", lambda: folder.parent)
    monkeypatch.setenv("READMAP_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Grows by the file that each compilation writes."""
    done: list[Path] = []

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            done.extend(argument for argument in arguments if isinstance(argument, Path))
            return function(*arguments)

        return noted

    monkeypatch.setattr(host_compiler, "_compile", note(host_compiler._compile))
    monkeypatch.setattr(nvrtc, "_write", note(nvrtc._write))
    return done


def run_add(backend: Backend, count: int = 10, shift: int = 0) -> list[int]:
    numbers = backend.to_device(np.arange(count, dtype=np.int32))
    sums, visits = backend.full(count, -1, np.int32), backend.full(count, 0, np.uint8)
    backend.launch(ADD, count, numbers, shift, sums, visits)
    assert backend.to_host(visits).tolist() == [1] * count
    return [int(x) for x in backend.to_host(sums)]


# Declarations.


def test_declarations_are_read_from_the_source(tiny: Path) -> None:
    assert set(signatures.signatures("common/tiny")) == {"add", "take", "doubled", "doubled_again"}
    assert ADD.signature.parameters == (
        Parameter("numbers", "i32", True),
        Parameter("shift", "i64", False),
        Parameter("sums", "i32", True),
        Parameter("visits", "u8", True),
    )
    doubled = signatures.signature("common/tiny", "doubled_again")
    assert doubled.kernel == "doubled_again"
    assert [parameter.name for parameter in doubled.parameters] == ["numbers", "shift", "out"]
    assert [parameter.type for parameter in TAKE.signature.parameters] == [
        *("u8", "i8", "u16", "u32", "u64", "suffix_t", "suffix_t", "i64", "u8", "i32", "u64")
    ]
    assert [parameter.array for parameter in TAKE.signature.parameters] == [True] * 8 + [False] * 3
    assert signatures.generic_types("common/tiny") == ("suffix_t",)
    with pytest.raises(KeyError):
        signatures.signature("common/tiny", "missing")


@pytest.mark.parametrize("text", ["const u8* (*f)", "u8* bytes[4]", "u8* *rows"])
def test_declaration_that_cannot_be_read(tiny: Path, text: str) -> None:
    (tiny / "tiny.cu").write_text(f"KERNEL void broken(i64 begin, i64 end, {text}) {{}}\n")
    with pytest.raises((ValueError, KeyError)):
        signatures.signature("common/tiny", "broken")


def test_declaration_without_begin_and_end(tiny: Path) -> None:
    (tiny / "tiny.cu").write_text("KERNEL void broken(i64 count, const u8* bytes) {}\n")
    with pytest.raises(ValueError, match="begin and end"):
        signatures.signature("common/tiny", "broken")


@pytest.mark.parametrize("module", sources.modules(for_gpu=True))
def test_every_entry_point_is_declared_and_compiled(module: str, backends: str) -> None:
    """Each is a symbol of the compiled module, with parameters of types that can be checked."""
    found = signatures.signatures(module)
    text = (ROOT / "kernels" / f"{module}.cu").read_text()
    written = set(re.findall(r"KERNEL void (?:RESIDENT\(\d+\) )?(\w+)\(", text)) - {"name"}
    assert written <= set(found)
    assert found
    for name, signature in found.items():
        assert signature.parameters
        for parameter in signature.parameters:
            assert parameter.type in signatures.DTYPES or parameter.type in signatures.GENERIC, (name, parameter)
    if backends == "cpu" and module in sources.modules(for_gpu=False):
        kinds = signatures.generic_types(module)
        library = cpu._library(module, tuple((kind, signatures.GENERIC[kind][0]) for kind in kinds))
        for name in found:
            getattr(library, name)


def test_every_kernel_that_python_names_is_there() -> None:
    named = [
        found
        for path in (ROOT / "readmap").rglob("*.py")
        for found in re.findall(r'Kernel\("([\w/]+)", "(\w+)"\)', path.read_text())
    ]
    assert len(named) > 10
    for module, name in named:
        signatures.signature(module, name)


# Arguments.


@pytest.mark.parametrize("wrong", range(4))
def test_wrong_dtype(tiny: Path, backends: str, wrong: int) -> None:
    backend = open_backend(backends)
    arrays: list[Any] = [backend.full(4, 0, np.int32), 0, backend.full(4, 0, np.int32), backend.full(4, 0, np.uint8)]
    backend.launch(ADD, 4, *arrays)
    name = ADD.signature.parameters[wrong].name
    if wrong == 1:
        arrays[1] = 0.0
        message = "add: argument shift is a float, expected an integer"
    else:
        expected = arrays[wrong].dtype
        arrays[wrong] = backend.full(4, 0, np.int64)
        message = f"add: argument {name} has dtype int64, expected {expected}"
    with pytest.raises(TypeError, match=message):
        backend.launch(ADD, 4, *arrays)


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32, np.uint64, np.bool_, ">i4"])
def test_dtypes_of_the_same_size_are_told_apart(tiny: Path, dtype: Any) -> None:
    arrays = [np.zeros(4, dtype), 0, np.zeros(4, np.int32), np.zeros(4, np.uint8)]
    with pytest.raises(TypeError, match="argument numbers has dtype"):
        open_backend("cpu").launch(ADD, 4, *arrays)


def test_not_contiguous(tiny: Path, backends: str) -> None:
    backend = open_backend(backends)
    arrays: list[Any] = [
        backend.full(8, 0, np.int32)[::2],
        0,
        backend.full(4, 0, np.int32),
        backend.full(4, 0, np.uint8),
    ]
    with pytest.raises(TypeError, match="add: argument numbers is not contiguous"):
        backend.launch(ADD, 4, *arrays)
    arrays[0] = backend.full((4, 4), 0, np.int32).T
    with pytest.raises(TypeError, match="add: argument numbers is not contiguous"):
        backend.launch(ADD, 4, *arrays)


def test_wrong_count(tiny: Path, backends: str) -> None:
    backend = open_backend(backends)
    arrays: list[Any] = [backend.full(4, 0, np.int32), 0, backend.full(4, 0, np.int32), backend.full(4, 0, np.uint8)]
    for arguments in (arrays[:3], [*arrays, 0], []):
        with pytest.raises(TypeError, match=f"add takes 4 arguments, got {len(arguments)}"):
            backend.launch(ADD, 4, *arguments)


@pytest.mark.parametrize("argument", [[1, 2, 3], None, 5, b"1234", memoryview(b"1234")])
def test_not_an_array(tiny: Path, backends: str, argument: Any) -> None:
    backend = open_backend(backends)
    with pytest.raises(TypeError, match=rf"argument numbers is a \w+, expected {backend.xp.__name__}\.ndarray"):
        backend.launch(ADD, 1, argument, 0, backend.full(1, 0, np.int32), backend.full(1, 0, np.uint8))


@pytest.mark.gpu
def test_an_array_on_the_host_is_none_of_the_gpu(tiny: Path, backends: str) -> None:
    if backends == "cpu":
        pytest.skip("the CPU's arrays are on the host")
    backend = open_backend(backends)
    with pytest.raises(TypeError, match="argument numbers is a ndarray, expected cupy"):
        backend.launch(ADD, 1, np.zeros(1, np.int32), 0, backend.full(1, 0, np.int32), backend.full(1, 0, np.uint8))


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        *(("a", 0, True), ("a", 255, True), ("a", 256, False), ("a", -1, False)),
        *(("b", -(2**31), True), ("b", 2**31 - 1, True), ("b", 2**31, False), ("b", -(2**31) - 1, False)),
        *(("c", 2**64 - 1, True), ("c", 2**64, False), ("c", -1, False), ("c", np.int8(-1), False)),
        *(("b", True, False), ("b", 1.0, False), ("b", np.float64(1), False), ("b", "1", False), ("b", None, False)),
        *(("b", np.uint8(7), True), ("c", np.int64(7), True), ("b", np.uint64(2**31), False)),
    ],
)
def test_integers_out_of_range(tiny: Path, backends: str, name: str, value: Any, fits: bool) -> None:
    backend = open_backend(backends)
    dtypes = (np.uint8, np.int8, np.uint16, np.uint32, np.uint64, np.uint32, np.uint32, np.int64)
    scalars: dict[str, Any] = {"a": 0, "b": 0, "c": 0, name: value}
    arguments = [*(backend.full(1, 0, dtype) for dtype in dtypes), *scalars.values()]
    if fits:
        backend.launch(TAKE, 0, *arguments)
        return
    with pytest.raises(TypeError, match=f"take: argument {name} is "):
        backend.launch(TAKE, 0, *arguments)


@pytest.mark.parametrize(("first", "second"), [("u4", "u4"), ("u8", "u8"), ("u4", "u8"), ("u8", "u4"), ("i4", "i4")])
def test_open_types_are_decided_by_the_first_argument(tiny: Path, backends: str, first: str, second: str) -> None:
    backend = open_backend(backends)
    sizes = backend.full(1, 0, np.int64)
    dtypes = (np.uint8, np.int8, np.uint16, np.uint32, np.uint64, first, second)
    arguments = [*(backend.full(1, 0, np.dtype(dtype)) for dtype in dtypes), sizes, 0, 0, 0]
    if first == second != "i4":
        backend.launch(TAKE, 1, *arguments)
        assert backend.to_host(sizes).tolist() == [int(first[1])]
        return
    name = "suffixes" if first == "i4" else "table"
    with pytest.raises(TypeError, match=f"take: argument {name} has dtype"):
        backend.launch(TAKE, 1, *arguments)


def test_a_wrong_argument_runs_nothing(tiny: Path, compilations: list[Path]) -> None:
    with pytest.raises(TypeError):
        open_backend("cpu").launch(ADD, 4, np.zeros(4, np.int64), 0, np.zeros(4, np.int32), np.zeros(4, np.uint8))
    assert compilations == []


# Running.


def test_every_item_is_visited_once(tiny: Path, backends: str) -> None:
    for threads in (1, 2, 5):
        for count in (1, cpu.SLICE - 1, cpu.SLICE, cpu.SLICE + 1, 5_000):
            assert run_add(open_backend(backends, threads), count, 3) == [i + 4 for i in range(count)]


def test_no_items(tiny: Path, backends: str) -> None:
    assert run_add(open_backend(backends), 0) == []


def test_arrays_of_a_backend(backends: str) -> None:
    backend = open_backend(backends)
    array = np.arange(6, dtype=np.int64)
    for held in (backend.to_device(array), backend.hold(array)):
        assert isinstance(held, backend.xp.ndarray)
        assert np.array_equal(backend.to_host(held), array)
    for sizes in ([0], [5], [3, 2], [0, 4, 1]):
        parts = [np.arange(10 * i, 10 * i + size, dtype=np.uint8) for i, size in enumerate(sizes)]
        joined = backend.upload(parts)
        assert isinstance(joined, backend.xp.ndarray)
        assert backend.to_host(joined).tobytes() == b"".join(part.tobytes() for part in parts)
    assert backend.empty((3, 2), np.uint16).shape == (3, 2)
    assert backend.to_host(backend.full((2, 2), -1, np.int32)).tolist() == [[-1, -1], [-1, -1]]
    buffer = backend.host_buffer(10)
    assert isinstance(buffer, np.ndarray)
    assert buffer.dtype == np.uint8
    assert buffer.shape == (10,)
    backend.synchronize()
    backend.release_memory()
    assert backend.threads > 0


@pytest.mark.parametrize("counts", [[], [5], [0, 3, 0, 2**33]])
def test_prefix_sums(backends: str, counts: list[int]) -> None:
    backend = open_backend(backends)
    ends, total = backend.ends(backend.to_device(np.array(counts, np.int64)))
    assert total == sum(counts)
    assert backend.to_host(ends).tolist() == [sum(counts[: i + 1]) for i in range(len(counts))]


# The cache of compiled code.


def test_code_is_compiled_once(tiny: Path, backends: str, compilations: list[Path]) -> None:
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 1
    forget()
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 1
    assert compilations[0].parent == tiny.parents[1] / "cache"
    kept = [path.name for path in (tiny.parents[1] / "cache").iterdir() if path.is_file()]
    assert len(kept) == 1
    assert re.fullmatch(r"common-tiny-.*[0-9a-f]{24}\.(so|cubin)", kept[0])


@pytest.mark.parametrize("name", ["tiny.cuh", "tiny.cu", "portable.cuh"])
def test_code_is_compiled_again_when_a_source_changes(
    tiny: Path, backends: str, compilations: list[Path], name: str
) -> None:
    run_add(open_backend(backends))
    text = (tiny / name).read_text()
    (tiny / name).write_text(text.replace("x + 1", "x + 2") + "\n// edited\n")
    forget()
    first = 2 if name == "tiny.cuh" else 1
    assert run_add(open_backend(backends)) == list(range(first, 10 + first))
    assert len(compilations) == 2
    (tiny / name).write_text(text)
    forget()
    assert run_add(open_backend(backends)) == list(range(1, 11))
    assert len(compilations) == 2


def test_a_file_that_is_not_included_does_not_matter(tiny: Path, compilations: list[Path]) -> None:
    run_add(open_backend("cpu"))
    (tiny / "other.cuh").write_text("error\n")
    forget()
    run_add(open_backend("cpu"))
    assert len(compilations) == 1


def test_flags_and_processor_level_are_part_of_the_name(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        host_compiler.library("common/tiny", (("suffix_t", "u32"),), level).name for level in host_compiler.levels()
    }
    names.add(host_compiler.library("common/tiny", (("suffix_t", "u64"),)).name)
    monkeypatch.setattr(host_compiler, "FLAGS", tuple(flag.replace("-O3", "-O0") for flag in host_compiler.FLAGS))
    names.add(host_compiler.library("common/tiny", (("suffix_t", "u32"),)).name)
    assert len(names) == len(host_compiler.levels()) + 2


def test_source_that_does_not_compile(tiny: Path) -> None:
    (tiny / "tiny.cuh").write_text(HEADER.replace("x + 1", "y + 1"))
    with pytest.raises(BackendError, match=r"could not compile .*tiny\.cu:(.|\n)*'?y'?"):
        run_add(open_backend("cpu"))
    assert list((tiny.parents[1] / "cache").iterdir()) == []


@pytest.mark.parametrize("name", ["READMAP_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_folder_of_the_cache(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("READMAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path / "place"))
    below = {"READMAP_CACHE": "place", "XDG_CACHE_HOME": "place/readmap", "HOME": "place/.cache/readmap"}[name]
    assert cache.folder() == tmp_path / below
    assert cache.folder().is_dir()


def test_readmap_cache_comes_first(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("READMAP_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert cache.folder() == tmp_path / "READMAP_CACHE"


def test_home_that_cannot_be_written(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be: not even root can make one there."""
    (tmp_path / "file").write_text("")
    for name in ("READMAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert cache.folder().is_dir()
    assert not cache.folder().is_relative_to(tmp_path / "file")
    assert cache.folder().stat().st_mode & 0o077 == 0


def forbid_writing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As if the folder were on a read-only file system: for root, permissions do not tell."""
    access = os.access

    def refuse(path: Any, mode: int, **options: Any) -> bool:
        return not (Path(path) == folder and mode & os.W_OK) and access(path, mode, **options)

    monkeypatch.setattr(os, "access", refuse)


def test_prebuilt_code_in_a_read_only_folder(
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


def test_what_a_read_only_folder_lacks_is_compiled_elsewhere(
    tiny: Path, compilations: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tiny.parents[1] / "cache"
    place.mkdir()
    forbid_writing(monkeypatch, place)
    assert run_add(open_backend("cpu")) == list(range(1, 11))
    assert len(compilations) == 1
    assert list(place.iterdir()) == []


def test_a_file_that_is_not_made_is_not_kept(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.kept("code.so", fail, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_do_no_harm(tmp_path: Path) -> None:
    """Whoever comes sees either no file or all of it."""

    def make(path: Path) -> None:
        with path.open("w") as out:
            for _ in range(100):
                out.write("0123456789" * 100)

    def use(_: int) -> int:
        return len(cache.kept("code.so", make, tmp_path).read_text())

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(50))) == {100_000}
    assert [path.name for path in tmp_path.iterdir()] == ["code.so"]


def test_processes_that_start_at_once(tmp_path: Path) -> None:
    program = (
        "import numpy as np; from readmap.backend import Kernel, open_backend\n"
        "counts = np.zeros(1, np.int64)\n"
        "arguments = np.full(5, 10, np.uint8), counts, 5\n"
        "open_backend('cpu').launch(Kernel('reads/reads', 'count_newlines'), 1, *arguments)\n"
        "assert counts[0] == 5"
    )
    environment = {**os.environ, "READMAP_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 1


# What may be missing.


def test_no_compiler(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(BackendError) as raised:
        run_add(open_backend("cpu"))
    for hint in ("no C++ compiler was found", "apt install g++", "pip install ziglang", "$CXX", "$READMAP_CACHE"):
        assert hint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_choice_of_the_compiler(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"my-g++", "g++", "clang++", "c++"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in present else None)
    monkeypatch.setenv("CXX", "my-g++ -m64")
    expected = [["my-g++", "-m64"], ["g++"], ["clang++"], ["c++"], [sys.executable, "-m", "ziglang", "c++"]]
    monkeypatch.setitem(sys.modules, "ziglang", types.ModuleType("ziglang"))
    for command in expected:
        host_compiler.command.cache_clear()
        assert host_compiler.command() == command
        present.discard(command[0])


def test_no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "readmap" / "backend" / "compilation" / "sources.py"))
    with pytest.raises(BackendError, match="the installation is incomplete"):
        sources.folder.__wrapped__()


def fake_cupy(available: bool, error: Exception | None = None) -> types.ModuleType:
    def device_count() -> int:
        if error:
            raise error
        return 1

    module = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(getDeviceCount=device_count)
    module.cuda = types.SimpleNamespace(is_available=lambda: available, runtime=runtime)  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    ("cupy", "message"),
    [
        (None, r"CuPy is not installed: pip install 'readmap\[cuda13\]' \(or cuda12"),
        (fake_cupy(False), "no NVIDIA driver or no GPU: install the driver"),
        (
            fake_cupy(True, RuntimeError("cudaErrorInsufficientDriver")),
            "cannot reach the GPU: cudaErrorInsufficientDriver",
        ),
    ],
    ids=["no CuPy", "no driver", "broken driver"],
)
def test_no_gpu(fresh: None, monkeypatch: pytest.MonkeyPatch, cupy: types.ModuleType | None, message: str) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    reason = cuda_available()
    assert reason is not None
    assert re.search(message, reason)
    for device in ("cuda", "cuda:1"):
        with pytest.raises(BackendError, match=f"device {device} cannot be used: .*{message}"):
            open_backend(device)
    assert open_backend("auto").name == "cpu"
    assert open_backend("cpu").name == "cpu"


def test_gpu_is_taken_where_there_is_one(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(True))
    assert cuda_available() is None


@pytest.mark.parametrize("device", ["", "gpu", "CPU", "cpu:0", "auto:1", "cuda:x", "cuda:-1", "cuda:1:2"])
def test_device_that_is_none(device: str) -> None:
    with pytest.raises(UsageError, match=f"--device {device}: expected auto, cpu, cuda or cuda:N"):
        open_backend(device)


def test_gpu_number_that_is_not_there(backends: str) -> None:
    if backends == "cpu":
        pytest.skip("about GPUs")
    with pytest.raises(BackendError, match=r"device cuda:99 cannot be used: this machine has \d+ GPU"):
        open_backend("cuda:99")


def test_threads_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    assert open_backend("cpu").threads == 3
    assert open_backend("cpu", 2).threads == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cpu.available_processors() == os.cpu_count()


def test_no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(BackendError, match=r"NVRTC is not installed: pip install 'readmap\[cuda13\]'"):
        nvrtc.compile_cubin("search/seeds", "sm_90")


def test_source_that_nvrtc_does_not_compile(tiny: Path) -> None:
    pytest.importorskip("cuda.core")
    (tiny / "broken.cu").write_text("KERNEL void broken(i64 begin, i64 end, const u8* bytes) { nonsense; }\n")
    with pytest.raises(BackendError, match=r"NVRTC could not compile .*broken\.cu for sm_90:(.|\n)*nonsense"):
        nvrtc.compile_cubin("common/broken", "sm_90", ())
