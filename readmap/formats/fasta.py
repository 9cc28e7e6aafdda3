"""FASTA as one array of letters: a reference's contigs, or any records."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.alphabets import Alphabet
from readmap.formats.compression import ByteSource, describe_start
from readmap.formats.lines import LINE_BREAKS
from readmap.formats.words import in_words

# A block, its parts and their translations stay in the cache together.
BLOCK_BYTES = 1 << 20
# As SAM has the names of contigs.
CONTIG_NAME = re.compile(rb"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
# The share by which the array of letters grows when it is full; so much memory may be left over at the peak.
GROWTH = 1.25


@dataclass(frozen=True)
class Contig:
    """A sequence of the reference: its name, its length in bases, the MD5 of its upper-case letters."""

    name: str
    length: int
    md5: str


@dataclass(frozen=True)
class Fasta:
    """The records of a FASTA file, in its order; those of a reference are its contigs.

    names: of each record, up to the first blank of its header; none is empty, and no two contigs' are the same.
    letters: uint8 [letters]: upper-case, of all records without anything between them; of nucleotides T for U.
    offsets: int64 [records + 1]: record i is letters[offsets[i]:offsets[i + 1]], a contig never empty.
    titles: of each record its header without '>' and blanks at its end; of contigs none are kept.
    """

    names: list[bytes]
    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    titles: list[bytes] = field(default_factory=list)


def read_fasta(source: ByteSource, progress: Callable[[int], None] | None = None) -> Fasta:
    """The contigs of a FASTA file: lines of any length, LF or CRLF, upper or lower case, blank lines anywhere.

    progress: is called with the number of (inflated) bytes read so far, about once a megabyte.
    At the peak this takes 1.25 bytes a base. Raises DataError where the file is no FASTA, has no sequence, an empty
    contig, one without a name or with one that SAM does not take, two of one name, or a character that is no
    nucleotide; and what `source` raises.
    """
    return _read(source, _Contigs(source.name), progress)


def read_records(source: ByteSource, alphabet: Alphabet, progress: Callable[[int], None] | None = None) -> Fasta:
    """As `read_fasta`, but of any alphabet, with titles; records may be empty, and names may be repeated."""
    return _read(source, _Records(source.name, alphabet), progress)


def _read(source: ByteSource, records: "_Records", progress: Callable[[int], None] | None) -> Fasta:
    target = memoryview(bytearray(BLOCK_BYTES))
    # The line break before what is to come; a header is "\n>", also the first one.
    carry = b"\n"
    total = 0
    while count := source.readinto(target):
        total += count
        carry = _add_block(records, carry + bytes(target[:count]))
        if progress:
            progress(total)
    _add_block(records, carry + b"\n")
    return records.finish()


def _add_block(records: "_Records", block: bytes) -> bytes:
    """Adds all of a block but its end where that may be an incomplete header, and returns the end."""
    first, *others = block.split(b"\n>")
    carry = b""
    if others and b"\n" not in others[-1]:
        carry = b"\n>" + others.pop()
    elif block.endswith(b"\n"):
        carry = b"\n"
    records.add_sequence(first)
    for record in others:
        header, _, sequence = record.partition(b"\n")
        records.add_header(header)
        records.add_sequence(sequence)
    records.store()
    return carry


class _Records:
    """The records read so far; the last of them may be incomplete."""

    def __init__(self, path: str, alphabet: Alphabet) -> None:
        self._path = path
        self._alphabet = alphabet
        self._names: list[bytes] = []
        self._titles: list[bytes] = []
        self._starts: list[int] = []
        self._table = alphabet.table
        self._letters = np.empty(BLOCK_BYTES, np.uint8)
        # Behind those that are stored; of many short records one by one would take longer than all else.
        self._unstored: list[bytes] = []
        self._length = 0

    def add_header(self, header: bytes) -> None:
        """Ends the record before and begins the one whose header, without '>', this is."""
        self._end_record()
        name = b"" if header[:1].isspace() else header.split(maxsplit=1)[0] if header else b""
        if not name:
            raise DataError(f"{self._path}, record {len(self._starts) + 1}: expected a name behind '>', found none")
        self._names.append(name)
        self._starts.append(self._length)
        self._add_title(header.rstrip(), name)

    def add_sequence(self, lines: bytes) -> None:
        """Adds to the current record, or skips blank lines before the first."""
        if not self._starts:
            self._expect_blank(lines)
            return
        letters = lines.translate(self._table, LINE_BREAKS)
        if b"\0" in letters:
            raise self._not_letter(lines, letters.index(b"\0"))
        self._unstored.append(letters)
        self._length += len(letters)

    def store(self) -> None:
        """Puts the letters of a block into the array."""
        if self._length > len(self._letters):
            # In place: the memory is remapped, not copied.
            self._letters.resize(max(self._length, int(len(self._letters) * GROWTH)), refcheck=False)
        letters = b"".join(self._unstored)
        self._letters[self._length - len(letters) : self._length] = np.frombuffer(letters, np.uint8)
        self._unstored.clear()

    def finish(self) -> Fasta:
        """All records."""
        if not self._starts:
            raise DataError(f"{self._path}: expected FASTA, found no sequence: the file is empty")
        self._end_record()
        self._letters.resize(self._length, refcheck=False)
        return Fasta(self._names, self._letters, np.array([*self._starts, self._length], np.int64), self._titles)

    def _add_title(self, title: bytes, name: bytes) -> None:
        # Most files of many records have headers that are names, which need no second copy.
        self._titles.append(title if len(title) > len(name) else name)

    def _end_record(self) -> None:
        """Looks at the last record, if any, which is complete."""

    def _expect_blank(self, lines: bytes) -> None:
        start = lines.lstrip(LINE_BREAKS)
        if start:
            hint = "; this looks like FASTQ, which holds reads" if start.startswith(b"@") else ""
            raise DataError(f"{self._path}: expected FASTA, which starts with '>', found {describe_start(start)}{hint}")

    def _not_letter(self, lines: bytes, index: int) -> DataError:
        character = lines.translate(None, LINE_BREAKS)[index : index + 1]
        position = self._length - self._starts[-1] + index + 1
        found = describe_start(character)
        return DataError(f"{self._record()}, position {position}: expected {self._alphabet.letter}, found {found}")

    def _record(self) -> str:
        return f"{self._path}, record {len(self._starts)} ({in_words(self._names[-1])})"


class _Contigs(_Records):
    """Records that have a name of their own each, and a sequence."""

    def __init__(self, path: str) -> None:
        super().__init__(path, Alphabet.NUCLEOTIDES)
        self._numbers: dict[bytes, int] = {}

    def add_header(self, header: bytes) -> None:
        super().add_header(header)
        name = self._names[-1]
        found = CONTIG_NAME.match(name)
        valid = found.end() if found else 0
        if valid < len(name):
            wrong = f"{in_words(name[valid : valid + 1])!r} at character {valid + 1}"
            raise DataError(f"{self._record()}: expected a contig's name as SAM takes it, found {wrong}")
        number = len(self._starts)
        earlier = self._numbers.setdefault(self._names[-1], number)
        if earlier != number:
            raise DataError(f"{self._record()}: record {earlier} has the same name")

    def _add_title(self, title: bytes, name: bytes) -> None:
        """Nobody asks for it."""

    def _end_record(self) -> None:
        if self._starts and self._starts[-1] == self._length:
            raise DataError(f"{self._record()}: expected a sequence, found an empty contig")
