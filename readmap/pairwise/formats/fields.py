"""The fields of a result by name: the columns of a table, and the members of a JSON object."""

from __future__ import annotations

import json

from readmap.formats.wording import decode_name
from readmap.pairwise.results import Result

Value = str | int | float | None

NAMES = (
    *("query", "query_length", "query_start", "query_end", "strand"),
    *("target", "target_length", "target_start", "target_end"),
    *("score", "identity", "columns", "gap_openings", "gap_letters", "cigar"),
)

#: Digits of an identity behind the point.
DIGITS = 6


def values(result: Result) -> tuple[Value, ...]:
    """One for each name; places are 1-based and inclusive. None is what is unknown, or not there in an empty result."""
    return (
        decode_name(result.query_name),
        len(result.query),
        _known(result.query_start, 1),
        _known(result.query_end),
        None if result.is_empty else result.strand,
        decode_name(result.target_name),
        len(result.target),
        _known(result.target_start, 1),
        _known(result.target_end),
        result.score,
        None if result.identity is None else round(result.identity, DIGITS),
        result.columns or None,
        result.gap_openings if result.cigar else None,
        result.gaps if result.cigar else None,
        result.cigar.decode() or None,
    )


def _known(place: int, from_one: int = 0) -> int | None:
    return None if place < 0 else place + from_one


def json_record(result: Result) -> bytes:
    """An object, in one line."""
    return json.dumps(dict(zip(NAMES, values(result), strict=True))).encode()


TSV_HEADER = "\t".join(NAMES).encode() + b"\n"


def tsv_record(result: Result) -> bytes:
    """A line."""
    fields = ("*" if value is None else str(value) for value in values(result))
    return "\t".join(fields).encode() + b"\n"
