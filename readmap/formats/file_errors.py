"""OSErrors that name the file they are about."""

import contextlib
import io
import tokenize
from collections.abc import Iterator

#: What NumPy raises for an invalid .npy header, besides OSError and EOFError.
NPY_HEADER_ERRORS = (ValueError, SyntaxError, OverflowError, RecursionError, tokenize.TokenError)


def with_file_name(error: OSError, name: str, hint: str = "") -> OSError:
    """Return an OSError of the same subclass that names a file; hint: appended to the message."""
    return OSError(error.errno, f"{error.strerror}{hint}", name)


@contextlib.contextmanager
def file_name_context(name: str) -> Iterator[None]:
    """Add `name` to an OSError raised in the context without a file name, such as one from reading an open file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise with_file_name(error, name) from error


class NamedFile(io.FileIO):
    """A file whose read errors name it; `delivered` is the number of bytes read so far, also after closing."""

    def __init__(self, file: str | int, name: str = "") -> None:
        """file: a path, or a descriptor, which is not closed. name: for errors; default: the path."""
        self._name = name or str(file)
        self.delivered = 0
        super().__init__(file, closefd=isinstance(file, str))

    def read(self, size: int | None = -1) -> bytes:
        with file_name_context(self._name):
            data = super().read(size)
        self.delivered += len(data or b"")
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with file_name_context(self._name):
            count = super().readinto(buffer)
        self.delivered += count or 0
        return count
