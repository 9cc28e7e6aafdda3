"""Output with a record per result: TSV and JSON (the fields by name), PAF as minimap2 writes it with -c --eqx, and SAM.

SAM records have the whole query, soft-clipped, and = and X in CIGARs.
"""

import hashlib
import json

from readmap.formats import sam
from readmap.formats.fasta import Contig
from readmap.formats.wording import decode_name
from readmap.pairwise.results import Result
from readmap.reads.sequences import Sequences

Value = str | int | float | None

NAMES = (
    *("query", "query_length", "query_start", "query_end", "strand"),
    *("target", "target_length", "target_start", "target_end"),
    *("score", "identity", "columns", "gap_openings", "gap_letters", "cigar"),
)
TSV_HEADER = "\t".join(NAMES).encode() + b"\n"

#: Decimals of an identity.
DIGITS = 6

#: Mapping quality that stands for "unknown" in PAF and SAM.
UNKNOWN_MAPQ = 255

UNMAPPED, REVERSE = 4, 16


def values(result: Result) -> tuple[Value, ...]:
    """Return the values of NAMES; positions are 1-based, inclusive. None: unknown, or absent in an empty result."""
    return (
        *(decode_name(result.query_name), len(result.query), _known(result.query_start, 1), _known(result.query_end)),
        None if result.is_empty else result.strand,
        *(decode_name(result.target_name), len(result.target)),
        *(_known(result.target_start, 1), _known(result.target_end)),
        result.score,
        None if result.identity is None else round(result.identity, DIGITS),
        result.columns or None,
        *((result.gap_openings, result.gaps) if result.cigar else (None, None)),
        result.cigar.decode() or None,
    )


def _known(position: int, offset: int = 0) -> int | None:
    return None if position < 0 else position + offset


def json_record(result: Result) -> bytes:
    """Return a JSON object in one line; null stands for a value that is unknown or absent."""
    return json.dumps(dict(zip(NAMES, values(result), strict=True))).encode()


def tsv_record(result: Result) -> bytes:
    """Return a line of the table; * stands for a value that is unknown or absent."""
    return "\t".join("*" if value is None else str(value) for value in values(result)).encode() + b"\n"


def paf_record(result: Result) -> bytes:
    """Return the PAF line of a result, or b"" if nothing is aligned."""
    if result.is_empty:
        return b""
    return b"%b\t%d\t%d\t%d\t%c\t%b\t%d\t%d\t%d\t%d\t%d\t%d\tNM:i:%d\tAS:i:%d\tcg:Z:%b\n" % (
        *(result.query_name, len(result.query), result.query_start, result.query_end, ord(result.strand)),
        *(result.target_name, len(result.target), result.target_start, result.target_end),
        *(result.equal, result.columns, UNKNOWN_MAPQ, result.different + result.gaps, result.score, result.cigar),
    )


def sam_header(targets: Sequences, version: str, command_line: str) -> bytes:
    """Return the header with an @SQ line per target that is not empty. Raise DataError for invalid names."""
    sam.check_contig_names(targets.names, "targets")
    contigs = [
        Contig(name.decode("utf-8", "surrogateescape"), len(letters), hashlib.md5(letters.tobytes()).hexdigest())
        for name, letters in zip(targets.names, targets, strict=True)
        if len(letters)
    ]
    return sam.header(contigs, version, command_line)


def sam_record(result: Result) -> bytes:
    """Return the SAM line of a result, unmapped if nothing is aligned. Raise DataError for an invalid name."""
    flag = REVERSE if result.reverse else 0
    letters = result.query.tobytes() or b"*"
    name = sam.query_name(result.query_name)
    # An alignment in SAM consumes the query and at least one letter of the target.
    if result.is_empty or result.target_start == result.target_end or not len(result.query):
        return b"%b\t%d\t*\t0\t0\t*\t*\t0\t0\t%b\t*\tAS:i:%d\n" % (name, flag | UNMAPPED, letters, result.score)
    start, end = result.aligned_query
    clips = [b"%dS" % length if length else b"" for length in (start, len(result.query) - end)]
    return b"%b\t%d\t%b\t%d\t%d\t%b%b%b\t*\t0\t0\t%b\t*\tNM:i:%d\tAS:i:%d\n" % (
        *(name, flag, result.target_name, result.target_start + 1, UNKNOWN_MAPQ, clips[0], result.cigar, clips[1]),
        *(letters, result.different + result.gaps, result.score),
    )
