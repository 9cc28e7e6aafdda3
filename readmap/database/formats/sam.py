"""SAM output: a record per hit, the first hit of a query primary, the other hits secondary; = and X in CIGARs.

The primary record has the whole query, soft-clipped; the other records have the aligned letters, hard-clipped. Hits on
the reverse strand have the reverse complement of the query. A query without hits is unmapped. Tags: AS, NM, and as in
blastn EV (E-value) and BS (bit score) if known, and PI (percentage of equal letters among columns without gaps).
"""

import math
from collections.abc import Iterator

from readmap.database.database import Database
from readmap.database.results import QueryHits, ScanHit, ScanQuery
from readmap.formats.sam import check_contig_names, header_lines, query_name
from readmap.pairwise.alignments import cigar
from readmap.pairwise.formats.records import REVERSE, UNKNOWN_MAPQ, UNMAPPED

SECONDARY = 0x100


def header(database: Database, version: str, command_line: str) -> bytes:
    """Return the header with an @SQ line per subject that is not empty, without M5; DataError for invalid names."""
    first, *others = header_lines([], [], version, command_line)
    names = [database.names[i] for i in range(len(database))]
    check_contig_names(names, "database")
    lengths = map(database.subject_length, range(len(database)))
    subjects = (b"@SQ\tSN:%b\tLN:%d" % each for each in zip(names, lengths, strict=True) if each[1])
    return b"\n".join([first.encode(), *subjects, *(line.encode() for line in others)]) + b"\n"


def records(results: QueryHits) -> Iterator[bytes]:
    """Yield a SAM line per hit of a query, or an unmapped one. Raise DataError if SAM does not allow its name."""
    query = results.query
    if not len(results):
        letters = query.letters.tobytes() or b"*"
        yield b"%b\t%d\t*\t0\t0\t*\t*\t0\t0\t%b\t*\n" % (query_name(query.name), UNMAPPED, letters)
    for i, hit in enumerate(results):
        yield _line(query, hit, i == 0)


def _line(query: ScanQuery, hit: ScanHit, is_primary: bool) -> bytes:
    """Return the SAM line of a hit: primary with the whole query, or secondary with the aligned letters."""
    letters = query.reverse_complement if hit.reverse else query.letters
    start, end = hit.query_start, hit.query_end
    if hit.reverse:
        start, end = len(letters) - end, len(letters) - start
    clip = b"S" if is_primary else b"H"
    clips = [b"%d%c" % (length, clip) if length else b"" for length in (start, len(letters) - end)]
    flag = (REVERSE if hit.reverse else 0) | (0 if is_primary else SECONDARY)
    operations = cigar(hit.operations[::-1] if hit.reverse else hit.operations)
    identity = 100 * hit.equal / max(hit.equal + hit.different, 1)
    known = ((name, value) for name, value in ((b"EV", hit.evalue), (b"BS", hit.bit_score)) if not math.isnan(value))
    return b"%b\t%d\t%b\t%d\t%d\t%b%b%b\t*\t0\t0\t%b\t*\tAS:i:%d\tNM:i:%d\tPI:f:%.2f%b\n" % (
        *(query_name(query.name), flag, hit.name, hit.subject_start + 1, UNKNOWN_MAPQ, clips[0], operations, clips[1]),
        *((letters if is_primary else letters[start:end]).tobytes(), hit.score, hit.different + hit.gaps, identity),
        b"".join(b"\t%b:f:%g" % each for each in known),
    )
