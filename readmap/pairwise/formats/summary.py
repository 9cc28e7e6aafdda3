"""What a person wants to know of an alignment, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from readmap.formats.wording import decode_name
from readmap.pairwise.results import Result


def record(result: Result) -> bytes:
    """The lines of one result, and a blank one."""
    return "".join(f"{label:<10} {text}\n" for label, text in lines(result)).encode() + b"\n"


def lines(result: Result) -> Iterator[tuple[str, str]]:
    """Labels and what they stand for; places are 1-based and inclusive."""
    yield "query", _sequence(result.query_name, len(result.query), result.query_start, result.query_end)
    yield "target", _sequence(result.target_name, len(result.target), result.target_start, result.target_end)
    if result.is_empty:
        yield "score", f"{result.score:,}, nothing aligned"
        return
    yield "strand", "reverse, the query's reverse complement" if result.reverse else "forward"
    yield "score", f"{result.score:,}"
    if result.identity is None:
        return
    yield "identity", f"{result.identity:.2%} of {result.columns:,} columns: {result.different:,} differ"
    letters = f" of {result.gaps:,} letters: {result.inserted:,} of the query, {result.deleted:,} of the target"
    yield "gaps", f"{result.gap_openings:,}{letters if result.gaps else ''}"


def _sequence(name: bytes, length: int, start: int, end: int) -> str:
    text = f"{decode_name(name)}, {length:,} letters"
    if start < 0 and end < 0:
        return text
    parts = [f"from {start + 1:,}"] if start >= 0 else []
    return f"{text}, aligned {' '.join([*parts, f'to {end:,}' if end >= 0 else 'on'])}"
