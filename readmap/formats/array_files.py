"""Arrays -> .npy files with checksums of their blocks, written by threads while the caller computes."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

#: The bytes of a block, uint8 [nbytes] -> their checksum.
Checksum = Callable[[NDArray[np.uint8]], int]
#: Bytes of a file that are allocated in one call: a failure of another file is noticed between two calls.
RESERVED_BYTES = 64 << 20
#: Errors of posix_fallocate if the file system does not support it: the C library would write zeros instead, for which
#: it needs a file that is open for reading.
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EBADF)


class ArraySource(Protocol):
    """An array, possibly not in host memory; several threads may read its bytes [start, end), uint8, at once."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def read_bytes(self, start: int, end: int) -> AbstractContextManager[NDArray[np.uint8]]: ...


class _HostArray:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.dtype, self.shape = array.dtype, array.shape
        self._bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def read_bytes(self, start: int, end: int) -> AbstractContextManager[NDArray[np.uint8]]:
        return contextlib.nullcontext(self._bytes[start:end])


class ArrayFiles:
    """Writes arrays to files of a folder, and computes the checksum of each block while it is in the cache.

    The end of the context cancels unfinished writes and ends the threads.
    """

    def __init__(
        self,
        path: Path,
        checksum: Checksum,
        block_bytes: int,
        threads: int,
        naming: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """naming: context for opening and writing files, which adds a name to an OSError."""
        self.path, self.naming = path, naming
        self.checksum, self.block_bytes = checksum, block_bytes
        self._pool = ThreadPoolExecutor(threads, "readmap-write")
        self._sinks: dict[str, ArraySink] = {}
        self._jobs: list[Future[None]] = []
        self._is_stopped = threading.Event()
        self._lock, self._is_ended = threading.Lock(), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # other threads must not open files in a folder that is being removed
            self._is_ended = True
        self._is_stopped.set()
        self._pool.shutdown(cancel_futures=True)
        for sink in self._sinks.values():
            with contextlib.suppress(OSError):
                sink.close()

    def add(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Start to write an array, which must not change until `close`."""
        self._create_sink(name, array.dtype, array.shape).write(0, array)

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> ArraySink:
        """Create the file of an array to be written in parts; return its sink. A thread reserves the disk space."""
        sink = self._create_sink(name, np.dtype(dtype), shape)
        self.submit(sink.reserve, self._is_stopped)
        return sink

    def close(self) -> dict[str, dict[str, Any]]:
        """Wait for all writes; return manifest entries by name. Raises their errors, ValueError for missing parts."""
        _wait_for_jobs(self._jobs)
        with self.naming():
            for sink in self._sinks.values():
                sink.close()  # a network file system may report a full disk here
        return {name: sink.manifest_entry() for name, sink in self._sinks.items()}

    def submit(self, function: Callable[..., None], *arguments: Any) -> Future[None]:
        """Run a function in a thread, unless an earlier call has failed."""
        self._jobs.append(self._pool.submit(self._run_unless_stopped, function, *arguments))
        return self._jobs[-1]

    def _run_unless_stopped(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function, unless an earlier call has failed; an error prevents all later calls."""
        if self._is_stopped.is_set():
            return
        try:
            with self.naming():
                function(*arguments)
        except BaseException:
            self._is_stopped.set()
            raise

    def _create_sink(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArraySink:
        """Create the file NAME.npy and its sink. Raises OSError after the end of the context."""
        with self._lock, self.naming():
            if self._is_ended:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._sinks[name] = ArraySink(self, self.path / f"{name}.npy", dtype, shape)
        return self._sinks[name]


class ArraySink:
    """The file of one array, in the format of np.save; its parts are written in any order, each element once."""

    def __init__(self, files: ArrayFiles, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.block_bytes = files.block_bytes
        self._files, self._dtype, self._shape = files, dtype, shape
        self._rows, *self._row = shape or (1,)  # a 0-dimensional array has one element
        self._row_bytes = math.prod(self._row) * dtype.itemsize
        self._missing = self._size = self._rows * self._row_bytes
        header = io.BytesIO()
        fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, fields)
        self._data_start = len(header.getvalue())
        self._sums = [0] * -(-self._size // self.block_bytes)
        # Incomplete blocks: their bytes, and the number of missing bytes.
        self._parts: dict[int, tuple[NDArray[np.uint8] | None, int]] = {}
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.ftruncate(self._file, self._data_start + self._size)
        files.submit(self._write_at, np.frombuffer(header.getvalue(), np.uint8), 0)

    def mapped(self) -> np.ndarray[Any, Any]:
        """Map the array from the file; it is complete once all parts have been written."""
        if not self._size:
            return np.empty(self._shape, self._dtype)
        return np.memmap(self._path, self._dtype, "r", self._data_start, self._shape)

    def write(self, start: int, rows: np.ndarray[Any, Any] | ArraySource) -> Callable[[], None]:
        """Start to write rows [start, start + len(rows)).

        Returns a function that waits until they have been written. rows must not change until then, except blocks that
        several calls contribute to, which are copied. The returned function raises errors of writing. Not thread-safe.
        """
        if isinstance(rows, np.ndarray):
            rows = _HostArray(np.atleast_1d(rows))
        if rows.dtype != self._dtype or [*rows.shape[1:]] != self._row or start + rows.shape[0] > self._rows:
            raise ValueError(f"found {rows.dtype} {rows.shape} at row {start}, expected {self._dtype} {self._shape}")
        position, size = start * self._row_bytes, rows.shape[0] * self._row_bytes
        self._missing -= size
        jobs, end = list[Future[None]](), 0
        while end < size:
            block, offset = divmod(position + end, self.block_bytes)
            begin, end = end, min(end + self.block_bytes - offset, size)
            if end - begin == self._block_size(block):
                jobs.append(self._files.submit(self._write_rows, block, rows, begin, end))
                continue
            with rows.read_bytes(begin, end) as part:
                complete = self._add_part(block, offset, part)
            if complete is not None:
                jobs.append(self._files.submit(self._write_block, block, complete))
        return lambda: _wait_for_jobs(jobs)

    def reserve(self, is_stopped: threading.Event) -> None:
        """Allocate disk space for the file, if the file system can, until `is_stopped` is set. Raises OSError."""
        end = self._data_start + self._size
        for start in range(0, end, RESERVED_BYTES):
            if is_stopped.is_set():
                return
            try:
                os.posix_fallocate(self._file, start, min(RESERVED_BYTES, end - start))
            except OSError as error:
                if error.errno in _CANNOT_RESERVE:
                    return
                raise

    def manifest_entry(self) -> dict[str, Any]:
        """Return dtype, shape, bytes of the file and checksums of the written array."""
        if self._missing:
            raise ValueError(f"{self._missing} of {self._size} bytes have not been written")
        size = self._data_start + self._size
        return {"dtype": str(self._dtype), "shape": list(self._shape), "bytes": size, "checksums": self._sums}

    def close(self) -> None:
        """Close the file if it is open; no thread may still write to it. Raises OSError."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def _block_size(self, block: int) -> int:
        return min(self.block_bytes, self._size - block * self.block_bytes)

    def _add_part(self, block: int, offset: int, part: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """Store a part of a block; return the bytes of the block if it is complete, else None."""
        size = self._block_size(block)
        held, missing = self._parts.pop(block, (None, size))
        held = np.empty(size, np.uint8) if held is None else held
        held[offset : offset + len(part)] = part
        if missing > len(part):
            self._parts[block] = held, missing - len(part)
            return None
        return held

    def _write_rows(self, block: int, rows: ArraySource, start: int, end: int) -> None:
        with rows.read_bytes(start, end) as data:
            self._write_block(block, data)

    def _write_block(self, block: int, data: NDArray[np.uint8]) -> None:
        self._sums[block] = self._files.checksum(data)
        self._write_at(data, self._data_start + block * self.block_bytes)

    def _write_at(self, data: NDArray[np.uint8], offset: int) -> None:
        while len(data):
            count = os.pwrite(self._file, data.data, offset)
            data, offset = data[count:], offset + count


def _wait_for_jobs(jobs: Sequence[Future[None]]) -> None:
    """Wait for all jobs, with one wait that a signal can interrupt, and raise the first error."""
    wait(jobs)
    for job in jobs:
        job.result()
