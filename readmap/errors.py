"""The exceptions of readmap whose messages are written for users."""

import re
from collections.abc import Callable


class ReadmapError(Exception):
    """The base class of errors that a user can fix; the message is one line that names the cause."""


class DataError(ReadmapError):
    """Invalid contents of an input; the message names the file, the record, what was expected and what was found."""


class BackendError(ReadmapError):
    """A missing or failing device, driver or compiler; the message says what to install or to choose."""


class IndexFolderError(ReadmapError):
    """An index that is missing, damaged or of another format version."""


class DatabaseFolderError(ReadmapError):
    """A database folder that is missing, damaged or of another format version."""


class UsageError(ReadmapError):
    """An invalid option or argument, or options that contradict each other; a command exits with 2.

    The message may name an option by `option("sort_order")`: as text that is `sort_order`, the keyword in Python, and
    the command line replaces it by its own spelling.
    """

    def __init__(self, message: str) -> None:
        self._message = message
        super().__init__(self.spelled(lambda name: name))

    def spelled(self, spell: Callable[[str], str]) -> str:
        """Return the message with the name of each option replaced by `spell(name)`."""
        return re.sub("\0(\\w+)\0", lambda found: spell(found[1]), self._message)


def option(name: str) -> str:
    """Return the name of an option as a message of UsageError contains it."""
    return f"\0{name}\0"


class InternalError(Exception):
    """A contradiction inside readmap, which no user can fix; a command reports it as a bug."""
