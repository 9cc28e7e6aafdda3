"""Errors of the system, which name the file that they are about."""

from __future__ import annotations

import contextlib
import io
import tokenize
from collections.abc import Iterator

#: What NumPy's parser of an array's header lets through where it is none.
NPY_HEADER_ERRORS = (ValueError, SyntaxError, OverflowError, RecursionError, tokenize.TokenError)


def with_file_name(error: OSError, name: str, hint: str = "") -> OSError:
    """The same error, of the same class, about `name`."""
    return OSError(error.errno, f"{error.strerror}{hint}", name)


@contextlib.contextmanager
def file_name_context(name: str) -> Iterator[None]:
    """Meanwhile an error that names no file, as those of reading one that is open, is about `name`."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise with_file_name(error, name) from error


class NamedFile(io.FileIO):
    """A file whose errors of reading name it.

    delivered: bytes that have been read of it, to be seen by any thread, closed or not.
    """

    def __init__(self, file: str | int, called: str = "") -> None:
        """file: a path, or a descriptor that stays open. called: by errors; the path where it is not given."""
        self._called = called or str(file)
        self.delivered = 0
        super().__init__(file, closefd=isinstance(file, str))

    def read(self, size: int | None = -1) -> bytes:
        """As of every file."""
        with file_name_context(self._called):
            data = super().read(size)
        self.delivered += len(data or b"")
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """As of every file."""
        with file_name_context(self._called):
            count = super().readinto(buffer)
        self.delivered += count or 0
        return count
