"""Arrays -> .npy files, written by threads while the next ones are made, with the checksums of their blocks."""

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

#: Of the bytes of a block, uint8 [nbytes].
Checksum = Callable[[NDArray[np.uint8]], int]

#: Bytes of a file that are reserved together: few enough for a failure elsewhere to be heard.
RESERVED_BYTES = 64 << 20

#: What a file system says that does not reserve: the C library would then write zeros, and look before what is there,
#: in a file that is not open for reading.
_RESERVES_NOTHING = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EBADF)


class ArraySource(Protocol):
    """An array that may be elsewhere, of whose bytes some are here at a time.

    bytes: a context in which those from one to before another one are here, uint8; any thread may enter it.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def bytes(self, begin: int, end: int) -> AbstractContextManager[NDArray[np.uint8]]: ...


class _HostArray:
    """An array that is in the host's memory."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.dtype, self.shape = array.dtype, array.shape
        self._bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def bytes(self, begin: int, end: int) -> AbstractContextManager[NDArray[np.uint8]]:
        return contextlib.nullcontext(self._bytes[begin:end])


class ArrayFiles:
    """The files of a folder's arrays; a context manager, whose end drops what is not written yet and ends the threads.

    A block is summed and written by one thread, while it is in the cache.
    """

    def __init__(
        self,
        path: Path,
        checksum: Checksum,
        block_bytes: int,
        threads: int,
        naming: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """naming: in which files are opened and written, to name what an OSError is about."""
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
        with self._lock:  # whoever goes on meanwhile opens no file in a folder that is removed
            self._is_ended = True
        self._is_stopped.set()
        self._pool.shutdown(cancel_futures=True)
        for sink in self._sinks.values():
            with contextlib.suppress(OSError):
                sink.close()

    def add(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Begin to write an array, which is to stay as it is until `close`."""
        self._open(name, array.dtype, array.shape).write(0, array)

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> ArraySink:
        """A file of that size, reserved meanwhile, for an array that comes in parts."""
        sink = self._open(name, np.dtype(dtype), shape)
        self.submit(sink.reserve, self._is_stopped)
        return sink

    def close(self) -> dict[str, dict[str, Any]]:
        """Wait until all is written; of each array, in the order in which they came, its facts for a manifest.

        They are its dtype, its shape, the file's bytes and the blocks' checksums, ints. Raises what a thread met first,
        OSError or what the checksum raises, and ValueError where parts of an array are missing.
        """
        _wait(self._jobs)
        with self.naming():
            for sink in self._sinks.values():
                sink.close()  # where a file system over a network may say that its disk is full
        return {name: sink.facts() for name, sink in self._sinks.items()}

    def submit(self, function: Callable[..., None], *arguments: Any) -> Future[None]:
        """Have a thread call it; nothing is begun any more once a call failed."""
        self._jobs.append(self._pool.submit(self._run, function, *arguments))
        return self._jobs[-1]

    def _run(self, function: Callable[..., None], *arguments: Any) -> None:
        if self._is_stopped.is_set():
            return
        try:
            with self.naming():
                function(*arguments)
        except BaseException:
            self._is_stopped.set()
            raise

    def _open(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArraySink:
        with self._lock, self.naming():
            if self._is_ended:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._sinks[name] = ArraySink(self, self.path / f"{name}.npy", dtype, shape)
        return self._sinks[name]


class ArraySink:
    """The file of one array, as np.save writes it, whose parts come in any order, each element once.

    block_bytes: that are read and written together.
    """

    def __init__(self, files: ArrayFiles, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.block_bytes = files.block_bytes
        self._files, self._dtype, self._shape = files, dtype, shape
        self._rows, *self._row = shape or (1,)  # an array without dimensions has one element
        self._row_bytes = math.prod(self._row) * dtype.itemsize
        self._missing = self._size = self._rows * self._row_bytes
        header = io.BytesIO()
        facts = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, facts)
        self._begin = len(header.getvalue())
        self._sums = [0] * -(-self._size // self.block_bytes)
        # Blocks that came in part: their bytes, and how many of them are missing.
        self._parts: dict[int, tuple[NDArray[np.uint8] | None, int]] = {}
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.ftruncate(self._file, self._begin + self._size)
        files.submit(self._write_at, np.frombuffer(header.getvalue(), np.uint8), 0)

    def mapped(self) -> np.ndarray[Any, Any]:
        """The array as it is in the file, whole once all of it is written."""
        if not self._size:
            return np.empty(self._shape, self._dtype)
        return np.memmap(self._path, self._dtype, "r", self._begin, self._shape)

    def write(self, start: int, rows: np.ndarray[Any, Any] | ArraySource) -> Callable[[], None]:
        """Begin to write rows [start, start + len(rows)). Returns what waits until these may be changed, or raises.

        rows: of the sink's dtype and of its shape but for the first extent; any number of them, from any row on. A
        block that several writings share is copied. One thread at a time may call this.
        """
        if isinstance(rows, np.ndarray):
            rows = _HostArray(np.atleast_1d(rows))
        if rows.dtype != self._dtype or [*rows.shape[1:]] != self._row or start + rows.shape[0] > self._rows:
            raise ValueError(f"{rows.dtype} {rows.shape} from {start} on, for {self._dtype} {self._shape}")
        place, size = start * self._row_bytes, rows.shape[0] * self._row_bytes
        self._missing -= size
        jobs, end = list[Future[None]](), 0
        while end < size:
            block, offset = divmod(place + end, self.block_bytes)
            begin, end = end, min(end + self.block_bytes - offset, size)
            if end - begin == self._bytes_of(block):
                jobs.append(self._files.submit(self._write_rows, block, rows, begin, end))
                continue
            with rows.bytes(begin, end) as part:
                whole = self._joined(block, offset, part)
            if whole is not None:
                jobs.append(self._files.submit(self._write_block, block, whole))
        return lambda: _wait(jobs)

    def reserve(self, is_stopped: threading.Event) -> None:
        """Take the file's room on the disk, or raise OSError."""
        end = self._begin + self._size
        for place in range(0, end, RESERVED_BYTES):
            if is_stopped.is_set():
                return
            try:
                os.posix_fallocate(self._file, place, min(RESERVED_BYTES, end - place))
            except OSError as error:
                if error.errno in _RESERVES_NOTHING:
                    return
                raise

    def facts(self) -> dict[str, Any]:
        """Of the array that is written: dtype, shape, bytes of the file, checksums."""
        if self._missing:
            raise ValueError(f"{self._missing} of {self._size} bytes are missing")
        size = self._begin + self._size
        return {"dtype": str(self._dtype), "shape": list(self._shape), "bytes": size, "checksums": self._sums}

    def close(self) -> None:
        """Close the file, to which no thread writes any more, unless it is closed. Raises OSError."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def _bytes_of(self, block: int) -> int:
        return min(self.block_bytes, self._size - block * self.block_bytes)

    def _joined(self, block: int, offset: int, part: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """The bytes of a block where this part of them, from the offset on, is all that was missing."""
        size = self._bytes_of(block)
        held, missing = self._parts.pop(block, (None, size))
        held = np.empty(size, np.uint8) if held is None else held
        held[offset : offset + len(part)] = part
        if missing > len(part):
            self._parts[block] = held, missing - len(part)
            return None
        return held

    def _write_rows(self, block: int, rows: ArraySource, begin: int, end: int) -> None:
        with rows.bytes(begin, end) as data:
            self._write_block(block, data)

    def _write_block(self, block: int, data: NDArray[np.uint8]) -> None:
        self._sums[block] = self._files.checksum(data)
        self._write_at(data, self._begin + block * self.block_bytes)

    def _write_at(self, data: NDArray[np.uint8], place: int) -> None:
        while len(data):
            count = os.pwrite(self._file, data.data, place)
            data, place = data[count:], place + count


def _wait(jobs: Sequence[Future[None]]) -> None:
    """Wait for all of them at one place, where a signal is heard; raises what the first of them raised."""
    wait(jobs)
    for job in jobs:
        job.result()
