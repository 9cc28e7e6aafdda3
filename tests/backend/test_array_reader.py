"""Arrays on devices of which the host sees some bytes at a time: it sees all of them, and so does a file of them."""

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
def test_any_bytes_by_any_thread(backends: str, dtype: type[np.generic]) -> None:
    backend = open_backend(backends)
    array = np.arange(10 * BLOCK).astype(dtype)
    expected, distant = array.view(np.uint8), DeviceArrayReader(backend.to_device(array), BLOCK, backend)
    backend.synchronize()
    assert (distant.dtype, distant.shape) == (array.dtype, array.shape)

    def exists(begin: int) -> bool:
        with distant.read_bytes(begin, begin + BLOCK - begin % 7) as found:
            return np.array_equal(found, expected[begin : begin + BLOCK - begin % 7])

    with ThreadPoolExecutor(2 * BUFFERS) as pool:
        assert all(pool.map(exists, range(0, len(expected) - BLOCK, 501)))


def test_an_array_that_the_device_has_in_the_hosts_memory(backends: str) -> None:
    """As the order of suffixes where a GPU has no room for it."""
    backend, array = open_backend(backends), np.arange(3 * BLOCK, dtype=np.uint32)
    held = backend.host_array(len(array), array.dtype)
    backend.copy_into(held, backend.to_device(array))
    backend.synchronize()
    with DeviceArrayReader(held, BLOCK, backend).read_bytes(100, 100 + BLOCK) as found:
        assert np.array_equal(found, array.view(np.uint8)[100 : 100 + BLOCK])


def test_threads_end_where_a_device_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than there are buffers: none waits for one that is lost."""
    backend = CpuBackend(1)
    distant = DeviceArrayReader(np.zeros(BLOCK, np.uint8), BLOCK, backend)

    def fail(*_: object) -> None:
        raise RuntimeError("it fell off the bus")

    def read(begin: int) -> None:
        with distant.read_bytes(begin, begin + 8):
            pass

    download = backend.download
    for failing in ("host_buffer", "arrived"):
        with monkeypatch.context() as patch, ThreadPoolExecutor(2 * BUFFERS) as pool:
            if failing == "arrived":
                patch.setattr(backend, "download", lambda *given: (download(*given)[0], fail))
            else:
                patch.setattr(distant._pool, "_allocate", fail)
            for failed in [pool.submit(read, begin) for begin in range(0, 8 * BUFFERS * 8, 8)]:
                with pytest.raises(RuntimeError, match="the bus"):
                    failed.result(timeout=20)
    read(0)


@pytest.mark.parametrize("cuts", [[], [5], [1024, 2048], [1, 2, 1023, 5000]])
def test_files_of_parts(backends: str, tmp_path: Path, cuts: list[int]) -> None:
    """Blocks of one part, and of several."""
    backend, array = open_backend(backends), np.arange(9000, dtype=np.uint32)
    with ArrayFiles(tmp_path, lambda data: int(data.sum()), BLOCK, 3, contextlib.nullcontext) as files:
        sink = files.array("parts", array.dtype, array.shape)
        parts = np.split(array, cuts)
        for begin, part in zip([0, *cuts], parts, strict=True):
            held = DeviceArrayReader(backend.to_device(part), BLOCK, backend)
            backend.synchronize()
            sink.write(begin, held)
        mapped = sink.mapped()
        facts = files.close()["parts"]
    assert np.array_equal(mapped, array)
    assert np.array_equal(np.load(tmp_path / "parts.npy"), array)
    data = array.view(np.uint8)
    assert facts["checksums"] == [int(data[begin : begin + BLOCK].sum()) for begin in range(0, len(data), BLOCK)]
