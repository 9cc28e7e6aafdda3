"""The bytes of BAM -> the text of its primary records, as reads that were sequenced, and what mates have in common."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.errors import DataError
from readmap.reads.bad_records import MAX_READ_LENGTH

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

#: Where the parts of a read lie in its text: struct Place of kernels/reads/bam_records.cu.
PLACE = row_dtype("reads/bam_records.cu", "Place")
PLACE_WORDS = PLACE.itemsize // 8

HAS_QUALITY = constant("reads/bam_records.cu", "HAS_QUALITY")

#: The fewest bytes of a record, with those of its size.
LEAST_BYTES = constant("reads/bam_records.cu", "LEAST_SIZE") + 4
MOST_SIZE = constant("reads/bam_records.cu", "MOST_SIZE")

FIXED_BYTES = constant("common/bam_fields.cuh", "FIELDS")

BAD_NAME, BAD_LENGTHS, BAD_PLACE, BAD_TAG, BAD_LETTER, BAD_QUALITY, LONG_READ = (
    constant("reads/bam_records.cu", name)
    for name in ("BAD_NAME", "BAD_LENGTHS", "BAD_PLACE", "BAD_TAG", "BAD_LETTER", "BAD_QUALITY", "LONG_READ")
)

#: Of KeptTags: every tag.
ALL_TAGS = ("*",)

_FIND, _EXAMINE = Kernel("reads/bam_records", "find_records"), Kernel("reads/bam_records", "examine_records")
_WRITE, _COPY = Kernel("reads/bam_records", "write_reads"), Kernel("reads/bam_records", "copy_reads")
_COMPARE = Kernel("reads/bam_records", "compare_mates")


@dataclass(frozen=True)
class KeptTags:
    """The tags that stand behind a read's name: struct KeptTags of kernels/reads/bam_records.cu."""

    names: Bytes
    count: int
    all: bool

    @classmethod
    def of(cls, tags: Sequence[str]) -> KeptTags:
        """tags: their names, or ALL_TAGS."""
        named = [] if tuple(tags) == ALL_TAGS else list(tags)
        return cls(np.frombuffer("".join(named).encode(), np.uint8), len(named), tuple(tags) == ALL_TAGS)

    def holds(self, name: bytes) -> bool:
        """Whether a tag of that name is kept."""
        return self.all or any(self.names[2 * i : 2 * i + 2].tobytes() == name for i in range(self.count))


@dataclass(frozen=True)
class Records:
    """Whole records, examined.

    Attributes:
        bytes: uint8, in which they lie; starts: int64 [records + 1], where each begins, and the end of the last one.
        flags: uint16 [records]; hashes: uint64 [records], of name and read group; lengths: int64 [records], bytes of
            the text of primary ones, 0 of others.
        fault: name and fault of the first one that is none, in words; None where all are good.
    """

    bytes: Bytes
    starts: Integers
    flags: NDArray[np.uint16]
    hashes: NDArray[np.uint64]
    lengths: Integers
    fault: str | None

    def __len__(self) -> int:
        return len(self.flags)


@dataclass(frozen=True)
class Texts:
    """Reads as text.

    Attributes:
        text: uint8. places: PLACE [reads], where the parts of each lie in it.
        lengths: int64 [reads], bytes of each.
    """

    text: Bytes
    places: NDArray[Any]
    lengths: Integers

    def at(self, rows: Integers) -> Texts:
        """Some of them."""
        return Texts(self.text, as_places(as_words(self.places)[rows]), self.lengths[rows])

    def copied(self, into: Bytes, begin: int, backend: Backend) -> Texts:
        """The same, their texts copied behind each other, from `begin` on."""
        starts = np.cumsum(self.lengths) - self.lengths + begin
        backend.launch(
            _COPY,
            len(starts),
            bytes=self.text,
            starts=np.ascontiguousarray(self.places["start"]),
            lengths=self.lengths,
            new_starts=starts,
            text=into,
        )
        places = self.places.copy()
        places["start"] = starts
        return Texts(into, places, self.lengths)

    def keys(self) -> list[bytes]:
        """What mates have in common: the name and the read group of each."""
        return [self._key(place) for place in self.places]

    def _key(self, place: Any) -> bytes:
        start, size = int(place["start"]), int(place["group_length"])
        name = self.text[start : start + int(place["name_length"])].tobytes()
        if size < 0:
            return name
        group = start + int(place["header_length"]) + int(place["length"]) * (1 + bool(place["marks"] & HAS_QUALITY))
        return name + b"\0" + self.text[group : group + size].tobytes()


