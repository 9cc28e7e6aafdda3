"""The letters of nucleotides and proteins; guess the alphabet of a file."""

from enum import StrEnum

import numpy as np

from readmap.formats.newlines import LINE_BREAKS

#: Minimum fraction of A, C, G, T, U and N among the letters of a nucleotide file.
NUCLEOTIDE_FRACTION = 0.9


class Alphabet(StrEnum):
    """The alphabet of sequences, by the name used in options."""

    NUCLEOTIDES = "nucleotide"
    PROTEINS = "protein"

    @property
    def table(self) -> bytes:
        """The table for bytes.translate, [256]: letters in upper case, 0 for any other character."""
        return _TABLES[self]

    @property
    def letter(self) -> str:
        """What messages call a letter."""
        return _LETTERS[self]


def _translation_table(letters: bytes) -> bytearray:
    """Return the table that maps each letter and its lower case to the letter, and other bytes to 0."""
    table = bytearray(256)
    for letter in letters:
        table[letter] = table[ord(chr(letter).lower())] = letter
    return table


_NUCLEOTIDES = _translation_table(b"ACGTRYSWKMBDHVN")
_NUCLEOTIDES[ord("U")] = _NUCLEOTIDES[ord("u")] = ord("T")
_TABLES = {
    Alphabet.NUCLEOTIDES: bytes(_NUCLEOTIDES),
    Alphabet.PROTEINS: bytes(_translation_table(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ*")),
}
_LETTERS = {
    Alphabet.NUCLEOTIDES: "a nucleotide (IUPAC)",
    Alphabet.PROTEINS: "an amino acid (A to Z, or * for a stop)",
}


def guess_alphabet(start: bytes) -> Alphabet:
    """Return NUCLEOTIDES if at least 90 % of the letters are A, C, G, T, U or N, else PROTEINS.

    start: about a megabyte of FASTA or FASTQ. FASTQ, and text without letters, is taken for nucleotides.
    """
    if start.lstrip(LINE_BREAKS).startswith(b"@"):
        return Alphabet.NUCLEOTIDES
    lines = (line for line in start.split(b"\n") if not line.startswith(b">"))
    counts = np.bincount(np.frombuffer(b"".join(lines).upper(), np.uint8), minlength=256)
    letters = counts[np.frombuffer(Alphabet.PROTEINS.table, np.uint8) > 0].sum()
    common = counts[np.frombuffer(b"ACGTUN", np.uint8)].sum()
    return Alphabet.NUCLEOTIDES if common >= NUCLEOTIDE_FRACTION * letters else Alphabet.PROTEINS
