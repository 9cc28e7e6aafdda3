"""SAM with a record a hit, the first of a query primary and the others secondary; = and X in CIGARs.

The primary record has the whole query, soft-clipped; the others have its aligned letters alone, hard-clipped. Of a hit
on the reverse strand it is the query's reverse complement. A query without hits is unmapped. AS, NM, and as blastn
writes them EV (the E-value), BS (the bit score), where they are known, and PI (equal letters in percent of the columns
without gaps).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from readmap.database.database import Database
from readmap.database.results import QueryHits, ScanHit, ScanQuery, cigar
from readmap.formats.sam import check_contig_names, query_name
from readmap.formats.sam_header import header_lines
from readmap.pairwise.formats.paf import UNKNOWN
from readmap.pairwise.formats.sam import REVERSE, UNMAPPED

SECONDARY = 0x100


def header(database: Database, version: str, command_line: str) -> bytes:
    """The header, with an @SQ for each subject that is not empty, without M5, which would take reading all letters.

    Raises DataError for names that are not SAM's.
    """
    first, *others = header_lines([], [], version, command_line)
    names = [database.names[number] for number in range(len(database))]
    check_contig_names(names, "database")
    lengths = map(database.subject_length, range(len(database)))
    subjects = (b"@SQ\tSN:%b\tLN:%d" % each for each in zip(names, lengths, strict=True) if each[1])
    return b"\n".join([first.encode(), *subjects, *(line.encode() for line in others)]) + b"\n"


def records(results: QueryHits) -> Iterator[bytes]:
    """The lines of a query. Raises DataError where SAM does not take its name."""
    query = results.query
    if not len(results):
        letters = query.letters.tobytes() or b"*"
        yield b"%b\t%d\t*\t0\t0\t*\t*\t0\t0\t%b\t*\n" % (query_name(query.name), UNMAPPED, letters)
    for number, hit in enumerate(results):
        yield _line(query, hit, number == 0)


def _line(query: ScanQuery, hit: ScanHit, is_primary: bool) -> bytes:
    letters = query.reverse_complement if hit.reverse else query.letters
    begin, end = hit.query_start, hit.query_end
    if hit.reverse:
        begin, end = len(letters) - end, len(letters) - begin
    clips = [
        b"%d%c" % (length, b"S" if is_primary else b"H") if length else b"" for length in (begin, len(letters) - end)
    ]
    return b"%b\t%d\t%b\t%d\t%d\t%b%b%b\t*\t0\t0\t%b\t*\tAS:i:%d\tNM:i:%d\tPI:f:%.2f%b\n" % (
        query_name(query.name),
        (REVERSE if hit.reverse else 0) | (0 if is_primary else SECONDARY),
        hit.name,
        hit.subject_start + 1,
        UNKNOWN,
        clips[0],
        cigar(hit.operations[::-1] if hit.reverse else hit.operations),
        clips[1],
        (letters if is_primary else letters[begin:end]).tobytes(),
        hit.score,
        hit.different + hit.gaps,
        100 * hit.equal / max(hit.equal + hit.different, 1),
        _statistics(hit),
    )


def _statistics(hit: ScanHit) -> bytes:
    known = ((name, number) for name, number in ((b"EV", hit.evalue), (b"BS", hit.bit_score)) if not math.isnan(number))
    return b"".join(b"\t%b:f:%g" % each for each in known)
