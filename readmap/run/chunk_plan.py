"""Memory of the devices and of the host -> how large chunks of reads are, and how many a device maps at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from readmap.backend import Backend
from readmap.backend.machine import available_memory

#: Device memory that a byte of reads takes on its way through the stages, measured on reads of 100 to 300 bases.
WORKING_BYTES = 20

#: Buffers beside those of the chunks that are mapped: so many are being filled, and so many wait for each device.
FILLED, WAITING = 1, 1

#: Below this chunks are not made smaller beforehand: what does not fit is halved when it fails.
LEAST_CHUNK = 1 << 20

#: The part of the host's available memory that buffers of larger chunks may take; those of GPUs are page-locked.
HOST_SHARE = 4


class ChunkPlan(NamedTuple):
    """So many chunks that each device maps at once, of so many bytes of reads at most."""

    at_once: int
    nbytes: int

    @property
    def working_bytes(self) -> int:
        """Memory of a device that they take on their way through the stages."""
        return self.at_once * self.nbytes * WORKING_BYTES

    def buffers(self, devices: int) -> int:
        """How many chunks the host holds for so many devices."""
        return FILLED + (WAITING + self.at_once) * devices


#: Of several devices, whose threads share Python's lock: larger chunks want it less often, and one more hides that
#: others wait for it.
BESIDE_OTHERS = ChunkPlan(3, 768 << 20)


def plan_chunks(backends: Sequence[Backend], needed: int = 0, is_sorted: bool = False) -> ChunkPlan:
    """What each of some devices maps, which are of one kind, as far as their free memory goes.

    needed: of that, by what is still to be put there. is_sorted: whether records are, for which the first device keeps
    what is left.
    """
    one, memory = backends[0], [held[0] for backend in backends if (held := backend.memory())]
    if not memory:
        return ChunkPlan(one.concurrent_chunks, one.chunk_bytes)
    free = min(memory) - needed
    larger = _fitting(BESIDE_OTHERS, free)
    if len(memory) > 1 and not is_sorted and larger.nbytes >= one.chunk_bytes and _host_holds(larger, len(memory)):
        return larger
    return _fitting(ChunkPlan(one.concurrent_chunks, one.chunk_bytes), free)


def _fitting(plan: ChunkPlan, free: int) -> ChunkPlan:
    """The same, with smaller chunks where a device has too little memory for them."""
    return plan._replace(nbytes=min(plan.nbytes, max(free // (WORKING_BYTES * plan.at_once), LEAST_CHUNK)))


def _host_holds(plan: ChunkPlan, devices: int) -> bool:
    available = available_memory()
    return available is None or plan.buffers(devices) * plan.nbytes <= available // HOST_SHARE
