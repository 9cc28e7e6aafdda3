"""Device arrays that the host reads in parts, also to write them to files."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from readmap.backend import open_backend
from readmap.backend.array_reader import BUFFERS, DeviceArrayReader
from readmap.backend.cpu import CpuBackend
from readmap.formats.array_files import ArrayFiles

BLOCK = 4096


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int64])
def test_threads_read_parts(backends: str, dtype: type[np.generic]) -> None:
    backend = open_backend(backends)
    array = np.arange(10 * BLOCK).astype(dtype)
    expected, reader = array.view(np.uint8), DeviceArrayReader(backend.to_device(array), BLOCK, backend)
    backend.synchronize()
    assert (reader.dtype, reader.shape) == (array.dtype, array.shape)

    def is_equal(start: int) -> bool:
        with reader.read_bytes(start, start + BLOCK - start % 7) as found:
            return np.array_equal(found, expected[start : start + BLOCK - start % 7])

    with ThreadPoolExecutor(2 * BUFFERS) as pool:
        assert all(pool.map(is_equal, range(0, len(expected) - BLOCK, 501)))


def test_device_array_in_host_memory(backends: str) -> None:
    """As a suffix array that does not fit into device memory."""
    backend, array = open_backend(backends), np.arange(3 * BLOCK, dtype=np.uint32)
    device_array = backend.host_array(len(array), array.dtype)
    backend.copy_into(device_array, backend.to_device(array))
    backend.synchronize()
    with DeviceArrayReader(device_array, BLOCK, backend).read_bytes(100, 100 + BLOCK) as found:
        assert np.array_equal(found, array.view(np.uint8)[100 : 100 + BLOCK])


def test_threads_end_if_a_device_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """More threads than buffers: none waits forever for a lost buffer."""
    backend = CpuBackend(1)
    reader = DeviceArrayReader(np.zeros(BLOCK, np.uint8), BLOCK, backend)

    def fail(*_: object) -> None:
        raise RuntimeError("it fell off the bus")

    def read(start: int) -> None:
        with reader.read_bytes(start, start + 8):
            pass

    download = backend.download
    for failing in ("host_buffer", "wait"):
        with monkeypatch.context() as patch, ThreadPoolExecutor(2 * BUFFERS) as pool:
            if failing == "wait":
                patch.setattr(backend, "download", lambda *given: (download(*given)[0], fail))
            else:
                patch.setattr(reader._pool, "_allocate", fail)
            for failed in [pool.submit(read, start) for start in range(0, 8 * BUFFERS * 8, 8)]:
                with pytest.raises(RuntimeError, match="the bus"):
                    failed.result(timeout=20)
    read(0)


@pytest.mark.parametrize("cuts", [[], [5], [1024, 2048], [1, 2, 1023, 5000]])
def test_files_of_parts(backends: str, tmp_path: Path, cuts: list[int]) -> None:
    """Blocks from one part and from several parts."""
    backend, array = open_backend(backends), np.arange(9000, dtype=np.uint32)
    with ArrayFiles(tmp_path, lambda data: int(data.sum()), BLOCK, 3, contextlib.nullcontext) as files:
        sink = files.array("parts", array.dtype, array.shape)
        parts = np.split(array, cuts)
        for start, part in zip([0, *cuts], parts, strict=True):
            device_array = DeviceArrayReader(backend.to_device(part), BLOCK, backend)
            backend.synchronize()
            sink.write(start, device_array)
        mapped = sink.mapped()
        facts = files.close()["parts"]
    assert np.array_equal(mapped, array)
    assert np.array_equal(np.load(tmp_path / "parts.npy"), array)
    data = array.view(np.uint8)
    assert facts["checksums"] == [int(data[start : start + BLOCK].sum()) for start in range(0, len(data), BLOCK)]
