"""The format of a search's output, chosen by name or by the ending of the output's path."""

import os
from enum import StrEnum

from readmap.formats.output import format_by_ending


class OutputFormat(StrEnum):
    """The format of an output: alignment records, or tables of exact occurrences."""

    SAM = "sam"
    BAM = "bam"
    CRAM = "cram"
    TSV = "tsv"
    BED = "bed"


#: Formats that can be sorted, and formats of an exact search only.
BINARY, TABLES = (OutputFormat.BAM, OutputFormat.CRAM), (OutputFormat.TSV, OutputFormat.BED)

ENDINGS = {f".{kind}": kind for kind in OutputFormat}


def output_format_of(path: str | None) -> OutputFormat | None:
    """Return the format that a path's ending names, in upper or lower case, or None."""
    return format_by_ending(path, ENDINGS)


def has_unknown_ending(path: str | None) -> bool:
    """Return True if a path has an ending that names no format; streams and devices may have any name."""
    if path is None or output_format_of(path) or (os.path.exists(path) and not os.path.isfile(path)):
        return False
    name = os.path.basename(path).lower()
    return bool(os.path.splitext(name.removesuffix(".gz").removesuffix(".bgz"))[1])
