"""Output formats of scans."""

import functools
from enum import StrEnum

from readmap.database.database import Database
from readmap.database.formats import json_array, sam, tab, text
from readmap.database.results import QueryHits
from readmap.errors import UsageError
from readmap.formats.alphabets import Alphabet
from readmap.formats.output import RecordWriter, json_array_writer


class ScanFormat(StrEnum):
    """An output format of a scan."""

    TAB = "tab"
    TEXT = "text"
    JSON = "json"
    SAM = "sam"


ENDINGS = {
    **{".tsv": ScanFormat.TAB, ".tab": ScanFormat.TAB, ".m8": ScanFormat.TAB},
    **{".txt": ScanFormat.TEXT, ".json": ScanFormat.JSON, ".sam": ScanFormat.SAM},
}


def writer(
    format: ScanFormat, database: Database, version: str, command_line: str, columns: tuple[str, ...] = tab.STANDARD
) -> RecordWriter[QueryHits]:
    """Return the writer of a format; columns: names of the columns of TAB.

    Raises UsageError if the format does not support proteins, DataError if it does not allow the names of the subjects.
    """
    if format is ScanFormat.SAM:
        if database.molecule != Alphabet.NUCLEOTIDES:
            raise UsageError("--format sam: SAM is for nucleotides, but the database contains proteins")
        return RecordWriter(sam.records, sam.header(database, version, command_line))
    if format is ScanFormat.JSON:
        return json_array_writer(json_array.records)
    if format is ScanFormat.TEXT:
        return RecordWriter(text.records)
    return RecordWriter(functools.partial(tab.records, columns=columns))