def as_words(places: NDArray[Any]) -> Integers:
    """PLACE [reads] as rows of words, which NumPy takes faster and kernels take alone."""
    return places.view(np.int64).reshape(-1, PLACE_WORDS)


def as_places(words: Integers) -> NDArray[Any]:
    """The rows as PLACE [reads]."""
    places: NDArray[Any] = words.view(PLACE).reshape(-1)
    return places


def find_records(data: Bytes, most: int, backend: Backend) -> tuple[Integers, int]:
    """Where the whole records at the front of `data` begin, at most so many, and where the last one ends."""
    most = min(most, len(data) // LEAST_BYTES)
    starts, found = np.empty(most, np.int64), np.zeros(2, np.int64)
    backend.launch(_FIND, 1, bytes=data, starts=starts, found=found, size=len(data), most=most)
    count, end = found.tolist()
    return np.append(starts[:count], end), end


def wrong_size(data: Bytes) -> str | None:
    """What is wrong with the size that the record at the front of `data` gives for itself, in words."""
    if len(data) < 4:
        return None
    size = int(data[:4].view(np.int32)[0])
    if LEAST_BYTES - 4 <= size <= MOST_SIZE:
        return None
    return f"expected a size of {LEAST_BYTES - 4} to {MOST_SIZE} bytes, found {size}"


def examine(data: Bytes, starts: Integers, kept: KeptTags, contigs: int, backend: Backend) -> Records:
    """The records up to the first one that is none. contigs: how many the header has."""
    count = len(starts) - 1
    flags, hashes = np.empty(count, np.uint16), np.empty(count, np.uint64)
    lengths, error = np.empty(count, np.int64), np.full(1, -1, np.int64).view(np.uint64)
    backend.launch(
        _EXAMINE,
        count,
        bytes=data,
        starts=starts,
        kept=kept,
        flags=flags,
        hashes=hashes,
        lengths=lengths,
        error=error,
        contigs=contigs,
        longest_read=MAX_READ_LENGTH,
    )
    bad, code = int(error[0]) >> 8, int(error[0]) & 255
    if bad >= count:
        return Records(data, starts, flags, hashes, lengths, None)
    record = data[starts[bad] : starts[bad + 1]].tobytes()
    fault = f"({name_of(record)}): {describe(record, code, kept, contigs)}"
    return Records(data, starts[: bad + 1], flags[:bad], hashes[:bad], lengths[:bad], fault)


def write_reads(records: Records, selected: Integers, kept: KeptTags, text: Bytes, backend: Backend) -> Texts:
    """The text of primary records at the front of `text`, which has room for it."""
    lengths = records.lengths[selected]
    rows = np.empty((len(selected), PLACE_WORDS), np.int64)
    backend.launch(
        _WRITE,
        len(selected),
        bytes=records.bytes,
        starts=records.starts,
        selected=selected,
        text_ends=np.cumsum(lengths),
        kept=kept,
        text=text,
        places=rows,
    )
    return Texts(text, as_places(rows), lengths)


def compare_mates(first: Texts, firsts: Integers, second: Texts, seconds: Integers, backend: Backend) -> Bytes:
    """uint8 [pairs], 1 where the names and read groups of two reads are the same."""
    same = np.empty(len(firsts), np.uint8)
    backend.launch(
        _COMPARE,
        len(firsts),
        first_text=first.text,
        first_places=as_words(first.places)[firsts],
        second_text=second.text,
        second_places=as_words(second.places)[seconds],
        same=same,
    )
    return same


def name_of(record: bytes) -> str:
    """The name of a record in messages, as far as it has one."""
    size = record[12] if len(record) > FIXED_BYTES else 0
    name = record[FIXED_BYTES : FIXED_BYTES + size].split(b"\0")[0]
    return name.decode("ascii", "backslashreplace") or "unnamed"


def describe(record: bytes, code: int, kept: KeptTags, contigs: int) -> str:
    """What is expected of a record, and what was found, in words; code: a BamError of kernels/reads/bam_records.cu."""
    contig, size, operations, length, mate_contig = struct.unpack_from("<i4xB3xH2xii", record, 4)
    bases = FIXED_BYTES + size + 4 * operations
    qualities = bases + (length + 1) // 2
    if code == BAD_NAME:
        name = record[FIXED_BYTES : FIXED_BYTES + size]
        return f"expected a name of '!' to '~' without '@', and a NUL behind it, found {name[:30]!r}"
    if code == BAD_LENGTHS:
        if length < 0:
            return f"expected a number of bases, found {length}"
        needed = qualities + length
        return f"expected {needed} bytes of name, CIGAR, {length} bases and qualities, found {len(record)}"
    if code == BAD_PLACE:
        return f"expected contigs of -1 to {contigs - 1}, found {contig} and {mate_contig}"
    if code == LONG_READ:
        return f"the read has {length} bases, at most {MAX_READ_LENGTH} are mapped"
    if code == BAD_LETTER:
        place = next(i for i in range(length) if not record[bases + i // 2] >> (0 if i % 2 else 4) & 15)
        return f"expected a nucleotide at base {place + 1}, found '='"
    if code == BAD_QUALITY:
        place = next(i for i, phred in enumerate(record[qualities : qualities + length]) if phred > 93)
        return f"expected a quality of 0 to 93 at base {place + 1}, found {record[qualities + place]}"
    return _describe_tag(record, qualities + length, kept)


def _describe_tag(record: bytes, at: int, kept: KeptTags) -> str:
    """The first tag that is broken, or that is kept and no line of SAM can hold."""
    number = 1
    expected = "a tag of the type A, c, C, s, S, i, I, f, Z, H or B whose value ends within the record"
    while at < len(record):
        value = at + 3
        size = _value_bytes(record, value - 1)
        if size is None:
            break
        text = record[at : value + size]
        if kept.holds(text[:2]) and not _is_writable(text):
            expected = "a tag that SAM can hold"
            break
        at, number = value + size, number + 1
    return f"expected {expected}, found {record[at : at + 30]!r} as tag {number}"


_SIZES = {b"A": 1, b"c": 1, b"C": 1, b"s": 2, b"S": 2, b"i": 4, b"I": 4, b"f": 4, b"d": 8}


def _value_bytes(record: bytes, at: int) -> int | None:
    """Of the value behind a type; None where it does not end within the record."""
    kind, left = record[at : at + 1], len(record) - at - 1
    if kind in (b"Z", b"H"):
        end = record.find(b"\0", at + 1)
        return None if end < 0 else end - at
    if kind == b"B":
        element = _SIZES.get(record[at + 1 : at + 2], 0)
        if left < 5 or not element or record[at + 1 : at + 2] in (b"A", b"d"):
            return None
        size = 5 + element * int(struct.unpack_from("<I", record, at + 2)[0])
    else:
        size = _SIZES.get(kind, left + 1)
    return size if size <= left else None


def _is_writable(tag: bytes) -> bool:
    """As is_writable of kernels/reads/bam_records.cu."""
    name, kind, value = tag[:2].decode("latin-1"), tag[2:3], tag[3:]
    if not (name.isascii() and name[0].isalpha() and name.isalnum()) or kind == b"d":
        return False
    if kind == b"H":
        return len(value) % 2 == 1 and all(byte in b"0123456789ABCDEF" for byte in value[:-1])
    if kind in (b"A", b"Z"):
        text = value.removesuffix(b"\0") if kind == b"Z" else value
        return all(32 <= byte <= 126 for byte in text) and (kind == b"Z" or text != b" ")
    return True


def contigs_and_text(read: Any, name: str) -> tuple[list[tuple[str, int]], bytes]:
    """Of a header names and lengths of its contigs, and its text. read: gives so many bytes, or fewer at the end.

    Raises DataError where the header is none.
    """

    def number(what: str, least: int) -> int:
        data = read(4)
        value = struct.unpack("<i", data)[0] if len(data) == 4 else None
        if value is None or value < least:
            found = f"{value}" if value is not None else "the end of the data"
            raise DataError(f"{name}: the header of BAM is broken: expected {what}, found {found}")
        return int(value)

    def text_of(what: str, length: int) -> bytes:
        data: bytes = read(length)
        if len(data) < length:
            found = f"the end of the data after {len(data)}"
            raise DataError(f"{name}: the header of BAM is broken: expected {what} of {length} bytes, found {found}")
        return data

    text_of("its magic", 4)
    text = text_of("a text", number("the length of its text", 0))
    count, contigs = number("a number of contigs", 0), []
    for contig in range(1, count + 1):
        title = text_of(f"the name of contig {contig}", number(f"the length of the name of contig {contig}", 1))
        if not title.endswith(b"\0"):
            raise DataError(f"{name}: the header of BAM is broken: expected a NUL behind the name of contig {contig}")
        contigs.append((title[:-1].decode("utf-8", "surrogateescape"), number(f"the length of contig {contig}", 0)))
    return contigs, text.split(b"\0")[0]
