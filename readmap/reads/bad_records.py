"""Faults of records, in words."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from readmap.backend.compilation.declarations import constant
from readmap.errors import DataError

#: Longer reads are an error: positions in a read are kept in 16 bits, and scores of 10,000 matches fit in them.
MAX_READ_LENGTH = 10_000

NO_HEADER, NO_SEPARATOR, QUALITY_LENGTH, NOT_A_BASE, TOO_LONG = (
    constant("reads/parsing.cu", name)
    for name in ("NO_HEADER", "NO_SEPARATOR", "QUALITY_LENGTH", "NOT_A_BASE", "TOO_LONG")
)
QUALITY_RANGE, MATE_NAMES, NOT_TAGS, NOT_A_NAME, OTHER_NAME = (
    constant("reads/parsing.cu", name) for name in ("QUALITY_RANGE", "MATE_NAMES", "NOT_TAGS", "NOT_A_NAME", "OTHER_NAME")
)
LONGEST_NAME = constant("reads/read_names.cuh", "LONGEST_NAME")


class BadRecord(NamedTuple):
    """The first bad record: its place in the order of the reads, and what is wrong with it."""

    place: int
    code: int


def describe(
    data: np.ndarray[Any, Any], record: int, code: int, lines_a_record: int, path: str, number: int
) -> DataError:
    """The error of record `record` of a chunk's bytes; `number` is what a user calls it, from 1."""
    header, sequence, *rest = record_lines(data, record, lines_a_record)
    if code == NO_HEADER:
        marker = "@" if lines_a_record == 4 else ">"
        return DataError(
            f"{path}, record {number}: expected a header that begins with '{marker}', found {_shown(header)}"
        )
    if code == NOT_A_NAME:
        name = re.split(rb"[ \t]", header[1:])[0]
        expected = f"expected a name of 1 to {LONGEST_NAME} characters of '!' to '~', not '@'"
        found = f"{len(name)}: {_shown(name)}" if len(name) > LONGEST_NAME else _shown(name) if name else "none"
        return DataError(f"{path}, record {number}: {expected}, found {found}")
    place = f"{path}, record {number} ({name_of(header)})"
    if code == NOT_TAGS:
        comment = header.split(maxsplit=1)[1]
        expected = "expected tags such as RX:Z:ACGT behind the name, or Illumina's 1:N:0:ACGT"
        return DataError(f"{place}: {expected}, found {_shown(comment)}")
    return DataError(f"{place}: {_complaint(code, sequence, rest)}")


def record_lines(data: np.ndarray[Any, Any], record: int, lines_a_record: int) -> list[bytes]:
    """The lines of record `record` of a chunk's bytes, without line breaks."""
    lines = bytes(data).split(b"\n", (record + 1) * lines_a_record)[record * lines_a_record :][:lines_a_record]
    return [line.removesuffix(b"\r") for line in lines]


def read_name(header: bytes) -> bytes:
    """The name that mates have in common: the header's first word, without /1 or /2 unless that is all."""
    name = b"".join(header[1:].split(maxsplit=1)[:1])
    return name[:-2] if len(name) > 2 and name.endswith((b"/1", b"/2")) else name


def name_of(header: bytes) -> str:
    """The name of a record in messages."""
    words = header[1:].split()
    return words[0].decode("ascii", "replace") if words else "unnamed"


def _complaint(code: int, sequence: bytes, rest: list[bytes]) -> str:
    if code == NO_SEPARATOR:
        return f"expected a line that begins with '+', found {_shown(rest[0])}"
    if code == OTHER_NAME:
        return f"expected nothing behind '+', or the read's name again, found {_shown(rest[0][1:])}"
    if code == QUALITY_LENGTH:
        return f"quality has {len(rest[1])} characters, sequence has {len(sequence)}"
    if code == TOO_LONG:
        return f"the read has {len(sequence)} bases, at most {MAX_READ_LENGTH} are mapped"
    if code == NOT_A_BASE:
        at = next(i for i, base in enumerate(sequence.upper()) if base not in b"ACGTUNRYKMSWBDHV")
        return f"expected a nucleotide at base {at + 1}, found {_shown(sequence[at : at + 1])}"
    at = next(i for i, quality in enumerate(rest[1]) if not 33 <= quality <= 126)
    return f"expected a quality of '!' to '~' at base {at + 1}, found {_shown(rest[1][at : at + 1])}"


def _shown(text: bytes) -> str:
    return repr(text[:30].decode("ascii", "backslashreplace")) if text else "an empty line"
