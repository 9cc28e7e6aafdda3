"""How the hits of a query are written: a module a format."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from readmap.database.formats import json_array, sam, tab, text
from readmap.database.results import NUCLEOTIDE, Results, Subjects
from readmap.errors import UsageError


class ScanFormat(StrEnum):
    """What is written of a scan."""

    TAB = "tab"
    TEXT = "text"
    JSON = "json"
    SAM = "sam"


ENDINGS = {
    **{".tsv": ScanFormat.TAB, ".tab": ScanFormat.TAB, ".m8": ScanFormat.TAB},
    **{".txt": ScanFormat.TEXT, ".json": ScanFormat.JSON, ".sam": ScanFormat.SAM},
}


def format_by_ending(path: str | None) -> ScanFormat | None:
    """The format by which an output's name ends."""
    plain = (path or "").removesuffix(".gz").removesuffix(".bgz")
    return ENDINGS.get(os.path.splitext(plain)[1])


@dataclass(frozen=True)
class Writer:
    """What stands before, between and behind the records of the queries, and what makes one."""

    record: Callable[[Results], bytes]
    begin: bytes = b""
    between: bytes = b""
    end: bytes = b""

    def write(self, results: Results, is_first: bool, write: Callable[[bytes], object]) -> None:
        """Write what was found with a query. is_first: whether none has been written before."""
        write((b"" if is_first else self.between) + self.record(results))


def writer(
    format: ScanFormat,
    subjects: Subjects,
    version: str,
    command_line: str,
    columns: tuple[str, ...] = tab.STANDARD,
) -> Writer:
    """The writer of a format.

    columns: of a table, as parse_columns gives them.
    Raises UsageError where the format has no proteins, DataError where it cannot keep the subjects apart.
    """
    if format is ScanFormat.SAM:
        if subjects.molecule != NUCLEOTIDE:
            raise UsageError("--format sam: SAM holds nucleotides, and this is a database of proteins")
        return Writer(sam.record, sam.header(subjects, version, command_line))
    if format is ScanFormat.JSON:
        return Writer(json_array.record, json_array.BEGIN, json_array.BETWEEN, json_array.END)
    if format is ScanFormat.TEXT:
        return Writer(text.record)
    return Writer(functools.partial(tab.record, columns=columns))
