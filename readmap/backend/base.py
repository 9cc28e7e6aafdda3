"""What a backend is: arrays on a device, and kernels launched over items."""

from __future__ import annotations

import abc
import contextlib
import functools
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from readmap.backend.buffers import Buffer, BufferPool
from readmap.backend.compilation import cache
from readmap.backend.compilation.declarations import constant
from readmap.backend.compilation.signatures import Bound, Signature, Types, signature, variant
from readmap.backend.compilation.sources import modules
from readmap.backend.device_counts import Count, capacity_of
from readmap.errors import BackendError

#: A NumPy array on the CPU, a CuPy array on the GPU.
Array = Any


@dataclass(frozen=True)
class Kernel:
    """A kernel by name: `module` is the file kernels/<module>.cu, `name` an entry point in it."""

    module: str
    name: str

    @functools.cached_property
    def signature(self) -> Signature:
        """The declaration in the source: what takes an item, then parameter names and types in order."""
        return signature(self.module, self.name)


_SUM = Kernel("common/inclusive_sum", "sum_blocks")
_FILL = Kernel("common/inclusive_sum", "fill_sums")
_LASTS = Kernel("common/inclusive_sum", "last_sums")
_SUM_BLOCK = constant("common/inclusive_sum.cu", "BLOCK")


