"""The records of a FASTA or FASTQ file as arrays: sequences of any length, for compare and scan."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.alphabets import Alphabet, guess_alphabet
from readmap.formats.byte_source import ByteSource, GeneratorSource, open_bytes
from readmap.formats.fasta import BLOCK_BYTES, read_records
from readmap.formats.newlines import CARRIAGE_RETURN, NEWLINE
from readmap.reads import bad_records
from readmap.reads.bad_records import BadRecord
from readmap.reads.chunks import Chunk, read_chunks
from readmap.reads.inflaters import HOST_INFLATERS

CHUNK_BYTES = 16 << 20

# The complement of every letter; letters that are not nucleotides stay unchanged.
COMPLEMENTS = np.arange(256, dtype=np.uint8)
COMPLEMENTS[np.frombuffer(b"ACGTRYSWKMBDHVN", np.uint8)] = np.frombuffer(b"TGCAYRSWMKVHDBN", np.uint8)


@dataclass(frozen=True)
class Sequences:
    """Named sequences in file order; sequences may be empty, and names may be repeated."""

    names: list[bytes]  # first word of each header, without '>' or '@'
    #: The concatenated sequences in upper case: IUPAC nucleotides with T for U, or A to Z and '*' for proteins.
    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # [sequences + 1]: sequence i is letters[offsets[i]:offsets[i + 1]]
    titles: list[bytes] = field(default_factory=list)  # whole headers without '>' or '@' and trailing blanks

    def __post_init__(self) -> None:
        if not self.titles:
            object.__setattr__(self, "titles", self.names)

    @classmethod
    def of(cls, names: list[bytes], parts: Iterable[Any]) -> Sequences:
        """Make sequences of these names. parts: bytes or uint8, the normalized letters of each sequence."""
        letters = list(parts)
        offsets = np.cumsum([0, *map(len, letters)], dtype=np.int64)
        return cls(names, np.frombuffer(b"".join(letters), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [sequences], the length of each sequence."""
        return np.diff(self.offsets)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the letters of each sequence as a view."""
        offsets = self.offsets.tolist()
        return (self.letters[start:end] for start, end in pairwise(offsets))

    def between(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the concatenated letters of each sequence from its start to its end, int64 [sequences] each."""
        if len(self) == 1:
            return self.letters[starts[0] : ends[0]]
        # The cumulative sum of `steps` is 1 inside the parts and 0 between them; this needs no array of indices.
        steps = np.zeros(len(self.letters) + 1, np.int8)
        np.add.at(steps, self.offsets[:-1] + starts, 1)
        np.subtract.at(steps, self.offsets[:-1] + ends, 1)
        return self.letters[np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)]

    def part(self, first: int, end: int) -> Sequences:
        """Return the sequences [first, end) as views."""
        offsets = self.offsets[first : end + 1]
        letters = self.letters[offsets[0] : offsets[-1]]
        return Sequences(self.names[first:end], letters, offsets - offsets[0], self.titles[first:end])

    def reverse_complements(self) -> Sequences:
        """Return the reverse complement of each nucleotide sequence."""
        # Reversing all letters also reverses the order of the sequences; a single sequence needs no array of indices.
        letters = self.letters[::-1]
        if len(self) > 1:
            ends = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, self.lengths)
            letters = self.letters[ends - np.arange(len(self.letters))]
        return replace(self, letters=COMPLEMENTS[letters])


def normalize_letters(name: str, text: str | bytes | NDArray[np.uint8], alphabet: Alphabet) -> bytes:
    """Return a text's letters in upper case. Raises DataError about `name` for a letter that is not in the alphabet."""
    letters = text.encode() if isinstance(text, str) else bytes(text)
    kept = letters.translate(alphabet.table)
    if (position := kept.find(b"\0")) >= 0:
        found = letters[position : position + 1]
        raise DataError(f"{name}, position {position + 1}: expected {alphabet.letter}, found {found!r}")
    return kept


def concatenate(parts: Sequence[Sequences]) -> Sequences:
    """Return the sequences of all parts, at least one, as one Sequences."""
    names = [name for part in parts for name in part.names]
    titles = [title for part in parts for title in part.titles]
    offsets = np.cumsum(np.concatenate([[0], *(part.lengths for part in parts)]), dtype=np.int64)
    return Sequences(names, np.concatenate([part.letters for part in parts]), offsets, titles)


def read_sequences(
    path: str | ByteSource,
    threads: int = 1,
    alphabet: Alphabet = Alphabet.NUCLEOTIDES,
    progress: Callable[[int], None] | None = None,
) -> Sequences:
    """Read a FASTA or FASTQ file, plain, gzip or bgzip; "-" is standard input. Proteins must be FASTA.

    threads: for reading or inflating. progress: called with the bytes of FASTA text read so far.
    Raises DataError if the file is neither FASTA nor FASTQ or is empty, or if a record has no name, is invalid, or has
    a character that is not in the alphabet; and OSError from reading.
    """
    with open_bytes(path, threads, HOST_INFLATERS) as source:
        start, whole = peek(source)
        with whole:
            if start.startswith(b"@") and alphabet is Alphabet.NUCLEOTIDES:
                return concatenate([*_read_fastq(whole)])
            fasta = read_records(whole, alphabet, progress)
    return Sequences(fasta.names, fasta.letters, fasta.offsets, fasta.titles)


