"""How the hits of a query are written: a module a format."""

from __future__ import annotations

import functools
from enum import StrEnum

from readmap.database.database import Database
from readmap.database.formats import json_array, sam, tab, text
from readmap.database.results import QueryHits
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.formats.output import RecordWriter, json_array_writer


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


def writer(
    format: ScanFormat,
    database: Database,
    version: str,
    command_line: str,
    columns: tuple[str, ...] = tab.STANDARD,
) -> RecordWriter[QueryHits]:
    """The writer of a format.

    columns: of a table, as parse_columns gives them.
    Raises UsageError where the format has no proteins, DataError where it cannot keep the subjects apart.
    """
    if format is ScanFormat.SAM:
        if database.molecule != Alphabet.NUCLEOTIDES:
            raise UsageError("--format sam: SAM holds nucleotides, and this is a database of proteins")
        return RecordWriter(sam.records, sam.header(database, version, command_line))
    if format is ScanFormat.JSON:
        return json_array_writer(json_array.records)
    if format is ScanFormat.TEXT:
        return RecordWriter(text.records)
    return RecordWriter(functools.partial(tab.records, columns=columns))
