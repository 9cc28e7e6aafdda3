"""SAM with a record a pair: the whole query, soft-clipped; = and X in CIGARs; unmapped where no letters are aligned."""

from __future__ import annotations

import hashlib

from readmap.formats import sam
from readmap.formats.fasta import Contig
from readmap.pairwise.formats.paf import UNKNOWN
from readmap.pairwise.results import Result
from readmap.reads.sequences import Sequences

UNMAPPED, REVERSE = 4, 16


def header(targets: Sequences, version: str, command_line: str) -> bytes:
    """The header, with an @SQ for each target that is not empty. Raises DataError for names that are not SAM's."""
    sam.check_contig_names(targets.names, "targets")
    contigs = [
        Contig(name.decode("utf-8", "surrogateescape"), len(letters), hashlib.md5(letters.tobytes()).hexdigest())
        for name, letters in zip(targets.names, targets, strict=True)
        if len(letters)
    ]
    return sam.header(contigs, version, command_line)


def record(result: Result) -> bytes:
    """A line. Raises DataError where SAM does not take the query's name."""
    flag = REVERSE if result.reverse else 0
    letters = result.query.tobytes() or b"*"
    name = sam.query_name(result.query_name)
    # What SAM calls an alignment has a letter of the target, and the query itself.
    if result.is_empty or result.target_start == result.target_end or not len(result.query):
        return b"%b\t%d\t*\t0\t0\t*\t*\t0\t0\t%b\t*\tAS:i:%d\n" % (name, flag | UNMAPPED, letters, result.score)
    begin, end = result.aligned_query
    clips = [b"%dS" % length if length else b"" for length in (begin, len(result.query) - end)]
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
