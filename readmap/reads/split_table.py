"""The table of readmap split: where records start in files of reads, and from where their text can be inflated.

The table is a file of arrays (.npz) that also contains facts about the files as JSON, so it can be read on its own.
"""

import hashlib
import io
import json
import os
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.file_errors import NPY_HEADER_ERRORS, NamedFile
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.gzip_reader import read_fully
from readmap.formats.wording import pluralize
from readmap.version import __version__

FORMAT, VERSION = "readmap split", 1
CHECKED_BYTES = 1 << 16  # bytes at the start and at the end of a file that its checksum covers

#: Errors raised by a damaged file of arrays.
_PYTHON_ERRORS = MemoryError, EOFError, KeyError, TypeError, NotImplementedError
_DAMAGED = (*NPY_HEADER_ERRORS, *_PYTHON_ERRORS, zipfile.BadZipFile, zlib.error)

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class FileIdentity:
    """Identifies the contents of a file, not its name: size in bytes, and a checksum of its start and end."""

    size: int
    checksum: str


@dataclass(frozen=True)
class SplitFile:
    """Where the records of a file start."""

    name: str  # path as given
    identity: FileIdentity
    records: int
    text_bytes: int  # of decompressed text
    #: int64 [marks, 2], ascending: index of a record and offset of its first byte in the text. The first mark is the
    #: first record.
    marks: NDArray[np.int64]
    points: Sequence[AccessPoint] | None  # access points of gzip, ascending; None for a plain file
    is_whole: bool = True  # False if the rest of the file has not been scanned yet

    def mark_before(self, record: int) -> int:
        """Return the index of the last mark at or before a record."""
        return int(np.searchsorted(self.marks[:, 0], record, "right")) - 1

    def point_before(self, offset: int) -> AccessPoint | None:
        """Return the last access point at or before an offset of the text; None for a plain file."""
        if self.points is None:
            return None
        return self.points[bisect_right(self.points, offset, key=lambda point: point.text) - 1]


@dataclass(frozen=True)
class SplitTable:
    """The files described by a table. name: the table's name, for messages."""

    name: str
    files: tuple[SplitFile, ...]

    def find(self, path: str) -> SplitFile:
        """Return the entry of a file by its contents. Raises DataError if the table has no such file, and OSError."""
        identity = identify_file(path)
        if found := next((file for file in self.files if file.identity == identity), None):
            return found
        named = [file.name for file in self.files]
        shown = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")
        raise DataError(
            f"{self.name} does not describe {path} as it is now: it was made from {shown}; run readmap split again"
        )

    def to_bytes(self) -> bytes:
        """Return the table as bytes of a file; equal tables give equal bytes."""
        facts: JsonObject = {"format": FORMAT, "version": VERSION, "made_by": f"readmap {__version__}", "files": []}
        arrays: dict[str, Any] = {}
        for number, file in enumerate(self.files):
            identity = {"name": file.name, "bytes": file.identity.size, "checksum": file.identity.checksum}
            counts = {"records": file.records, "text_bytes": file.text_bytes}
            facts["files"].append({**identity, **counts, "is_gzip": file.points is not None})
            arrays[f"{number}.marks"] = file.marks
            if file.points is not None:
                windows = b"".join(point.window for point in file.points)
                arrays[f"{number}.points"] = _point_rows(file.points)
                arrays[f"{number}.windows"] = np.frombuffer(windows, np.uint8)
        arrays["facts"] = np.frombuffer(json.dumps(facts, indent=1).encode(), np.uint8)
        target = io.BytesIO()
        np.savez(target, **arrays)
        return target.getvalue()


def read_table(path: str) -> SplitTable:
    """Read a table of `readmap split`. Raises DataError if it is another file or version, or damaged; and OSError."""
    with NamedFile(path) as file:
        data = file.readall()
    try:
        if not data.startswith(b"PK\3\4"):
            raise ValueError("expected a file of arrays")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            facts = json.loads(bytes(arrays["facts"]))
            if facts["format"] != FORMAT:
                raise ValueError(f"its format is {facts['format']!r}")
            if facts["version"] != VERSION:
                found = f"has format version {facts['version']}, expected {VERSION}"
                raise DataError(f"{path} {found}: run readmap split again")
            files = tuple(_read_entry(each, number, arrays) for number, each in enumerate(facts["files"]))
    except _DAMAGED as error:
        raise DataError(f"{path}: not a table of readmap split, or damaged: {error}") from error
    return SplitTable(path, files)


def identify_file(path: str) -> FileIdentity:
    """Return the identity of a regular file. Raises OSError if it cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    with NamedFile(path) as file:
        size = os.fstat(file.fileno()).st_size
        for offset in (0, max(size - CHECKED_BYTES, 0)):
            file.seek(offset)
            digest.update(read_fully(file, CHECKED_BYTES))
    return FileIdentity(size, digest.hexdigest())


def check_equal_record_counts(paths: Sequence[str], files: Sequence[SplitFile]) -> None:
    """Raise DataError if two files of mates have different numbers of records."""
    (fewer, shorter), (more, longer) = sorted(zip([file.records for file in files], paths, strict=True))
    if fewer < more:
        counts = f"{shorter} has {pluralize(fewer, 'record')}, {longer} has {more:,}"
        raise DataError(f"{counts}: files of mates must have the same number of records")


def _point_rows(points: Sequence[AccessPoint]) -> NDArray[np.int64]:
    """Return int64 [points, 6]: text, bit, member, member_text and checksum of each point, and its window's end."""
    ends = np.cumsum([len(point.window) for point in points])
    rows = [[each.text, each.bit, each.member, each.member_text, each.checksum] for each in points]
    return np.column_stack([np.array(rows, np.int64).reshape(-1, 5), ends.astype(np.int64)])


def _read_entry(facts: JsonObject, number: int, arrays: Any) -> SplitFile:
    """Return entry `number` of a table from its JSON facts and arrays. Raises one of _DAMAGED if it is invalid."""
    marks = _check_ascending(arrays[f"{number}.marks"], 2)
    identity = FileIdentity(int(facts["bytes"]), str(facts["checksum"]))
    records, text = int(facts["records"]), int(facts["text_bytes"])
    points = _read_points(arrays, number) if facts["is_gzip"] else None
    if records < 0 or text < 0 or bool(records) != bool(len(marks)) or (records and marks[0, 0]):
        raise ValueError(f"file {number + 1} has {len(marks)} marks for {records} records")
    return SplitFile(str(facts["name"]), identity, records, text, marks, points)


def _read_points(arrays: Any, number: int) -> list[AccessPoint]:
    """Return the access points of entry `number` of a table. Raises ValueError if they are invalid."""
    rows, windows = _check_ascending(arrays[f"{number}.points"], 6), bytes(arrays[f"{number}.windows"])
    if not len(rows) or rows[0, 0]:
        raise ValueError(f"file {number + 1} has no access point at its first byte")
    points, start = [], 0
    for text, bit, member, member_text, checksum, end in rows.tolist():
        points.append(AccessPoint(text, bit, member, member_text, checksum, windows[start:end]))
        start = end
    return points


def _check_ascending(rows: NDArray[Any], columns: int) -> NDArray[np.int64]:
    """Return `rows` if they are int64 [*, columns], not negative, and ascend by column 0; else raise ValueError."""
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != columns or (rows < 0).any():
        raise ValueError(f"expected int64 [*, {columns}], found {rows.dtype} {list(rows.shape)}")
    if (np.diff(rows[:, 0]) <= 0).any():
        raise ValueError("its rows are not in ascending order")
    return rows
