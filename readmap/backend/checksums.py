"""Checksums of arrays in blocks of 4 MiB, computed where the arrays are."""

import functools
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.backend.devices import open_backend

_SUM = Kernel("common/checksums", "sum_runs")
_RUN = constant("common/checksums.cu", "RUN")
BLOCK_BYTES = constant("common/checksums.cu", "BLOCK")  # bytes of a block
PART_BYTES = 64 * BLOCK_BYTES  # bytes of a host array that are sent to the device at a time, a multiple of BLOCK_BYTES


def block_checksums(array: Array, backend: Backend) -> NDArray[np.uint64]:
    """Return the checksum of each 4 MiB block of a device array, uint64 [blocks]; the last block may be shorter."""
    data = array.reshape(-1).view(np.uint8)
    sums = backend.full(-(-len(data) // BLOCK_BYTES), 0, np.uint64)
    backend.launch(_SUM, -(-len(data) // _RUN), bytes=data, sums=sums, size=len(data))
    checksums: NDArray[np.uint64] = backend.to_host(sums)
    return checksums


def host_checksums(array: np.ndarray[Any, Any], backend: Backend) -> NDArray[np.uint64]:
    """Return the checksum of each 4 MiB block of a host array, uint64 [blocks], sent to the device in parts."""
    data = array.reshape(-1).view(np.uint8)
    parts = [data[start : start + PART_BYTES] for start in range(0, max(len(data), 1), PART_BYTES)]
    return np.concatenate([block_checksums(backend.to_device(part), backend) for part in parts])


def block_checksum(data: NDArray[np.uint8]) -> int:
    """Return the checksum of one block on the host, computed by the calling thread, or by a GPU without a compiler."""
    if host := host_backend(_SUM.module, 1):
        return int(block_checksums(data, host)[0])
    with _DEVICE_LOCK:
        return int(block_checksums(_device().to_device(data), _device())[0])


_DEVICE_LOCK = threading.Lock()  # only one thread at a time launches on the shared device


@functools.cache
def _device() -> Backend:
    return open_backend()
