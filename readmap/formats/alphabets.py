"""The letters of nucleotides and of proteins, and how a file's alphabet is guessed."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from readmap.formats.newlines import LINE_BREAKS

#: The fraction of nucleotides' commonest letters from which on a file is taken for one of nucleotides.
NUCLEOTIDE_FRACTION = 0.9


class Alphabet(StrEnum):
    """What sequences are made of; the names are those that a user gives."""

    NUCLEOTIDES = "nucleotide"
    PROTEINS = "protein"

    @property
    def table(self) -> bytes:
        """For bytes.translate, [256]: each letter as sequences keep it, upper-case; 0 for all that is no letter."""
        return _TABLES[self]

    @property
    def letter(self) -> str:
        """The name of a letter in messages."""
        return _LETTERS[self]


def _table(letters: bytes) -> bytearray:
    table = bytearray(256)
    for letter in letters:
        table[letter] = table[ord(chr(letter).lower())] = letter
    return table


_NUCLEOTIDES = _table(b"ACGTRYSWKMBDHVN")
_NUCLEOTIDES[ord("U")] = _NUCLEOTIDES[ord("u")] = ord("T")
_TABLES = {
    Alphabet.NUCLEOTIDES: bytes(_NUCLEOTIDES),
    Alphabet.PROTEINS: bytes(_table(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ*")),
}
_LETTERS = {
    Alphabet.NUCLEOTIDES: "a nucleotide (IUPAC)",
    Alphabet.PROTEINS: "an amino acid (A to Z, or * for a stop)",
}


def guess_alphabet(start: bytes) -> Alphabet:
    """The alphabet of a file that begins so: nucleotides if of its letters at least 90 % are A, C, G, T, U or N.

    start: FASTA or FASTQ, which may break off anywhere; a megabyte of it is enough. Headers are not looked at, and case
    does not matter. FASTQ is of nucleotides, and so is what has no letters.
    """
    if start.lstrip(LINE_BREAKS).startswith(b"@"):
        return Alphabet.NUCLEOTIDES
    lines = (line for line in start.split(b"\n") if not line.startswith(b">"))
    counts = np.bincount(np.frombuffer(b"".join(lines).upper(), np.uint8), minlength=256)
    letters = counts[np.frombuffer(Alphabet.PROTEINS.table, np.uint8) > 0].sum()
    common = counts[np.frombuffer(b"ACGTUN", np.uint8)].sum()
    return Alphabet.NUCLEOTIDES if common >= NUCLEOTIDE_FRACTION * letters else Alphabet.PROTEINS