class Backend(abc.ABC):
    """A device that holds arrays and runs kernels over the items 0 <= item < count.

    Attributes:
        name: what a user calls it, `cpu` or `cuda:N`.
        xp: the array module, numpy or cupy.
        few: elements up to which NumPy is quicker than a launch; -1 where not even empty arrays are the host's.
        host_sees_counts: whether the host reads what a kernel counted without waiting for it.
        lanes: reads whose packed words are interleaved, so that a warp reads neighbouring words; a power of two.
        lanes_16bit, lanes_32bit: alignments that an item of a 16-bit or 32-bit alignment kernel scores, by
            kernels/common/simd_lanes.cuh.
        traceback_lanes: alignments that an item of a kernel traces.
        max_table_bases: first bases that a prefix table resolves at most which is made where an index is loaded.
        scratch_bytes: memory that a stage may take for what it drops again.
        chunk_bytes: bytes of reads that are mapped together, where no plan for several devices says otherwise.
        concurrent_chunks: so many of these, each by a thread of its own.
        host_bytes: memory of the host that the device's driver and libraries take.
        device_errors: what is raised where the device fails, which others then do without.
        memory_error: what is raised where the device's memory does not suffice.
        threads: of the host, for whatever runs there.
        groups: of threads that work at once, for kernels whose items are given to groups.
        resident_warps: groups that work at once and do not share what they compute with, so that all go at one pace.
        seconds_per_module: that a module takes to be compiled, about, where many are.
    """

    name: str
    xp: ModuleType
    few: int
    host_sees_counts: bool
    lanes: int
    lanes_16bit: int
    lanes_32bit: int
    traceback_lanes: int
    max_table_bases: int
    scratch_bytes: int
    chunk_bytes: int
    concurrent_chunks: int
    host_bytes: int
    device_errors: tuple[type[Exception], ...]
    memory_error: type[Exception]
    threads: int
    groups: int
    resident_warps: int
    seconds_per_module: float

    @property
    def lane_bits(self) -> int:
        """The power of two that `lanes` is."""
        return self.lanes.bit_length() - 1

    @abc.abstractmethod
    def thread_stream(self) -> contextlib.AbstractContextManager[object]:
        """While the calling thread is in it, what it launches and copies waits for itself alone, not for others'."""

    @abc.abstractmethod
    def use_thread_stream(self) -> None:
        """The same for all that the calling thread does from now on."""

    @abc.abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """An array of undefined contents on the device."""

    @abc.abstractmethod
    def host_buffer(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """A uint8 array in host memory from which copies to the device are fastest."""

    @abc.abstractmethod
    def cache_host_buffers(self, most: int) -> None:
        """Keep up to so many bytes of those that are let go of, where new ones take their time."""

    @abc.abstractmethod
    def host_array(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """An array of undefined contents in the host's memory, which the device's kernels reach, at the link's pace."""

    @abc.abstractmethod
    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """The array on the device; on the CPU the array itself."""

    @abc.abstractmethod
    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        """The bytes of all parts, uint8, behind each other on the device; on the CPU a single part itself."""

    @abc.abstractmethod
    def hold(self, array: np.ndarray[Any, Any]) -> Array:
        """The array where kernels read it fastest at random places: device memory, or large pages of the host's."""

    @abc.abstractmethod
    def bring(self, array: Array) -> Array:
        """The array on this device, wherever a device of the same kind has it; whoever wrote it has synchronized."""

    @abc.abstractmethod
    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """The array as NumPy's, once all launches before have ended."""

    @abc.abstractmethod
    def receive(self, target: np.ndarray[Any, Any], array: Array) -> None:
        """Copy an array into one of the host's, of its size and dtype, once all launches before have ended."""

    @abc.abstractmethod
    def download(self, array: Array, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        """A buffer of the pool, held once, to which the bytes of a uint8 array are under way, and what waits for them.

        The array may be on another device of the kind; it is whole, and stays until its bytes are there.
        """

    def memory(self) -> tuple[int, int] | None:
        """Free bytes and all bytes of the device's own memory that may be used; None where it shares the host's."""
        return None

    @abc.abstractmethod
    def release_memory(self) -> None:
        """Give back what freed arrays still keep."""

    @abc.abstractmethod
    def run(self, kernel: Kernel, types: Types, count: Count, arguments: list[Bound]) -> None:
        """Launch the variant of a kernel that `types` names, with checked arguments, over items that there may be."""

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Wait until all launches have ended."""

    @abc.abstractmethod
    def is_compiled(self, module: str, types: Types) -> bool:
        """Whether the cache holds a module's variant for this device."""

    @abc.abstractmethod
    def compile(self, module: str, types: Types) -> None:
        """Have the cache hold it."""

    def prepare(self, types: Types, rooms: Collection[str], report: Callable[[str], None]) -> None:
        """Compile what is not there of some rooms, several modules at once; `report` hears of it first."""
        wanted = [module for module in modules(for_gpu=self.lanes > 1) if module.split("/")[0] in rooms]
        needed = [(module, variant(module, types)) for module in wanted]
        if all(self.is_compiled(*item) for item in needed):
            return
        if refusal := cache.chosen().refusal:
            report(f"warning: compiled code is kept for this run alone: {refusal}")
        with cache.alone(report):
            missing = [item for item in needed if not self.is_compiled(*item)]
            if missing:
                seconds, place = max(round(self.seconds_per_module * len(missing)), 1), cache.folder()
                count = f"{len(missing)} modules of kernels for {self.name}"
                report(f"compiling {count}: this is done once, takes about {seconds} s, and is kept in {place}")
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(lambda item: self.compile(*item), missing))

    @abc.abstractmethod
    def preload(self, types: Types, rooms: Sequence[str]) -> None:
        """Have the kernels of some rooms ready soon, while the caller does something else."""

    def full(self, shape: int | tuple[int, ...], value: int, dtype: Any) -> Array:
        """An array on the device filled with one value."""
        array = self.empty(shape, dtype)
        array.fill(value)
        return array

    def copy(self, array: Array) -> Array:
        """The same in another array of this device."""
        held = self.empty(array.shape, array.dtype)
        self.put(held, array)
        return held

    def put(self, target: Array, source: Array) -> None:
        """Copy an array into one of its shape and dtype, or into a part of one.

        The source may be another device's of the same kind, where whoever wrote it has synchronized.
        Raises TypeError where shapes or dtypes differ, or one is not contiguous.
        """
        if target.shape != source.shape or target.dtype != source.dtype:
            into, given = (f"{array.dtype} {array.shape}" for array in (target, source))
            raise TypeError(f"expected {into}, as what is copied into has, found {given}")
        if not (target.flags.c_contiguous and source.flags.c_contiguous):
            raise TypeError("what is copied, or what it is copied into, is not contiguous")
        self._put(target, source)

    def _put(self, target: Array, source: Array) -> None:
        """The copy, byte for byte."""
        target[...] = source

    def launch(self, kernel: Kernel, items: Count, /, **arguments: Any) -> None:
        """Run a kernel over `items` items, with arguments named as its parameters are, for as many as there may be.

        Raises TypeError for an argument that is not as declared: another dtype, extent or row width, an array that is
        not contiguous or lies elsewhere, an integer out of range, a name too many or too few.
        """
        most = capacity_of(items)
        types, bound = kernel.signature.bind(arguments, most, self.xp.ndarray)
        if most > 0:
            self.run(kernel, types, items, bound)

    def inclusive_sum(self, counts: Array) -> Array:
        """The inclusive prefix sum of int64 counts; the host does not wait for it."""
        size = len(counts)
        if size <= self.few:
            return np.cumsum(counts)
        blocks = -(-size // _SUM_BLOCK)
        ends, sums = self.empty(size, np.int64), self.empty(blocks, np.int64)
        if blocks > 1:
            self.launch(_SUM, blocks, counts=counts, sums=sums, size=size)
            sums = self.inclusive_sum(sums)
        self.launch(_FILL, blocks, counts=counts, sums=sums, ends=ends, size=size)
        return ends

    def ends(self, counts: Array) -> tuple[Array, int]:
        """The inclusive prefix sum of int64 counts, and their total."""
        ends = self.inclusive_sum(counts)
        return ends, self.total(ends)

    def total(self, ends: Array) -> int:
        """The last of some prefix sums, 0 where there is none."""
        return int(self.to_host(ends[-1:])[0]) if len(ends) else 0

    def lasts(self, *sums: tuple[Array, int]) -> list[int]:
        """The last of each row of some prefix sums, int64, and how many rows they have, of as many; 0 where those are
        empty."""
        lasts, end = self.full(sum(rows for _, rows in sums), 0, np.int64), 0
        for ends, rows in sums:
            begin, end = end, end + rows
            self.copy_row_ends(ends, lasts[begin:end])
        return self.to_host(lasts).tolist()  # type: ignore[no-any-return]

    def copy_row_ends(self, ends: Array, lasts: Array) -> None:
        """The same of one of them, into int64 [rows] on the device, which stays as it is where there are no sums."""
        if not len(ends):
            return
        if len(ends) <= self.few:
            lasts[...] = ends.reshape(len(lasts), -1)[:, -1]
        else:
            self.launch(_LASTS, len(lasts), ends=ends, lasts=lasts, row_size=len(ends) // len(lasts))


def unavailable(device: str, reason: str) -> BackendError:
    """The error for a device that cannot be used."""
    return BackendError(f"device {device} cannot be used: {reason}")
