"""A table with a header line and a line a pair; * stands for what is unknown or not there."""

from __future__ import annotations

from readmap.pairwise.formats.fields import NAMES, values
from readmap.pairwise.results import Result

HEADER = "\t".join(NAMES).encode() + b"\n"


def record(result: Result) -> bytes:
    """A line."""
    fields = ("*" if value is None else str(value) for value in values(result))
    return "\t".join(fields).encode() + b"\n"
