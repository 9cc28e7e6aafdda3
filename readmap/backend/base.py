"""The interface of a backend: arrays on a device, and kernels launched over items."""

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
from readmap.backend.compilation.signatures import Bound, GenericTypes, Signature, signature, variant
from readmap.backend.compilation.sources import modules
from readmap.backend.device_counts import Count, capacity_of
from readmap.errors import BackendError

Array = Any  # a NumPy array on the CPU, a CuPy array on the GPU


@dataclass(frozen=True)
class Kernel:
    """The kernel `name` in the file kernels/<module>.cu."""

    module: str
    name: str

    @functools.cached_property
    def signature(self) -> Signature:
        return signature(self.module, self.name)


_REDUCE = Kernel("common/inclusive_sum", "reduce_blocks")
_SCAN = Kernel("common/inclusive_sum", "scan_blocks")
_ROW_ENDS = Kernel("common/inclusive_sum", "copy_row_ends")
_SCAN_BLOCK = constant("common/inclusive_sum.cu", "BLOCK")


class Backend(abc.ABC):
    """A device that stores arrays and runs kernels over the items 0 <= item < count. The defaults are the CPU's."""

    name: str  # the device as given to --device, `cpu` or `cuda:N`
    xp: ModuleType  # the array module, numpy or cupy
    host_threshold: int  # elements up to which NumPy is faster than a launch; -1 if host code never computes
    host_sees_counts: bool  # the host can read a count that a kernel wrote without waiting
    #: Threads of a warp, WARP_WIDTH of kernels/common/portable.cuh; 1 on the CPU. The packed words of warp_width reads
    #: are interleaved, so that the threads of a warp load neighbouring words.
    warp_width: int
    lanes_16bit: int  # alignments that one item of a 16-bit alignment kernel scores, see common/simd_lanes.cuh
    lanes_32bit: int  # alignments that one item of a 32-bit alignment kernel scores
    traceback_lanes: int  # alignments that one item of a traceback kernel processes
    max_table_bases: int  # maximum prefix length of the prefix table that is built when an index is loaded
    scratch_bytes: int  # memory that a stage may use temporarily
    chunk_bytes: int  # bytes of reads mapped together, unless a plan for several devices says otherwise
    concurrent_chunks: int  # chunks mapped at once, each by a thread of its own
    driver_host_bytes: int  # host memory used by the device's driver and libraries
    device_errors: tuple[type[Exception], ...]  # of a failing device, without which the other devices go on
    memory_error: type[Exception]  # raised if device memory is exhausted
    threads: int  # of the host
    concurrent_warps: int  # warps needed to keep the device busy
    resident_warps: int  # warps that run at once without sharing an execution unit, and so at equal speed
    seconds_per_module: float  # approximate compile time of a module when many are compiled

    @property
    def warp_bits(self) -> int:
        """The binary logarithm of warp_width."""
        return self.warp_width.bit_length() - 1

    def thread_stream(self) -> contextlib.AbstractContextManager[object]:
        """Return a context in which the calling thread uses a stream of its own; its exit waits for that stream."""
        return contextlib.nullcontext()

    def use_thread_stream(self) -> None:  # noqa: B027
        """Give the calling thread a stream of its own until it ends."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Allocate an uninitialized array on the device."""
        return self.xp.empty(shape, dtype)

    def host_buffer(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Allocate host memory from which copies to the device are fastest, uint8 [size]."""
        return np.empty(size, np.uint8)

    def cache_host_buffers(self, max_bytes: int) -> None:  # noqa: B027
        """Set how many bytes of freed host buffers are cached, if their allocation is slow."""

    def host_array(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Allocate an uninitialized array in host memory that kernels access over the link (zero-copy)."""
        return self.empty(shape, dtype)

    @abc.abstractmethod
    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """Return the array on the device; on the CPU the array itself."""

    @abc.abstractmethod
    def upload(self, parts: Sequence[np.ndarray[Any, Any]]) -> Array:
        """Concatenate uint8 arrays on the device; on the CPU return a single part itself."""

    def to_device_random_access(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy the array to where random access is fastest: device memory, or huge pages of the host."""
        return self.to_device(array)

    def copy_from_peer(self, array: Array) -> Array:
        """Return the array on this device; it may be on another device of the kind, whose writers have synchronized."""
        return array

    @abc.abstractmethod
    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return the array as a NumPy array, after all earlier launches."""

    @abc.abstractmethod
    def copy_to_host(self, target: np.ndarray[Any, Any], array: Array) -> None:
        """Copy the array into a host array of the same size and dtype, after all earlier launches."""

    @abc.abstractmethod
    def download(self, array: Array, pool: BufferPool) -> tuple[Buffer, Callable[[], None]]:
        """Start copying a uint8 array to a buffer of the pool; return the buffer and a function that waits for it.

        The array may be on another device of the kind. It must be complete, and stay alive until the copy has ended.
        """

    def memory(self) -> tuple[int, int] | None:
        """Return (free bytes, total bytes) of the usable device memory; None if the device uses the host's memory."""
        return None

    def release_memory(self) -> None:  # noqa: B027
        """Free the cached memory of deleted arrays."""

    @abc.abstractmethod
    def run(self, kernel: Kernel, types: GenericTypes, count: Count, arguments: list[Bound]) -> None:
        """Launch a kernel, compiled for the generic types `types`, over `count` items with checked arguments."""

    def synchronize(self) -> None:  # noqa: B027
        """Wait until all launches have ended."""

    @abc.abstractmethod
    def is_compiled(self, module: str, types: GenericTypes) -> bool:
        """Return True if the cache contains a module's variant for this device."""

    @abc.abstractmethod
    def compile(self, module: str, types: GenericTypes) -> None:
        """Compile a module's variant into the cache, if it is missing."""

    def compile_missing(self, types: GenericTypes, folders: Collection[str], report: Callable[[str], None]) -> None:
        """Compile the modules of some folders of kernels/ that are not cached, in parallel; first report how long."""
        wanted = [module for module in modules(for_gpu=self.warp_width > 1) if module.split("/")[0] in folders]
        variants = [(module, variant(module, types)) for module in wanted]
        if all(self.is_compiled(*item) for item in variants):
            return
        if refusal := cache.choose_folder().refusal:
            report(f"warning: compiled kernels are kept for this run only: {refusal}")
        with cache.compile_lock(report):
            missing = [item for item in variants if not self.is_compiled(*item)]
            if missing:
                seconds = max(round(self.seconds_per_module * len(missing)), 1)
                report(
                    f"compiling {len(missing)} modules of kernels for {self.name}: "
                    f"done once, takes about {seconds} s, kept in {cache.folder()}"
                )
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(lambda item: self.compile(*item), missing))

    def preload(self, types: GenericTypes, folders: Sequence[str]) -> None:  # noqa: B027
        """Load the kernels of some folders in the background."""

    def full(self, shape: int | tuple[int, ...], value: int, dtype: Any) -> Array:
        """Allocate an array on the device, filled with one value."""
        array = self.empty(shape, dtype)
        array.fill(value)
        return array

    def copy(self, array: Array) -> Array:
        self.copy_into(target := self.empty(array.shape, array.dtype), array)
        return target

    def copy_into(self, target: Array, source: Array) -> None:
        """Copy an array into an array, or a part of one, of the same shape and dtype.

        The source may be on another device of the kind whose writers have synchronized. Raises TypeError if shapes or
        dtypes differ, or an array is not contiguous.
        """
        if target.shape != source.shape or target.dtype != source.dtype:
            expected = f"{target.dtype} {target.shape}, as the target has"
            raise TypeError(f"expected {expected}, found {source.dtype} {source.shape}")
        if not (target.flags.c_contiguous and source.flags.c_contiguous):
            raise TypeError("the source or the target of a copy is not contiguous")
        self._copy_into(target, source)

    def _copy_into(self, target: Array, source: Array) -> None:
        target[...] = source

    def launch(self, kernel: Kernel, items: Count, /, **arguments: Any) -> None:
        """Run a kernel over `items` items, with arguments named as the kernel's parameters.

        Raises TypeError if an argument is not as declared: unknown or missing name, wrong dtype, extent or row width,
        array not contiguous or not on the device, integer out of range.
        """
        capacity = capacity_of(items)
        types, bound = kernel.signature.bind(arguments, capacity, self.xp.ndarray)
        if capacity > 0:
            self.run(kernel, types, items, bound)

    def inclusive_sum(self, counts: Array) -> Array:
        """Return the inclusive prefix sum of int64 counts, asynchronously."""
        size = len(counts)
        if size <= self.host_threshold:
            return np.cumsum(counts)
        blocks = -(-size // _SCAN_BLOCK)
        ends, sums = self.empty(size, np.int64), self.empty(blocks, np.int64)
        if blocks > 1:
            self.launch(_REDUCE, blocks, counts=counts, sums=sums, size=size)
            sums = self.inclusive_sum(sums)
        self.launch(_SCAN, blocks, counts=counts, sums=sums, ends=ends, size=size)
        return ends

    def inclusive_sum_with_total(self, counts: Array) -> tuple[Array, int]:
        """Return the inclusive prefix sum of int64 counts, and their total, for which the host waits."""
        ends = self.inclusive_sum(counts)
        return ends, self.total(ends)

    def total(self, ends: Array) -> int:
        """Return the last element of an inclusive prefix sum, 0 if it is empty."""
        return int(self.to_host(ends[-1:])[0]) if len(ends) else 0

    def row_ends(self, *sums: tuple[Array, int]) -> list[int]:
        """Return the last element of each row of pairs (int64 array, number of equal rows); 0 for an empty array."""
        lasts, end = self.full(sum(rows for _, rows in sums), 0, np.int64), 0
        for ends, rows in sums:
            start, end = end, end + rows
            self.copy_row_ends(ends, lasts[start:end])
        return self.to_host(lasts).tolist()  # type: ignore[no-any-return]

    def copy_row_ends(self, ends: Array, lasts: Array) -> None:
        """Copy the last element of each row of `ends`, int64, to `lasts`, int64 [rows]; nothing if `ends` is empty."""
        if not len(ends):
            return
        if len(ends) <= self.host_threshold:
            lasts[...] = ends.reshape(len(lasts), -1)[:, -1]
        else:
            self.launch(_ROW_ENDS, len(lasts), ends=ends, lasts=lasts, row_size=len(ends) // len(lasts))


def unavailable(device: str, reason: str) -> BackendError:
    return BackendError(f"device {device} cannot be used: {reason}")
