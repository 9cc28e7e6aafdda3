"""The records of a FASTA or FASTQ file as arrays: sequences of any length, to be compared or scanned."""

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

# Of every letter; those that are no nucleotides stay as they are.
COMPLEMENTS = np.arange(256, dtype=np.uint8)
COMPLEMENTS[np.frombuffer(b"ACGTRYSWKMBDHVN", np.uint8)] = np.frombuffer(b"TGCAYRSWMKVHDBN", np.uint8)


@dataclass(frozen=True)
class Sequences:
    """Named sequences, in the order of their file; they may be empty, and names may be repeated.

    names: up to the first blank of each header, without '>' or '@'.
    letters: uint8, upper-case, of all sequences without anything between them: IUPAC's of nucleotides, with T for U, or
        A to Z and '*' of proteins.
    offsets: int64 [sequences + 1]: sequence i is letters[offsets[i]:offsets[i + 1]].
    titles: the whole headers, without '>' or '@' and blanks at the end; the names where none are given.
    """

    names: list[bytes]
    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    titles: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.titles:
            object.__setattr__(self, "titles", self.names)

    @classmethod
    def of(cls, names: list[bytes], parts: Iterable[Any]) -> Sequences:
        """The sequences of these names; parts: bytes or uint8, the letters of each as they are kept."""
        letters = list(parts)
        offsets = np.cumsum([0, *map(len, letters)], dtype=np.int64)
        return cls(names, np.frombuffer(b"".join(letters), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [sequences], letters of each."""
        return np.diff(self.offsets)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """The letters of each, as views."""
        offsets = self.offsets.tolist()
        return (self.letters[start:end] for start, end in pairwise(offsets))

    def between(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The letters of each from its start to its end, behind each other."""
        if len(self) == 1:
            return self.letters[starts[0] : ends[0]]
        # Steps up and down whose sum is 1 within the parts and 0 between them: no array of indices.
        steps = np.zeros(len(self.letters) + 1, np.int8)
        np.add.at(steps, self.offsets[:-1] + starts, 1)
        np.subtract.at(steps, self.offsets[:-1] + ends, 1)
        return self.letters[np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)]

    def part(self, first: int, end: int) -> Sequences:
        """The sequences from `first` to before `end`, as views."""
        offsets = self.offsets[first : end + 1]
        letters = self.letters[offsets[0] : offsets[-1]]
        return Sequences(self.names[first:end], letters, offsets - offsets[0], self.titles[first:end])

    def reverse_complements(self) -> Sequences:
        """The reverse complement of each, of nucleotides."""
        # All of it backwards has the sequences in the wrong order, but one alone needs no array of indices.
        letters = self.letters[::-1]
        if len(self) > 1:
            ends = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, self.lengths)
            letters = self.letters[ends - np.arange(len(self.letters))]
        return replace(self, letters=COMPLEMENTS[letters])


def checked(name: str, text: str | bytes | NDArray[np.uint8], alphabet: Alphabet) -> bytes:
    """The letters of a text as sequences keep them; raises DataError where one is none of the alphabet's."""
    letters = text.encode() if isinstance(text, str) else bytes(text)
    kept = letters.translate(alphabet.table)
    if (place := kept.find(b"\0")) >= 0:
        found = letters[place : place + 1]
        raise DataError(f"{name}, position {place + 1}: expected {alphabet.letter}, found {found!r}")
    return kept


def joined(parts: Sequence[Sequences]) -> Sequences:
    """All sequences of all parts, of which there is at least one."""
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
    """The records of a FASTA or FASTQ file, plain, gzip or bgzip; "-" is standard input. FASTQ has no proteins.

    threads: how many read or inflate. progress: called with the (inflated) bytes of FASTA read so far.
    Raises DataError where the file is neither, is empty, or has a record without a name, a broken one, or one with a
    character that is no letter of the alphabet; and OSError from reading.
    """
    with open_bytes(path, threads, HOST_INFLATERS) as source:
        start, whole = peek(source)
        with whole:
            if start.startswith(b"@") and alphabet is Alphabet.NUCLEOTIDES:
                return joined([*_read_fastq(whole)])
            fasta = read_records(whole, alphabet, progress)
    return Sequences(fasta.names, fasta.letters, fasta.offsets, fasta.titles)


