"""BLAST's table: a line a hit, without a header; 1-based and inclusive.

A hit on the reverse strand has qstart < qend and sstart > send.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from readmap.database.results import QueryHits, ScanHit, ScanQuery
from readmap.errors import UsageError
from readmap.pairwise.alignments import EQUAL

#: What stands for a number where the costs of gaps have no parameters.
UNKNOWN = "NA"


def format_evalue(evalue: float, decimals: int = 2) -> str:
    """An E-value; NaN is unknown. decimals: of a small one's mantissa: 2 in BLAST's tables, 0 in its pairwise text."""
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
    """A bit score; NaN is unknown. Whole bits of a large one are cut off and not rounded."""
    if math.isnan(bit_score):
        return UNKNOWN
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    return str(int(bit_score)) if bit_score > 99.9 else f"{bit_score:.1f}"


#: The columns of a table for which none are named.
STANDARD = (
    *("qseqid", "sseqid", "pident", "length", "mismatch", "gapopen"),
    *("qstart", "qend", "sstart", "send", "evalue", "bitscore"),
)
_STANDARD_NAME = "std"

_STRANDS = ("plus", "minus")

Value = str | int


def _percent(part: int, whole: int, digits: int) -> str:
    # In this order, in which BLAST rounds: 100 * 49 / 160 is less than 49 / 160 * 100.
    return f"{part / whole * 100 if whole else 0:.{digits}f}"


def _coverage(letters: int, query: ScanQuery) -> int:
    """A share of the query in percent, of which all is 100 and nothing less is."""
    share = 100 * letters / len(query.letters)
    return int(share + 0.5 if share < 99 else share)


def _btop(hit: ScanHit) -> str:
    """BLAST's traceback operations: counts of equal letters, and the letters of each column with others or a gap."""
    columns = hit.columns
    pairs = np.stack([columns.query, columns.target], axis=1).tobytes().decode()
    parts, at = [], 0
    for operation in hit.operations.tolist():
        kind, length = operation & 15, operation >> 4
        parts.append(str(length) if kind == EQUAL else pairs[2 * at : 2 * (at + length)])
        at += length
    return "".join(parts)


def _text(name: bytes) -> str:
    """A name or a title, which must not bring a column."""
    return name.decode("utf-8", "surrogateescape").replace("\t", " ")


#: What a column holds, by BLAST's name of it; `cigar` is none of BLAST's.
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
    "pident": lambda results, hit: _percent(hit.equal, hit.size, 3),
    "nident": lambda results, hit: hit.equal,
    "mismatch": lambda results, hit: hit.different,
    "positive": lambda results, hit: hit.positives,
    "ppos": lambda results, hit: _percent(hit.positives, hit.size, 2),
    "gapopen": lambda results, hit: hit.gap_openings,
    "gaps": lambda results, hit: hit.gaps,
    "btop": lambda results, hit: _btop(hit),
    "cigar": lambda results, hit: hit.cigar.decode(),
}


def parse_columns(option: str) -> tuple[str, ...]:
    """The columns of an option --columns, with commas or blanks between them; std stands for BLAST's twelve.

    Raises UsageError where one is unknown, or none is named.
    """
    names = option.replace(",", " ").split()
    unknown = [name for name in names if name != _STANDARD_NAME and name not in COLUMNS]
    if unknown or not names:
        found = f"there is no {unknown[0]}" if unknown else "expected names of columns"
        known = ", ".join([*COLUMNS, _STANDARD_NAME])
        raise UsageError(f"--columns {option}: {found}; known are {known}")
    return tuple(column for name in names for column in (STANDARD if name == _STANDARD_NAME else (name,)))


def records(results: QueryHits, columns: tuple[str, ...] = STANDARD) -> Iterator[bytes]:
    """The lines of a query, none where it has no hits."""
    fields = [COLUMNS[name] for name in columns]
    for hit in results:
        line = "\t".join([str(field(results, hit)) for field in fields]) + "\n"
        yield line.encode("utf-8", "surrogateescape")
