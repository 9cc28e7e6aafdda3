"""What is searched exactly: the first bases of a FASTA file, for queries drawn from there and from the rest of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.formats.alphabets import Alphabet
from readmap.formats.byte_source import open_bytes
from readmap.formats.fasta import Fasta, read_records

Letters = NDArray[np.uint8]  # [queries, bases of each]
QUERY_BASES = 200
SEED = 3
NAME_DIGITS = 8
WRITTEN_TOGETHER = 1 << 18  # queries


def split_fasta(path: Path, bases: int, threads: int) -> tuple[Fasta, Fasta]:
    """Return the first `bases` bases of a file, and the rest; a contig across the boundary is cut in two."""
    with open_bytes(str(path), threads) as source:
        fasta = read_records(source, Alphabet.NUCLEOTIDES)
    inner = int(np.searchsorted(fasta.offsets, bases, side="right")) - 1  # the contig that is cut
    cut = int(fasta.offsets[inner] < bases)
    first = Fasta(fasta.names[: inner + cut], fasta.letters[:bases], np.append(fasta.offsets[: inner + cut], bases))
    rest = np.append(bases, fasta.offsets[inner + 1 :]) - bases
    return first, Fasta(fasta.names[inner:], fasta.letters[bases:], rest)


def text_of(fasta: Fasta) -> bytes:
    """Return the contigs with one byte that is no base after each: offsets equal positions in readmap's reference."""
    return b"".join(contig + b"|" for contig in _contigs(fasta))


def write_fasta(path: Path, fasta: Fasta) -> None:
    with open(path, "wb") as out:
        out.writelines(b">%b\n%b\n" % record for record in zip(fasta.names, _contigs(fasta), strict=True))


def _contigs(fasta: Fasta) -> Iterator[bytes]:
    for start, end in zip(fasta.offsets[:-1], fasta.offsets[1:], strict=True):
        yield fasta.letters[start:end].tobytes()


def draw_queries(inside: Fasta, outside: Fasta, count: int, length: int = QUERY_BASES) -> Letters:
    """Draw queries of A, C, G and T alternately from inside and outside, so that any prefix is mixed."""
    random = np.random.default_rng(SEED)
    letters = np.empty((count, length), np.uint8)
    for first, fasta in enumerate((inside, outside)):
        starts = random.choice(_unambiguous(fasta, length), len(letters[first::2]))
        letters[first::2] = np.lib.stride_tricks.sliding_window_view(fasta.letters, length)[starts]
    return letters


def _unambiguous(fasta: Fasta, length: int) -> NDArray[np.int64]:
    """Return the positions at which `length` bases of one contig are all A, C, G or T."""
    marks = np.concatenate(([0], np.cumsum(~np.isin(fasta.letters, np.frombuffer(b"ACGT", np.uint8)), dtype=np.int64)))
    good = marks[length:] == marks[:-length]
    for border in fasta.offsets[1:-1]:
        good[max(border - length + 1, 0) : border] = False
    return np.flatnonzero(good)


def with_last_base_changed(letters: Letters) -> Letters:
    """Return queries that differ from occurring sequences only in their last base."""
    changed = letters.copy()
    changed[:, -1] = np.where(letters[:, -1] == ord("A"), ord("C"), ord("A"))
    return changed


def write_queries(path: Path, letters: Letters) -> None:
    """Write FASTA with the index of a query as its name."""
    count, length = letters.shape
    records: Any = np.full((min(count, WRITTEN_TOGETHER), 1 + NAME_DIGITS + 1 + length + 1), ord("\n"), np.uint8)
    records[:, 0] = ord(">")
    tens = 10 ** np.arange(NAME_DIGITS - 1, -1, -1)
    with open(path, "wb") as out:
        for start in range(0, count, WRITTEN_TOGETHER):
            some = letters[start : start + WRITTEN_TOGETHER]
            numbers = np.arange(start, start + len(some))[:, None]
            records[: len(some), 1 : 1 + NAME_DIGITS] = numbers // tens % 10 + ord("0")
            records[: len(some), -1 - length : -1] = some
            out.write(records[: len(some)].data)
