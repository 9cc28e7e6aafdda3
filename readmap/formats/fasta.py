"""Parse FASTA into one array of letters; errors of FASTA."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.alphabets import Alphabet
from readmap.formats.byte_source import ByteSource, describe_start
from readmap.formats.newlines import LINE_BREAKS
from readmap.formats.wording import decode_name

# A block, its parts and their translations stay in the cache together.
BLOCK_BYTES = 1 << 20
# Names of contigs in SAM (specification, section 1.2.1).
CONTIG_NAME = re.compile(rb"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
# Growth factor of the array of letters, which bounds its unused memory.
GROWTH = 1.25
EMPTY_FILE = "expected FASTA, found no sequence: the file is empty"


@dataclass(frozen=True)
class Contig:
    """A sequence of the reference."""

    name: str
    length: int
    md5: str  # of its upper-case letters
    alternate: bool = False  # an ALT contig, another version of a part of the primary assembly


@dataclass(frozen=True)
class Fasta:
    """The records of a FASTA file, in file order."""

    names: list[bytes]  # headers up to the first whitespace, not empty
    letters: NDArray[np.uint8]  # uint8, the concatenated sequences in upper case, with T for U in nucleotides
    offsets: NDArray[np.int64]  # [records + 1]; record i is letters[offsets[i]:offsets[i + 1]]
    titles: list[bytes] = field(default_factory=list)  # headers without '>' and trailing space


def record_name(path: str, number: int, header: bytes) -> bytes:
    """Return the name, the first word of a header without '>'. Raises DataError about record `number` if missing."""
    if not header or header[:1].isspace():
        raise DataError(f"{path}, record {number}: expected a name after '>', found none")
    return header.split(maxsplit=1)[0]


def describe_record(path: str, number: int, name: bytes) -> str:
    """Return what messages call a record; number: 1-based."""
    return f"{path}, record {number} ({decode_name(name)})"


def expect_no_sequence(path: str, lines: bytes) -> None:
    """Raise DataError if the lines before the first header are not blank."""
    start = lines.lstrip(LINE_BREAKS)
    if start:
        hint = "; this looks like FASTQ, which holds reads" if start.startswith(b"@") else ""
        raise DataError(f"{path}: expected FASTA, which starts with '>', found {describe_start(start)}{hint}")


def invalid_letter(record: str, position: int, character: bytes, alphabet: Alphabet) -> DataError:
    """Return the error for an invalid character; record: from `describe_record`; position: 1-based."""
    return DataError(f"{record}, position {position}: expected {alphabet.letter}, found {describe_start(character)}")


def read_records(source: ByteSource, alphabet: Alphabet, progress: Callable[[int], None] | None = None) -> Fasta:
    """Parse a FASTA file: lines of any length, LF or CRLF, upper or lower case, blank lines anywhere.

    Records may be empty, and names may be repeated. progress: called with the decompressed bytes read so far, about
    once per megabyte. Peak memory is 1.25 bytes per letter. Raises DataError if there is no record, a record without a
    name, or a character that is not in the alphabet, and what `source` raises.
    """
    records = _Records(source.name, alphabet)
    target = memoryview(bytearray(BLOCK_BYTES))
    # The line break before the next block, so that each header, also the first, starts with "\n>".
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
    """Add a block of text to the records; return what to put before the next block: a header or a line break."""
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
    def __init__(self, path: str, alphabet: Alphabet) -> None:
        self._path = path
        self._alphabet = alphabet
        self._names: list[bytes] = []
        self._titles: list[bytes] = []
        self._starts: list[int] = []
        self._table = alphabet.table
        self._letters = np.empty(BLOCK_BYTES, np.uint8)
        # Letters of the current block, stored together: storing many short records one by one is slow.
        self._unstored: list[bytes] = []
        self._length = 0

    def add_header(self, header: bytes) -> None:
        """Start a record; header: without '>'."""
        name, title = record_name(self._path, len(self._starts) + 1, header), header.rstrip()
        self._names.append(name)
        self._starts.append(self._length)
        # Most files with many records have no descriptions, so that titles are names.
        self._titles.append(title if len(title) > len(name) else name)

    def add_sequence(self, lines: bytes) -> None:
        """Append lines to the current record; before the first record, expect blank lines."""
        if not self._starts:
            expect_no_sequence(self._path, lines)
            return
        letters = lines.translate(self._table, LINE_BREAKS)
        if b"\0" in letters:
            raise self._invalid_letter_error(lines, letters.index(b"\0"))
        self._unstored.append(letters)
        self._length += len(letters)

    def store(self) -> None:
        """Append the letters added since the last call to the array of all letters, which grows if necessary."""
        if self._length > len(self._letters):
            # resize remaps the memory and does not copy it.
            self._letters.resize(max(self._length, int(len(self._letters) * GROWTH)), refcheck=False)
        letters = b"".join(self._unstored)
        self._letters[self._length - len(letters) : self._length] = np.frombuffer(letters, np.uint8)
        self._unstored.clear()

    def finish(self) -> Fasta:
        """Return all records. Raises DataError if the file has no record."""
        if not self._starts:
            raise DataError(f"{self._path}: {EMPTY_FILE}")
        self._letters.resize(self._length, refcheck=False)
        return Fasta(self._names, self._letters, np.array([*self._starts, self._length], np.int64), self._titles)

    def _invalid_letter_error(self, lines: bytes, index: int) -> DataError:
        """Return the error for letter `index` of `lines`, line breaks not counted."""
        character = lines.translate(None, LINE_BREAKS)[index : index + 1]
        position = self._length - self._starts[-1] + index + 1
        return invalid_letter(
            describe_record(self._path, len(self._starts), self._names[-1]), position, character, self._alphabet
        )
