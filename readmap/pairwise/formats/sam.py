"""SAM output: a record per pair with the whole query, soft-clipped, and = and X in CIGARs."""

from __future__ import annotations

import hashlib

from readmap.formats import sam
from readmap.formats.fasta import Contig
from readmap.pairwise.formats.paf import UNKNOWN
from readmap.pairwise.results import Result
from readmap.reads.sequences import Sequences

UNMAPPED, REVERSE = 4, 16


def header(targets: Sequences, version: str, command_line: str) -> bytes:
    """Return the header with an @SQ line per target that is not empty. Raise DataError for invalid names."""
    sam.check_contig_names(targets.names, "targets")
    contigs = [
        Contig(name.decode("utf-8", "surrogateescape"), len(letters), hashlib.md5(letters.tobytes()).hexdigest())
        for name, letters in zip(targets.names, targets, strict=True)
        if len(letters)
    ]
    return sam.header(contigs, version, command_line)


def record(result: Result) -> bytes:
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
        name,
        flag,
        result.target_name,
        result.target_start + 1,
        UNKNOWN,
        clips[0],
        result.cigar,
        clips[1],
        letters,
        result.different + result.gaps,
        result.score,
    )
