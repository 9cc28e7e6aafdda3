"""PAF output, as minimap2 writes it with -c --eqx; empty alignments have no line."""

from __future__ import annotations

from readmap.pairwise.results import Result

#: Mapping quality that stands for "unknown" in PAF and SAM.
UNKNOWN = 255


def record(result: Result) -> bytes:
    """Return the PAF line of a result, or b"" if nothing is aligned."""
    if result.is_empty:
        return b""
    return b"%b\t%d\t%d\t%d\t%c\t%b\t%d\t%d\t%d\t%d\t%d\t%d\tNM:i:%d\tAS:i:%d\tcg:Z:%b\n" % (
        result.query_name,
        len(result.query),
        result.query_start,
        result.query_end,
        ord(result.strand),
        result.target_name,
        len(result.target),
        result.target_start,
        result.target_end,
        result.equal,
        result.columns,
        UNKNOWN,
        result.different + result.gaps,
        result.score,
        result.cigar,
    )
