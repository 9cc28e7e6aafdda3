"""Output formats of comparisons."""

import functools
from collections.abc import Callable, Iterable
from enum import StrEnum

from readmap.formats.output import RecordWriter, json_array_writer
from readmap.pairwise.formats import records, text
from readmap.pairwise.results import Result, Results
from readmap.reads.sequences import Sequences


class ComparisonFormat(StrEnum):
    """An output format of a comparison."""

    SUMMARY = "summary"
    PAF = "paf"
    SAM = "sam"
    TSV = "tsv"
    JSON = "json"
    TEXT = "text"

    @property
    def needs_operations(self) -> bool:
        """Whether the format cannot represent a score without its alignment."""
        return self in (ComparisonFormat.PAF, ComparisonFormat.SAM, ComparisonFormat.TEXT)


ENDINGS = {f".{name}": ComparisonFormat(name) for name in ("paf", "sam", "tsv", "json")}
ENDINGS[".txt"] = ComparisonFormat.TEXT


def writer(format: ComparisonFormat, targets: Sequences, version: str, command_line: str) -> RecordWriter[Results]:
    """Return the writer of a format. Raise DataError if the format cannot represent the names of the targets."""
    if format is ComparisonFormat.SAM:
        return RecordWriter(_each(records.sam_record), records.sam_header(targets, version, command_line))
    if format is ComparisonFormat.JSON:
        return json_array_writer(_each(records.json_record))
    if format is ComparisonFormat.TSV:
        return RecordWriter(_each(records.tsv_record), records.TSV_HEADER)
    if format is ComparisonFormat.TEXT:
        return RecordWriter(text.records)
    return RecordWriter(_each(records.paf_record if format is ComparisonFormat.PAF else text.summary_record))


def _each(record: Callable[[Result], bytes]) -> Callable[[Results], Iterable[bytes]]:
    """Return a function that formats several results one by one."""
    return functools.partial(map, record)
