"""BLAST's tabular output: a line per hit, without a header; positions are 1-based, inclusive.

A hit on the reverse strand has qstart < qend and sstart > send. E-values and bit scores are formatted as in BLAST,
without the blanks that fill its columns.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from readmap.database.results import QueryHits, ScanHit, ScanQuery
from readmap.errors import UsageError
from readmap.pairwise.alignments import EQUAL

#: Placeholder of E-values and bit scores without statistical parameters.
UNKNOWN = "NA"


def format_evalue(evalue: float, decimals: int = 2) -> str:
    """Format an E-value; NaN is unknown. decimals: in the mantissa, 2 in BLAST's tables, 0 in its pairwise text."""
    if math.isnan(evalue):
        return UNKNOWN
    if evalue < 1e-180:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.{decimals}e}"
    for end, digits in ((0.1, 3), (1, 2), (10, 1)):
        if evalue < end:
            return f"{evalue:.{digits}f}"
    return f"{evalue:.0f}"


def format_bit_score(bit_score: float) -> str:
    """Format a bit score; NaN is unknown. Large bit scores are truncated, not rounded."""
    if math.isnan(bit_score):
        return UNKNOWN
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    return str(int(bit_score)) if bit_score > 99.9 else f"{bit_score:.1f}"


#: The default columns.
STANDARD = (
    *("qseqid", "sseqid", "pident", "length", "mismatch", "gapopen"),
    *("qstart", "qend", "sstart", "send", "evalue", "bitscore"),
)
_STANDARD_NAME = "std"

_STRANDS = ("plus", "minus")

Value = str | int


def _format_percent(part: int, whole: int, digits: int) -> str:
    # Multiplied in BLAST's order, because 100 * 49 / 160 < 49 / 160 * 100 in floating point.
    return f"{part / whole * 100 if whole else 0:.{digits}f}"


def _coverage(letters: int, query: ScanQuery) -> int:
    """Return a percentage of the query, 100 only for the whole query."""
    share = 100 * letters / len(query.letters)
    return int(share + 0.5 if share < 99 else share)


def _btop(hit: ScanHit) -> str:
    """Return BLAST's traceback operations: lengths of runs of equal letters, and the letters of all other columns."""
    columns = hit.columns
    pairs = np.stack([columns.query, columns.target], axis=1).tobytes().decode()
    parts, column = [], 0
    for operation in hit.operations.tolist():
        kind, length = operation & 15, operation >> 4
        parts.append(str(length) if kind == EQUAL else pairs[2 * column : 2 * (column + length)])
        column += length
    return "".join(parts)


def _text(name: bytes) -> str:
    """Return a name or title as text, without tabs."""
    return name.decode("utf-8", "surrogateescape").replace("\t", " ")


#: Functions that return the value of a column, by BLAST's name of the column; `cigar` is not a BLAST column.
COLUMNS: dict[str, Callable[[QueryHits, ScanHit], Value]] = {
    **dict.fromkeys(("qseqid", "qacc", "qaccver"), lambda results, hit: _text(results.query.name)),
    "qlen": lambda results, hit: len(results.query.letters),
    "qstart": lambda results, hit: hit.query_start + 1,
    "qend": lambda results, hit: hit.query_end,
    "qframe": lambda results, hit: 1,
    "qseq": lambda results, hit: hit.columns.query.tobytes().decode(),
    "qcovs": lambda results, hit: _coverage(hit.covered, results.query),
    "qcovhsp": lambda results, hit: _coverage(hit.query_end - hit.query_start, results.query),
    **dict.fromkeys(("sseqid", "sallseqid", "sacc", "saccver", "sallacc"), lambda results, hit: _text(hit.name)),
    **dict.fromkeys(("stitle", "salltitles"), lambda results, hit: _text(hit.title)),
    "slen": lambda results, hit: hit.length,
    "sstart": lambda results, hit: hit.subject_end if hit.reverse else hit.subject_start + 1,
    "send": lambda results, hit: hit.subject_start + 1 if hit.reverse else hit.subject_end,
    "sstrand": lambda results, hit: _STRANDS[hit.reverse] if results.are_nucleotides else "N/A",
    "sframe": lambda results, hit: -1 if hit.reverse else 1,
    "sseq": lambda results, hit: hit.columns.target.tobytes().decode(),
    "frames": lambda results, hit: "1/-1" if hit.reverse else "1/1",
    "evalue": lambda results, hit: format_evalue(hit.evalue),
    "bitscore": lambda results, hit: format_bit_score(hit.bit_score),
    "score": lambda results, hit: hit.score,
    "length": lambda results, hit: hit.size,
    "pident": lambda results, hit: _format_percent(hit.equal, hit.size, 3),
    "nident": lambda results, hit: hit.equal,
    "mismatch": lambda results, hit: hit.different,
    "positive": lambda results, hit: hit.positives,
    "ppos": lambda results, hit: _format_percent(hit.positives, hit.size, 2),
    "gapopen": lambda results, hit: hit.gap_openings,
    "gaps": lambda results, hit: hit.gaps,
    "btop": lambda results, hit: _btop(hit),
    "cigar": lambda results, hit: hit.cigar.decode(),
}


def parse_columns(option: str) -> tuple[str, ...]:
    """Parse the option --columns; std stands for BLAST's twelve columns. Raise UsageError for unknown or no names."""
    names = option.replace(",", " ").split()
    unknown = [name for name in names if name != _STANDARD_NAME and name not in COLUMNS]
    if unknown or not names:
        found = f"unknown column {unknown[0]}" if unknown else "expected names of columns"
        known = ", ".join([*COLUMNS, _STANDARD_NAME])
        raise UsageError(f"--columns {option}: {found}; known columns are {known}")
    return tuple(column for name in names for column in (STANDARD if name == _STANDARD_NAME else (name,)))


def records(results: QueryHits, columns: tuple[str, ...] = STANDARD) -> Iterator[bytes]:
    """Yield a line with these columns for each hit of a query."""
    fields = [COLUMNS[name] for name in columns]
    for hit in results:
        line = "\t".join([str(field(results, hit)) for field in fields]) + "\n"
        yield line.encode("utf-8", "surrogateescape")
