"""Outputs: files that appear under their name once they are complete, and streams."""

import abc
import contextlib
import errno
import functools
import io
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.formats.atomic_files import create_temporary_file
from readmap.formats.file_errors import with_file_name
from readmap.formats.tmpfs import APPENDED_BYTES, MIN_BYTES, MIN_THREADS, MappedAppender, is_tmpfs

Format = TypeVar("Format")
Results = TypeVar("Results")

DESCRIPTORS = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}


class PendingOutput(Protocol):
    """An output file or folder that has not been committed."""

    def finish(self) -> None:
        """Write everything. Raises OSError that names the output."""

    def commit(self) -> None:
        """Finish the output if necessary and rename it to its path. Raises OSError as `finish` does."""


class ByteSink(abc.ABC):
    """An output of bytes; a context manager that aborts an output which has not been committed."""

    name: str
    from_device: bool = False  # `write_borrowed` accepts arrays on the device

    @abc.abstractmethod
    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Append all of `data`, contiguous and one byte an item; it may be overwritten after the return."""

    def write_borrowed(self, data: Any, release: Callable[[], None]) -> None:
        """Append all of `data`, uint8, and call `release` when it may be overwritten, possibly from another thread."""
        self.write(data)
        release()

    @abc.abstractmethod
    def finish(self) -> None:
        """Write all data and close the file, so that `commit` only renames it. Raises OSError that names the output."""

    @abc.abstractmethod
    def commit(self) -> None:
        """Finish the output if necessary and rename it to its path. Raises OSError as `finish` does."""

    @abc.abstractmethod
    def abort(self) -> None:
        """Close the output and remove a file that was not committed; never raises."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()


class _SharedUse:
    """A reference count that calls `close` when its owner has ended it and no thread is inside its context.

    If a thread closed a file during a write of another thread, that write could go to the next file with its number.
    """

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._lock = threading.Lock()
        self._users = 1  # the owner
        self._is_open = True

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_open:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._users += 1

    def __exit__(self, *_: object) -> None:
        self._drop_user()

    def end(self) -> None:
        """Refuse new users, and close now or after the last user. Raises what `close` raises."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
        if was_open:
            self._drop_user()

    def _drop_user(self) -> None:
        """Decrease the reference count, and call `close` if it is 0."""
        with self._lock:
            self._users -= 1
            is_last = not self._users
        if is_last:
            self._close()


class Output(ByteSink):
    """An open file or stream; a thread may abort it while another writes."""

    def __init__(self, name: str, descriptor: int, move: tuple[str, str] | None = None, threads: int = 1) -> None:
        """descriptor: closed with the output. move: the temporary and the final path. threads: at most, for writing."""
        self.name = name
        self._descriptor = descriptor
        self._move = move
        has_pages = move and threads >= MIN_THREADS and is_tmpfs(descriptor)
        self._pages = MappedAppender(descriptor, threads) if has_pages else None
        self._use = _SharedUse(self._close)
        # Keeps the temporary file locked: an unlocked one is removed by other runs.
        self._lock = os.dup(descriptor) if move else -1

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Append all of `data`. Raises BrokenPipeError if a pipe's reader is gone, or OSError that names the output."""
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        written = 0
        try:
            with self._use:
                if self._pages and len(view) >= MIN_BYTES:
                    self._pages.write(view)
                    return
                # Linux locks the file for each write: pwrite by 1 to 16 threads was no faster (tmpfs 4.3 GB/s, ext4
                # 6 GB/s).
                while written < len(view):
                    written += os.write(self._descriptor, view[written:])
        except OSError as error:
            raise with_file_name(error, self.name) from None

    def append(self, file: io.FileIO, size: int) -> int:
        """Copy up to `size` bytes of a file, from its offset, inside the kernel; return how many bytes were copied.

        A shared disk copies them without network traffic. The caller writes the rest, and gets any error from there.
        """
        copied = 0
        with contextlib.suppress(OSError), self._use:
            while copied < size and (count := self._append_some(file.fileno(), size - copied)):
                copied += count
        return copied

    def _append_some(self, source: int, size: int) -> int:
        if self._pages and size >= MIN_BYTES and (count := self._pages.append(source, min(size, APPENDED_BYTES))):
            return count
        return _copy_range(source, self._descriptor, size)

    def fileno(self) -> int:
        """Return the descriptor, for a subprocess that writes to it."""
        return self._descriptor

    def finish(self) -> None:
        try:
            self._use.end()
        except OSError as error:
            raise with_file_name(error, self.name) from None

    def commit(self) -> None:
        self.finish()
        try:
            if self._move:
                os.replace(*self._move)
                self._release()
        except OSError as error:
            raise with_file_name(error, self.name) from None

    def abort(self) -> None:
        """Close the output and remove a file that was not committed, completely even if interrupted."""
        try:
            self._abort()
        except KeyboardInterrupt:
            self._abort()
            raise

    def _abort(self) -> None:
        """Close the output and remove its temporary file; may be repeated, never raises OSError."""
        with contextlib.suppress(OSError):
            self._use.end()
        if self._move:
            with contextlib.suppress(OSError):
                os.unlink(self._move[0])
            self._release()

    def _release(self) -> None:
        self._move = None
        os.close(self._lock)

    def _close(self) -> None:
        try:
            if self._pages:
                self._pages.close()
        finally:
            os.close(self._descriptor)


