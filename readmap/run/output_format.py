"""What a search writes, by --format or by the ending of -o."""

from __future__ import annotations

import os
from enum import StrEnum

from readmap.formats.output import format_by_ending


class Kind(StrEnum):
    """The output: records as text, in blocks or as CRAM, or tables of occurrences."""

    SAM = "sam"
    BAM = "bam"
    CRAM = "cram"
    TSV = "tsv"
    BED = "bed"


#: Of records in the order of the reads or sorted, and of tables.
BINARY, TABLES = (Kind.BAM, Kind.CRAM), (Kind.TSV, Kind.BED)

ENDINGS = {f".{kind}": kind for kind in Kind}


def kind_by_ending(path: str | None) -> Kind | None:
    """What the ending of an output's name says, in whatever case; None where it says nothing."""
    return format_by_ending(path, ENDINGS)


def is_unknown(path: str | None) -> bool:
    """Whether an output's name ends as no output does; standard output, devices and pipes may be called anything."""
    if path is None or kind_by_ending(path) or (os.path.exists(path) and not os.path.isfile(path)):
        return False
    name = os.path.basename(path).lower()
    return bool(os.path.splitext(name.removesuffix(".gz").removesuffix(".bgz"))[1])
