"""The backends: launches, arrays, and missing compilers, drivers and devices."""

import functools
import re
import shutil
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tiny_module import run_add

from readmap.backend import cpu, cuda_available, open_backend
from readmap.backend.compilation import cache, host_compiler, nvrtc, signatures, sources
from readmap.errors import BackendError, UsageError


def test_every_item_is_visited_once(tiny: Path, backends: str) -> None:
    for threads in (1, 2, 5, 16):
        for count in (0, 1, cpu.SLICE - 1, cpu.SLICE, cpu.SLICE + 1, 5_000, 100_003):
            assert run_add(open_backend(backends, threads), count, 3) == [i + 4 for i in range(count)]


@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("size", [1 << 17, (1 << 17) + 1, (1 << 18) - 1, 6 << 18, (50 << 18) + 5])
def test_large_arrays_round_trip(backends: str, size: int, threads: int) -> None:
    """Copies from device memory and from host memory, after earlier launches."""
    backend, array = open_backend(backends, threads), np.arange(size, dtype=np.int64)
    held, pinned = backend.to_device(array.copy()), backend.host_array(size, np.int64)
    pinned[:] = held
    held[1:] += held[:-1].copy()
    assert np.array_equal(backend.to_host(held), array + np.maximum(array - 1, 0))
    assert np.array_equal(backend.to_host(pinned), array)
    assert np.array_equal(backend.to_host(pinned.reshape(1, -1)[:, 1:]), array[None, 1:])


def test_small_arrays_round_trip(backends: str) -> None:
    backend = open_backend(backends)
    array = np.arange(6, dtype=np.int64)
    for held in (backend.to_device(array), backend.to_device_random_access(array)):
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


def test_no_compiler(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(BackendError) as raised:
        run_add(open_backend("cpu"))
    for hint in ("no C++ compiler was found", "apt install g++", "pip install ziglang", "$CXX", "$READMAP_CACHE"):
        assert hint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_compiler_preference(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"my-g++", "g++", "clang++", "c++"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in present else None)
    monkeypatch.setenv("CXX", "my-g++ -m64")
    expected = [["my-g++", "-m64"], ["g++"], ["clang++"], ["c++"], [sys.executable, "-m", "ziglang", "c++"]]
    monkeypatch.setitem(sys.modules, "ziglang", types.ModuleType("ziglang"))
    for command in expected:
        host_compiler.compiler_command.cache_clear()
        assert host_compiler.compiler_command() == command
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


def test_cuda_is_available(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(True))
    assert cuda_available() is None


@pytest.mark.parametrize("device", ["", "gpu", "CPU", "cpu:0", "auto:1", "cuda:x", "cuda:-1", "cuda:1:2"])
def test_invalid_device_names(device: str) -> None:
    with pytest.raises(UsageError, match=f"--device {device}: expected auto, cpu, cuda or cuda:N"):
        open_backend(device)


def test_missing_gpu_index(backends: str) -> None:
    if backends == "cpu":
        pytest.skip("about GPUs")
    with pytest.raises(BackendError, match=r"device cuda:99 cannot be used: this machine has \d+ GPU"):
        open_backend("cuda:99")


def test_default_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "available_processors", lambda: 3)
    assert open_backend("cpu").threads == 3
    assert open_backend("cpu", 2).threads == 2


def test_no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(BackendError, match=r"NVRTC is not installed: pip install 'readmap\[cuda13\]'"):
        nvrtc.compile_cubin("mapping/seeds", "sm_90")


@pytest.mark.parametrize(
    ("gpu", "taken"),
    [
        ("sm_80", "sm_80"),
        ("sm_89", "sm_80"),
        ("sm_90", "sm_90"),
        ("sm_103", "sm_100"),
        ("sm_121", "sm_120"),
        ("sm_110", "compute_90"),
        ("sm_130", "compute_90"),
        ("sm_75", None),
        ("sm_87", None),
        ("sm_101", "compute_90"),
    ],
)
def test_shipped_code_by_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: str, taken: str | None
) -> None:
    """Machine code for the GPU's generation, else PTX of an older one; nothing for a GPU older than all."""
    shipped, compiled = tmp_path / "shipped", tmp_path / "compiled"
    shipped.mkdir()
    for each in nvrtc.ARCHITECTURES:
        name = nvrtc.cubin_name("mapping/seeds", (), each)
        cache.get_or_create(name, lambda out, each=each: out.write_text(each), shipped)
    monkeypatch.setattr(cache, "SHIPPED", shipped)
    monkeypatch.setattr(cache, "_listings", {})
    monkeypatch.setattr(nvrtc, "cubin", lambda *_: compiled)
    found = nvrtc.code("mapping/seeds", (), gpu)
    assert found == compiled if taken is None else found.read_text() == taken
    assert taken is None or nvrtc.is_compiled("mapping/seeds", (), gpu)
    if taken:
        found.write_text("cut off")
        monkeypatch.setattr(cache, "_listings", {})
        assert nvrtc.code("mapping/seeds", (), gpu) != found
        assert found.exists()  # the installer removes it


def test_nvrtc_reports_compile_errors(tiny: Path) -> None:
    pytest.importorskip("cuda.bindings")
    (tiny / "broken.cu").write_text("KERNEL void broken(Items items, const u8* bytes) { nonsense; }\n")
    with pytest.raises(BackendError, match=r"NVRTC could not compile .*broken\.cu for sm_90:(.|\n)*nonsense"):
        nvrtc.compile_cubin("common/broken", "sm_90", ())


def test_threads_share_a_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A structure has its own ctypes type, so threads that create it concurrently must share one."""
    ready, interval = threading.Barrier(8), sys.getswitchinterval()

    def type_of(_: int) -> int:
        ready.wait()
        return id(signatures._structure("Libdeflate", (signatures.Integer("one", "u64"),)).ctype)

    monkeypatch.setattr(signatures, "_made", functools.cache(signatures.Structure))
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(50):
                signatures._made.cache_clear()
                assert len({*pool.map(type_of, range(8))}) == 1
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 511, 4096, 20_001])
def test_copies_of_mapped_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, size: int) -> None:
    """The copy is of the file that was mapped, even if it was replaced; parts do not end at pages."""
    monkeypatch.setattr(cpu, "PART_BYTES", 10_000)
    backend, path = cpu.CpuBackend(threads), tmp_path / "array.npy"
    expected = np.random.default_rng(size).integers(0, 1 << 60, (size, 2))
    np.save(path, expected)
    mapped = np.load(path, mmap_mode="r")
    np.save(tmp_path / "other.npy", expected + 1)
    (tmp_path / "other.npy").replace(path)
    for array, same in ((mapped, expected), (mapped[size // 2 :], expected[size // 2 :]), (expected, expected)):
        held = backend.to_device_random_access(array)
        assert np.array_equal(held, same)
        assert type(held) is np.ndarray
        assert not np.shares_memory(held, array)
    assert np.array_equal(mapped, expected)
