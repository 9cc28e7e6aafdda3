"""Checksums of arrays, block by block, computed where the arrays are."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.backend.select import open_backend

_SUM = Kernel("common/checksums", "sum_runs", grouped=True)
_RUN = constant("common/checksums.cu", "RUN")

#: Bytes of a block.
BLOCK_BYTES = constant("common/checksums.cu", "BLOCK")

#: Bytes of an array on the host that are sent to a device together, a multiple of a block's.
PART_BYTES = 64 * BLOCK_BYTES


def block_checksums(array: Array, backend: Backend) -> NDArray[np.uint64]:
    """The checksum of each block of an array on the device, uint64 [blocks]; its last block may be shorter."""
    held = array.reshape(-1).view(np.uint8)
    sums = backend.full(-(-len(held) // BLOCK_BYTES), 0, np.uint64)
    backend.launch(_SUM, -(-len(held) // _RUN), bytes=held, sums=sums, size=len(held))
    found: NDArray[np.uint64] = backend.to_host(sums)
    return found


def host_checksums(array: np.ndarray[Any, Any], backend: Backend) -> NDArray[np.uint64]:
    """The same of an array on the host, of which the device holds no more than PART_BYTES at a time."""
    held = array.reshape(-1).view(np.uint8)
    parts = [held[begin : begin + PART_BYTES] for begin in range(0, max(len(held), 1), PART_BYTES)]
    return np.concatenate([block_checksums(backend.to_device(part), backend) for part in parts])


def block_checksum(data: NDArray[np.uint8]) -> int:
    """The same of one block on the host, computed there by the thread that asks, or on a GPU without a compiler."""
    host = host_backend(_SUM.module, 1)
    if host:
        return int(block_checksums(data, host)[0])
    with _LOCK:
        return int(block_checksums(_device().to_device(data), _device())[0])


#: A device has one thread at a time that launches.
_LOCK = threading.Lock()


@functools.cache
def _device() -> Backend:
    return open_backend()
