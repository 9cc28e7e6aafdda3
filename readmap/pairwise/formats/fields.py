"""TSV and JSON output: the fields of a result by name."""

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

#: Decimals of an identity.
DIGITS = 6


def values(result: Result) -> tuple[Value, ...]:
    """Return the values of NAMES; positions are 1-based, inclusive. None: unknown, or absent in an empty result."""
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


def _known(position: int, offset: int = 0) -> int | None:
    return None if position < 0 else position + offset


def json_record(result: Result) -> bytes:
    """Return a JSON object in one line; null stands for a value that is unknown or absent."""
    return json.dumps(dict(zip(NAMES, values(result), strict=True))).encode()


TSV_HEADER = "\t".join(NAMES).encode() + b"\n"


def tsv_record(result: Result) -> bytes:
    """Return a line of the table; * stands for a value that is unknown or absent."""
    fields = ("*" if value is None else str(value) for value in values(result))
    return "\t".join(fields).encode() + b"\n"
