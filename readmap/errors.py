"""The errors that readmap raises for a user to read."""


class ReadmapError(Exception):
    """Something that the user can mend; the message is one line that says what and where."""


class DataError(ReadmapError):
    """An input's contents are wrong: the message names file, record, what was expected and what was found."""


class BackendError(ReadmapError):
    """A device, its driver or a compiler is missing or fails: the message says what to install or to choose."""


class IndexFolderError(ReadmapError):
    """An index is absent, of another version, or damaged."""


class DatabaseFolderError(ReadmapError):
    """A database's folder is absent, of another version, or damaged."""


class UsageError(ReadmapError):
    """Options that contradict each other or name nothing; a command exits with 2."""


class InternalError(Exception):
    """readmap contradicts itself, which no user can mend: a command reports it as the bug that it is."""
