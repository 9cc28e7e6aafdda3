"""The table of a split: where records begin in files of reads, and from where their text can be had.

It is one file of arrays (.npz) and the facts of the files in JSON, so that it is read where nothing else is known.
"""

from __future__ import annotations

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
from readmap.formats.gzip_reader import read_fully
from readmap.formats.gzip_access_points import AccessPoint
from readmap.formats.wording import pluralize
from readmap.version import __version__

FORMAT, VERSION = "readmap split", 1

#: Of the beginning and of the end of a file, what its checksum is of.
CHECKED_BYTES = 1 << 16

#: What a damaged file of arrays lets through.
_DAMAGED = (
    *NPY_HEADER_ERRORS,
    MemoryError,
    EOFError,
    KeyError,
    TypeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)

Record = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """What tells a file from others, whatever its name: bytes, and a checksum of the first and the last of them."""

    size: int
    checksum: str


@dataclass(frozen=True)
class SplitFile:
    """Where the records of a file begin.

    Attributes:
        name: as it was given.
        identity: of the file, as it lies there.
        records, text: how many there are, and bytes of text.
        marks: int64 [marks, 2], ascending: number of a record, from 0, and the offset of its first byte in the text.
            The first is that of the first record.
        points: of gzip, ascending; None of a plain file.
        is_whole: False where the file goes on, and was not split further yet.
    """

    name: str
    identity: Identity
    records: int
    text: int
    marks: NDArray[np.int64]
    points: Sequence[AccessPoint] | None
    is_whole: bool = True

    def mark_before(self, record: int) -> int:
        """The last of the marks that are not behind a record."""
        return int(np.searchsorted(self.marks[:, 0], record, "right")) - 1

    def point_before(self, offset: int) -> AccessPoint | None:
        """The last point that is not behind a place of the text; None of a plain file."""
        if self.points is None:
            return None
        return self.points[bisect_right(self.points, offset, key=lambda point: point.text) - 1]


@dataclass(frozen=True)
class SplitTable:
    """The files of a split. name: what messages call the table."""

    name: str
    files: tuple[SplitFile, ...]

    def find(self, path: str) -> SplitFile:
        """What the table has of a file; raises DataError where that is nothing, and OSError."""
        identity = identify(path)
        for file in self.files:
            if file.identity == identity:
                return file
        named = [file.name for file in self.files]
        shown = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")
        raise DataError(
            f"{self.name} is not the table of {path}, as it is now: it was made of {shown}; readmap split makes it anew"
        )

    def to_bytes(self) -> bytes:
        """The contents of its file, the same for the same files."""
        facts: Record = {"format": FORMAT, "version": VERSION, "made_by": f"readmap {__version__}", "files": []}
        arrays: dict[str, Any] = {}
        for number, file in enumerate(self.files):
            facts["files"].append(
                {
                    "name": file.name,
                    "bytes": file.identity.size,
                    "checksum": file.identity.checksum,
                    "records": file.records,
                    "text_bytes": file.text,
                    "is_gzip": file.points is not None,
                }
            )
            arrays[f"{number}.marks"] = file.marks
            if file.points is not None:
                windows = b"".join(point.window for point in file.points)
                arrays[f"{number}.points"] = _rows_of(file.points)
                arrays[f"{number}.windows"] = np.frombuffer(windows, np.uint8)
        arrays["facts"] = np.frombuffer(json.dumps(facts, indent=1).encode(), np.uint8)
        target = io.BytesIO()
        np.savez(target, **arrays)
        return target.getvalue()


def read_table(path: str) -> SplitTable:
    """The table in a file. Raises DataError where it is none, of another version, or damaged; and OSError."""
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
                raise DataError(f"{path} {found}: readmap split makes it anew")
            files = tuple(_file_of(each, number, arrays) for number, each in enumerate(facts["files"]))
    except _DAMAGED as error:
        raise DataError(f"{path}: no table of readmap split, or a damaged one: {error}") from error
    return SplitTable(path, files)


def identify(path: str) -> Identity:
    """What tells a regular file from others. Raises OSError where it cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    with NamedFile(path) as file:
        size = os.fstat(file.fileno()).st_size
        for place in (0, max(size - CHECKED_BYTES, 0)):
            file.seek(place)
            digest.update(read_fully(file, CHECKED_BYTES))
    return Identity(size, digest.hexdigest())


def check_equal_record_counts(paths: Sequence[str], files: Sequence[SplitFile]) -> None:
    """Raise DataError where two files of mates do not have as many records."""
    (few, shorter), (many, longer) = sorted(zip([file.records for file in files], paths, strict=True))
    if few < many:
        has = f"{shorter} has {pluralize(few, 'record')}, and {longer} {many - few:,} more"
        raise DataError(f"{has}: mates are as many")


def _rows_of(points: Sequence[AccessPoint]) -> NDArray[np.int64]:
    """int64 [points, 6]: the attributes of each, and where its window ends among all windows."""
    ends = np.cumsum([len(point.window) for point in points])
    rows = [[each.text, each.bit, each.member, each.member_text, each.checksum] for each in points]
    return np.column_stack([np.array(rows, np.int64).reshape(-1, 5), ends.astype(np.int64)])


def _file_of(facts: Record, number: int, arrays: Any) -> SplitFile:
    """Raises one of _DAMAGED where something is not as it must be."""
    marks = _ascending(arrays[f"{number}.marks"], 2)
    identity = Identity(int(facts["bytes"]), str(facts["checksum"]))
    records, text = int(facts["records"]), int(facts["text_bytes"])
    points = _points_of(arrays, number) if facts["is_gzip"] else None
    if records < 0 or text < 0 or bool(records) != bool(len(marks)) or (records and marks[0, 0]):
        raise ValueError(f"file {number + 1} has {len(marks)} marks for {records} records")
    return SplitFile(str(facts["name"]), identity, records, text, marks, points)


def _points_of(arrays: Any, number: int) -> list[AccessPoint]:
    rows, windows = _ascending(arrays[f"{number}.points"], 6), bytes(arrays[f"{number}.windows"])
    if not len(rows) or rows[0, 0]:
        raise ValueError(f"file {number + 1} has no point at its first byte")
    points, begin = [], 0
    for text, bit, member, member_text, checksum, end in rows.tolist():
        points.append(AccessPoint(text, bit, member, member_text, checksum, windows[begin:end]))
        begin = end
    return points


def _ascending(rows: NDArray[Any], columns: int) -> NDArray[np.int64]:
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != columns or (rows < 0).any():
        raise ValueError(f"expected int64 [*, {columns}], found {rows.dtype} {list(rows.shape)}")
    if (np.diff(rows[:, 0]) <= 0).any():
        raise ValueError("its rows are in no order")
    return rows
