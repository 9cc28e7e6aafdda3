"""Descriptions of invalid records."""

import re
from typing import Any, NamedTuple

import numpy as np

from readmap.backend.compilation.declarations import constant
from readmap.errors import DataError

#: Longer reads are an error: positions in a read have 16 bits, and so do the scores of 10,000 matches.
MAX_READ_LENGTH = 10_000

NO_HEADER, NO_SEPARATOR, QUALITY_LENGTH, NOT_A_BASE, TOO_LONG = (
    constant("reads/parsing.cu", name)
    for name in ("NO_HEADER", "NO_SEPARATOR", "QUALITY_LENGTH", "NOT_A_BASE", "TOO_LONG")
)
QUALITY_RANGE, MATE_NAMES, NOT_TAGS, NOT_A_NAME, OTHER_NAME = (
    constant("reads/parsing.cu", name)
    for name in ("QUALITY_RANGE", "MATE_NAMES", "NOT_TAGS", "NOT_A_NAME", "OTHER_NAME")
)
MAX_NAME_LENGTH = constant("reads/read_headers.cuh", "MAX_NAME_LENGTH")


class BadRecord(NamedTuple):
    """The first invalid read: its index among the reads of the chunk, and a RecordError of kernels/reads/parsing.cu."""

    read: int
    code: int


def describe(
    data: np.ndarray[Any, Any], record: int, code: int, lines_per_record: int, path: str, number: int
) -> DataError:
    """Return the error `code` of record `record` of a chunk's bytes: record `number`, 1-based, of file `path`."""
    header, sequence, *rest = record_lines(data, record, lines_per_record)
    if code == NO_HEADER:
        marker = "@" if lines_per_record == 4 else ">"
        return DataError(f"{path}, record {number}: expected a header starting with '{marker}', found {_shown(header)}")
    if code == NOT_A_NAME:
        name = re.split(rb"[ \t]", header[1:])[0]
        expected = f"expected a name of 1 to {MAX_NAME_LENGTH} characters from '!' to '~' without '@'"
        found = f"{len(name)}: {_shown(name)}" if len(name) > MAX_NAME_LENGTH else _shown(name) if name else "none"
        return DataError(f"{path}, record {number}: {expected}, found {found}")
    where = f"{path}, record {number} ({name_of(header)})"
    if code == NOT_TAGS:
        comment = header.split(maxsplit=1)[1]
        expected = "expected SAM tags such as RX:Z:ACGT, or an Illumina comment such as 1:N:0:ACGT, after the name"
        return DataError(f"{where}: {expected}, found {_shown(comment)}")
    return DataError(f"{where}: {_describe_fault(code, sequence, rest)}")


def record_lines(data: np.ndarray[Any, Any], record: int, lines_per_record: int) -> list[bytes]:
    """Return the lines of record `record` of a chunk's bytes, without line breaks."""
    lines = bytes(data).split(b"\n", (record + 1) * lines_per_record)[record * lines_per_record :][:lines_per_record]
    return [line.removesuffix(b"\r") for line in lines]


def read_name(header: bytes) -> bytes:
    """Return the first word of a header, without a trailing /1 or /2: the name that mates have in common."""
    name = b"".join(header[1:].split(maxsplit=1)[:1])
    return name[:-2] if len(name) > 2 and name.endswith((b"/1", b"/2")) else name


def name_of(header: bytes) -> str:
    """Return the first word of a header for messages."""
    words = header[1:].split()
    return words[0].decode("ascii", "replace") if words else "unnamed"


def _describe_fault(code: int, sequence: bytes, rest: list[bytes]) -> str:
    """Describe a RecordError of a record; rest: the lines after the sequence, '+' and qualities."""
    if code == NO_SEPARATOR:
        return f"expected a line starting with '+', found {_shown(rest[0])}"
    if code == OTHER_NAME:
        return f"expected nothing or the read name after '+', found {_shown(rest[0][1:])}"
    if code == QUALITY_LENGTH:
        return f"quality has {len(rest[1])} characters, sequence has {len(sequence)}"
    if code == TOO_LONG:
        return f"the read has {len(sequence)} bases; at most {MAX_READ_LENGTH} are supported"
    if code == NOT_A_BASE:
        at = next(i for i, base in enumerate(sequence.upper()) if base not in b"ACGTUNRYKMSWBDHV")
        return f"expected a nucleotide at base {at + 1}, found {_shown(sequence[at : at + 1])}"
    at = next(i for i, quality in enumerate(rest[1]) if not 33 <= quality <= 126)
    return f"expected a quality of '!' to '~' at base {at + 1}, found {_shown(rest[1][at : at + 1])}"


def _shown(text: bytes) -> str:
    return repr(text[:30].decode("ascii", "backslashreplace")) if text else "an empty line"
