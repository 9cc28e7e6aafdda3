"""Memory of the devices and of the host -> the size of chunks of reads, and how many a device maps at once."""

from collections.abc import Sequence
from typing import NamedTuple

from readmap.backend import Backend
from readmap.backend.machine import available_memory

#: Bytes of device memory that all stages together need for a byte of reads, measured on reads of 100 to 300 bases.
WORKING_BYTES = 20
#: Buffers in addition to the buffers of chunks that are mapped: being filled, and waiting for each device.
FILLED, WAITING = 1, 1
#: Chunks are not planned smaller than this: a chunk that does not fit is halved when memory runs out.
MIN_CHUNK_BYTES = 1 << 20
#: The buffers of larger chunks may take 1 / HOST_SHARE of the available host memory; buffers for GPUs are page-locked.
HOST_SHARE = 4


class ChunkPlan(NamedTuple):
    """The number of chunks that each device maps at once, and the limit of their size in bytes."""

    at_once: int
    nbytes: int

    @property
    def working_bytes(self) -> int:
        return self.at_once * self.nbytes * WORKING_BYTES

    def buffers(self, devices: int) -> int:
        return FILLED + (WAITING + self.at_once) * devices


#: The plan for several devices, whose threads share the interpreter's lock: larger chunks need it less often, and a
#: third chunk hides that threads wait for it.
MULTI_DEVICE_PLAN = ChunkPlan(3, 768 << 20)


def plan_chunks(backends: Sequence[Backend], needed: int = 0, is_sorted: bool = False) -> ChunkPlan:
    """Return how many chunks a device maps at once and their size limit, for devices of one kind, by their free memory.
    needed: bytes of device memory that other data will take, such as the index. is_sorted: records are sorted, for
    which the first device reserves the rest of its memory."""
    one, memory = backends[0], [held[0] for backend in backends if (held := backend.memory())]
    if not memory:
        return ChunkPlan(one.concurrent_chunks, one.chunk_bytes)
    free = min(memory) - needed
    larger = _fit_memory(MULTI_DEVICE_PLAN, free)
    if len(memory) > 1 and not is_sorted and larger.nbytes >= one.chunk_bytes and _fits_host(larger, len(memory)):
        return larger
    return _fit_memory(ChunkPlan(one.concurrent_chunks, one.chunk_bytes), free)


def _fit_memory(plan: ChunkPlan, free: int) -> ChunkPlan:
    return plan._replace(nbytes=min(plan.nbytes, max(free // (WORKING_BYTES * plan.at_once), MIN_CHUNK_BYTES)))


def _fits_host(plan: ChunkPlan, devices: int) -> bool:
    available = available_memory()
    return available is None or plan.buffers(devices) * plan.nbytes <= available // HOST_SHARE
