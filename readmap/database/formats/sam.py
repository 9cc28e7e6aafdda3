"""SAM with a record a hit, the first of a query primary and the others secondary; = and X in CIGARs.

The primary record has the whole query, soft-clipped; the others have its aligned letters alone, hard-clipped. Of a hit
on the reverse strand it is the query's reverse complement. A query without hits is unmapped. AS, NM, and as blastn
writes them EV (the E-value), BS (the bit score), where they are known, and PI (equal letters in percent of the columns
without gaps).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from readmap.database.results import Hit, Query, Results, Subjects, cigar
from readmap.errors import DataError
from readmap.formats.header import header_lines
from readmap.pairwise.formats.paf import UNKNOWN
from readmap.pairwise.formats.sam import LONGEST_NAME, REVERSE, UNMAPPED

SECONDARY = 0x100


def header(subjects: Subjects, version: str, command_line: str) -> bytes:
    """The header, with an @SQ for each subject that is not empty, without M5, which would take reading all letters.

    Raises DataError where two subjects have one name.
    """
    first, *others = header_lines([], [], version, command_line)
    lines = [first.encode(), *_subject_lines(subjects), *(line.encode() for line in others)]
    return b"\n".join(lines) + b"\n"


def _subject_lines(subjects: Subjects) -> Iterator[bytes]:
    numbers: dict[bytes, int] = {}
    for number in range(len(subjects)):
        name = subjects.names[number]
        if (other := numbers.setdefault(name, number)) != number:
            shown = name.decode("utf-8", "backslashreplace")
            raise DataError(
                f"record {number + 1} of the database ({shown}): record {other + 1} has the same name, which SAM's "
                "header cannot hold: choose another --format"
            )
        if length := subjects.length_of(number):
            yield b"@SQ\tSN:%b\tLN:%d" % (name, length)


def record(results: Results) -> bytes:
    """The lines of a query."""
    query = results.query
    if not len(results):
        letters = query.letters.tobytes() or b"*"
        return b"%b\t%d\t*\t0\t0\t*\t*\t0\t0\t%b\t*\n" % (query.name[:LONGEST_NAME], UNMAPPED, letters)
    return b"".join(_line(query, hit, number == 0) for number, hit in enumerate(results))


def _line(query: Query, hit: Hit, is_primary: bool) -> bytes:
    letters = query.reverse_complement if hit.reverse else query.letters
    begin, end = hit.query_start, hit.query_end
    if hit.reverse:
        begin, end = len(letters) - end, len(letters) - begin
    clips = [
        b"%d%c" % (length, b"S" if is_primary else b"H") if length else b"" for length in (begin, len(letters) - end)
    ]
    return b"%b\t%d\t%b\t%d\t%d\t%b%b%b\t*\t0\t0\t%b\t*\tAS:i:%d\tNM:i:%d\tPI:f:%.2f%b\n" % (
        query.name[:LONGEST_NAME],
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


def _statistics(hit: Hit) -> bytes:
    known = ((name, number) for name, number in ((b"EV", hit.evalue), (b"BS", hit.bit_score)) if not math.isnan(number))
    return b"".join(b"\t%b:f:%g" % each for each in known)
