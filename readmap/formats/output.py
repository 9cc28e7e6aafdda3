"""Where results go: a file that appears under its name when it is whole, or a stream."""

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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from readmap.formats.atomic_files import create_temporary_file
from readmap.formats.file_errors import with_file_name
from readmap.formats.tmpfs import APPENDED_BYTES, MIN_BYTES, MIN_THREADS, MappedAppender, is_tmpfs

Format = TypeVar("Format")

DESCRIPTORS = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}


class PendingOutput(Protocol):
    """An output, a file or a folder, that has no name yet."""

    def finish(self) -> None:
        """Writes all of it. Raises OSError that names the output."""

    def commit(self) -> None:
        """Gives it its name, after `finish` if need be. Raises OSError as that does."""


class ByteSink(abc.ABC):
    """What results are written to; a context manager that aborts what has not been committed.

    name: what messages call it. from_device: whether what is lent may be an array on the device.
    """

    name: str
    from_device: bool = False

    @abc.abstractmethod
    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Appends all of `data`, contiguous and one byte an item; on return it may be overwritten."""

    def write_borrowed(self, data: Any, done: Callable[[], None]) -> None:
        """Appends all of `data`, uint8, which may be overwritten once `done` has been called."""
        self.write(data)
        done()

    @abc.abstractmethod
    def finish(self) -> None:
        """Writes all that is held back and closes what is behind, so that `commit` has little left that can fail.

        Raises OSError that names the output; then it is still to be aborted.
        """

    @abc.abstractmethod
    def commit(self) -> None:
        """Ends the output, which is whole, after `finish` if need be. Raises OSError as that does."""

    @abc.abstractmethod
    def abort(self) -> None:
        """Ends the output and removes a file that was not committed; raises nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()


class _Use:
    """The use of what threads share until it is closed: at once, or by the last of them that is still in it.

    A file that another thread closed under a write would let go its number, and the write would go into whatever file
    gets that next.
    """

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._lock = threading.Lock()
        self._users = 1  # whoever is to close it
        self._is_open = True

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_open:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._users += 1

    def __exit__(self, *_: object) -> None:
        self._leave()

    def end(self) -> None:
        """Let nobody in any more. Raises what closing does."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
        if was_open:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            is_last = not self._users
        if is_last:
            self._close()


class Output(ByteSink):
    """An open file or stream; a thread may abort it while another writes.

    name: what messages call it: the path, or "standard output".
    """

    def __init__(self, name: str, descriptor: int, move: tuple[str, str] | None = None, threads: int = 1) -> None:
        """descriptor: closed in the end. move: a temporary path and the final one. threads: that may write."""
        self.name = name
        self._descriptor = descriptor
        self._move = move
        has_pages = move and threads >= MIN_THREADS and is_tmpfs(descriptor)
        self._pages = MappedAppender(descriptor, threads) if has_pages else None
        self._use = _Use(self._close)
        # What is not locked any more, another run takes for abandoned.
        self._lock = os.dup(descriptor) if move else -1

    def write(self, data: memoryview | bytes | NDArray[np.uint8]) -> None:
        """Appends all of `data`, contiguous and one byte an item; on return it may be overwritten.

        Raises BrokenPipeError where nobody reads any more, and OSError that names the output (the disk is full).
        """
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        written = 0
        try:
            with self._use:
                if self._pages and len(view) >= MIN_BYTES:
                    self._pages.write(view)
                    return
                # One thread: Linux lets only one write to a file at a time, so that several, with pwrite, were no
                # faster (tmpfs 4.3 GB/s, ext4 6 GB/s, with 1 to 16 threads).
                while written < len(view):
                    written += os.write(self._descriptor, view[written:])
        except OSError as error:
            raise with_file_name(error, self.name) from None

    def append(self, file: io.FileIO, size: int) -> int:
        """Have the system copy bytes of a file, from where it is on, which a shared disk does without sending them; how
        many it has copied. The caller writes what is left: there it hears of what is wrong."""
        copied = 0
        with contextlib.suppress(OSError), self._use:
            while copied < size and (count := self._appended(file.fileno(), size - copied)):
                copied += count
        return copied

    def _appended(self, source: int, size: int) -> int:
        if self._pages and size >= MIN_BYTES and (count := self._pages.append(source, min(size, APPENDED_BYTES))):
            return count
        return _copy_range(source, self._descriptor, size)

    def fileno(self) -> int:
        """The descriptor, for a process that writes in the caller's place."""
        return self._descriptor

    def finish(self) -> None:
        """Closes the output. Raises OSError that names it; then it is still to be aborted."""
        try:
            self._use.end()
        except OSError as error:
            raise with_file_name(error, self.name) from None

    def commit(self) -> None:
        """Closes the output; a file takes its final name, and the place of what had it.

        Raises OSError that names the output; then it is still to be aborted.
        """
        self.finish()
        try:
            if self._move:
                os.replace(*self._move)
                self._release()
        except OSError as error:
            raise with_file_name(error, self.name) from None

    def abort(self) -> None:
        """Closes the output and removes a file that was not committed; what a stream was given is not taken back.

        An interrupt waits until that is done.
        """
        try:
            self._abort()
        except KeyboardInterrupt:
            self._abort()
            raise

    def _abort(self) -> None:
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
    """How many bytes the system has copied from one file to the other."""
    return os.copy_file_range(source, target, size) if _copies_ranges() else 0


@functools.cache
def _copies_ranges() -> bool:
    """Whether it can: from Linux 5.3 on what it says holds, and Python has it where its own C library does."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return hasattr(os, "copy_file_range") and found is not None and (int(found[1]), int(found[2])) >= (5, 3)


def format_by_ending(path: str | None, endings: Mapping[str, Format]) -> Format | None:
    """The format by which an output's name ends, in whatever case, whether or not that is compressed; endings: the
    known ones."""
    plain = (path or "").lower().removesuffix(".gz").removesuffix(".bgz")
    return endings.get(os.path.splitext(plain)[1])


def open_output(path: str | None, threads: int = 1) -> Output:
    """The output at `path`; standard output where that is None or "-".

    A regular file is written under a temporary name beside it, with the permissions that an ordinary open would give,
    and gets its name by `commit`; a symbolic link's target is replaced, not the link. Devices, pipes and /dev/stdout
    are written as the bytes come.
    threads: that write, where several are faster.
    Raises OSError where that is a folder, or the file's folder is missing or not writable.
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
        # Some file systems know neither, and only root may give a file to its former owner.
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
            os.fchown(descriptor, status.st_uid, status.st_gid)
    return Output(path, descriptor, (temporary, target), threads)


def _open_existing(path: str) -> int | None:
    """A descriptor of what is there, unchanged, so that it is known to be writable; None where nothing is."""
    try:
        return os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        if not os.path.basename(path):
            raise
        return None


def _open_descriptor(name: str, descriptor: int) -> Output:
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
    """Gives all outputs their names, once all of them are written: a full disk leaves none of them behind.

    Raises what their `finish` and `commit` raise; then they are still to be aborted.
    """
    for output in outputs:
        output.finish()
    for output in outputs:
        output.commit()