def read_sequences_guessing_alphabet(
    path: str, threads: int = 1, progress: Callable[[int], None] | None = None
) -> tuple[Sequences, Alphabet]:
    """Read a FASTA or FASTQ file; return its sequences and the alphabet, guessed from the first megabyte."""
    with open_bytes(path, threads, HOST_INFLATERS) as source:
        start, whole = peek(source)
        alphabet = guess_alphabet(start)
        return read_sequences(whole, threads, alphabet, progress), alphabet


def peek(source: ByteSource) -> tuple[bytes, ByteSource]:
    """Return the first megabyte of a source, or less at its end, and a new source of the whole input."""
    buffer = bytearray(BLOCK_BYTES)
    start = bytes(buffer[: source.readinto(memoryview(buffer))])
    return start, GeneratorSource(source.name, _pieces(source, start))


def _pieces(source: ByteSource, start: bytes) -> Generator[bytes, None, None]:
    """Yield `start`, already read, and the rest of the source."""
    if start:
        yield start
    target = memoryview(bytearray(BLOCK_BYTES))
    while count := source.readinto(target):
        yield bytes(target[:count])


def _read_fastq(source: ByteSource) -> Iterator[Sequences]:
    for chunk in read_chunks([source], lambda nbytes: np.empty(nbytes, np.uint8), CHUNK_BYTES):
        yield _parse_chunk(chunk)
        chunk.release()


def _parse_chunk(chunk: Chunk) -> Sequences:
    """Return the sequences of a chunk of FASTQ. Raises DataError for an invalid record."""
    data = chunk.parts[0]
    ends = np.flatnonzero(data == NEWLINE).reshape(-1, chunk.format.value)
    starts = np.concatenate([[0], ends.ravel()[:-1] + 1]).reshape(ends.shape)
    # Without CR before LF.
    ends = ends - ((ends > starts) & (data[ends - 1] == CARRIAGE_RETURN))
    sizes = ends - starts
    text = data.tobytes()
    columns = zip(starts.T.tolist(), ends.T.tolist(), strict=True)
    titles, sequences, separators, qualities = ([text[a:b] for a, b in zip(*column, strict=True)] for column in columns)
    letters = np.frombuffer(b"".join(sequences).translate(Alphabet.NUCLEOTIDES.table), np.uint8)
    offsets = np.concatenate([[0], np.cumsum(sizes[:, 1])])
    _check_records(chunk, data[starts], sizes, letters, np.frombuffer(b"".join(qualities), np.uint8))
    names = [_parse_name(chunk, number, title) for number, title in enumerate(titles)]
    for number, (name, separator) in enumerate(zip(names, separators, strict=True)):
        if separator[1:] and re.split(rb"[ \t]", separator[1:])[0] not in (b"", name):
            raise chunk.error(BadRecord(number, bad_records.OTHER_NAME))
    return Sequences(names, letters, offsets, [_title(*pair) for pair in zip(titles, names, strict=True)])


def _check_records(
    chunk: Chunk,
    marks: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    letters: NDArray[np.uint8],
    qualities: NDArray[np.uint8],
) -> None:
    """Raise DataError for the first invalid record. marks, sizes: first byte and length of each line [records, 4]."""
    offsets, quality_ends = np.concatenate([[0], np.cumsum(sizes[:, 1])]), np.cumsum(sizes[:, 3])
    no_quality = np.flatnonzero((qualities < ord("!")) | (qualities > ord("~")))
    faults = (
        (np.flatnonzero(marks[:, 0] != ord("@")), bad_records.NO_HEADER),
        (np.flatnonzero(marks[:, 2] != ord("+")), bad_records.NO_SEPARATOR),
        (np.flatnonzero(sizes[:, 1] != sizes[:, 3]), bad_records.QUALITY_LENGTH),
        (offsets.searchsorted(np.flatnonzero(letters == 0), "right") - 1, bad_records.NOT_A_BASE),
        (quality_ends.searchsorted(no_quality, "right"), bad_records.QUALITY_RANGE),
    )
    if found := [BadRecord(int(records[0]), code) for records, code in faults if len(records)]:
        raise chunk.error(min(found))


def _title(line: bytes, name: bytes) -> bytes:
    """Return the text after '@' of a title line; `name` itself, not a copy, if they are equal."""
    title = line[1:].rstrip()
    return title if len(title) > len(name) else name


def _parse_name(chunk: Chunk, number: int, title: bytes) -> bytes:
    """Return the name after '@' of the title line of record `number` of a chunk. Raises DataError if it is missing."""
    if not title[1:2].strip():
        record = chunk.first_record + number + 1
        raise DataError(f"{chunk.paths[0]}, record {record}: expected a name after '@', found none")
    return title[1:].split(maxsplit=1)[0]
