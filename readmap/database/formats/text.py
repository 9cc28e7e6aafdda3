"""BLAST's pairwise text output: a table of hits per query, then the alignments; positions are 1-based, inclusive."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from readmap.database.formats.tab import format_bit_score, format_evalue
from readmap.database.results import QueryHits, ScanHit
from readmap.pairwise.alignments import EQUAL

WIDTH = 60

#: Width of titles in the table; longer titles are truncated with dots.
TITLE_WIDTH = 66
_TABLE_HEAD = (
    f"{'':<{TITLE_WIDTH + 4}}Score     E\n"
    f"{'Sequences producing significant alignments:':<{TITLE_WIDTH + 3}}(Bits)  Value\n\n"
)

STROKE, PLUS, BLANK = np.frombuffer(b"|+ ", np.uint8)


def records(results: QueryHits) -> Iterator[bytes]:
    """Yield the text of a query: its title, the table of its hits, and their alignments."""
    head = f"Query= {_text(results.query.title)}\n\nLength={len(results.query.letters)}\n"
    if not len(results):
        yield _bytes(f"{head}\n\n***** No hits found *****\n\n\n")
        return
    texts = [(_table_line(hit), _alignment(hit, results.are_nucleotides)) for hit in results]
    yield _bytes(head + _TABLE_HEAD + "".join(line for line, _ in texts) + "\n\n")
    yield from (alignment for _, alignment in texts)


def _table_line(hit: ScanHit) -> str:
    title = _text(hit.title)
    short = title if len(title) <= TITLE_WIDTH else title[: TITLE_WIDTH - 3] + "..."
    return f"{short:<{TITLE_WIDTH}}    {format_bit_score(hit.bit_score):<8}{format_evalue(hit.evalue, 0)}\n"


def _alignment(hit: ScanHit, are_nucleotides: bool) -> bytes:
    head = [f">{_text(hit.title)}", f"Length={hit.length}", "", *_facts(hit, are_nucleotides), "", ""]
    return _bytes("\n".join(head)) + b"".join(_blocks(hit, are_nucleotides)) + b"\n"


def _facts(hit: ScanHit, are_nucleotides: bool) -> list[str]:
    """Return the lines between the length of a subject and the alignment."""
    columns = hit.size
    positives = [] if are_nucleotides else [("Positives", hit.positives)]
    shares = [("Identities", hit.equal), *positives, ("Gaps", hit.gaps)]
    counts = [f"{name} = {count}/{columns} ({_rounded_percent(count, columns)}%)" for name, count in shares]
    scores = f" Score = {format_bit_score(hit.bit_score)} bits ({hit.score}),  Expect = {format_evalue(hit.evalue, 0)}"
    strand = [f" Strand=Plus/{'Minus' if hit.reverse else 'Plus'}"] if are_nucleotides else []
    return [scores, f" {', '.join(counts)}", *strand]


def _rounded_percent(part: int, whole: int) -> int:
    """Return a rounded percentage, 100 only for all columns."""
    return 100 if part == whole else min(99, int(0.5 + 100 * part / whole))


def _middle(hit: ScanHit, are_nucleotides: bool) -> bytes:
    """Return the line between the sequences, which marks equal and similar letters."""
    equal = hit.columns.operations == EQUAL
    middle = np.where(equal, STROKE if are_nucleotides else hit.columns.query, BLANK)
    if not are_nucleotides:
        middle[hit.similar] = PLUS
    return bytes(middle)


def _blocks(hit: ScanHit, are_nucleotides: bool) -> Iterator[bytes]:
    """Yield the blocks of a hit's alignment, WIDTH columns each: query, line between, and subject."""
    first, step = (hit.subject_end, -1) if hit.reverse else (hit.subject_start + 1, 1)
    query = _rows(hit.columns.query.tobytes(), hit.query_start + 1, 1)
    subject = _rows(hit.columns.target.tobytes(), first, step)
    middle = _middle(hit, are_nucleotides)
    # As wide as in BLAST, which uses the digits of the last letter's 0-based position.
    digits = max(len(str(max(hit.query_end, hit.subject_end) - 1)), *(len(row.first) for row in (*query, *subject)))
    for i, (upper, lower) in enumerate(zip(query, subject, strict=True)):
        strokes = b"%*s%b" % (digits + 9, b"", middle[i * WIDTH : (i + 1) * WIDTH].rstrip())
        yield b"%b\n%b\n%b\n\n" % (_line(b"Query", upper, digits), strokes, _line(b"Sbjct", lower, digits))


class _Row(NamedTuple):
    """A sequence's part of a block, and the positions of its first and last letter; empty if it has only gaps."""

    first: bytes
    letters: bytes
    last: bytes


def _rows(letters: bytes, position: int, step: int) -> list[_Row]:
    """Return a sequence with gaps in rows of WIDTH columns. position: of its first letter. step: 1, -1 to descend."""
    rows = []
    for start in range(0, len(letters), WIDTH):
        part = letters[start : start + WIDTH]
        count = len(part) - part.count(b"-")
        last = position + step * (count - 1)
        rows.append(_Row(b"%d" % position, part, b"%d" % last) if count else _Row(b"", part, b""))
        position += step * count
    return rows


def _line(name: bytes, row: _Row, digits: int) -> bytes:
    return (b"%b  %-*b  %b  %b" % (name, digits, row.first, row.letters, row.last)).rstrip()


def _text(title: bytes) -> str:
    return title.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