def _copy_range(source: int, target: int, size: int) -> int:
    """Copy bytes with copy_file_range(2) and return how many were copied."""
    return os.copy_file_range(source, target, size) if _copies_ranges() else 0


@functools.cache
def _copies_ranges() -> bool:
    """Return True if copy_file_range(2) works as documented, from Linux 5.3 on, and Python's C library has it."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return hasattr(os, "copy_file_range") and found is not None and (int(found[1]), int(found[2])) >= (5, 3)


def format_by_ending(path: str | None, endings: Mapping[str, Format]) -> Format | None:
    """Return the format of a path's ending, ignoring case and .gz or .bgz after it; None if it is not in `endings`."""
    plain = (path or "").lower().removesuffix(".gz").removesuffix(".bgz")
    return endings.get(os.path.splitext(plain)[1])


def open_output(path: str | None, threads: int = 1) -> Output:
    """Open a path for writing; None and "-" are standard output.

    A regular file is written under a temporary name in the same folder, with the permissions of an ordinary open, and
    renamed by `commit`; the target of a symbolic link is replaced, not the link. Devices, pipes and /dev/stdout are
    written directly. threads: at most, where parallel writing is faster. Raises OSError if the path is a folder, or its
    folder is missing or not writable.
    """
    if path is None or path == "-":
        return _open_descriptor("standard output", 1)
    if match := re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", DESCRIPTORS.get(path, path)):
        return _open_descriptor(path, int(match[1]))
    existing = _open_existing(path)
    if existing is not None:
        status = os.fstat(existing)
        if not stat.S_ISREG(status.st_mode):
            return Output(path, existing)
        os.close(existing)
    target = os.path.realpath(path)
    try:
        descriptor, temporary = create_temporary_file(target)
    except OSError as error:
        raise with_file_name(error, path, f" (writing into {os.path.dirname(target)})") from None
    if existing is not None:
        # Not supported by all file systems, and only root may change the owner.
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
            os.fchown(descriptor, status.st_uid, status.st_gid)
    return Output(path, descriptor, (temporary, target), threads)


def _open_existing(path: str) -> int | None:
    """Open an existing path, to check that it is writable, without changing it; return None if nothing exists there."""
    try:
        return os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        if not os.path.basename(path):
            raise
        return None


def _open_descriptor(name: str, descriptor: int) -> Output:
    """Return an output to a copy of the descriptor, after flushing sys.stdout or sys.stderr if it is theirs."""
    for number, stream in enumerate((sys.stdout, sys.stderr), 1):
        if descriptor == number and stream is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), name)
        if descriptor == number:
            stream.flush()
    try:
        return Output(name, os.dup(descriptor))
    except OSError as error:
        raise with_file_name(error, name) from None


def commit_together(outputs: Sequence[PendingOutput]) -> None:
    """Finish all outputs, then commit them: if the disk fills up, none of them appears. The caller aborts them."""
    for output in outputs:
        output.finish()
    for output in outputs:
        output.commit()


@dataclass(frozen=True)
class RecordWriter(Generic[Results]):
    """Formats results as records; start and end: around all records, between: before each record but the first."""

    records: Callable[[Results], Iterable[bytes]]
    start: bytes = b""
    between: bytes = b""
    end: bytes = b""

    def write(self, results: Results, is_first: bool, write: Callable[[bytes], object]) -> None:
        """Write the records of some results, which have at least one; is_first: no records have been written yet."""
        write((b"" if is_first else self.between) + self.between.join(self.records(results)))


def json_array_writer(records: Callable[[Results], Iterable[bytes]]) -> RecordWriter[Results]:
    """Return the writer of a JSON array whose elements are the records."""
    return RecordWriter(records, b"[\n", b",\n", b"\n]\n")