def read_sequences_guessing_alphabet(
    path: str, threads: int = 1, progress: Callable[[int], None] | None = None
) -> tuple[Sequences, Alphabet]:
    """The records as `read_sequences` gives them, and their alphabet, guessed from the file's first megabyte."""
    with open_bytes(path, threads, HOST_INFLATERS) as source:
        start, whole = peek(source)
        alphabet = guess_alphabet(start)
        return read_sequences(whole, threads, alphabet, progress), alphabet


def peek(source: ByteSource) -> tuple[bytes, ByteSource]:
    """The first megabyte of a source, or less if that is all, and another source of all that there is."""
    buffer = bytearray(BLOCK_BYTES)
    start = bytes(buffer[: source.readinto(memoryview(buffer))])
    return start, GeneratorSource(source.name, _pieces(source, start))


def _pieces(source: ByteSource, start: bytes) -> Generator[bytes, None, None]:
    """All of a source whose first bytes have been read."""
    if start:
        yield start
    target = memoryview(bytearray(BLOCK_BYTES))
    while count := source.readinto(target):
        yield bytes(target[:count])


def _read_fastq(source: ByteSource) -> Iterator[Sequences]:
    for chunk in read_chunks([source], lambda nbytes: np.empty(nbytes, np.uint8), CHUNK_BYTES):
        yield _of_chunk(chunk)
        chunk.release()


def _of_chunk(chunk: Chunk) -> Sequences:
    """A chunk of FASTQ, checked."""
    data = chunk.parts[0]
    ends = np.flatnonzero(data == NEWLINE).reshape(-1, chunk.format.value)
    starts = np.concatenate([[0], ends.ravel()[:-1] + 1]).reshape(ends.shape)
    # Of lines that end with CR LF.
    ends = ends - ((ends > starts) & (data[ends - 1] == CARRIAGE_RETURN))
    sizes = ends - starts
    text = data.tobytes()
    titles, sequences, separators, qualities = (
        [text[start:end] for start, end in zip(starts[:, line].tolist(), ends[:, line].tolist(), strict=True)]
        for line in range(4)
    )
    letters = np.frombuffer(b"".join(sequences).translate(Alphabet.NUCLEOTIDES.table), np.uint8)
    offsets = np.concatenate([[0], np.cumsum(sizes[:, 1])])
    _refuse_bad(chunk, data[starts], sizes, letters, np.frombuffer(b"".join(qualities), np.uint8))
    names = [_name(chunk, number, title) for number, title in enumerate(titles)]
    for number, (name, separator) in enumerate(zip(names, separators, strict=True)):
        if separator[1:] and re.split(rb"[ \t]", separator[1:])[0] not in (b"", name):
            raise chunk.error(BadRecord(number, bad_records.OTHER_NAME))
    return Sequences(names, letters, offsets, [_title(*pair) for pair in zip(titles, names, strict=True)])


def _refuse_bad(
    chunk: Chunk,
    marks: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    letters: NDArray[np.uint8],
    qualities: NDArray[np.uint8],
) -> None:
    """Raise DataError for the first record that is no FASTQ. marks, sizes: first bytes and lengths of its lines."""
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
    """All behind the '@' of a title line; where that is the name, no copy of it."""
    title = line[1:].rstrip()
    return title if len(title) > len(name) else name


def _name(chunk: Chunk, number: int, title: bytes) -> bytes:
    """The name behind the '@' of a title line."""
    if not title[1:2].strip():
        record = chunk.first_record + number + 1
        raise DataError(f"{chunk.paths[0]}, record {record}: expected a name behind '@', found none")
    return title[1:].split(maxsplit=1)[0]
