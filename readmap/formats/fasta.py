"""A reference's FASTA as one array of bases."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.compression import ByteSource, describe_start

# A block, its parts and their translations stay in the cache together.
BLOCK_BYTES = 1 << 20
NUCLEOTIDES = b"ACGTRYSWKMBDHVN"
# Upper-case letters, U as T, and 0 for all that is not a nucleotide.
TO_BASE = bytearray(256)
for letter in NUCLEOTIDES:
    TO_BASE[letter] = TO_BASE[ord(chr(letter).lower())] = letter
TO_BASE[ord("U")] = TO_BASE[ord("u")] = ord("T")
LINE_BREAKS = b"\r\n"
# The share by which the array of bases grows when it is full; so much memory may be left over at the peak.
GROWTH = 1.25


@dataclass(frozen=True)
class Contig:
    """A sequence of the reference: its name, its length in bases, the MD5 of its upper-case letters."""

    name: str
    length: int
    md5: str


@dataclass(frozen=True)
class Fasta:
    """The contigs of a FASTA file, in its order.

    names: of each contig, up to the first blank of its header; no two are the same, none is empty.
    bases: uint8 [bases]: the upper-case IUPAC letters of all contigs without anything between them; T for U.
    offsets: int64 [contigs + 1]: contig i is bases[offsets[i]:offsets[i + 1]], never empty.
    """

    names: list[bytes]
    bases: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def read_fasta(source: ByteSource, progress: Callable[[int], None] | None = None) -> Fasta:
    """The contigs of a FASTA file: lines of any length, LF or CRLF, upper or lower case, blank lines anywhere.

    progress: is called with the number of (inflated) bytes read so far, about once a megabyte.
    At the peak this takes 1.25 bytes a base. Raises DataError where the file is no FASTA, has no sequence, an empty
    contig, one without a name, two of one name, or a character that is no nucleotide; and what `source` raises.
    """
    contigs = _Contigs(source.name)
    target = memoryview(bytearray(BLOCK_BYTES))
    # The line break before what is to come; a header is "\n>", also the first one.
    carry = b"\n"
    total = 0
    while count := source.readinto(target):
        total += count
        carry = _add_block(contigs, carry + bytes(target[:count]))
        if progress:
            progress(total)
    _add_block(contigs, carry + b"\n")
    return contigs.finish()


def _add_block(contigs: "_Contigs", block: bytes) -> bytes:
    """Adds all of a block but its end where that may be an incomplete header, and returns the end."""
    first, *records = block.split(b"\n>")
    carry = b""
    if records and b"\n" not in records[-1]:
        carry = b"\n>" + records.pop()
    elif block.endswith(b"\n"):
        carry = b"\n"
    contigs.add_sequence(first)
    for record in records:
        header, _, sequence = record.partition(b"\n")
        contigs.add_header(header)
        contigs.add_sequence(sequence)
    return carry


class _Contigs:
    """The contigs read so far; the last of them may be incomplete."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._numbers: dict[bytes, int] = {}
        self._starts: list[int] = []
        self._bases = np.empty(BLOCK_BYTES, np.uint8)
        self._length = 0

    def add_header(self, header: bytes) -> None:
        """Ends the contig before and begins the one whose header, without '>', this is."""
        self._end_contig()
        number = len(self._starts) + 1
        name = b"" if header[:1].isspace() else header.split(maxsplit=1)[0] if header else b""
        if not name:
            raise DataError(f"{self._path}, record {number}: expected a name behind '>', found none")
        earlier = self._numbers.setdefault(name, number)
        if earlier != number:
            raise DataError(f"{self._path}, record {number} ({_text(name)}): record {earlier} has the same name")
        self._starts.append(self._length)

    def add_sequence(self, lines: bytes) -> None:
        """Adds to the current contig, or skips blank lines before the first."""
        if not self._starts:
            self._expect_blank(lines)
            return
        bases = lines.translate(TO_BASE, LINE_BREAKS)
        if b"\0" in bases:
            raise self._not_nucleotide(lines, bases.index(b"\0"))
        length = self._length + len(bases)
        if length > len(self._bases):
            # In place: the memory is remapped, not copied.
            self._bases.resize(max(length, int(len(self._bases) * GROWTH)), refcheck=False)
        self._bases[self._length : length] = np.frombuffer(bases, np.uint8)
        self._length = length

    def finish(self) -> Fasta:
        """All contigs."""
        if not self._starts:
            raise DataError(f"{self._path}: expected FASTA, found no sequence: the file is empty")
        self._end_contig()
        self._bases.resize(self._length, refcheck=False)
        return Fasta(list(self._numbers), self._bases, np.array([*self._starts, self._length], np.int64))

    def _end_contig(self) -> None:
        if self._starts and self._starts[-1] == self._length:
            raise DataError(f"{self._record()}: expected a sequence, found an empty contig")

    def _expect_blank(self, lines: bytes) -> None:
        start = lines.lstrip(LINE_BREAKS)
        if start:
            hint = "; this looks like FASTQ, which holds reads" if start.startswith(b"@") else ""
            raise DataError(f"{self._path}: expected FASTA, which starts with '>', found {describe_start(start)}{hint}")

    def _not_nucleotide(self, lines: bytes, index: int) -> DataError:
        character = lines.translate(None, LINE_BREAKS)[index : index + 1]
        position = self._length - self._starts[-1] + index + 1
        return DataError(
            f"{self._record()}, position {position}: expected a nucleotide (IUPAC), found {describe_start(character)}"
        )

    def _record(self) -> str:
        name = next(reversed(self._numbers))
        return f"{self._path}, record {len(self._starts)} ({_text(name)})"


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
