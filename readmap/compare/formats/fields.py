"""What is told of a result by name: the columns of a table, and the members of a JSON object."""

from __future__ import annotations

from readmap.compare.results import Result

Value = str | int | float | None

#: Digits of an identity behind the point.
DIGITS = 6


def fields(result: Result) -> dict[str, Value]:
    """Places are 1-based and inclusive; None is what is unknown, or is not there where no letters are aligned."""
    identity = result.identity
    return {
        "query": _text(result.query_name),
        "query_length": len(result.query),
        "query_start": _known(result.query_start, 1),
        "query_end": _known(result.query_end),
        "strand": None if result.is_empty else result.strand,
        "target": _text(result.target_name),
        "target_length": len(result.target),
        "target_start": _known(result.target_start, 1),
        "target_end": _known(result.target_end),
        "score": result.score,
        "identity": None if identity is None else round(identity, DIGITS),
        "columns": result.columns or None,
        "gap_openings": result.openings if result.cigar else None,
        "gap_letters": result.gaps if result.cigar else None,
        "cigar": result.cigar.decode() or None,
    }


NAMES = (
    "query",
    "query_length",
    "query_start",
    "query_end",
    "strand",
    "target",
    "target_length",
    "target_start",
    "target_end",
    "score",
    "identity",
    "columns",
    "gap_openings",
    "gap_letters",
    "cigar",
)


def _known(place: int, from_one: int = 0) -> int | None:
    return None if place < 0 else place + from_one


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
